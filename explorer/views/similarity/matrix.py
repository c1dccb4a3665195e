"""The matrix of all cosines: A next to B, in one order, zoomable down to a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Int
from msgspec import Struct
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.view import Context, side_words
from explorer.widgets import layouts
from explorer.widgets.accessible import announce
from explorer.widgets.elided_label import heading
from explorer.widgets.finder import Choice
from explorer.widgets.matrix_map import ColorScale, MatrixMap
from explorer.widgets.progress_row import Cancelled, ProgressRow, Ticket
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.state_area import StateArea
from trainer.analysis.progress import part_of
from trainer.charts.common_pairs import same_pairs
from trainer.charts.matrix import MatrixTile, MatrixWindow, color_range, open_matrix, ordering, orders, read_tile
from trainer.charts.spec import Request, Target
from trainer.errors import UserError
from trainer.store import SplitKey, Workspace, of_split
from trainer.store.snapshot_files import Snapshot

TILE_MS = 30
NAMES = {"label": "class", "clusters": "clusters", "stored": "as stored"}


class Opened(Struct, frozen=True):
    """The source of both matrices: memory-mapped snapshots, one order of the pairs, and why a run has none."""

    by: str
    order: Int[np.ndarray, " n"]
    names: dict[int, str]
    snapshots: dict[int, Snapshot]
    problems: dict[int, str]
    choices: tuple[str, ...]


class MatrixPane(QWidget):
    """Heat maps of both runs that zoom and pan together."""

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__()
        self.context, self.pictures = context, pictures
        self.opened: Opened | None = None
        self.tiles: dict[int, MatrixTile] = {}
        self._key: tuple[object, ...] | None = None
        self._opening = False
        self._places: dict[int, int] = {}
        self.by = SearchableComboBox(name="matrix-by", label="Order by", width=130)
        self.by.setMaximumWidth(200)
        self.by.show_choices([Choice("label", "class")], "label")
        self.whole = QPushButton("Show all", objectName="matrix-whole")
        theme.keep_icon(self.whole, "maximize", 16, "secondary")
        self.working = ProgressRow("matrix-working")
        self.sides = (MatrixSide(0), MatrixSide(1))
        self.cell = layouts.elided(role="secondary")
        self.cell.setObjectName("matrix-cell")
        self._debounce = QTimer(self, singleShot=True, interval=TILE_MS)
        self._lay_out()
        self._connect()

    def refresh(self) -> None:
        """Read the matrices of the selected snapshots, if others are shown."""
        selection = self.context.selection
        key = (selection.run_a, selection.run_b, selection.sides, selection.dataset, self.by.key)
        if key == self._key:
            return
        self._key, self._opening = key, True
        runs = (selection.run_a, selection.run_b)
        for side in self.sides:
            side.area.loading()
        self.context.background.run(
            self,
            read_matrices,
            self.context.workspace,
            runs,
            (selection.step_of(0), selection.step_of(1)),
            selection.dataset,
            self.by.key,
            self.working.start("Reading the cosines"),
            done=self._show,
            failed=self._refuse,
            key="matrix",
        )

    def forget(self) -> None:
        """Invalidate what was read."""
        self._key, self._opening = None, False

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for the same figure; None if there is nothing to export."""
        if self.opened is None or not self.opened.snapshots:
            return None
        opened = self.opened
        first = opened.snapshots[min(opened.snapshots)]
        data = ["--dataset", first.dataset, "--split", first.split]
        arguments = ["export", "matrix", *side_words(self.context.selection, opened.snapshots), *data, "--records"]
        window = self._window()
        part = [str(v) for v in (window.top, window.bottom, window.left, window.right)]
        return [*arguments, "--by", opened.by, *(["--window", *part] if window.cells < first.n**2 else [])]

    def _show(self, opened: Opened) -> None:
        self.working.end()
        self._opening = False
        self.opened = opened
        self.tiles.clear()
        self._places = {int(row): position for position, row in enumerate(opened.order)}
        self.by.show_choices([Choice(key, NAMES.get(key, key.replace("_", " "))) for key in opened.choices], opened.by)
        for side in self.sides:
            snapshot = opened.snapshots.get(side.index)
            if snapshot is None:
                if side.index in opened.problems:
                    side.refuse(opened.problems[side.index], self._again)
                else:
                    side.show_nothing()
                continue
            side.show_run(opened.names[side.index], snapshot)
            side.map.picture_of = self._picture
        self._mark_pairs()
        self._read_tiles()

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, Cancelled):
            return
        self.working.end()
        self._key, self._opening = None, False
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        for side in self.sides:
            side.refuse(error, self._again)

    def _cancelled(self) -> None:
        self.forget()
        for side in self.sides:
            if side.area.kind == "loading":
                side.area.cancelled(self._again, "matrix")

    def _again(self) -> None:
        self.forget()
        self.refresh()

    def _window(self) -> MatrixWindow:
        side = next((side for side in self.sides if side.snapshot is not None), self.sides[0])
        n = side.map.size_cells
        top, bottom, left, right = side.map.area.whole
        return MatrixWindow(max(top, 0), min(bottom, n), max(left, 0), min(right, n))

    def _read_tiles(self) -> None:
        # While an order is made, its answer will ask for the tiles; they share the bar with it.
        if self.opened is None or self._opening:
            return
        blocks = {
            index: int(min(400, max(32, self.sides[index].map.room.width() // 2))) for index in self.opened.snapshots
        }
        self.context.background.run(
            self,
            read_tiles,
            self.opened,
            self._window(),
            blocks,
            self.working.start(),
            done=self._show_tiles,
            failed=self._refuse,
            key="tiles",
        )

    def _show_tiles(self, tiles: dict[int, MatrixTile]) -> None:
        self.working.end()
        for index, tile in tiles.items():
            self._show_tile(index, tile)

    def _show_tile(self, index: int, tile: MatrixTile) -> None:
        self.tiles[index] = tile
        low, high = color_range(tile.means)
        window = tile.window
        self.sides[index].map.show_values(tile.means, (window.top, window.bottom, window.left, window.right), low, high)
        self.sides[index].scale.show_range(low, high, "cosine" if tile.single else "mean of block")
        rows, columns = len(tile.rows[0]) if tile.rows else 0, len(tile.columns[0]) if tile.columns else 0
        grain = "one cosine per cell" if tile.single else f"blocks of {rows:,} × {columns:,}"
        self.sides[index].show_message(
            f"{window.bottom - window.top:,} × {window.right - window.left:,} cosines · {grain}"
        )

    def _moved(self, index: int) -> None:
        other = self.sides[1 - index].map
        if other.size_cells == self.sides[index].map.size_cells and other.area != self.sides[index].map.area:
            other.look_at(self.sides[index].map.area)
        self._debounce.start()

    def _point(self, row: int, column: int) -> None:
        for side in self.sides:
            side.map.mark(row, column)
        self.cell.setText("" if row < 0 or self.opened is None else self._cell_words(row, column))
        announce(self, self.cell.text())

    def _cell_words(self, row: int, column: int) -> str:
        image, text = int(self.opened.order[row]), int(self.opened.order[column])
        parts = []
        for index, snapshot in sorted(self.opened.snapshots.items()):
            # One product of two rows that are in memory anyway.
            cosine = float(np.asarray(snapshot.image[image], np.float64) @ np.asarray(snapshot.text[text], np.float64))
            parts.append(f"{'AB'[index]} {cosine:.3f}".replace("-", "−"))
        items = next(iter(self.opened.snapshots.values())).items
        if image == text:
            return f"{' · '.join(parts)} · matched: {items.caption[text]}"
        return f"{' · '.join(parts)} · image of “{items.caption[image]}” with text “{items.caption[text]}”"

    def _click(self, row: int, column: int) -> None:
        if self.opened is not None:
            self.context.selection.pairs = {int(self.opened.order[row]), int(self.opened.order[column])}

    def _mark_pairs(self) -> None:
        positions = [self._places[p] for p in self.context.selection.pairs.tolist() if p in self._places]
        for side in self.sides:
            side.map.set_selected(positions)

    def _picture(self, position: int):
        items = next(iter(self.opened.snapshots.values())).items
        return self.pictures.get(items.path[int(self.opened.order[position])])

    def _connect(self) -> None:
        self.by.picked.connect(lambda _key: self.refresh())
        self.whole.clicked.connect(lambda: [side.map.show_all() for side in self.sides])
        self.working.cancelled.connect(self._cancelled)
        self._debounce.timeout.connect(self._read_tiles)
        self.pictures.arrived.connect(lambda _path: [side.map.update() for side in self.sides])
        self.context.selection.pairs_changed.connect(self._mark_pairs)
        for side in self.sides:
            side.map.area_changed.connect(partial(self._moved, side.index))
            side.map.pointed.connect(self._point)
            side.map.clicked.connect(self._click)

    def _lay_out(self) -> None:
        order = layouts.text("Order by", "secondary")
        hint = layouts.elided("Ctrl+wheel zooms, drag moves, a click selects the image's and the text's pair", "small")
        layouts.column(
            layouts.row(order, self.by, self.whole, (hint, 1), (self.working, 1)),
            (layouts.row(*((side, 1) for side in self.sides), gap=theme.AROUND), 1),
            self.cell,
            of=self,
        )


class MatrixSide(QWidget):
    """One run's heat map with its title and color scale."""

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = index
        self.snapshot: Snapshot | None = None
        self.title, self.note = heading(), layouts.elided(role="small")
        self.map, self.scale = MatrixMap(), ColorScale()
        self.map.setObjectName(f"matrix-map-{'ab'[index]}")
        self.map.setAccessibleName(f"Similarity matrix of run {'AB'[index]}")
        content = layouts.panel(layouts.column(self.scale, (self.map, 1), gap=None))
        self.area = StateArea(content, width=300)
        layouts.column(
            layouts.row(RunBadge("AB"[index], index), self.title, (self.note, 1)),
            (self.area, 1),
            gap=theme.SPACE,
            of=self,
        )

    def show_run(self, name: str, snapshot: Snapshot) -> None:
        """Prepare for this run's matrix, which is being computed."""
        self.snapshot = snapshot
        self.title.setText(f"{name} · step {snapshot.step:,}")
        self.map.set_size(snapshot.n)
        self.area.ready()

    def show_nothing(self) -> None:
        """Show that no run is chosen."""
        self._forget()
        self.area.empty("columns-2", f"No run {'AB'[self.index]}", "Choose a run in the bar above to compare.")

    def refuse(self, why: Exception | str, retry: Callable[[], object]) -> None:
        """Show why there is no matrix of the run."""
        self._forget()
        self.area.failed(f"No matrix of {'AB'[self.index]}", why, retry=retry)

    def _forget(self) -> None:
        self.snapshot = None
        self.title.setText("")
        self.note.setText("")

    def show_message(self, text: str) -> None:
        """Show how many cosines are visible."""
        self.note.setText(text)


def read_matrices(
    workspace: Workspace,
    runs: Sequence[int | None],
    steps: Sequence[int | None],
    data: SplitKey | None,
    by: str,
    ticket: Ticket,
) -> Opened:
    """Open both snapshots and order the pairs by the first run. Pure, for a thread.

    Raises:
        UserError: The order cannot be made.
    """
    names, snapshots, problems = {}, {}, {}
    for index, run in enumerate(runs):
        if run is None:
            continue
        try:
            opened = open_matrix(workspace, Target(run, steps[index]), Request(**of_split(data)))
        except UserError as error:
            problems[index] = str(error)
            continue
        snapshot = opened.snapshot
        first = snapshots[min(snapshots)] if snapshots else snapshot
        if same_pairs(first.items, snapshot.items):
            names[index], snapshots[index] = opened.run.short_name, snapshot
        else:
            problems[index] = "This run was embedded on other pairs: there is no common order."
    if not snapshots:
        return Opened(by, np.zeros(0, np.int64), {}, {}, problems, ("label",))
    first = snapshots[min(snapshots)]
    choices = orders(first)
    by = by if by in choices else choices[0]
    return Opened(by, ordering(first, by, progress=ticket), names, snapshots, problems, choices)


def read_tiles(opened: Opened, window: MatrixWindow, blocks: dict[int, int], ticket: Ticket) -> dict[int, MatrixTile]:
    """Read the window in both runs; zoomed out, every embedding is read. Pure, for a thread."""
    return {
        index: read_tile(
            snapshot,
            opened.order,
            window,
            blocks=blocks[index],
            progress=part_of(ticket, number, len(opened.snapshots)),
        )
        for number, (index, snapshot) in enumerate(opened.snapshots.items())
    }
