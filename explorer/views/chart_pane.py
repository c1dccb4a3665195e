"""One chart of the registry: computed off the GUI thread, drawn together with its status."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.numbers_bar import NumbersBar
from explorer.render_qt.panel import PanelWidget
from explorer.state.selection import Selection
from explorer.views.sentences import EmbeddedSentences, Sentences
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.progress_row import Cancelled, ProgressRow, Ticket
from explorer.widgets.state_area import StateArea
from trainer.charts.marks import Panel
from trainer.charts.run_tones import in_run_colors
from trainer.charts.settings import options
from trainer.charts.spec import Chart, Outside, Request, Rows, Target, request_words
from trainer.errors import UserError
from trainer.store import Workspace, of_split

REST_MS = 350
"""A slider that has stood still for so long is computed for; a preview is shown until then."""
PART_S = 0.2
"""What is known in less time, before all is, is not drawn: it would only flicker."""
GROWS: Final = "This is a part: the rest is being computed."


@dataclass(frozen=True)
class Answer:
    """A request, its computed data, and the panel drawn from them."""

    chart: Chart[Any, Any]
    request: Request
    settings: Any
    data: Any
    panel: Panel

    @property
    def key(self) -> object:
        """The key of the computed data; settings that only affect drawing are left out."""
        return self.chart.name, self.request, self.chart.computed_of(self.settings)


def answer(
    workspace: Workspace, chart: Chart[Any, Any], request: Request, settings: Any, earlier: Answer | None, work: Ticket
) -> Answer:
    """Compute the chart for these settings, reusing data of `earlier` where valid. Pure, for a thread.

    What is known after a while is `work.part`, until all is.

    Raises:
        UserError: There is nothing to show; says why.
    """

    def drawn(data: Any) -> Answer:
        panel = in_run_colors(chart.panel(data, settings), workspace, request)
        return Answer(chart, request, settings, data, panel)

    if earlier is not None and earlier.key == (chart.name, request, chart.computed_of(settings)):
        return drawn(earlier.data)
    data, since = None, time.monotonic()
    for data in chart.results(workspace, request, settings, work):
        if time.monotonic() - since > PART_S:
            work.part, since = drawn(data), time.monotonic()
    return drawn(data)


def _joined(parts: Sequence[tuple[Rows | str, ...]]) -> tuple[Rows | str, ...]:
    """Return each target's rows of all parts one after the other, or why one of them has none."""
    joined: list[Rows | str] = []
    for each in zip(*parts, strict=True):
        problem = next((rows for rows in each if isinstance(rows, str)), None)
        joined.append(problem or tuple(row for rows in each for row in rows if not isinstance(row, str)))
    return tuple(joined)


def request_of(selection: Selection) -> Request:
    """Return the request for the selected snapshots: A first."""
    return Request(tuple(Target(side.run, side.step) for side in selection.sides), **of_split(selection.dataset))


