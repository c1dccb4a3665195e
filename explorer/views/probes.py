"""The Probe strip view: what pinned pictures and sentences find in each run at every snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QLineEdit, QPushButton

from explorer import theme
from explorer.run_control.write_queue import WriteQueue
from explorer.views.chart_view import ChartView
from explorer.views.read_only import guarded
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from trainer.charts.probes import MOST, MOST_LETTERS, PinnedProbe, keep, pinned

CHIP_LETTERS = 28


class ProbesView(ChartView):
    """A film strip of every pinned probe; typing a sentence or dropping a picture pins one, a click on it removes it.

    Attributes:
        line: Where a sentence is typed.
        chips: A button for each probe.
    """

    title = "Probe strip"
    question = "Search results of pinned pictures and sentences over training."
    icon = "film"
    compares = "pictures"
    name = "probes"

    def build(self) -> Iterator[None]:
        self.probes: tuple[PinnedProbe, ...] = ()
        self._is_read = False
        self._writes = WriteQueue(self.context.background, self)
        self._writes.written.connect(self.read)
        self._writes.failed.connect(self._refuse)
        self.line = QLineEdit(objectName="probes-sentence", accessibleName="Sentence to pin", clearButtonEnabled=True)
        self.line.setPlaceholderText("Type a sentence and press Enter, or drop a picture")
        self.line.setMaxLength(MOST_LETTERS)
        self.add = QPushButton("Pin", objectName="probes-pin")
        theme.keep_icon(self.add, "plus")
        self.chips = [QPushButton(objectName=f"probes-chip-{index}") for index in range(MOST)]
        yield from super().build()
        self.row = FlowRow()
        for index, chip in enumerate(self.chips):
            chip.clicked.connect(partial(self._remove, index))
            self.row.add(chip, gap=theme.SPACE)
        line = layouts.panel(layouts.row((self.line, 1), self.add))
        layouts.add(self.above, *(guarded(self.context.jobs, part) for part in (line, self.row)))
        self.line.returnPressed.connect(self._pin_sentence)
        self.add.clicked.connect(self._pin_sentence)
        self.pane.panel.pair_chosen.connect(self._choose_pair)
        self.context.selection.facts_changed.connect(self.read)
        self.setFocusProxy(self.line)
        self.row.hide()
        self.read()

    def settings_now(self) -> Any:
        values = {kind: tuple(probe.value for probe in self.probes if probe.kind == kind) for kind in ("image", "text")}
        return replace(super().settings_now(), **values)

    def refresh(self) -> None:
        if self._is_read and not self.probes and self.context.selection.runs:
            self.pane.stop()
            self.show_content()
            self.pane.area.empty(
                "film",
                "No probe is pinned",
                "Type a sentence above, drop a picture on the window, or choose Pin picture or Pin caption in the "
                "inspector. Each run is searched with it at every snapshot.",
            )
        elif self._is_read or not self.context.selection.runs:
            super().refresh()

    @property
    def drop_words(self) -> str:
        return "Drop to pin this picture as a probe"

    def take(self, paths: Iterable[Path | str]) -> None:
        self.pin([PinnedProbe("image", str(path)) for path in paths])

    def pin(self, probes: Iterable[PinnedProbe]) -> None:
        """Pin these too."""
        every = tuple(dict.fromkeys((*self.probes, *probes)))
        if len(every) > MOST:
            self.failed.emit(f"At most {MOST} probes can be pinned.", "Click one of them to remove it.")
        else:
            self._keep(every)

    def read(self) -> None:
        """Read the pinned probes, which another view may have changed; not while what is shown is yet to be written."""
        if self._writes.is_idle:
            self.context.background.run(
                self, pinned, self.context.workspace, done=self._show, failed=self._refuse, key="probes"
            )

    def _pin_sentence(self) -> None:
        if sentence := " ".join(self.line.text().split()):
            self.line.clear()
            self.pin([PinnedProbe("text", sentence)])

    def _remove(self, index: int, _checked: bool = False) -> None:
        self._keep(tuple(probe for at, probe in enumerate(self.probes) if at != index))

    def _keep(self, probes: tuple[PinnedProbe, ...]) -> None:
        self.context.background.forget(self, "probes")
        self._show(probes)
        self._writes.add(partial(keep, self.context.workspace, probes))

    def _refuse(self, reason: object) -> None:
        self.failed.emit(str(reason), "The pinned probes stay as they are.")

    def _show(self, probes: tuple[PinnedProbe, ...]) -> None:
        self._is_read, self.probes = True, probes
        for index, chip in enumerate(self.chips):
            is_used = index < len(probes)
            text = probes[index].words.replace("&", "&&") if is_used else ""
            chip.setVisible(is_used)
            chip.setText(f"{text[:CHIP_LETTERS]}{'…' if len(text) > CHIP_LETTERS else ''}  ×")
            chip.setAccessibleName(f"Remove the probe {probes[index].words}" if is_used else "")
            chip.setToolTip(f"{probes[index].value}: click to remove" if is_used else "")
        self.row.setVisible(bool(probes))
        self.refresh_if_seen()

    def _choose_pair(self, pair: int) -> None:
        if pair >= 0:
            self.context.selection.pairs = (pair,)
