"""The dialog that tells version, license, and the libraries that are installed with theirs."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.widgets import layouts
from trainer.distribution.installed import InstalledPackage, installed_packages, version

WIDTH, HEIGHT = 640, 520
_HEADINGS = ("Library", "Version", "License")
_WORDS = (
    "MIT license. Icons: Lucide (ISC). Font: Inter (OFL). This program asks no server for updates; a package manager "
    "or `uv tool upgrade contrastive-explorer` brings them."
)


class AboutSheet(QDialog):
    """Version, license and libraries. Esc closes it."""

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="about", windowTitle="About Contrastive Explorer", modal=True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        layouts.resize_within_screen(self, WIDTH, HEIGHT)
        self._packages: list[InstalledPackage] = []
        title = QLabel(f"Contrastive Explorer {version()}", self, objectName="about-title")
        theme.set_role(title, "title")
        text = layouts.text(_WORDS, "secondary", wrap=True)
        self.table = QTableWidget(0, len(_HEADINGS), self, objectName="about-libraries", accessibleName="Libraries")
        self.table.setHorizontalHeaderLabels(_HEADINGS)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setStretchLastSection(True)
        copy = QPushButton("Copy", self, objectName="about-copy", autoDefault=False)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text()))
        close = QPushButton("Close", self, objectName="about-close", default=True, clicked=self.reject)
        row = layouts.row((layouts.STRETCH, 1), copy, close)
        layouts.column(title, text, (self.table, 1), row, gap=theme.BETWEEN, margins=theme.AROUND, of=self)
        background.run(self, installed_packages, done=self._show, key="about")

    def text(self) -> str:
        """Return the libraries as lines of name, version and license."""
        return "\n".join(f"{package.name} {package.version}: {package.license}" for package in self._packages)

    def _show(self, packages: list[InstalledPackage]) -> None:
        self._packages = packages
        self.table.setRowCount(len(packages))
        for row, package in enumerate(packages):
            for column, text in enumerate((package.name, package.version, package.license)):
                self.table.setItem(row, column, QTableWidgetItem(text))
