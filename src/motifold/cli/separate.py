"""``motifold separate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._fitting import FittingCommand, given_parameters, model_options
from motifold.cli._numbers import POSITIVE, FloatRange, IntRange
from motifold.cli._options import (
    FILE,
    SPECTROGRAM_SCALES,
    file_argument,
    json_option,
    max_time_option,
    n_components_option,
    n_jobs_option,
    n_lags_option,
    report_option,
    seed_option,
)
from motifold.cli._outputs import PAGE, check_ending, check_no_other_ending, check_outputs, keep
from motifold.cli._said import command_line
from motifold.cli._shared import friendly, load_model, print_json
from motifold.cli._terminal import say

if TYPE_CHECKING:
    from motifold.sound import Separation

_FOLDER = click.Path(path_type=Path, file_okay=False)
_REPRESENTATION = ("n_fft", "hop_length", "scale", "noise_floor", "kind", "n_mels")


@click.command("separate", cls=FittingCommand)
@file_argument
@click.argument("folders", nargs=-1, type=FILE, metavar="")
@n_components_option()
@n_lags_option(default="150ms", show_default=True)
@click.option(
    "-o", "--output", type=_FOLDER, default="parts", show_default=True, help="Folder of the parts."
)
@click.option("--format", "ending", type=click.Choice(["wav", "flac"]), default="wav",
              show_default=True, help="wav: 32-bit floats; flac: 24 bits.")  # fmt: skip
@click.option("--exponent", type=POSITIVE, default=2.0,
              show_default=True, metavar="X", help="Of the masks: larger is sharper.")  # fmt: skip
@click.option("--model", type=FILE, metavar="NPZ", help="Use the motifs of this model.")
@click.option(
    "--templates",
    type=FILE,
    multiple=True,
    metavar="FOLDERS",
    help="Start from sounds: folders of samples (or files), one for each motif.",
)
@click.option("--fix", is_flag=True, help="Keep the templates as they are.")
@click.option("--score", type=FILE, metavar="FILE", help="When each sound begins: csv, txt or mid.")
@click.option("--tolerance", type=FloatRange(0), default=0.05, show_default=True,
              metavar="S", help="Seconds by which the score may be wrong.")  # fmt: skip
@click.option("--ring", type=FloatRange(0), default=0.4, show_default=True, metavar="S",
              help="Seconds that a sound goes on after its onset in the score.")  # fmt: skip
@click.option("--save-model", type=FILE, metavar="NPZ", help="Keep the model as well.")
@report_option(help="Write a page with players as well.")
@click.option("--window", "n_fft", type=IntRange(2), metavar="N", help="Samples of a window.")
@click.option("--hop", "hop_length", type=IntRange(1), metavar="N",
              help="Samples from one window to the next.")  # fmt: skip
@click.option("--scale", type=click.Choice(SPECTROGRAM_SCALES),
              help="Of the spectrogram.  [default: sqrt]")  # fmt: skip
@click.option("--noise-floor", type=float, metavar="X",
              help="Share of the time that a frequency is silent.  [default: 0.1]")  # fmt: skip
@click.option("--representation", "kind", type=click.Choice(["stft", "mel", "cqt"]),
              help="What is factorised; mel and cqt need librosa.  [default: stft]")  # fmt: skip
@click.option("--n-mels", type=IntRange(1), metavar="N", help="Mel bands.  [default: 128]")
@max_time_option(help="Seconds of the fit at most.")
@seed_option()
@n_jobs_option()
@model_options
@json_option
def command(
    file: Path,
    folders: tuple[Path, ...],
    output: Path,
    ending: Any,
    model: Path | None,
    templates: tuple[Path, ...],
    score: Path | None,
    save_model: Path | None,
    report: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Take a sound apart, into sounds that add up to it.

    Each motif becomes a file in the folder, with the length, the level, the rate and the channels
    of the recording; with --background there is one for what is always there. At every time and
    frequency a motif has the share of its part of the model (a Wiener mask). Ten random starts are
    made and the best is kept (--n-init), unless there are templates or a score.

    \b
    Examples:
      motifold separate drums.wav -k 3 -l 150ms -o parts/
      motifold separate drums.wav --templates kick/ snare/ hihat/ --fix --report drums.html
      motifold separate drums.wav --score onsets.csv --templates kick/ snare/ hihat/
      motifold separate another.wav --model drums.npz
    """
    if folders and not templates:
        raise click.UsageError(f"One sound at a time: what is {folders[0]}? (Or --templates?)")
    with friendly():
        sounds = (*templates, *folders)
        outputs = {"--report": report, "--save-model": save_model}
        inputs = {"the sound": file, "--model": model, "--score": score}
        inputs |= {f"the template {path}": path for path in sounds}
        check_outputs(outputs, inputs, folders={"--output": output})
        check_ending("--report", report, PAGE)
        if save_model is not None:
            check_no_other_ending("--save-model", save_model, ".npz")
        apart = _apart(file, model, sounds, score, options)
        keep(output, lambda place: apart.write(place, ending), "Each part")
        written = list(apart.paths(output, ending).values())
        if save_model is not None:
            keep(save_model, apart.model.save, "The model")
        if report is not None:
            from motifold.report.parts import write_parts

            said = command_line()
            keep(report, lambda place: write_parts(place, apart, command=said), "The page")
    _tell(apart, written, report, as_json)


