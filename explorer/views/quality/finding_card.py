"""One finding, large: its pictures, their captions, and the evidence of each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets import layouts
from explorer.widgets.image_box import ImageBox
from trainer.metrics import split_label
from trainer.store.quality_reports import QualityFinding

PICTURE_PX: Final = 150
TITLES: Final = {"mispair": "Mispair", "duplicate": "Near-duplicate", "leak": "Leak", "outlier": "Outlier"}

RANK: Final = "rank\N{NO-BREAK SPACE}"
"""No line ends between the word and its number."""


class _Sample(QWidget):
    """A picture with up to two captions, each under a heading."""

    def __init__(self, name: str, pictures: Thumbnails) -> None:
        super().__init__(objectName=name)
        self._pictures, self.path = pictures, ""
        self.picture = ImageBox()
        self.picture.setFixedSize(PICTURE_PX, PICTURE_PX)
        self.headings = [layouts.text(role="small", wrap=True) for _ in range(2)]
        self.texts = [layouts.text(wrap=True) for _ in range(2)]
        column = layouts.column(gap=theme.SPACE)
        for heading, text in zip(self.headings, self.texts, strict=True):
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layouts.add(column, heading, text, theme.SPACE)
        top = Qt.AlignmentFlag.AlignTop
        layouts.row((self.picture, 0, top), (layouts.panel(column), 1, top), of=self)
        pictures.arrived.connect(self._show_picture)

    def show_sample(self, path: str, *texts: tuple[str, str]) -> None:
        """Show this picture and these headings with their texts; a heading without a text stands alone."""
        self.path = path
        self.setVisible(bool(path))
        self._show_picture()
        for at, (heading, text) in enumerate(zip(self.headings, self.texts, strict=True)):
            title, value = texts[at] if at < len(texts) else ("", "")
            for label, line in ((heading, title), (text, value)):
                label.setText(line)
                label.setVisible(bool(line))

    def _show_picture(self, arrived: str = "") -> None:
        if arrived not in ("", self.path):
            return
        problem = self._pictures.problem(self.path)
        self.picture.show_picture(self._pictures.get(self.path), broken=bool(problem))
        self.picture.setToolTip(problem or self.path)
        self.picture.setAccessibleDescription(self.texts[0].text())


class FindingCard(QWidget):
    """Shows a finding in the right panel.

    Attributes:
        samples: The picture of the finding, and the one that it is compared with.
    """

    closed = Signal()  # The person does not want to see it any more.

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="quality-finding")
        self.title = layouts.text(role="strong")
        self.samples = [_Sample(f"quality-sample-{at}", pictures) for at in range(2)]
        self.evidence = layouts.text(role="small", name="quality-evidence", wrap=True)
        close = QToolButton(objectName="quality-finding-close", accessibleName="Close the finding")
        close.setToolTip("Close, and select nothing (Esc)")
        close.clicked.connect(self.closed)
        theme.keep_icon(close, "x", 16, "secondary")
        head = layouts.row((self.title, 1), close)
        layouts.column(head, *self.samples, self.evidence, layouts.STRETCH, margins=theme.BETWEEN, of=self)

    def show_finding(self, finding: QualityFinding, sides: Sequence[str]) -> None:
        """Show this finding with what each side says of a mispair; the pictures follow when they are decoded."""
        self.title.setText(TITLES[finding.kind])
        first, second = self.samples
        caption, better = finding.caption or "No caption", finding.other_caption
        if finding.kind == "mispair":
            first.show_sample(finding.path, ("Caption", caption), *([("Better caption", better)] if better else []))
            second.show_sample(finding.other_path, ("Best picture for the caption", ""))
        else:
            first.show_sample(finding.path, ("Caption", caption))
            heading = "Nearest picture" if finding.kind == "outlier" else f"Same as, {split_label(finding.other_split)}"
            second.show_sample(finding.other_path, (heading, better))
        row = f"Row {finding.row:,} of {split_label(finding.split)}"
        self.evidence.setText("\n".join((row, *_evidence(finding, sides))))


def _evidence(finding: QualityFinding, sides: Sequence[str]) -> list[str]:
    """Return what each side says of a mispair, or how far apart the pictures are."""
    if finding.kind == "mispair":
        return [
            f"{side}: margin {margin:.2f} SD, caption rank {caption:,}, image rank {image:,}".replace("rank ", RANK)
            for side, margin, (caption, image) in sorted(zip(sides, finding.margins, finding.ranks))
        ]
    mean = "mean of its 10 nearest pictures" if finding.kind == "outlier" else "1 − cosine"
    by = f" · found by {finding.by}" if finding.by else ""
    return [f"Distance {finding.distance:.4f} ({mean}){by}"]
