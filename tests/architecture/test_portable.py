"""What only some systems have is guarded: elsewhere the package imports, and does without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import motifold

ROOT = Path(motifold.__file__).parent
# Of the standard library: modules, and names of os and signal, that Windows lacks.
POSIX = {"fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "posix"}
NAMES = {
    "os": {
        "O_NOFOLLOW", "O_DIRECTORY", "fchmod", "fchown", "chown", "chroot", "fork", "forkpty",
        "getuid", "geteuid", "getgid", "getpgid", "killpg", "mkfifo", "mknod", "nice",
        "sched_getaffinity", "sched_setaffinity", "sched_yield", "setsid", "statvfs", "sysconf",
        "uname", "wait3", "wait4",
    },
    "signal": {
        "SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGPIPE", "alarm",
        "pthread_sigmask",
    },
}  # fmt: skip
# What asks first: for the system, for the name, or for a function of ours that does.
ASKED = r"hasattr\({module}, \"{name}\"\)|os\.name|sys\.platform|_has_sysconf\(\)"


def trees() -> Iterator[tuple[str, str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        yield path.relative_to(ROOT).as_posix(), text, ast.parse(text)


def guarded(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Within a branch of an ``if``, or a ``try``."""
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.If | ast.Try):
            return True
    return False


def above(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def loose_imports(tree: ast.Module) -> list[str]:
    """Modules of POSIX that are imported without a guard."""
    parents, found = above(tree), []
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        found += [name for name in names if name in POSIX and not guarded(node, parents)]
    return found


def loose_names(text: str, tree: ast.Module) -> list[str]:
    """Names of os and signal that Windows lacks, in a statement that asks for nothing before."""
    parents, found = above(tree), []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        module, name = node.value.id, node.attr
        if name not in NAMES.get(module, ()):
            continue
        place: ast.AST = node
        while place in parents and not isinstance(place, ast.FunctionDef):
            place = parents[place]
        asked = ASKED.format(module=module, name=name)
        if not re.search(asked, ast.get_source_segment(text, place) or ""):
            found.append(f"{module}.{name}")
    return found


def test_modules_of_posix_are_imported_with_a_guard():
    assert not [(name, loose) for name, _, tree in trees() for loose in loose_imports(tree)]


def test_names_that_windows_lacks_are_asked_for():
    assert not [(name, loose) for name, text, tree in trees() for loose in loose_names(text, tree)]


@pytest.mark.parametrize(
    ("code", "imports", "names"),
    [
        ("import fcntl", ["fcntl"], []),
        ("if x:\n    import fcntl", [], []),
        ("def f():\n    return os.getuid()", [], ["os.getuid"]),
        ('def f():\n    return os.getuid() if hasattr(os, "getuid") else 0', [], []),
        ("from .posix import x", [], []),
    ],
)
def test_what_is_loose_is_found(code, imports, names):
    tree = ast.parse(code)
    assert loose_imports(tree) == imports
    assert loose_names(code, tree) == names
