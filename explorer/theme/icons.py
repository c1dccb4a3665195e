"""Lucide icons drawn in theme colors."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer


@lru_cache(maxsize=1)
def assets() -> Path:
    """Return the folder of icons and fonts: next to the packages in a checkout, inside the trainer in a wheel."""
    import trainer

    package = Path(trainer.__file__).parent
    return next(f for f in (package / "assets", package.parent / "assets") if f.is_dir())


@lru_cache(maxsize=512)
def svg(name: str, color: str, stroke: float = 2.0) -> bytes:
    """Return an icon's SVG with its strokes in `color`.

    Raises:
        LookupError: There is no such icon in `assets/icons`.
    """
    file = assets() / "icons" / f"{name}.svg"
    if not file.is_file():
        raise LookupError(f"no icon {name!r}: copy {name}.svg of lucide-static into assets/icons")
    drawing = file.read_text(encoding="utf-8").replace("currentColor", color)
    return drawing.replace('stroke-width="2"', f'stroke-width="{stroke}"').encode()


@lru_cache(maxsize=512)
def pixmap(name: str, color: str, size: int, ratio: float = 1.0, gap: int = 0) -> QPixmap:
    """Return the icon in `color`, `size` logical pixels square and `gap` empty ones, sharp at the device's ratio."""
    image = QPixmap(_shape(name, size, ratio, gap))
    painter = QPainter(image)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(image.rect(), QColor(color))
    painter.end()
    return image


@lru_cache(maxsize=512)
def _shape(name: str, size: int, ratio: float, gap: int) -> QPixmap:
    """Return the icon in black: each is read and drawn once, and then only colored."""
    image = QPixmap(QSize(size + gap, size) * ratio)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    # Small icons get slightly finer strokes: 2 of 24 units looks heavy beside 13 px words.
    renderer = QSvgRenderer(QByteArray(svg(name, "#000000", 1.75)))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return image


def device_ratio() -> float:
    """Return pixels of the sharpest screen for each logical one; Qt's own answer is that of its start."""
    return max((screen.devicePixelRatio() for screen in QGuiApplication.screens()), default=1.0)


def tinted(name: str, size: int, *, normal: str, disabled: str, active: str | None = None, gap: int = 0) -> QIcon:
    """Return an icon in `normal`, in `disabled` when disabled, and in `active` when checked."""
    ratio = device_ratio()
    result = QIcon()
    result.addPixmap(pixmap(name, normal, size, ratio, gap), QIcon.Mode.Normal, QIcon.State.Off)
    result.addPixmap(pixmap(name, active or normal, size, ratio, gap), QIcon.Mode.Normal, QIcon.State.On)
    result.addPixmap(pixmap(name, disabled, size, ratio, gap), QIcon.Mode.Disabled)
    return result
