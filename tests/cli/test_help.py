"""What a new user meets: names that are nearly right, ranges in words, colours where they are."""

from __future__ import annotations

import re

import click
import pytest
from commands import run

from motifold.cli import main
from motifold.cli._options import SPECTROGRAM_SCALES
from motifold.spectra import SCALES

ALL = main.list_commands(None)


@pytest.mark.parametrize(("typed", "meant"), [("fti", "fit"), ("swep", "sweep"), ("Info", "info")])
def test_did_you_mean(typed, meant):
    answer = run(typed, "x.npy")
    assert answer.exit_code == 2
    assert f"No such command '{typed}'. Did you mean {meant}?" in answer.output


def test_of_a_name_like_no_other_nothing_is_supposed():
    answer = run("nonsense")
    assert answer.exit_code == 2
    assert "No such command 'nonsense'." in answer.output
    assert "mean" not in answer.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fit", "x", "-l", 3, "-k", 0], "0 is out of range: it must be 1 or more."),
        (["fit", "x", "-l", 3, "-k", "two"], "'two' is not a whole number."),
        (["fit", "x", "-l", 3, "-k", 2, "--max-time", 0], "it must be more than 0."),
        (["fit", "x", "-l", 3, "-k", 2, "--max-time", "long"], "'long' is not a number."),
        (["discover", "x", "-l", 3, "--fdr", 1], "it must be between 0 and 1."),
        (["discover", "x", "-l", 3, "--seed", -1], "it must be from 0 to 4294967295."),
        (["discover", "x", "-l", 3, "--seed", 2**32], "it must be from 0 to 4294967295."),
    ],
)
def test_ranges_in_errors(arguments, told):
    answer = run(*arguments)
    assert answer.exit_code == 2
    assert told in answer.output


def test_no_summary_of_a_command_is_cut_off():
    """On a terminal of 80 characters."""
    assert "..." not in run("--help").output.partition("Commands:")[2]


@pytest.mark.parametrize("name", ALL)
def test_help_speaks_in_words(name):
    """No ``x>=1``; no line too wide; every option says what it is."""
    answer = run(name, "--help")
    assert answer.exit_code == 0
    assert not re.search(r"x\s*[<>]|[<>]=?\s*x\b|INTEGER RANGE|FLOAT RANGE", answer.output)
    lines = answer.output.splitlines()
    assert max(map(len, lines)) <= 100
    # But for examples, which are copied whole, a terminal of 80 breaks no line within a word.
    assert max(len(line) for line in lines if not line.startswith("    motifold")) <= 80
    command = main.get_command(None, name)
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    assert all(option.help for option in options)
    assert "] [" not in " ".join(answer.output.split()), "what is told of a value is told at once"


def test_every_scale_of_a_spectrogram_can_be_asked_for():
    """Also that which is the default."""
    from motifold.spectra.scales import SCALES

    (scale,) = (p for p in main.get_command(None, "fit").params if p.name == "scale")
    assert tuple(scale.type.choices) == SCALES


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["fti"]])
def test_colours_where_the_terminal_has_them(monkeypatch, arguments):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b[" in run(*arguments, color=True).output
    plain = run(*arguments, color=False).output
    assert "\x1b[" not in plain
    for name, value in {"NO_COLOR": "1", "TERM": "dumb"}.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert run(*arguments, color=True).output == plain
    monkeypatch.setenv("NO_COLOR", "")  # which is none
    assert "\x1b[" in run(*arguments, color=True).output


def test_only_the_first_word_of_an_error_is_coloured(monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    shown = run("info", "nowhere\x1b[2J.npy", color=True).output
    assert re.fullmatch(r"\x1b\[31m\x1b\[1mError:\x1b\[0m [^\x1b]*\n", shown), repr(shown)


def test_scales_of_spectrograms_are_those_there_are():
    """Told by name at import, when the room that has them is not there yet."""
    assert SPECTROGRAM_SCALES == SCALES