class ChartPane(QWidget):
    """A chart with its progress, warnings, panel and status.

    Attributes:
        selects: Whether dragging across a plot of pairs selects those in the range; a view that does more turns it off.
    """

    answered = Signal()  # Another panel is shown.
    refused = Signal()  # There is nothing to show; `area` says why.

    def __init__(self, context: Context, name: str, pictures: Thumbnails | None = None) -> None:
        super().__init__(objectName=f"{name}-pane")
        self._context, self._name = context, name
        self.answer: Answer | None = None
        self.selects = True
        self._work: Ticket | None = None
        self._shown, self._shows_part = "", False
        self._key: object = None
        self._sentences, self._files = Sentences(context, self), Sentences(context, self, files=True)
        self._last: tuple[Chart[Any, Any], Request, Any] | None = None
        self.panel = PanelWidget(pictures or Thumbnails(context.background, self, edge=128), name)
        self.computing = ProgressRow(f"{name}-computing", self)
        self.warnings = layouts.text(role="warn", name=f"{name}-warnings", wrap=True)
        self.warnings.setContentsMargins(0, 0, 0, theme.INSIDE)
        self.warning_fold = DisclosureButton("")
        for part in (self.warning_fold, self.warnings):
            part.hide()
        self.warning_fold.toggled.connect(self.warnings.setVisible)
        self.numbers = NumbersBar(self.panel)
        content = layouts.panel(layouts.column(self.warning_fold, self.warnings, (self.panel, 1), gap=0))
        self.area = StateArea(content)
        layouts.column(self.area, gap=None, of=self)
        self.computing.cancelled.connect(self._cancel)
        self.computing.grew.connect(self._show_part)
        context.selection.pairs_changed.connect(self._mark)
        self.panel.plot_brushed.connect(self._select)
        self._mark()
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(lambda: self._last and self._start(*self._last))

    def _mark(self) -> None:
        """Show the selected pairs in every plot whose points or bars are made of pairs."""
        self.panel.mark(self._context.selection.pairs)

    def _select(self, key: str, brush: tuple[float, ...] | None) -> None:
        if self.selects and (pairs := self.panel.pairs_in(key, brush)) is not None:
            self._context.selection.pairs = pairs

    @property
    def busy(self) -> bool:
        """Whether a result is pending."""
        return self._work is not None or self._rest.isActive() or self.panel.filling

    def ask(self, chart: Chart[Any, Any], request: Request, settings: Any) -> None:
        """Show the chart for these settings; what is shown or pending already is not requested again."""
        key = (chart.name, request, settings)
        if key == self._key:
            return
        self._key, self._last = key, (chart, request, settings)
        if chart.quick:
            self._answer_now(chart, request, settings)
            return
        current = self.answer
        if chart.preview and current is not None and (current.chart.name, current.request) == (chart.name, request):
            self.stop()
            self.panel.show_panel(chart.panel(current.data, settings))
            self._rest.start()
            return
        self._start(chart, request, settings)

    def _start(self, chart: Chart[Any, Any], request: Request, settings: Any) -> None:
        self._work = work = self.computing.start(f"Computing {chart.label}")
        # What another chart shows would be read as the answer to this one's question.
        self.area.loading(keep=self._shown in ("", chart.name))
        if chart.sentences is None:
            self._compute(work, chart, request, settings)
            return
        self._context.background.run(
            self,
            chart.outside,
            self._context.workspace,
            request,
            settings,
            done=lambda outside: self._embed(work, chart, request, settings, outside),
            failed=lambda error: self._failed(work, error),
            key=f"{self._name}-sentences",
        )

    def _embed(self, work: Ticket, chart: Chart[Any, Any], request: Request, settings: Any, outside: Outside) -> None:
        def compute(*parts: EmbeddedSentences) -> None:
            if work is self._work:
                vectors = _joined([part.vectors for part in parts])
                self._compute(work, chart, replace(request, vectors=vectors, places=parts[0].places), settings)

        def embed_files(*parts: EmbeddedSentences) -> None:
            if work is self._work and outside.files:
                self._files.embed(outside.request, outside.files, lambda embedded: compute(*parts, embedded))
            else:
                compute(*parts)

        if work is self._work and not (outside.texts or outside.files):
            self._compute(work, chart, request, settings)
        elif work is self._work:
            work(0.0, "Embedding texts and images")
            if outside.texts:
                self._sentences.embed(outside.request, outside.texts, embed_files, outside.placement, work)
            else:
                embed_files()

    def _compute(self, work: Ticket, chart: Chart[Any, Any], request: Request, settings: Any) -> None:
        self._context.background.run(
            self,
            answer,
            self._context.workspace,
            chart,
            request,
            settings,
            self.answer,
            work,
            done=lambda result: self._done(work, result),
            failed=lambda error: self._failed(work, error),
            key=f"{self._name}-chart",
        )

    def forget(self) -> None:
        """Invalidate the result because the store has changed; the next `ask` computes again."""
        self._key = self.answer = None
        self._sentences.forget()
        self._files.forget()

    def stop(self) -> None:
        """Cancel the computation silently."""
        self._work = None
        self._rest.stop()
        self._sentences.cancel_all()
        self._files.cancel_all()
        self.computing.end()

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for what is shown, without `--out`; None if nothing is."""
        current = self.answer
        if current is None or not self.area.has_result:
            return None
        return ["export", current.chart.name, *request_words(current.request), *options(current.settings)]

    def _answer_now(self, chart: Chart[Any, Any], request: Request, settings: Any) -> None:
        self.stop()
        try:
            result = answer(self._context.workspace, chart, request, settings, self.answer, Ticket())
        except UserError as problem:
            self._refuse(chart, problem)
            return
        self._show(result)

    def _done(self, work: Ticket, result: Answer) -> None:
        if work is self._work:
            self.computing.end()  # no part comes after the whole
            self._draw(work, result, self._show)

    def _draw(self, work: Ticket | None, result: Answer, show: Callable[[Answer], None]) -> None:
        """Show a result once its plots are made, one in a turn, unless another is awaited then."""
        if work is not self._work:
            return
        if self.panel.prepare_for(result.panel):
            show(result)
        else:
            idle_scheduler().later(self, lambda: self._draw(work, result, show))

    def _show(self, result: Answer) -> None:
        self.stop()
        self.answer, self._shown, self._shows_part = result, result.chart.name, False
        # Shown first: a panel that is seen is filled over several turns of the event loop.
        self.area.ready()
        self.panel.show_panel(result.panel)
        self._show_warnings(result.panel.warnings)
        self.answered.emit()

    def _show_part(self, part: Answer) -> None:
        """Show what is known already, unless it would take the place of an earlier result of more runs."""
        if not self.area.has_result or self._shows_part or self.panel.has_cards_of(part.panel):
            self._draw(self._work, part, self._draw_part)

    def _draw_part(self, part: Answer) -> None:
        self.answer, self._shown, self._shows_part = None, part.chart.name, True
        self.area.growing(GROWS)
        self.panel.show_panel(part.panel)
        self._show_warnings(part.panel.warnings)

    def _show_warnings(self, warnings: Sequence[str]) -> None:
        """Show one warning whole, and several in one line that unfolds: what they are about comes first."""
        several = len(warnings) > 1
        if several:
            others = len(warnings) - 1
            first = warnings[0].partition(": ")[0].removesuffix(".")
            self.warning_fold.setText(f"{first}, and {others} more warning{'s' * (others > 1)}")
        self.warning_fold.setVisible(several)
        self.warnings.setText("\n".join(warnings))
        self.warnings.setVisible(self.warning_fold.isChecked() if several else bool(warnings))

    def _failed(self, work: Ticket, error: Exception) -> None:
        if work is not self._work:
            return
        self.stop()
        self._key = None
        if isinstance(error, Cancelled):
            return
        if not isinstance(error, UserError):
            self._context.background.failed.emit(error)
        assert self._last is not None
        self._refuse(self._last[0], error)

    def _refuse(self, chart: Chart[Any, Any], error: Exception) -> None:
        self._key = None
        self.area.failed(f"Could not show {chart.label}", error, retry=self.retry)
        self.refused.emit()

    def retry(self) -> None:
        """Repeat the last request."""
        if self._last is not None:
            self._key = None
            self.ask(*self._last)

    def _cancel(self) -> None:
        self.stop()
        self._key = None
        if self._shows_part:
            self.area.stale("Cancelled. What was computed until then is shown.", ("Compute", self.retry))
        else:
            self.area.cancelled(self.retry)
