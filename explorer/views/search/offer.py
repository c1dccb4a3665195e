"""Offers to build the search index of a snapshot of a million: what it costs, how far it is, and Cancel."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from explorer import theme
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.working import Cancelled, Ticket, Working
from trainer.charts.search import Hits
from trainer.messages import BuildIndex, Failure
from trainer.store import index_files

if TYPE_CHECKING:
    from explorer.asker import Asker


class IndexOffer(QWidget):
    """A line under the hits; seen only where an index would help, or while one is built.

    Signals:
        built: An index more is there.
        failed: Why there is none: cause and next step.
    """

    built = Signal()
    failed = Signal(str, str)

    def __init__(self, asker: Asker, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="search-index")
        self._asker = asker
        self._lacking: list[Hits] = []
        self._open: int | None = None
        self.words = ElidedLabel()
        theme.set_role(self.words, "small")
        self.build = QPushButton("Build the index", objectName="search-build-index")
        self.working = Working("search-index-working")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.INSIDE)
        row.addWidget(self.words, 1)
        row.addWidget(self.working, 1)
        row.addWidget(self.build)
        self.build.clicked.connect(self._begin)
        self.working.cancelled.connect(self._cancel)
        self.hide()

    @property
    def busy(self) -> bool:
        """Whether an index is being built."""
        return self._open is not None

    def show_for(self, hits: Iterable[Hits]) -> None:
        """Offers what these answers would have been quicker with."""
        self._lacking = [one for one in hits if one.n >= index_files.WORTH_IT and not one.by_index and not one.csls]
        if self.busy:
            return
        self.setVisible(bool(self._lacking))
        if not self._lacking:
            return
        sizes, seconds = zip(*(index_files.cost(one.n, one.d) for one in self._lacking), strict=True)
        able = index_files.has_usearch()
        minutes = max(1, round(sum(seconds) / 60))
        self.words.setText(
            "A search index answers in milliseconds: "
            f"about {sum(sizes) / 1e6:,.0f} MB on the disk, {minutes:,} min to build"
            if able
            else f"A search index answers in milliseconds; it needs usearch: {index_files.INSTALL}"
        )
        self.build.setVisible(able)

    def _begin(self) -> None:
        if self.busy or not self._lacking:
            return
        self._next(self.working.start())

    def _next(self, ticket: Ticket) -> None:
        """One after the other: each takes all cores."""
        hits, *self._lacking = self._lacking
        self.build.hide()
        self.words.setText(f"Indexing the {hits.target}s of {hits.name}, step {hits.step:,}")
        self._open = self._asker.ask(
            BuildIndex(run=hits.run, step=hits.step, dataset=hits.dataset, split=hits.split, target=hits.target),
            done=partial(self._done, ticket),
            failed=partial(self._fail, ticket),
            progress=partial(_tell, ticket),
            owner=self,
        )

    def _done(self, ticket: Ticket, _answer: dict[str, Any]) -> None:
        if ticket.cancelled:
            return
        self._open = None
        if self._lacking:
            self._next(ticket)
            return
        self.working.end()
        self.hide()
        self.built.emit()

    def _fail(self, ticket: Ticket, failure: Failure) -> None:
        if ticket.cancelled:
            return
        self._open = None
        self.working.end()
        self.hide()
        if failure.kind != "cancelled":
            self.failed.emit(failure.message, failure.next)

    def _cancel(self) -> None:
        number, self._open = self._open, None
        if number is not None:
            self._asker.cancel(number)
        self.hide()
        self.built.emit()


def _tell(ticket: Ticket, share: float, note: str) -> None:
    try:
        ticket(share, note)
    except Cancelled:
        """Somebody ended it: the process ends too."""
