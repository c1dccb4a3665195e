"""A number box that keeps what was typed: out-of-range values are marked, not changed."""

from __future__ import annotations

import math
import re
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from explorer.widgets.still import Still

_TYPABLE: Final = re.compile(r"[0-9eE+\-., _]*")


class NumberBox(Still, QAbstractSpinBox):
    """An integer or float with arrows; invalid input is kept as text for validation.

    QSpinBox refuses keys that lead out of its range, and QDoubleSpinBox rounds to a fixed number of decimals:
    neither lets a form say what is wrong, nor holds 1e-6.
    """

    edited = Signal()  # The person, or `set_value`, changed what `value` returns.

    def __init__(
        self,
        *,
        integer: bool,
        low: float | None = None,
        high: float | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._integer = integer
        self._low = -math.inf if low is None else low
        self._high = math.inf if high is None else high
        self._exact: tuple[str, int | float] | None = None
        self.setAccelerated(True)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.lineEdit().textChanged.connect(self.edited)

    def value(self) -> int | float | str:
        """Return the number, or the text itself if it is not a number."""
        if self._exact is not None and self._exact[0] == self.text():
            return self._exact[1]
        text = self.text().strip().replace("_", "").replace(" ", "")
        try:
            return int(text) if self._integer else float(text.replace(",", "."))
        except ValueError:
            return self.text()

    def set_value(self, value: int | float) -> None:
        """Show `value` with up to 6 digits; until edited, `value()` returns all of them."""
        self._exact = (written(value), value)
        self.lineEdit().setText(written(value))

    # -- Qt's side ---------------------------------------------------------------------------------------------

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        fits = _TYPABLE.fullmatch(text) is not None
        return (QValidator.State.Acceptable if fits else QValidator.State.Invalid), text, position

    def fixup(self, text: str) -> str:
        return text

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        value, flags = self.value(), QAbstractSpinBox.StepEnabledFlag.StepNone
        if isinstance(value, str):
            return flags
        if value < self._high:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        if value > self._low:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        return flags

    def stepBy(self, count: int) -> None:
        value = self.value()
        if isinstance(value, str):
            return
        moved = value + count * step_size(value, integer=self._integer)
        moved = min(self._high, max(self._low, moved))
        # 0.1 + 0.01 must read 0.11, not 0.11000000000000001.
        self.set_value(round(moved) if self._integer else float(f"{moved:.10g}"))
        self.selectAll()

    def minimumSizeHint(self) -> QSize:
        return QSize(80, super().minimumSizeHint().height())


def written(value: int | float) -> str:
    """Format a number as a user would type it: `256`, `0.001`, `1e-06`, `14.2857`."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def step_size(value: int | float, *, integer: bool) -> float:
    """Return the step of an arrow: a tenth of the number's decade, at least 1 for integers."""
    if value == 0:
        return 1 if integer else 0.01
    decade = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return max(1, round(decade)) if integer else decade
