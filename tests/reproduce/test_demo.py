"""The demo: its table, its picture and its exits."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from motifold.reproduce import demo


def test_quick_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert demo.main(["--quick", "--output", str(folder)]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("algorithm"))
    for title in ("iterations", "seconds", "relative loss", "KKT residual", "stopped because"):
        assert title in lines[header]
    rows = [line.split() for line in lines[header + 2 : header + 5]]
    assert [row[0] for row in rows] == ["MU", "HALS", "ANLS"]
    assert all(0 < float(row[3]) < 1 for row in rows)
    picture = folder / "factors.png"
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    with Image.open(picture) as image:
        assert image.mode == "P"  # of few colours, so that README's picture stays small
        assert len(image.getcolors()) > 100  # and no empty page


def test_ctrl_c_ends_it_after_the_limits_were_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_timed_fit", interrupt)
    assert demo.main(["--quick", "--output", str(tmp_path)]) == 130
    printed = capsys.readouterr()
    assert "30 seconds" in printed.out
    assert "Interrupted" in printed.err
    assert not list(tmp_path.iterdir())


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
