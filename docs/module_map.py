"""The map of the modules, drawn from the code: ``python docs/module_map.py`` writes it anew.

A box is a room (a module or a package), its height the floor that ``tests/architecture`` gives it.
A line is an import; one that goes without saying, because another room in between imports the
lower one, is left out. ``tests/docs/test_module_map.py`` tells when the picture is no longer true.
"""

from __future__ import annotations

import ast
from html import escape
from itertools import pairwise
from math import fsum
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "motifold"
TARGET = ROOT / "docs" / "developers" / "module-map.svg"
LAW = ROOT / "tests" / "architecture" / "test_imports.py"

ROW, BOX, GAP, TOP = 60, 28, 22, 12
LETTER = 7.8  # width of a letter of the font, about
JOINT = "|"  # begins the name of a place where a line passes a floor

Edges = dict[str, set[str]]


def floors() -> list[list[str]]:
    """The rooms from the ground up, as the test of the imports lists them."""
    for node in ast.parse(LAW.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "FLOORS":
            return [
                [name.removeprefix("motifold.") for name in floor]
                for floor in ast.literal_eval(node.value)
            ]
    raise LookupError(f"{LAW} has no FLOORS")


def imports(rooms: list[str]) -> Edges:
    """Which rooms each room imports, by reading its files."""
    edges: Edges = {room: set() for room in rooms}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in edges:  # the package's own __init__ imports lazily, by name
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            edges[room] |= {name for name in _imported(node) if name in edges and name != room}
    return edges


def _imported(node: ast.AST) -> set[str]:
    """Rooms of ours that a statement imports."""
    names: set[str] = set()
    if isinstance(node, ast.Import):
        names = {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and node.module == "motifold":
        names = {f"motifold.{alias.name}" for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = {node.module}
    return {name.split(".")[1] for name in names if name.startswith("motifold.")}


def reduced(edges: Edges, level: dict[str, int]) -> list[tuple[str, str]]:
    """Imports that go downwards, without those that follow from others."""
    down = {a: {b for b in bs if level[b] < level[a]} for a, bs in edges.items()}
    reach: Edges = {}
    for room in sorted(down, key=level.__getitem__):
        reach[room] = down[room].union(*(reach[b] for b in down[room]))
    return [
        (a, b)
        for a in down
        for b in sorted(down[a])
        if not any(b in reach[other] for other in down[a] if other != b)
    ]


def first_line(room: str) -> str:
    """What the room says of itself."""
    path = PACKAGE / f"{room}.py"
    path = path if path.exists() else PACKAGE / room / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.split("\n")[0]


def with_joints(
    levels: list[list[str]], lines: list[tuple[str, str]], level: dict[str, int]
) -> tuple[list[list[str]], list[list[str]]]:
    """Rows with a joint wherever a line passes a floor, and each line as the boxes it goes by.

    Lines from above to the same room share their joints, so that they run together.
    """
    rows = [list(row) for row in levels]
    routes = []
    for a, b in lines:
        joints = [f"{JOINT}{b}{i}" for i in range(level[a] - 1, level[b], -1)]
        for i, joint in zip(range(level[a] - 1, level[b], -1), joints, strict=True):
            if joint not in rows[i]:
                rows[i].append(joint)
        routes.append([a, *joints, b])
    return rows, routes


def places(rows: list[list[str]], routes: list[list[str]]) -> dict[str, tuple[float, int]]:
    """Centre of each box and joint, ordered by where its neighbours are: short lines, few bends."""
    near: dict[str, set[str]] = {name: set() for row in rows for name in row}
    for route in routes:
        for a, b in pairwise(route):
            near[a].add(b)
            near[b].add(a)
    centre = {name: float(i) for row in rows for i, name in enumerate(sorted(row))}
    for turn in range(60):
        for row in rows if turn % 2 else reversed(rows):
            wish = {name: fsum(centre[o] for o in near[name]) / len(near[name]) for name in row}
            if turn < 30:
                row.sort(key=lambda name: (wish[name], name))
            centre.update(_apart(row, wish))
    left = min(centre[name] - _width(name) / 2 for name in centre) - 10
    height = TOP + ROW * (len(rows) - 1)
    return {
        name: (round(centre[name] - left, 1), height - ROW * i)
        for i, row in enumerate(rows)
        for name in row
    }


def _apart(row: list[str], wish: dict[str, float]) -> dict[str, float]:
    """Places in the order of the row, none overlapping, as near to the wishes as they can be."""
    offsets = [0.0]
    for a, b in pairwise(row):
        offsets.append(offsets[-1] + (_width(a) + _width(b)) / 2 + GAP)
    # Runs of neighbours that stand side by side: (sum of their wishes, how many).
    runs: list[tuple[float, int]] = []
    for name, offset in zip(row, offsets, strict=True):
        runs.append((wish[name] - offset, 1))
        while len(runs) > 1 and runs[-2][0] / runs[-2][1] > runs[-1][0] / runs[-1][1]:
            (total, count), (more, others) = runs[-2:]
            runs[-2:] = [(total + more, count + others)]
    starts = [total / count for total, count in runs for _ in range(count)]
    return {name: start + off for name, start, off in zip(row, starts, offsets, strict=True)}


def _width(name: str) -> float:
    return 8.0 if name.startswith(JOINT) else LETTER * len(name) + 24


def _path(route: list[str], at: dict[str, tuple[float, int]]) -> str:
    """A line from the bottom of the first box, past its joints, to the top of the last."""
    x, y = at[route[0]]
    y += BOX
    text = f"M{x} {y}"
    for name in route[1:]:
        x1, y1 = at[name]
        bend = (y1 - y) * 0.5
        text += f"C{x} {y + bend:.0f} {x1} {y1 - bend:.0f} {x1} {y1}"
        x, y = x1, y1
        if name.startswith(JOINT):
            y += BOX
            text += f"V{y}"
    return text


def draw() -> str:
    """The picture as SVG."""
    levels = floors()
    level = {room: i for i, row in enumerate(levels) for room in row}
    lines = reduced(imports(list(level)), level)
    rows, routes = with_joints(levels, lines, level)
    at = places(rows, routes)
    height = TOP + ROW * (len(levels) - 1) + BOX + TOP
    width = round(max(x + _width(name) / 2 for name, (x, _) in at.items()) + 10)
    size = f'width="{width}" height="{height}"'
    space = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg {space} {size} role="img">',
        "<title>The rooms of motifold and what they import</title>",
        "<style>text{font:13px ui-monospace,monospace;text-anchor:middle;fill:#1f2933}"
        "rect{fill:#f2f5f8;stroke:#5b7083}path{fill:none;stroke:#0a7d91;stroke-width:1.2;"
        "opacity:.6}</style>",
        f'<rect {size} style="fill:#ffffff;stroke:none"/>',
    ]
    parts += [f'<path d="{_path(route, at)}"/>' for route in routes]
    for room in level:
        x, y = at[room]
        wide = _width(room)
        parts.append(
            f"<g><title>{escape(first_line(room))}</title>"
            f'<rect x="{x - wide / 2:.1f}" y="{y}" width="{wide:.1f}" height="{BOX}" rx="5"/>'
            f'<text x="{x}" y="{y + 20}">{escape(room)}</text></g>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(draw())
    print(f"wrote {TARGET.relative_to(ROOT)}")