def _apart(
    file: Path,
    model: Path | None,
    templates: tuple[Path, ...],
    score: Path | None,
    options: dict[str, Any],
) -> Separation:
    from motifold.sound import separate

    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file.")
    representation = {name: options.pop(name) for name in _REPRESENTATION}
    representation = {name: value for name, value in representation.items() if value is not None}
    own = {name: options.pop(name) for name in ("n_components", "n_lags", "fix", "exponent")}
    own |= {name: options.pop(name) for name in ("tolerance", "ring")}
    fitted = None
    if model is not None:
        if templates or score is not None or own["n_components"] is not None:
            raise click.UsageError("--model has its motifs: leave -k, --templates and --score out.")
        fitted = load_model(model)
        representation = {**_as_then(fitted), **representation}
    elif own["n_components"] is None and not templates and score is None:
        raise click.UsageError("How many motifs? Give -k, or --templates, --score or --model.")
    parameters = {**options, **given_parameters(options)}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    found = separate(
        str(file),
        **own,
        model=fitted,
        templates=[str(path) for path in templates] or None,
        score=None if score is None else str(score),
        representation=representation,
        **parameters,
    )
    if fitted is None:
        spectrogram = found.spectrogram
        names = {"n_fft": "window", "hop_length": "hop"}
        kept = {
            names.get(name, name): spectrogram.options[name]
            for name in ("n_fft", "hop_length", "scale", "noise_floor")
        }
        if spectrogram.options["kind"] == "stft":
            found.model.origin_ = {"source": str(file), "rate": spectrogram.rate, "options": kept}
    return found


def _as_then(model: Any) -> dict[str, Any]:
    """How the sound of the model was represented."""
    from motifold.cli._shared import options_of_then

    if model.origin_ is None:
        return {}
    options = options_of_then(model.origin_)
    names = {"window": "n_fft", "hop": "hop_length", "scale": "scale"}
    found = {new: options[old] for old, new in names.items() if old in options}
    return {**found, "noise_floor": options.get("noise_floor", 0.0)}


def _tell(apart: Separation, written: list[Path], report: Path | None, as_json: bool) -> None:
    model = apart.model
    if as_json:
        print_json(
            {
                "parts": dict(zip(apart.names, written, strict=True)),
                "report": report,
                "motifs": len(model.components_),
                "lags": model.n_lags,
                "loss": model.loss_,
                "n_iter": model.n_iter_,
                "stop_reason": model.stop_reason_,
            }
        )
        return
    made = apart.spectrogram.options
    say(
        f"{len(model.components_)} motifs of {model.n_lags} lags "
        f"({model.n_lags / apart.spectrogram.rate:.3g} s), relative loss {model.loss_:.4f}; "
        f"scale {made['scale']}, windows of {made['n_fft']} samples, one every "
        f"{made['hop_length']}."
    )
    for path in written:
        say(f"  {path}")
    if report is not None:
        say(f"Report: {report}")
