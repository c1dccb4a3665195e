"""Ways of opening other than commands: what the window does with a dropped or shown file."""

from pathlib import Path

from trainer.errors import UserError


class Refused(UserError):
    """The message of a way that refuses without raising."""


def drop(address: str) -> None:
    """Drop a URL or a path on the window."""
    from PySide6.QtCore import QMimeData, QUrl

    from explorer.import_sheet.dropped_files import dropped

    mime = QMimeData()
    mime.setUrls([QUrl(address) if "://" in address else QUrl.fromLocalFile(address)])
    found = dropped(mime)
    if found.refused:
        raise Refused(found.refused)
    for path in found.paths:
        thumbnail(str(path))
    print("taken", found)


def thumbnail(path: str) -> None:
    """Show an image in a list."""
    from explorer.thumbnails import thumbnail as small

    small(path, 64)
    print("shown")


def coordinates(path: str) -> None:
    """Read point positions from a file."""
    from trainer.projection.coordinates import read_coordinates

    print("read", read_coordinates(Path(path)).shape)


def checkpoint(path: str) -> None:
    """Open a checkpoint that came with a workspace."""
    from trainer.checkpoints.checkpoint import load

    print("read", load(Path(path)).step)


def snapshot(path: str) -> None:
    """Open embeddings that came with a workspace."""
    from trainer.store import read_snapshot

    print("read", read_snapshot(Path(path)).items.caption[0])


def tokenizer(path: str) -> None:
    """Read a tokenizer from a file."""
    from trainer.pretrained.tokenizers import tokenizer_by_name

    print("read", tokenizer_by_name(path, cache=Path("cache"), progress=lambda share, note: None).size)
