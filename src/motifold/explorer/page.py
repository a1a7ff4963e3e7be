"""The page: pictures, notes and the closer look, put together and kept in step."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn

from motifold.explorer.charts import Charts
from motifold.explorer.closer import Closer
from motifold.explorer.export import figure_file, pairs_file
from motifold.explorer.notes import Notes
from motifold.explorer.picture import SHOWS
from motifold.explorer.session import Session
from motifold.explorer.subject import Subject
from motifold.findings.annotations import Verdict
from motifold.findings.matching import match_motifs
from motifold.report.markup import join, tag

pn.extension()

_STYLE = """
:host { font-family: system-ui, "Segoe UI", sans-serif; color: #1f2933; }
h1 { font-size: 17px; margin: 2px 0; } h2 { font-size: 14px; margin: 4px 0; }
h3 { font-size: 12px; font-weight: 600; margin: 6px 0 0; } p { margin: 2px 0; font-size: 13px; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 6px; }
.verdict { padding: 0 6px; border-radius: 8px; background: #eef1f4; }
.accepted { background: #d7f0df; } .rejected { background: #f8d9d6; }
.told { color: #5b6875; font-size: 12.5px; } .bad { color: #a61b1b; font-weight: 600; }
.players label { display: inline-flex; align-items: center; gap: 6px; margin-right: 12px;
  font-size: 12.5px; } audio { height: 30px; width: 190px; }
"""


class Page:
    """One window onto a session.

    Parameters
    ----------
    session : shared by all windows
    other : the same recording taken apart by another model
    titles : what the two models are called
    """

    def __init__(
        self,
        session: Session,
        other: Subject | None = None,
        titles: tuple[str, str] = ("this fit", "the other fit"),
    ) -> None:
        self.session, self.other, self.titles = session, other, titles
        self.match = None
        if other is not None:
            self.match = match_motifs(session.subject.model, other.model)
        self._status = pn.pane.HTML(self._saved(), stylesheets=[_STYLE])
        self.charts = Charts(session, other, None if self.match is None else self.match.order)
        self.notes = Notes(session, self._motif_chosen, self._failed)
        self.closer = Closer(session, self._judge, self._move)
        self.charts.tap.add_subscriber(self._tapped)
        session.watch(self._changed)
        self._chosen_bin = -1
        self.layout = self._laid_out()

    def close(self) -> None:
        """The window is gone."""
        self.session.unwatch(self._changed)

    # --- what happens -----------------------------------------------------------------------

    def _changed(self) -> None:
        """Something was said: all follows."""
        chosen = self.closer.chosen
        if chosen is not None:
            chosen = self._still(chosen)
        self._status.object = self._saved()
        self.notes.fill()
        self._choose(chosen)

    def _still(self, chosen: tuple[int, int]) -> tuple[int, int] | None:
        """The chosen event among those that there are now."""
        k, i = chosen
        bins = self.session.occurrences(k).bins
        at = self._chosen_bin
        i = int(np.searchsorted(bins, at))
        there = i < len(bins) and bins[i] == at and k in self.session.annotations.shown
        return (k, i) if there else None

    def _choose(self, chosen: tuple[int, int] | None) -> None:
        self.charts.selected = chosen
        if chosen is not None:
            self._chosen_bin = int(self.session.occurrences(chosen[0]).bins[chosen[1]])
        self.charts.refresh()
        self.closer.show(chosen, self.charts.order)

    def _motif_chosen(self) -> None:
        if self.closer.chosen is not None and self.closer.chosen[0] != self.notes.motif:
            self._choose(None)

    def _tapped(self, x: float | None = None, y: float | None = None) -> None:
        if x is None or y is None:
            return
        found = self.charts.at(x, y)
        if found is not None:
            if found[0] != self.notes.motif:
                self.notes.choose(found[0])
            self._choose(found)

    def _move(self, by: int) -> None:
        """To the next event of the motif, or the first in view."""
        k = self.session.annotations.root(self.notes.motif)
        bins = self.session.occurrences(k).bins
        if not len(bins) or k not in self.session.annotations.shown:
            return
        if self.closer.chosen is not None and self.closer.chosen[0] == k:
            i = self.closer.chosen[1] + by
        else:
            i = int(np.searchsorted(bins, self.charts.view.a))
        i = min(max(i, 0), len(bins) - 1)
        left, right = self.charts.range.x_range
        x = self.session.subject.clock.position(int(bins[i]))
        self._choose((k, i))
        if not left <= x <= right:
            self.charts.look_at(x - (right - left) / 2, x + (right - left) / 2)

    def _judge(self, verdict: Verdict | None) -> None:
        if self.closer.chosen is None:
            return
        k, i = self.closer.chosen
        try:
            self.session.judge(self.session.occurrences(k).event(i), verdict)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        told = getattr(error, "strerror", None) or str(error)
        self._status.object = tag("p", f"Not saved: {told}", class_="bad")

    def _saved(self) -> str:
        path = self.session.path
        if path is None:
            told = "Notes are not saved: there is no file of the model."
        else:
            told = f"{'Saved in' if Path(path).exists() else 'Notes will be in'} {path}"
        return tag("p", told, class_="told")

    # --- the view ---------------------------------------------------------------------------

    def _look(self, where: str) -> None:
        left, right = self.charts.range.x_range
        middle, width = (left + right) / 2, right - left
        end = self.session.subject.clock.end
        if where == "whole":
            self.charts.look_at(0, end)
        elif where in ("left", "right"):
            by = 0.8 * width * (1 if where == "right" else -1)
            self.charts.look_at(left + by, right + by)
        else:
            width *= 0.5 if where == "in" else 2
            self.charts.look_at(middle - width / 2, middle + width / 2)

    def _export(self, ending: str) -> io.BytesIO:
        return io.BytesIO(figure_file(self.charts, ending, self._title))

    @property
    def _title(self) -> str:
        return f"{self.session.subject.name}, {self.titles[0]}"

    # --- how it looks -----------------------------------------------------------------------

    def _laid_out(self) -> Any:
        main = pn.Column(
            self._controls(),
            *[pn.pane.HoloViews(p, sizing_mode="stretch_width") for p in self.charts.panels],
            self.closer.column,
            *([] if self.match is None else [self._pairs()]),
            sizing_mode="stretch_width",
        )
        _styled(self.notes.column, self.closer.column)
        body = pn.Row(self.notes.column, main, sizing_mode="stretch_width")
        return pn.Column(self._head(), body, sizing_mode="stretch_width", margin=8)

    def _head(self) -> Any:
        subject = self.session.subject
        T, N = subject.fit.shape
        told = f"{T} bins × {N} features, {len(subject.model.components_)} motifs"
        if not subject.is_training:
            told += f"; {_of_the_fit(subject)}: activations were found anew"
        title = join(
            tag("h1", f"{self.titles[0]} on {subject.name}"), tag("p", told, class_="told")
        )
        return pn.Row(
            pn.pane.HTML(title, stylesheets=[_STYLE]),
            pn.Spacer(sizing_mode="stretch_width"),
            pn.Column(self._downloads(), self._status),
            sizing_mode="stretch_width",
        )

    def _downloads(self) -> Any:
        name = self.session.subject.name
        buttons = [
            pn.widgets.FileDownload(
                callback=lambda ending=ending: self._export(ending),
                filename=f"{name}.{ending}",
                label=f"This view as {ending.upper()}",
                color="default",
                margin=(2, 3),
            )
            for ending in ("png", "svg")
        ]
        events = pn.widgets.FileDownload(
            callback=lambda: io.BytesIO(self.session.csv().encode()),
            filename=f"{name}.events.csv",
            label="Events as CSV",
            color="default",
            margin=(2, 3),
        )
        return pn.Row(*buttons, events)

    def _controls(self) -> Any:
        show = pn.widgets.RadioButtonGroup(options=list(SHOWS), value=self.charts.show)
        sort = pn.widgets.Checkbox(
            label="Sort features", value=self.charts.is_sorted, align="center"
        )

        def set_show(event: Any) -> None:
            self.charts.show = event.new
            self.charts.refresh()

        def set_sort(event: Any) -> None:
            self.charts.is_sorted = event.new
            self._choose(self.closer.chosen)

        show.param.watch(set_show, "value")
        sort.param.watch(set_sort, "value")
        views = {"Whole recording": "whole", "◀": "left", "▶": "right", "−": "out", "+": "in"}
        buttons = []
        for name, where in views.items():
            button = pn.widgets.Button(label=name, margin=(4, 2), min_width=36)

            def look(_event: Any, where: str = where) -> None:
                self._look(where)

            button.on_click(look)
            buttons.append(button)
        return pn.Row(show, sort, pn.Spacer(sizing_mode="stretch_width"), *buttons)

    def _pairs(self) -> Any:
        assert self.other is not None
        assert self.match is not None
        picture = pairs_file(self.session.subject, self.other, self.charts.order)
        told = (
            f"Above: the motifs of {self.titles[0]}. Beneath each the motif of {self.titles[1]} "
            "that answers to it, shifted to lie on it, and how like the two are (1 is the same)."
        )
        return pn.Column(
            pn.pane.HTML(
                join(tag("h2", "Two fits"), tag("p", told, class_="told")), stylesheets=[_STYLE]
            ),
            pn.pane.PNG(picture, width=min(1000, 120 + 110 * len(self.match.order))),
            sizing_mode="stretch_width",
        )


def _of_the_fit(subject: Subject) -> str:
    """What a recording has to do with the fit whose activations it does not have."""
    held = subject.model.held_out_
    if held is None or held.n_samples != len(subject.fit.H):
        return "not the recording of the fit"
    return f"{100 * held.share:.0f}% of the recording of the fit was held out"


def _styled(*parts: Any) -> None:
    """Give every text of these parts the style of the page."""
    for part in parts:
        for pane in part.select(pn.pane.HTML):
            pane.stylesheets = [_STYLE]
