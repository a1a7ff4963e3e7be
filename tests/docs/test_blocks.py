"""Every block of code in README and docs is run: Python as it stands, commands as far as it goes.

The Python blocks of a page are one program: they share their names and run in their order. A block
is left out only with a reason, in a comment on the line before it: ``<!-- skip: needs a GPU -->``.
A block of ``text`` right after one of Python, or of commands, shows what that printed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from pages import ROOT, Block, blocks, is_slow, name_of, needs_recordings, pages, shape_of

from motifold.cli import main

RECORDINGS = ROOT.parent / "shared" / "data"
SHELLS = {"sh", "console", "bash"}
# Languages that are shown and not run: output, other people's languages, files.
SHOWN = {"text", "matlab", "julia", "bibtex", "toml", "yaml", "json", "ini", "html", "r"}
# Directives of Sphinx that hold no code of ours.
DIRECTIVES = {"{toctree}", "{eval-rst}", "{include}", "{command-line}", "{math}", "{note}", "{tip}",
              "{warning}", "{figure}", "{image}", "{list-table}", "{important}", "{seealso}",
              "{admonition}", "{table}", "{grid}", "{glossary}", "{picture}",
              "{drawn}"}  # fmt: skip
MOST_SKIPS = 6  # in all pages; each has its reason beside it


def cases(chosen: list[Path]) -> list[object]:
    slow = [pytest.mark.slow]
    return [
        pytest.param(page, marks=slow if is_slow(page) else [], id=name_of(page)) for page in chosen
    ]


def has(page: Path, *languages: str) -> bool:
    return any(block.language in languages for block in blocks(page))


PYTHON_PAGES = [
    page for page in pages() if has(page, "pycon") or any(block.runs for block in blocks(page))
]
SHELL_PAGES = [page for page in pages() if has(page, *SHELLS)]


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in, with a matplotlib that opens no windows.

    What a page adds to our registries is taken out again.
    """
    import matplotlib

    from motifold.io.reading import READERS

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    if RECORDINGS.is_dir():
        monkeypatch.setenv("MOTIFOLD_DATA", str(RECORDINGS))
    modules, readers = dict(sys.modules), dict(READERS)
    yield tmp_path
    plt.close("all")
    for name in [name for name in sys.modules if name.startswith("motifold.")]:
        if name not in modules and sys.modules[name].__name__ == "page":
            del sys.modules[name]
    READERS.clear()
    READERS.update(readers)


@pytest.mark.parametrize("page", cases(PYTHON_PAGES))
def test_python_runs(page, desk, monkeypatch):
    if needs_recordings(page) and not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are absent: put them in {RECORDINGS}")
    lay_out_files(desk)
    # As a module, so that a class of the page can be pickled and found by dataclasses.
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    printed = ""
    for block in blocks(page):
        if block.skip is not None:
            continue
        if block.runs:
            printed = run_python(page, block, module)
        elif block.language == "pycon":
            run_session(page, block, module)
        elif block.language == "text" and block.after_python:
            assert shape_of(printed) == shape_of(block.code), f"{name_of(page)}:{block.line}"


def run_python(page: Path, block: Block, module: types.ModuleType) -> str:
    """Run a block; what it printed. Errors are reported at their line of the page."""
    code = "\n" * block.line + block.code
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(page), "exec"), vars(module))
    return printed.getvalue()


def run_session(page: Path, block: Block, module: types.ModuleType) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.code, vars(module), name_of(page), str(page), block.line
    )
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    vars(module).update(test.globs)
    assert not runner.failures, f"{name_of(page)}:{block.line}"


# --- commands -------------------------------------------------------------------------------


@pytest.mark.parametrize("page", cases(SHELL_PAGES))
def test_commands_are_understood(page):
    for block in shell_blocks(page):
        for words in block.commands:
            where = f"{name_of(page)}:{block.line}: {' '.join(words)}"
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                words = words[1:]  # settings of the environment before the command
            checker = CHECKERS.get(words[0])
            assert checker is not None, f"{where}: no test knows this command"
            checker(words[1:], where)


def check_motifold(arguments: list[str], where: str) -> None:
    try:
        with click.Context(main, info_name="motifold") as context:
            if arguments and not arguments[0].startswith("-"):
                command = main.get_command(context, arguments[0])
                assert command is not None, f"{where}: there is no such command"
                command.make_context(arguments[0], list(arguments[1:]), parent=context)
    except click.exceptions.Exit:  # --help
        pass
    except click.UsageError as error:
        if "does not exist" not in error.format_message():  # that would be a folder of the reader's
            pytest.fail(f"{where}: {error.format_message()}")


def check_make(arguments: list[str], where: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for argument in arguments:
        assert "=" in argument or argument in targets, f"{where}: no such target"


def check_pip(arguments: list[str], where: str) -> None:
    assert arguments[0] == "install", where
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for argument in arguments[1:]:
        named = re.search(r"^(?:\.|motifold)\[(.*)\]$", argument)
        for extra in named[1].split(",") if named else []:
            assert extra.strip() in extras, f"{where}: no extra {extra!r}"


def check_python(arguments: list[str], where: str) -> None:
    if arguments[0] == "-m":
        if arguments[1] == "pip":
            check_pip(arguments[2:], where)
        return
    assert arguments[0] == "-c" or (ROOT / arguments[0]).is_file(), f"{where}: no such file"


def accept(arguments: list[str], where: str) -> None:
    """Commands of the operating system, which are not ours to test."""


CHECKERS = {
    "motifold": check_motifold,
    "make": check_make,
    "pip": check_pip,
    "python": check_python,
    "python3": check_python,
    **dict.fromkeys(("git", "cd", "export", "eval", "source", "."), accept),
}


def shell_blocks(page: Path) -> Iterator[Block]:
    for block in blocks(page):
        if block.language in SHELLS and block.skip is None:
            yield block


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in SHELL_PAGES])
def test_commands_run(page, desk, monkeypatch):
    """Those of ``motifold`` whose files are there: ours, or made by the commands before.

    Where a page shows what they print, its Python is run as well, since that makes its files.
    """
    lay_out_files(desk)
    monkeypatch.setenv("COLUMNS", "80")  # tables are as wide as the terminal
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    shows = any(block.language == "text" and block.after in SHELLS for block in blocks(page))
    printed: list[str] | None = None
    for block in blocks(page):
        if block.runs and shows:
            run_python(page, block, module)
        elif block.language in SHELLS and block.skip is None:
            printed = run_commands(page, block, desk)
        elif block.language == "text" and block.after in SHELLS and printed is not None:
            shapes = [shape_of(text) for text in printed]
            assert shape_of(block.code) in shapes, f"{name_of(page)}:{block.line}"


