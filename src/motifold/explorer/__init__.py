"""The explorer: a page on this machine to look at a fit, to listen to it, and to judge it.

Built on Panel and HoloViews (the extra ``explore``), which stay in this room. What is decided here
without them (``clock``, ``pyramid``, ``picture``, ``marks``, ``session``, ``snippets``) can be
tried without a browser.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.explorer.page import Page
    from motifold.explorer.serving import Served

__all__ = ["explore"]

AnyPath = str | os.PathLike[str]


def explore(
    model: CNMF | AnyPath,
    X: Any,
    *,
    rate: float | None = None,
    compare: CNMF | AnyPath | None = None,
    notes: AnyPath | None = None,
) -> Any:
    """A page to look at a fit: zoom, set thresholds, name and merge motifs, judge events.

    In a notebook it is shown where it is the last thing of a cell. ``motifold explore`` serves the
    same page to a browser.

    Parameters
    ----------
    model : CNMF or path
        A fitted model, or its file.
    X : Recording, array-like or sparse matrix of shape (n_samples, n_features), or list of such
        What to look at: the recording of the fit, or another one. One that is mapped into memory,
        or read lazily (``motifold.io.read``), stays on disk. A ``Recording`` is prepared as the
        model's data was (``preparation_``); others are taken as they are.
    rate : float or None
        Time bins per second, where X is no ``Recording``.
    compare : CNMF, path or None
        Another fit, whose motifs are shown beside those that they answer to.
    notes : path or None
        The JSON file that keeps all that is said. None means beside the model's file; a model
        that was given as an object has none, and its notes last as long as the page.

    Returns
    -------
    panel.viewable.Viewable

    Examples
    --------
    >>> from motifold import CNMF, explore
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> page = explore(model, X, rate=10)  # doctest: +SKIP
    """
    return make_page(model, X, rate=rate, compare=compare, notes=notes)().layout


def make_page(
    model: CNMF | AnyPath,
    X: Any,
    *,
    rate: float | None = None,
    compare: CNMF | AnyPath | None = None,
    notes: AnyPath | None = None,
) -> Any:
    """A function that makes the page, once for each window; all share one session."""
    _check_libraries()
    from motifold.explorer.page import Page
    from motifold.explorer.session import Session
    from motifold.explorer.subject import Subject
    from motifold.findings.annotations import annotations_path

    fitted, title = _loaded(model, "this fit")
    other, other_title = (None, "") if compare is None else _loaded(compare, "the other fit")
    if notes is None and not hasattr(model, "components_"):
        notes = annotations_path(model)
    session = Session(Subject.of(fitted, X, rate), notes)
    second = None if other is None else Subject.of(other, X, rate)

    def make() -> Page:
        return Page(session, second, (title, other_title))

    return make


def _loaded(model: Any, title: str) -> tuple[Any, str]:
    if hasattr(model, "components_"):
        return model, title
    from motifold.storage.models import load

    return load(model), Path(model).name


def served(page: Any, title: str, port: int = 0) -> Served:
    """Serve a page of ``make_page`` on this machine."""
    from motifold.explorer.serving import Served

    def make() -> Any:
        import panel as pn

        window = page()
        if pn.state.curdoc is not None:
            pn.state.on_session_destroyed(lambda context: window.close())
        return window.layout

    return Served(make, title, port)


def _check_libraries() -> None:
    try:
        import holoviews  # noqa: F401
        import panel  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"The explorer needs {error.name}, which is not installed: "
            'pip install "motifold[explore]"'
        ) from error
