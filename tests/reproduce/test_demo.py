"""The demo: its table, its pictures and its exits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from motifold.reproduce import demo


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> demo._Race:
    race = demo._Race((200, 20, 2, 6), 2, 0.05)
    monkeypatch.setattr(demo, "_QUICK", race)
    monkeypatch.setattr(demo, "_HIDDEN_QUICK", 500)
    return race


def test_quick_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], short: demo._Race) -> None:
    folder = tmp_path / "new" / "folder"
    assert demo.main(["--quick", "--output", str(folder)]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("algorithm"))
    for title in ("iterations", "relative loss", "from", "to", "KKT residual"):
        assert title in lines[header]
    rows = [line.split() for line in lines[header + 2 : header + 5]]
    assert [row[0] for row in rows] == ["MU", "HALS", "ANLS"]
    for row in rows:
        middle, low, high = map(float, row[2:5])
        assert 0 < low <= middle <= high < 1
    for name in ("sequences", "losses"):
        picture = folder / f"{name}.png"
        assert str(picture) in printed
        assert picture.read_bytes().startswith(b"\x89PNG")
        with Image.open(picture) as image:
            assert image.mode == "P"  # of few colours, so that README's picture stays small
            assert len(image.getcolors()) > 30  # and no empty page


def test_what_is_compared_is_said_and_fair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], short: demo._Race
) -> None:
    """The same starts for each, and a stop that is the same for all: that of time."""
    X = np.random.default_rng(0).random((200, 20))
    fits = {solver: demo._fits(solver, short, X, 7) for solver in ("mu", "hals")}
    for models in fits.values():
        assert [model.random_state for model in models] == [7, 8]
        assert {model.stop_reason_ for model in models} == {"max_time"}
        assert {(model.tol, model.max_time) for model in models} == {(0, short.seconds)}
    said = demo._what_is_compared(short, 7)
    assert "the loss after 0.05 s" in said
    assert "seeds 7, 8" in said
    assert len(capsys.readouterr().out.splitlines()) == 4  # a line for each fit, no bar


def test_seeds_of_the_last_start_go_round() -> None:
    assert demo._starts(demo._QUICK, 2**32 - 1)[:2] == [2**32 - 1, 0]


def test_ctrl_c_ends_it_after_the_limits_were_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    short: demo._Race,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_fits", interrupt)
    assert demo.main(["--quick", "--output", str(tmp_path)]) == 130
    printed = capsys.readouterr()
    assert "the loss after 0.05 s" in printed.out
    assert "Interrupted" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["sequences.png"]  # whole, made before


@pytest.mark.parametrize("seed", ["-1", "x", str(2**32)])
def test_bad_seed(seed: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as exit_:
        demo.main(["--quick", "--seed", seed, "--output", str(tmp_path)])
    assert exit_.value.code == 2


def test_output_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(SystemExit) as exit_:
        demo.main(["--quick", "--output", str(taken)])
    assert exit_.value.code == 2
    assert "--output" in capsys.readouterr().err
