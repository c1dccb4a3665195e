"""The hits of one run."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.views.selected import PairTile, Tiles
from explorer.widgets import layouts
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.state_area import StateArea
from trainer.charts.search import Hits


class HitsPanel(QFrame):
    """Hits as images, best first; those that both runs find are framed, or the others where these are fewer."""

    def __init__(self, index: int, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"search-panel-{'ab'[index]}")
        self.index = index
        self.hits: Hits | None = None
        self.title, self.note = layouts.elided(role="strong"), layouts.elided(role="small")
        letter = "AB"[index]
        self.tiles = Tiles(pictures, name=f"search-hits-{letter.lower()}", label=f"Hits of {letter}", edge=96, lines=3)
        self.area = StateArea(self.tiles, width=320)
        layouts.column(layouts.row(RunBadge("AB"[index], index), (self.title, 1)), self.note, (self.area, 1), of=self)

    def show_hits(self, hits: Hits, shared: set[int]) -> None:
        """Show the hits, of which the other run finds `shared`, too."""
        self.hits = hits
        alone = len(hits.rows) - len(shared)
        frames_shared = len(shared) <= alone
        drawn = f"{hits.n:,} {'sampled ' * hits.sampled}{hits.target}s"
        parts = [f"Top {len(hits.rows)} of {drawn} by {'CSLS' if hits.csls else 'cosine'}"]
        framed = "; framed" if frames_shared else "; framed: only here" if alone else ""
        parts += [f"{len(shared) if alone else 'all'} shared with {'BA'[self.index]}{framed}"] if shared else []
        self.title.setText(f"{hits.name} · step {hits.step:,}")
        self.note.setText(" · ".join(parts))
        items, text = hits.items, hits.target == "text"
        self.tiles.show_tiles(
            [
                PairTile(
                    int(row),
                    "" if text else items.path[row],
                    items.caption[row] or items.path[row],
                    f"{rank}.  {cosine:.3f}".replace("-", "−"),
                    ("shared" if frames_shared else f"only {'AB'[self.index]}")
                    if (int(row) in shared) == frames_shared
                    else "",
                )
                for rank, (row, cosine) in enumerate(zip(hits.rows, hits.cosines, strict=True), start=1)
            ]
        )
        self.area.ready()

    def show_nothing(self, icon: str, title: str, text: str, *, name: str = "") -> None:
        """Show why there are no hits, and what to do."""
        self._forget(name)
        self.area.empty(icon, title, text)

    def refuse(self, what: str, why: Exception | str, retry: Callable[[], object] | None = None) -> None:
        """Show that the search failed: what, and why."""
        self._forget("")
        self.area.failed(what, why, retry=retry)

    def _forget(self, name: str) -> None:
        self.hits = None
        self.title.setText(name)
        self.note.setText("")
        self.tiles.show_tiles([])
