"""The part of the page that shows one event: beside the others, to listen to and to judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from motifold.explorer.picture import placed, shaded
from motifold.explorer.session import Session
from motifold.explorer.snippets import Snippet, snippet
from motifold.explorer.sounds import clips, players, sound_under
from motifold.explorer.subject import Order
from motifold.findings.annotations import Verdict
from motifold.report.markup import tag

_WIDTH, _HEIGHT = 215, 250
_ADVICE = "Click a mark over the activations, or go through the events one by one."
_DARKEST = 99.5
_LEGEND = (
    "Features from top to bottom, as above. At the right each row is an event, from the first "
    "down: how much of the motif there is at each lag. The row of this event has black ends."
)


class Closer:
    """The event that was chosen, if one was.

    Parameters
    ----------
    session : what it is an event of
    judged : called with a verdict on it
    moved : called with −1 or 1 to choose the event before or after it
    """

    def __init__(
        self,
        session: Session,
        judged: Callable[[Verdict | None], None],
        moved: Callable[[int], None],
    ) -> None:
        self.session = session
        self._sound = sound_under(session)
        self.chosen: tuple[int, int] | None = None
        self.order: Order | None = None
        self._snippet: Snippet | None = None
        self._tick = hv.streams.Stream.define("Chosen", count=0)()
        self._told = pn.pane.HTML(tag("p", _ADVICE), sizing_mode="stretch_width")
        self._players = pn.pane.HTML("", css_classes=["listen"])
        self._pictures = pn.Row(visible=False)
        self.before = _button("◀ Previous", lambda: moved(-1))
        self.after = _button("Next ▶", lambda: moved(1))
        self.accept = _button("Accept", lambda: judged("accepted"), "success")
        self.reject = _button("Reject", lambda: judged("rejected"), "danger")
        self.undo = _button("Take back", lambda: judged(None), "light")
        self._pictures[:] = [self._picture(name) for name in _PICTURES]
        self._legend = pn.pane.HTML(tag("p", _LEGEND, class_="told"), visible=False)
        buttons = pn.Row(self.before, self.after, self.accept, self.reject, self.undo)
        self.column = pn.Column(
            pn.Row(pn.pane.HTML(tag("h2", "Event"), width=60), buttons, self._players),
            self._told,
            self._pictures,
            self._legend,
            sizing_mode="stretch_width",
            css_classes=["closer"],
        )
        self.show(None, None)

    def show(self, chosen: tuple[int, int] | None, order: Order | None) -> None:
        """Show event ``chosen`` (motif, number), features in an order; None shows none."""
        self.chosen, self.order = chosen, order
        for button in (self.accept, self.reject, self.undo):
            button.disabled = chosen is None
        if chosen is None:
            self._told.object = tag("p", _ADVICE)
            self._players.object = ""
            self._pictures.visible = self._legend.visible = False
            return
        self._snippet = snippet(self.session, *chosen)
        self._told.object = self._sentence(*chosen)
        if self._sound is not None:
            self._players.object = players(clips(self.session, self._sound, *chosen))
        self._tick.event(count=self._tick.count + 1)
        self._pictures.visible = self._legend.visible = True

    def _sentence(self, k: int, i: int) -> str:
        assert self._snippet is not None
        found, notes = self.session.occurrences(k), self.session.annotations
        likeness = self._snippet.likeness
        verdict = found.verdicts[i] or "not judged yet"
        at = self.session.subject.clock.told(int(found.bins[i]))
        told = f", event {i + 1} of {len(found.bins)}, at {at}"
        told += f": strength {found.strengths[i]:.3g}, likeness to the motif {likeness:.2f}"
        if len(self._snippet.others):
            told += f" (the others: {np.median(self._snippet.others):.2f})"
        swatch = tag("span", "", class_="swatch", style=f"background:{self.session.colour(k)}")
        what = tag("b", notes.title(k))
        return tag("p", swatch, what, told, ". ", tag("span", verdict, class_=f"verdict {verdict}"))

    # --- its pictures -----------------------------------------------------------------------

    def _picture(self, name: str) -> Any:
        chart = hv.DynamicMap(lambda count: self._drawn(name), streams=[self._tick])
        return pn.pane.HoloViews(chart, width=_WIDTH, height=_HEIGHT, linked_axes=False)

    def _drawn(self, name: str) -> Any:
        title, label = _PICTURES[name]
        clock = self.session.subject.clock
        pixels, bounds = np.full((1, 1, 3), 255, np.uint8), (0.0, 0.0, 1.0, 1.0)
        if self._snippet is not None and self.chosen is not None:
            pixels = self._pixels(self._snippet, name)
            left, right = (clock.position(lag) for lag in self._snippet.lags)
            bounds = (left, 0.0, right, float(max(1, pixels.shape[0])))
        return hv.RGB(np.ascontiguousarray(pixels), bounds=bounds, kdims=["lag", name]).opts(
            title=title,
            width=_WIDTH,
            height=_HEIGHT,
            xlabel=f"lag ({clock.unit})",
            ylabel=label,
            yaxis="bare",
            toolbar=None,
            default_tools=[],
            framewise=True,
            fontsize={"title": "9pt", "labels": "8pt", "ticks": "8pt"},
        )

    def _pixels(self, found: Snippet, name: str) -> Any:
        assert self.chosen is not None
        ink = self.session.colour(self.chosen[0])
        values = getattr(found, name)
        if name == "aligned":
            if not len(values):
                return np.full((1, 1, 3), 255, np.uint8)
            rows = shaded(values.T[:, ::-1], ink, float(np.percentile(values, _DARKEST)))
            return _framed(rows, found.row)
        features = placed(self.session.subject, self.order)
        darkest = self.session.subject.darkest
        if name != "here":
            darkest = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
        return shaded(values[:, features], "#22222b" if name == "here" else ink, darkest)


_PICTURES = {
    "here": ("this event", "features"),
    "mean": ("mean of all events", "features"),
    "motif": ("the motif", "features"),
    "aligned": ("all events, aligned", "events, in time"),
}


def _framed(pixels: Any, row: int | None) -> Any:
    """With black ends at the row of this event."""
    if row is not None:
        pixels = pixels.copy()
        pixels[row, [0, -1]] = 0
    return pixels


def _button(name: str, act: Callable[[], None], kind: str = "default") -> Any:
    button = pn.widgets.Button(label=name, color=kind, margin=(4, 3))
    button.on_click(lambda event: act())
    return button
