"""The part of the page that lists the motifs, and what can be said of the chosen one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import holoviews as hv
import panel as pn
from bokeh.models import BasicTicker

from motifold.explorer.session import Session
from motifold.report.markup import tag

_WIDTH = 300
_MAX_THRESHOLD = 2.0
_ITSELF = -1  # of the choice which motif one counts as
_LONGEST = 4  # motifs: the longest refractory time on the slider
_BUTTON = """
.bk-btn {{ text-align: left; border-left: 10px solid {ink} !important; background: {paper};
  font-weight: {weight}; color: {text}; padding: 4px 8px; border-radius: 3px; }}
"""


class Notes:
    """Buttons for the motifs, and the widgets of the chosen one.

    Parameters
    ----------
    session : what is noted
    chosen : called when another motif is chosen
    failed : called with the error when a note cannot be saved
    """

    def __init__(
        self, session: Session, chosen: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        self.session = session
        self.motif = session.annotations.shown[0] if session.annotations.shown else 0
        self._chosen, self._failed = chosen, failed
        self._filling = False
        self._held: Any = None  # the widget that somebody is moving
        clock, L = session.subject.clock, session.subject.model.components_.shape[1]
        unit = clock.unit
        step = clock.position(1)
        self.name = pn.widgets.TextInput(
            label="Name", placeholder="none yet", max_length=200, width=200
        )
        self.ink = pn.widgets.ColorPicker(label="Colour", width=60)
        self.hidden = pn.widgets.Checkbox(label="Hide", align="end")
        self.merge = pn.widgets.Select(label="Counts as", width=200)
        self.threshold = pn.widgets.FloatSlider(
            label="Threshold (of the typical strength)",
            start=0,
            end=_MAX_THRESHOLD,
            step=0.01,
            sizing_mode="stretch_width",
        )
        self.refractory = pn.widgets.FloatSlider(
            label=f"Refractory time ({unit})",
            start=0,
            end=_LONGEST * L * step,
            step=step,
            format=f"0.[{'0' * _digits(step)}]" if _digits(step) else "0",
            sizing_mode="stretch_width",
        )
        self._summary = pn.pane.HTML(css_classes=["summary"])
        buttons = [self._button(k) for k in range(len(session.annotations.motifs))]
        self._buttons = pn.Column(
            *buttons, sizing_mode="stretch_width", scroll=True, max_height=230
        )
        self._tick = hv.streams.Stream.define("Noted", count=0)()
        histogram = hv.DynamicMap(self._histogram, streams=[self._tick])
        self._intervals = pn.pane.HoloViews(histogram, height=150, sizing_mode="stretch_width")
        self._watch()
        self.fill()
        self.column = self._laid_out()

    def _watch(self) -> None:
        def says(widget: Any, parameter: str, attribute: str) -> None:
            widget.param.watch(
                lambda event: self._note({attribute: event.new}, held=widget), parameter
            )

        says(self.name, "value", "name")
        says(self.ink, "value", "colour")
        says(self.hidden, "value", "hidden")
        self.merge.param.watch(
            lambda event: self._note({"merged_into": None if event.new == _ITSELF else event.new}),
            "value",
        )
        says(self.threshold, "value_throttled", "threshold")
        says(self.refractory, "value_throttled", "refractory")

    def _note(self, changes: dict[str, Any], held: Any = None) -> None:
        if self._filling:
            return
        self._held = held
        try:
            self.session.note(self.motif, **changes)
        except (OSError, ValueError) as error:
            self._held = None
            self.fill()
            self._failed(error)
        finally:
            self._held = None

    def choose(self, k: int) -> None:
        """Show the notes of motif k."""
        self.motif = k
        self.fill()
        self._chosen()

    def fill(self) -> None:
        """Put into the widgets what is known."""
        k, notes = self.motif, self.session.annotations
        note = notes.motifs[k]
        self._filling = True
        try:
            self.name.value = note.name
            self.ink.value = self.session.colour(k)
            self.hidden.value = note.hidden
            others = [j for j in range(len(notes.motifs)) if j != k and notes.root(j) != k]
            self.merge.options = {"itself": _ITSELF} | {
                f"{j}: {notes.title(j)}": j for j in others if notes.root(j) == j
            }
            self.merge.value = _ITSELF if note.merged_into is None else note.merged_into
            # A slider may be further on than what it said last: it is not put back under the hand.
            if self._held is not self.threshold:
                self.threshold.value = min(note.threshold, _MAX_THRESHOLD)
            if self._held is not self.refractory:
                self.refractory.value = min(self.session.refractory(k), self.refractory.end)
            for j, button in enumerate(self._buttons):
                self._label(button, j)
            self._summary.object = self._told()
        finally:
            self._filling = False
        self._tick.event(count=self._tick.count + 1)

    # --- how it looks -----------------------------------------------------------------------

    def _laid_out(self) -> Any:
        return pn.Column(
            pn.pane.HTML(tag("h2", "Motifs")),
            self._buttons,
            pn.layout.Divider(margin=(4, 0)),
            pn.Row(self.name, self.ink),
            self._summary,
            self.threshold,
            self.refractory,
            pn.Row(self.merge, self.hidden),
            pn.pane.HTML(tag("h3", "Time from one event to the next")),
            self._intervals,
            width=_WIDTH,
            css_classes=["notes"],
        )

    def _button(self, k: int) -> Any:
        button = pn.widgets.Button(sizing_mode="stretch_width", margin=(1, 4))
        button.on_click(lambda event: self.choose(k))
        return button

    def _label(self, button: Any, k: int) -> None:
        """Write on the button of motif k how it stands with it.

        Buttons are changed and never replaced: a click on one that is gone would be lost.
        """
        notes = self.session.annotations
        is_shown = k in notes.shown
        if is_shown:
            state = f"{int(self.session.occurrences(k).counted.sum())} events"
        else:
            target = notes.motifs[k].merged_into
            state = "hidden" if target is None else f"counts as {notes.title(target)}"
        style = _BUTTON.format(
            ink=self.session.colour(k),
            paper="#e8eef3" if k == self.motif else "#ffffff",
            weight="600" if k == self.motif else "400",
            text="#1f2933" if is_shown else "#8a949e",
        )
        number = "" if notes.motifs[k].name == "" else f"  ({k})"
        button.param.update(label=f"{notes.title(k)}{number} · {state}", stylesheets=[style])

    def _told(self) -> str:
        k, clock = self.session.annotations.root(self.motif), self.session.subject.clock
        found = self.session.occurrences(k)
        n, rejected = int(found.counted.sum()), int((~found.counted).sum())
        told = f"{n} events"
        if clock.rate is not None:
            told += f", {60 * n / clock.end:.3g} per minute"
        if rejected:
            told += f"; {rejected} rejected"
        accepted = sum(verdict == "accepted" for verdict in found.verdicts)
        if accepted:
            told += f"; {accepted} accepted"
        return tag("p", told)

    def _histogram(self, count: int) -> Any:
        k = self.session.annotations.root(self.motif)
        counts, edges = self.session.histogram(k)
        unit = self.session.subject.clock.unit
        return hv.Histogram((edges, counts), kdims=[hv.Dimension("interval", unit=unit)]).opts(
            color=self.session.colour(k),
            line_color="white",
            responsive=True,
            height=150,
            toolbar=None,
            default_tools=[],
            framewise=True,
            ylabel="",
            xlabel=f"interval ({unit})",
            fontsize={"labels": "8pt", "ticks": "8pt"},
            hooks=[_whole_counts],
        )


def _whole_counts(plot: Any, element: Any) -> None:
    """What HoloViews calls after each drawing: there is no half of an event."""
    plot.state.yaxis[0].ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=4)


def _digits(step: float) -> int:
    """After the point, that a time in such steps needs."""
    return next((n for n in range(6) if round(step, n) == step), 4)
