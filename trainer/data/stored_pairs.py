"""Images without files of their own, stored in one uncompressed tar with random access."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from trainer.data.atomic_folder import written_once
from trainer.data.pairs import DataError, Source
from trainer.images import Member
from trainer.store import derived
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

Problems = list[tuple[str, str]]


@dataclass(frozen=True)
class StoredPair:
    """The stored data of an image and its captions."""

    name: str  # Unique in its tar, with the ending of its format.
    image: bytes  # Bytes of a file of that format.
    captions: tuple[str, ...]  # Its texts, each of which is a pair.
    label: str = ""  # Its class, or "".
    split: str = ""  # What the data say of the part that it is of, or "".


@dataclass(frozen=True)
class Unusable:
    """A row that does not give a pair, and why."""

    where: str
    reason: str


def kept(folder: Path, rows: Callable[[], Iterable[StoredPair | Unusable]]) -> tuple[list[Source], Problems]:
    """Return the pairs of `rows` and the problems of others, cached in `folder`, which is in a workspace's `data/kept`.

    Raises:
        DataError: The folder cannot be written.
    """
    folder = derived.place(folder.parents[2], folder)

    def write(unfinished: Path) -> None:
        pairs: list[tuple[int, str, str, str]] = []
        images = 0
        problems: Problems = []
        with (
            io.BufferedWriter(confined.open_file(unfinished, "images.tar", "wb")) as file,  # type: ignore[type-var]
            tarfile.open(fileobj=file, mode="w") as archive,
        ):
            for row in rows():
                if isinstance(row, Unusable):
                    problems.append((row.where, row.reason))
                else:
                    info = tarfile.TarInfo(row.name)
                    info.size = len(row.image)
                    archive.addfile(info, io.BytesIO(row.image))
                    pairs += ((images, caption, row.label, row.split) for caption in row.captions)
                    images += 1
        facts = {"pairs": pairs, "problems": problems}
        confined.write(unfinished, "pairs.json", json.dumps(facts).encode())

    written_once(folder, write, lambda: None)
    try:
        return _read(folder)
    except (OSError, ValueError, LookupError, TypeError, tarfile.TarError) as error:
        raise DataError(f"The pairs kept in {folder} are damaged. Remove that folder: they are made again.") from error


def _read(folder: Path) -> tuple[list[Source], Problems]:
    facts = untrusted_files.read_json(folder / "pairs.json", untrusted_files.MOST_FACTS)
    with tarfile.open(folder / "images.tar", "r:") as archive:
        members = [Member(folder / "images.tar", info.offset_data, info.size, info.name) for info in archive]
    pairs = [(members[row], *texts) for row, *texts in facts["pairs"]]
    if not all(
        isinstance(text, str) for texts in (*(pair[1:] for pair in pairs), *facts["problems"]) for text in texts
    ):
        raise ValueError("pairs.json holds no texts")
    sources = [
        Source(member, f"{folder.name}/{member.name}", caption, label, {"split": split} if split else {})
        for member, caption, label, split in pairs
    ]
    return sources, [(where, reason) for where, reason in facts["problems"]]
