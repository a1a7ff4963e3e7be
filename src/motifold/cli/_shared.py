"""What the commands share: options that say how a file is read, errors, exit codes, output.

At import this module needs click alone, as the commands do; and ``_terminal``, through which all
output goes.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._options import SPECTROGRAM_SCALES, json_option
from motifold.cli._terminal import say

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.findings.annotations import Annotations
    from motifold.io import Recording

# Exit codes beyond click's own: 0 done, 1 failed, 2 wrong usage.
EXIT_DATA = 3  # a file of data, a model or a checkpoint that cannot be used
EXIT_LIBRARY = 4  # an optional library is missing

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a file cannot be used, 4 an optional library "
    "is missing, 130 interrupted (Ctrl-C), 143 ended (SIGTERM)."
)


class _SpectrogramScale(click.Choice):
    """What ``--scale`` takes; who means the features is told how to say so."""

    def __init__(self) -> None:
        super().__init__(SPECTROGRAM_SCALES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The scale, or a complaint in click's way."""
        if value in ("std", "mean-variance", "max"):
            self.fail(f"{value!r} scales features: --scale-features {value}.", param, ctx)
        return super().convert(value, param, ctx)


_READING = (
    click.option("--kind", metavar="ENDING", help="What the file is, if its name does not tell."),
    click.option(
        "--key", metavar="NAME", help="Variable (npz, mat), dataset (HDF5, zarr), series (NWB)."
    ),
    click.option(
        "--orientation",
        type=click.Choice(["time_first", "features_first"]),
        help="How the table lies in the file: rows are time bins, or features.",
    ),
    click.option(
        "--rate", metavar="HZ", help="Time bins per second (mat: or the variable's name)."
    ),
    click.option(
        "--negatives",
        type=click.Choice(["error", "clip", "shift", "keep"]),
        help="Negative values: refuse, set to zero, raise all values, or keep them as they are "
        "(allow_negative of the model).  [default: error, or keep if the model does]",
    ),
    click.option(
        "--missing",
        type=click.Choice(["error", "mask"]),
        help="NaN (and empty cells of tables): refuse, or take as missing.  [default: error]",
    ),
    click.option("--time", metavar="COLUMN", help="Column of a table that has the seconds."),
    click.option("--unit", metavar="COLUMN", help="Column of a table of spikes that has the unit."),
    click.option("--bin-size", type=float, metavar="S", help="Seconds of a bin for spikes."),
    click.option(
        "--units", metavar="WHICH", help='Units (NWB, phy): "quality=good", "group=good|mua", all.'
    ),
    click.option("--t-start", type=float, metavar="S", help="Where the bins of spikes begin."),
    click.option("--t-stop", type=float, metavar="S", help="Where they end."),
    click.option("--epochs", metavar="NAME", help="Intervals (NWB) that become segments: trials."),
    click.option("--window", type=int, metavar="N", help="Samples of a spectrogram's window."),
    click.option("--hop", type=int, metavar="N", help="Samples from one window to the next."),
    click.option("--scale", type=_SpectrogramScale(), help="Of the spectrogram.  [default: sqrt]"),
    click.option(
        "--noise-floor",
        type=float,
        metavar="X",
        help="Share of the time that a frequency of a sound is silent; that level is taken off.  "
        "[default: 0.1 for sqrt and log1p]",
    ),
    click.option("--channel", type=int, metavar="N", help="Of a sound, from 0; else their mean."),
    click.option("--max-bytes", type=int, metavar="N", help="What compressed data may unpack to."),
    click.option(
        "--isolate/--no-isolate",
        default=None,
        help="Read the file in a process of its own, which may crash.  [default: for info]",
    ),
)
_NAMES = (
    "kind", "key", "orientation", "rate", "negatives", "missing", "time", "bin_size", "epochs",
    "window", "hop", "scale", "noise_floor", "channel", "max_bytes", "unit", "units", "t_start",
    "t_stop",
)  # fmt: skip


class FileCommand(click.Command):
    """A command that reads a recording; its help has the options in sections."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **{"epilog": EXIT_CODES, **more})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options into the help."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                title = "Options"
                if parameter.name in (*_NAMES, "isolate"):
                    title = "How the file is read"
                title = getattr(parameter, "section", title)
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a file is read (``recording_of`` takes them), and --json."""
    command = json_option(command)
    for option in reversed(_READING):
        command = option(command)
    return command


def notes_input(path: Path) -> dict[str, Path | None]:
    """For ``check_outputs``: what was said in the explorer, which is nowhere else."""
    from motifold.findings.annotations import annotations_path

    return {"what was said in the explorer": annotations_path(path)}


def notes_of(path: Path, model: CNMF, heeded: bool) -> Annotations | None:
    """What was said of a model in the explorer; None if nothing was, or it is not heeded."""
    if not heeded:
        return None
    from motifold.findings.annotations import AnnotationsError, annotations_path, read_annotations

    try:
        return read_annotations(annotations_path(path), model)
    except AnnotationsError as error:
        raise Failure(f"{error} Or leave it aside: --no-notes.", EXIT_DATA) from error