def run_commands(page: Path, block: Block, desk: Path) -> list[str] | None:
    """What the block's commands printed; None if not all of them could be run here.

    Without hints and notes, and with them: these go to the other stream.
    """
    printed: list[str] | None = ["", ""]
    for words in block.commands:
        if words[0] != "motifold" or not can_run(words[1:], desk):
            printed = None
            continue
        result = CliRunner().invoke(main, words[1:], catch_exceptions=True)
        assert result.exit_code == 0, f"{name_of(page)}:{block.line}: {result.output}"
        if printed is not None:
            printed[0] += result.stdout
            printed[1] += result.stdout + result.stderr
    return printed


def can_run(arguments: list[str], desk: Path) -> bool:
    if arguments[0] in ("demo", "reproduce", "bench"):  # minutes; they have tests of their own
        return False
    made = ("-o", "--output", "--report", "--store")
    files = [
        word
        for before, word in zip(["", *arguments], arguments, strict=False)
        if re.fullmatch(r"[\w/-]+\.[a-z]\w{1,6}", word) and before not in made
    ]
    return all((desk / name).exists() for name in files)


def lay_out_files(folder: Path) -> None:
    """Small files under the names that the pages use."""
    from scipy.io import savemat, wavfile

    from motifold.datasets import make_sequences

    rng = np.random.default_rng(0)
    X = make_sequences(400, 12, 2, 10, activation_probability=0.05, random_state=0).X
    for name in ("counts", "recording", "X"):
        np.save(folder / f"{name}.npy", X)
    table = np.column_stack([np.arange(len(X)) / 50, X])
    header = ",".join(["seconds", *(f"n{i}" for i in range(X.shape[1]))])
    for name in ("counts", "recording", "table"):
        np.savetxt(folder / f"{name}.csv", table, delimiter=",", header=header, comments="")
    savemat(folder / "song.mat", {"SONG": X.T, "SONGfs": 200.0})
    lay_out_spikes(folder, *np.nonzero(np.percentile(X, 90) < X))
    chirps = np.zeros(16000)
    for start in rng.integers(0, 15000, 12):
        time = np.arange(800) / 8000
        chirps[start : start + 800] += np.sin(2 * np.pi * (500 + 4000 * time) * time)
    sound = (8000 * (chirps + 0.01 * rng.standard_normal(16000))).astype(np.int16)
    for name in ("my", "speech", "song", "recording", "sound"):
        wavfile.write(folder / f"{name}.wav", 8000, sound)


def lay_out_spikes(folder: Path, bins: np.ndarray, units: np.ndarray) -> None:
    """The same spikes as a table and as a folder of phy, 50 bins a second."""
    times = (bins + 0.5) / 50
    rows = [f"{unit},{time:.3f}" for unit, time in zip(units, times, strict=True)]
    for name in ("spikes", "finch"):
        (folder / f"{name}.csv").write_text("\n".join(["neuron,seconds", *rows]))
    phy = folder / "kilosort_output"
    phy.mkdir()
    np.save(phy / "spike_times.npy", np.rint(30_000 * times).astype(np.uint64))
    np.save(phy / "spike_clusters.npy", units.astype(np.int32))
    (phy / "params.py").write_text("sample_rate = 30000.\n")


def test_blocks_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```python\nx = 1\n```\n\n```text\n1\n```\n\n<!-- skip: no network -->\n"
        "```sh\npip install motifold \\\n  --quiet  # all\n```\n\nText\n```text\n2\n```\n"
    )
    first, second, third, fourth = blocks(page)
    assert (first.language, first.code, first.line, first.skip) == ("python", "x = 1\n", 3, None)
    assert second.after_python
    assert fourth.after is None
    assert third.skip == "no network"
    assert third.commands == [["pip", "install", "motifold", "--quiet"]]
    assert (
        shape_of("loss 0.081,  3 of 1e-3")
        == shape_of("loss 0.12, 4 of 2.5")
        == ["loss", "#,", "#", "of", "#"]
    )


# --- all pages ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_block_names_a_language_that_is_known(page):
    for block in blocks(page):
        language = block.language.split()[0] if block.language else ""
        known = {"python", "pycon", *SHELLS, *SHOWN, *DIRECTIVES}
        assert language in known, f"{name_of(page)}:{block.line}: {language or 'no language'!r}"


def test_few_blocks_are_left_out():
    left_out = [
        f"{name_of(page)}:{block.line}: {block.skip}"
        for page in pages()
        for block in blocks(page)
        if block.skip is not None
    ]
    assert len(left_out) <= MOST_SKIPS, "\n".join(left_out)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S))
    for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text):
        made_by_sphinx = re.search(r"(^|/)(gallery|generated)/", target)
        assert made_by_sphinx or (page.parent / target).exists(), f"{name_of(page)}: {target}"
