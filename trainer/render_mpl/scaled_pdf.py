"""A backend of matplotlib that writes a PDF in another size than the one in which it is laid out.

Matplotlib finds a backend by its module, which is imported as a figure is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from matplotlib.backends.backend_mixed import MixedModeRenderer  # noqa: TID253
from matplotlib.backends.backend_pdf import FigureCanvasPdf, Op, PdfFile, RendererPdf  # noqa: TID253

POINTS_PER_INCH = 72


class ScaledPdf(FigureCanvasPdf):
    """Writes the figure `figure.written_scale` times as large, with all of its letters and lines."""

    def print_pdf(
        self, filename: str | Path | BinaryIO, *, metadata: dict[str, Any] | None = None, **_others: Any
    ) -> None:
        """Write the page."""
        figure = self.figure
        scale = float(getattr(figure, "written_scale", 1.0))
        image_dpi, figure.dpi = figure.dpi, POINTS_PER_INCH
        width, height = figure.get_size_inches()
        file = PdfFile(filename, metadata=metadata)
        try:
            file.newPage(width * scale, height * scale)
            file.output(scale, 0, 0, scale, 0, 0, Op.concat_matrix)
            page = RendererPdf(file, image_dpi, height, width)
            renderer = MixedModeRenderer(figure, width, height, image_dpi, page)
            figure.draw(renderer)  # type: ignore[arg-type]
            renderer.finalize()
            file.finalize()
        finally:
            file.close()


FigureCanvas = ScaledPdf
"""The name by which matplotlib finds the canvas of a backend."""
