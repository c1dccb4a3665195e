"""A popover over the status bar: GPUs, CPU, memory and disk, and the share of each trainer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QProgressBar, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.elided_label import elided_name

if TYPE_CHECKING:
    from pathlib import Path

    from explorer.views.view import Context
    from trainer.scheduling.energy import Tariff
    from trainer.scheduling.gpu_usage import Gpu
    from trainer.scheduling.system_usage import SystemUsage

EVERY_MS: Final = 2_000
BAR: Final = 120
WIDTH: Final = 440
NAME_PX = 210
"""Room for a name: the label of a run is painted whole."""


class DeviceMonitor(QFrame):
    """Reads the system load off the GUI thread, only while open."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup, objectName="deviceMonitor")
        theme.set_role(self, "raised")
        self._context = context
        self._grid = layouts.grid(theme.BETWEEN, theme.INSIDE, stretch=2)
        layouts.column(layouts.text("This computer", "strong"), self._grid, margins=theme.BETWEEN, of=self)
        self.setMinimumWidth(WIDTH)
        self._timer = QTimer(self, interval=EVERY_MS, timeout=self._read)
        self._line("Reading…", None, "")

    def open_over(self, widget: QWidget) -> None:
        """Open above `widget`, with aligned right edges."""
        self._anchor = widget
        self._place()
        self.show()

    def lines(self) -> list[tuple[str, str]]:
        """Return name and value of each line, as shown."""
        lines = []
        for row in range(self._grid.rowCount()):
            name, value = self._grid.itemAtPosition(row, 0), self._grid.itemAtPosition(row, 2)
            if name is not None and value is not None:
                lines.append((name.widget().text(), value.widget().text()))
        return lines

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._read()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        self._timer.stop()
        super().hideEvent(event)

    def _read(self) -> None:
        runs = [
            (run.id, run.short_name, run.pid) for run in self._context.jobs.runs if run.active and run.pid is not None
        ]
        read = partial(_usage_and_price, self._context.workspace.folder, tuple(runs))
        self._context.background.run(self, read, done=self._show, key="gauges")

    def _show(self, answer: tuple[SystemUsage, Tariff | None]) -> None:
        now, price = answer
        while self._grid.count():
            self._grid.takeAt(0).widget().deleteLater()
        self._row = 0
        self._line("Processor", now.cpu_percent / 100, f"{now.cpu_percent:.0f} % of {now.cores} cores")
        memory = f"{now.used_mib / 1024:.1f} of {now.total_mib / 1024:.0f} GiB"
        self._line("Memory", now.used_mib / now.total_mib, memory)
        used = 1 - now.free_disk_mib / now.disk_mib if now.disk_mib else 0.0
        self._line("Disk", used, f"{now.free_disk_mib / 1024:,.1f} GiB free of {now.disk_mib / 1024:,.0f}")
        for gpu in now.gpus:
            self._show_gpu(gpu, price)
        if now.without_gpu:
            self._line("GPU", None, now.without_gpu)
        for job in now.jobs:
            gpu = f", {job.gpu_mib / 1024:.1f} GiB of the GPU" if job.gpu_mib is not None else ""
            share = job.percent / 100 / now.cores
            self._line(job.name, share, f"{job.percent:.0f} % of a core, {job.rss_mib / 1024:.2f} GiB{gpu}")
        if not now.jobs:
            self._line("Runs", None, "None is training.")
        self.adjustSize()
        self._place()

    def _show_gpu(self, gpu: Gpu, price: Tariff | None) -> None:
        said = [f"{gpu.percent:.0f} %"] if gpu.percent is not None else []
        said += [f"{gpu.celsius:.0f} °C"] if gpu.celsius is not None else []
        if gpu.watts is not None:
            said.append(f"{gpu.watts:.0f} W" + (f" ({price.words(gpu.watts)} an hour)" if price else ""))
        share = gpu.percent / 100 if gpu.percent is not None else None
        self._line(f"GPU {gpu.number}", share, ", ".join([*said, gpu.name]))
        if gpu.used_mib is not None and gpu.total_mib:
            memory = f"{gpu.used_mib / 1024:.1f} of {gpu.total_mib / 1024:.0f} GiB"
            self._line(f"GPU {gpu.number} memory", gpu.used_mib / gpu.total_mib, memory)

    _row = 0

    def _line(self, name: str, share: float | None, value: str) -> None:
        head, label = layouts.text(), layouts.text(value, "small", wrap=share is None)
        head.setText(elided_name(name, head.fontMetrics(), NAME_PX))
        head.setToolTip(name)
        self._grid.addWidget(head, self._row, 0)
        if share is not None:
            bar = QProgressBar(textVisible=False, accessibleName=f"{name}: {value}")
            bar.setFixedWidth(BAR)
            bar.setRange(0, 1000)
            bar.setValue(round(1000 * max(0.0, min(1.0, share))))
            self._grid.addWidget(bar, self._row, 1, Qt.AlignmentFlag.AlignVCenter)
        self._grid.addWidget(label, self._row, 2)
        self._row += 1

    def _place(self) -> None:
        corner = self._anchor.mapToGlobal(QPoint(self._anchor.width(), 0))
        size = self.sizeHint().expandedTo(self.minimumSize())
        self.move(corner - QPoint(size.width(), size.height() + theme.SPACE))


def _usage_and_price(folder: Path, runs: tuple[tuple[int, str, int], ...]) -> tuple[SystemUsage, Tariff | None]:
    from trainer.scheduling import energy, system_usage

    return system_usage.read(folder, runs), energy.tariff()
