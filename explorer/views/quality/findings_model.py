"""A table model of findings of one kind: picture, evidence, the better match, and what was decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from explorer.models.thumbnails import Thumbnails
from trainer.metrics import split_label
from trainer.store.quality_reports import QualityFinding, QualityReport

Index = QModelIndex | QPersistentModelIndex
FINDING_ROLE: Final = Qt.ItemDataRole.UserRole
MARGIN: Final = "Margin\n(SD)"
RANKS: Final = "Caption / image\nrank"
PICTURED: Final = ("Pair", "Picture", "Same as", "Nearest")
"""Columns with a picture."""
STATES: Final = {"": "New", "flagged": "Flagged", "ignored": "Ignored", "reviewed": "Reviewed"}
"""State of a pair -> what it is called; a pair without a review is new."""


class FindingsModel(QAbstractTableModel):
    """Findings with one of some states, worst first."""

    def __init__(self, kind: str, pictures: Thumbnails, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.kind, self._pictures = kind, pictures
        self._all: list[QualityFinding] = []
        self._states: Mapping[str, str] = {}
        self._shown: str | None = None
        self.findings: list[QualityFinding] = []
        self._columns: tuple[str, ...] = ()
        self._sides: Sequence[str] = ()
        pictures.arrived.connect(self._on_arrived)

    def show(
        self,
        report: QualityReport | None,
        states: Mapping[str, str],
        state: str | None,
        pairs: Collection[tuple[str, int]] | None = None,
        sides: Sequence[str] = ("A", "B"),
    ) -> None:
        """Show the report's findings whose state is `state` (None: all), of these splits and rows (None: all).

        Args:
            report: What was found; None for nothing.
            states: State of each pair that has one.
            state: The state of the findings shown.
            pairs: Split and row of the findings shown.
            sides: What the headings call each run of the report.
        """
        self.beginResetModel()
        self._all = report.of_kind(self.kind) if report else []
        self._states, self._shown = states, state
        of_state = [finding for finding in self._all if state is None or self.state_of(finding) == state]
        self.findings = [finding for finding in of_state if pairs is None or (finding.split, finding.row) in pairs]
        self._sides = sides[: len(report.runs) if report else 1]
        self._columns = _columns(self.kind, self._sides)
        self.endResetModel()

    def state_of(self, finding: QualityFinding) -> str:
        """Return what was decided about the finding's first pair; empty if nothing was."""
        return self._states.get(finding.keys[0], "")

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.findings)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Vertical or not 0 <= section < len(self._columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _hint(self._columns[section])
        return _alignment(self._columns[section]) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.findings):
            return None
        finding, column = self.findings[index.row()], self._columns[index.column()]
        if role == FINDING_ROLE:
            return finding
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(finding, column)
        path = finding.path if index.column() == 0 else finding.other_path
        if role == Qt.ItemDataRole.DecorationRole and column in PICTURED:
            return self._pictures.get(path)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{self._text(finding, column)}\n{path}".strip()
        return _alignment(column) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _text(self, finding: QualityFinding, column: str) -> str:
        if column in ("Pair", "Picture"):
            return finding.caption
        if column == "State":
            return STATES[self.state_of(finding)]
        if column.startswith((MARGIN, RANKS)):
            run_index = next(at for at, side in enumerate(self._sides) if column.endswith(f" {side}"))
            if column.startswith(MARGIN):
                return f"{finding.margins[run_index]:.2f}".replace("-", "−")
            return " / ".join(f"{rank:,}" for rank in finding.ranks[run_index])
        texts = {
            "Split": split_label(finding.split),
            "Better caption": finding.other_caption,
            "Same as": f"{finding.other_caption} ({split_label(finding.other_split)})",
            "Nearest": finding.other_path.rpartition("/")[2],
            "Found by": finding.by,
        }
        return texts.get(column, f"{finding.distance:.4f}")

    def _on_arrived(self, path: str) -> None:
        for line, finding in enumerate(self.findings):
            if path in (finding.path, finding.other_path):
                last = self.index(line, len(self._columns) - 1)
                self.dataChanged.emit(self.index(line, 0), last, [Qt.ItemDataRole.DecorationRole])


def _columns(kind: str, sides: Sequence[str]) -> tuple[str, ...]:
    if kind == "mispair":
        evidence: Sequence[str] = [f"{name} {side}" for side in sorted(sides) for name in (MARGIN, RANKS)]
        return ("Pair", "Better caption", *evidence, "Split", "State")
    if kind == "outlier":
        return ("Picture", "Nearest", "Distance", "Split", "State")
    return ("Picture", "Same as", "Found by", "Distance", "Split", "State")


def _alignment(column: str) -> Qt.AlignmentFlag:
    if column in ("Split", "State"):
        return Qt.AlignmentFlag.AlignCenter
    right = column.startswith((MARGIN, RANKS, "Distance"))
    return (Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft) | Qt.AlignmentFlag.AlignVCenter


def _hint(column: str) -> str:
    hints = {
        MARGIN: "Cosine minus the mean unmatched cosine, in standard deviations (SD) of the run's unmatched cosines",
        RANKS: "Rank of the caption for the image / rank of the image for the caption",
        "Better caption": "The caption of another image that fits this image best in run A",
        "Distance": "1 − cosine in run A; for an outlier, the mean to its 10 nearest images",
        "Found by": "Perceptual hash of the pixels, or embedding of run A",
    }
    return next((hint for name, hint in hints.items() if column.startswith(name)), column)