def recording_of(
    path: Path, options: dict[str, Any], model: CNMF | None = None, *, isolate: bool = False
) -> Recording:
    """Read the file; what is not said is taken from how the model's own data was read.

    ``isolate``: whether in a process of its own, unless the options say.
    """
    from motifold.io import RecordingError, read
    from motifold.io.spikes import with_units

    said = options.pop("isolate", None)
    isolate = isolate if said is None else said
    given = {name: options.pop(name) for name in _NAMES if name in options}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(given.get("rate"), str):
        with contextlib.suppress(ValueError):
            given["rate"] = float(given["rate"])
    origin = None if model is None else model.origin_
    if origin is not None and origin["options"].get("kind", Path(origin["source"]).suffix) == (
        given.get("kind", path.suffix)
    ):
        ends = () if same_source(path, origin["source"]) else ("t_start", "t_stop")
        kept = {name: value for name, value in options_of_then(origin).items() if name not in ends}
        given = {**kept, **given}
    if model is not None and model.allow_negative:
        given.setdefault("negatives", "keep")
    recording = read(path, isolate=isolate, **given)
    if model is not None:
        aligned = with_units(recording, getattr(model, "feature_names_in_", None))
        if aligned is not recording:
            say(f"Hint: {aligned.hints[-1]}", err=True)
            recording = aligned
        N, (T, found) = model.n_features_in_, recording.shape
        if found != N:
            fix = "Give a recording of the features that the model was fitted to."
            if N == T:
                fix = "Rows and columns seem to be interchanged: set orientation."
            raise RecordingError(f"{path}: it has {found} features, the model {N}. {fix}")
        _check_names(path, recording, model)
    return recording


def whole_recording_of(path: Path, options: dict[str, Any]) -> Recording:
    """All of it in memory: it is gone through again and again, and in other processes."""
    return recording_of(path, options).checked(memory_limit=float("inf"))


def same_source(path: Path, source: str) -> bool:
    """Whether it is the file of the fit: where its recording begins says nothing about others."""
    from motifold.files import same_file

    return same_file(path, Path(source))


def options_of_then(origin: dict[str, Any]) -> dict[str, Any]:
    """The options of the fit; those of a sound in 0.1 were what was the default then."""
    from motifold.io.reading import READERS

    options: dict[str, Any] = origin["options"]
    kind = str(options.get("kind", Path(origin["source"]).suffix)).lstrip(".").lower()
    if READERS.get(f".{kind}") != "audio" or {"window", "hop", "scale"} <= {*options}:
        return options
    from motifold.io.audio import OF_0_1

    return {**OF_0_1, **options}


def _check_names(path: Path, recording: Recording, model: CNMF) -> None:
    from motifold.io import RecordingError

    names = getattr(model, "feature_names_in_", None)
    if names is None or recording.feature_names is None:
        return
    for i, (new, old) in enumerate(zip(recording.feature_names, names, strict=True)):
        if new != old:
            raise RecordingError(
                f"{path}: feature {i} is {new!r}, that of the model {old!r}. Put the features in "
                "the order of the fit."
            )


def load_model(path: Path) -> CNMF:
    """The model, or an error that names the file."""
    import motifold

    try:
        return motifold.load(path)
    except (ValueError, OSError) as error:
        raise Failure(told(error), EXIT_DATA) from error


class Failure(click.ClickException):
    """An error with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(in_words_of_options(message))
        self.exit_code = exit_code  # type: ignore[misc]


def in_words_of_options(message: str) -> str:
    """``orientation="time_first"`` becomes ``--orientation time_first``, and so on."""
    names = "|".join(_NAMES)
    message = re.sub(r"""\bbeta_loss=["']?([\w.-]*\w)["']?""", r"--loss \1", message)
    message = message.replace("allow_negative=True", "--negatives keep")
    message = re.sub(
        rf"""\b(solver|{names})=(["'])([^"']+)\2""",
        lambda m: f"--{m[1].replace('_', '-')} {_quoted(m[3])}",
        message,
    )
    message = re.sub(
        r"\b(bin_size|t_start|t_stop|max_bytes)=([\d.e-]*\d)",
        lambda m: f"--{m[1].replace('_', '-')} {m[2]}",
        message,
    )
    return re.sub(
        rf"\b(with|set|leave|give) ({names})\b",
        lambda m: f"{m[1]} --{m[2].replace('_', '-')}",
        message,
    )


def _quoted(value: str) -> str:
    """As the shell takes it."""
    return value if re.fullmatch(r"[\w.-]+", value) else f'"{value}"'


@contextlib.contextmanager
def friendly() -> Iterator[None]:
    """Errors become one line with advice and an exit code; warnings one line on stderr."""
    from motifold.io import RecordingError

    def tell(message: Any, *rest: Any) -> None:
        say(f"Warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        warnings.showwarning = tell  # type: ignore[assignment]
        try:
            yield
        except (RecordingError, OSError) as error:
            raise Failure(told(error), EXIT_DATA) from error
        except ImportError as error:
            raise Failure(str(error), EXIT_LIBRARY) from error
        except (ValueError, TypeError, NotImplementedError, MemoryError) as error:
            raise Failure(str(error) or type(error).__name__, 1) from error


def told(error: Exception, path: Path | None = None) -> str:
    """The error in a sentence, with the name of its file, or of ``path`` instead."""
    if isinstance(error, OSError) and error.strerror:
        name = path or error.filename2 or error.filename
        if name is not None:
            return f"{name}: {error.strerror}."
    return str(error)


def json_text(record: dict[str, Any]) -> str:
    """One JSON object; NaN and infinity, which JSON lacks, are null."""
    from motifold.files import plain_tree

    return json.dumps(plain_tree(record), indent=2, allow_nan=False)


def print_json(record: dict[str, Any]) -> None:
    """The same on the screen."""
    say(json_text(record))


def on_a_terminal() -> bool:
    """Whether a progress bar has somebody to look at it."""
    return sys.stderr.isatty()


def text_width() -> int:
    """Characters of a line: what the terminal has, if it is wide enough for a table; else 100."""
    return max(80, min(shutil.get_terminal_size((100, 24)).columns, 200))
