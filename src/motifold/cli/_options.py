"""Options that several commands have; those that say how a file is read are in ``_shared``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from motifold.cli._memory import MEMORY_HELP, MemorySize
from motifold.cli._numbers import POSITIVE, SEED, SHARE, IntRange

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FILE = click.Path(path_type=Path)
# ``motifold.spectra.SCALES``, without importing it.
SPECTROGRAM_SCALES = ("sqrt", "magnitude", "power", "log1p", "log")

# What is read.
file_argument: Decorator = click.argument("file", type=FILE)
model_argument: Decorator = click.argument("model", type=FILE)
data_option: Decorator = click.option(
    "--data", type=FILE, metavar="FILE", help="A recording; without it, that of the fit."
)
memory_option: Decorator = click.option(
    "--memory-limit", type=MemorySize(), metavar="SIZE", help=MEMORY_HELP
)
notes_option: Decorator = click.option(
    "--notes/--no-notes",
    default=True,
    help="Heed what was said in the explorer (MODEL.explore.json).  [default: if it is there]",
)


# What is looked for, and how.
def n_components_option(*, help: str = "Number of motifs.", **more: Any) -> Decorator:
    """``-k``/``--n-components``, a number unless ``more`` says otherwise."""
    return click.option(
        "-k", "--n-components", help=help, **{"type": IntRange(1), "metavar": "N", **more}
    )


def n_lags_option(*, help: str = "Length of a motif: 20 (bins) or 0.5s.", **more: Any) -> Decorator:
    """``-l``/``--n-lags``, a text that ``Recording.bins`` takes."""
    needed = {} if "default" in more else {"required": True}
    return click.option("-l", "--n-lags", help=help, **{"metavar": "LAGS", **needed, **more})


def max_time_option(*, help: str = "Seconds at most.") -> Decorator:
    """``--max-time``."""
    return click.option("--max-time", type=POSITIVE, metavar="S", help=help)


def seed_option(name: str = "random_state", *, help: str = "Of the random starts.") -> Decorator:
    """``--seed``, as the argument ``name``."""
    return click.option(
        "--seed", name, type=SEED, default=0, show_default=True, metavar="N", help=help
    )


def alpha_option(of: str) -> Decorator:
    """``--alpha``, the level of what is named."""
    told = f"Level of {of}, for all motifs together."
    return click.option(
        "--alpha", type=SHARE, default=0.05, show_default=True, metavar="X", help=told
    )


def n_null_option(least: int, *, help: str) -> Decorator:
    """``--n-null``, how many shuffled copies."""
    kind = IntRange(least)
    return click.option(
        "--n-null", type=kind, default=1000, show_default=True, metavar="N", help=help
    )


def n_jobs_option(what: str = "Threads") -> Decorator:
    """``--n-jobs``, how many threads or processes."""
    return click.option("--n-jobs", type=int, metavar="N", help=f"{what}; all cores without it.")


# What is written.
def output_option(default: str | None, **more: Any) -> Decorator:
    """``-o``/``--output``."""
    if default is not None:  # to click None is a default, too, and what has one is never missing
        more = {"default": Path(default), "show_default": True, **more}
    return click.option("-o", "--output", type=FILE, **more)


def report_option(*, help: str) -> Decorator:
    """``--report``, a page."""
    return click.option("--report", type=FILE, metavar="HTML", help=help)


def store_option(*, help: str, metavar: str = "FILE") -> Decorator:
    """``--store``, what is done so far."""
    return click.option("--store", type=FILE, metavar=metavar, help=help)


sort_option: Decorator = click.option(
    "--sort/--no-sort",
    default=None,
    help="Sort the features in the report's pictures by motif and lag.  [default: unless they "
    "have an order of their own, as frequencies do: neighbours that are strongly correlated]",
)
json_option: Decorator = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for machines."
)
