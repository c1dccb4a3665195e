"""What a file manager or a browser drops on the window."""

from pathlib import Path

from PySide6.QtCore import QMimeData, QUrl


def mime_of(*dropped: QUrl | Path | str) -> QMimeData:
    """Return what is dropped: files by their paths, addresses as they are."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(each)) if isinstance(each, Path) else QUrl(each) for each in dropped])
    return mime
