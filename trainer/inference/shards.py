"""Embeddings of a data set in shards, each written once: any number of processes make the same files.

The folder has the layout of clip-retrieval, so `trainer open vectors` and others open it: `img_emb/img_emb_00000.npy`,
`text_emb/text_emb_00000.npy`, `metadata/metadata_00000.parquet`, whose rows belong together. `shards/00000.json` is
written last and has the SHA-256 of the three: a shard without it, or that does not fit it, is made again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.data.content import pixel_digests
from trainer.data.streamed_images import pictures_ahead
from trainer.images import file_of, location
from trainer.inference.embed import embed_sentences
from trainer.store.files import told_if_unwritable, write_atomically
from trainer.store.manifests import sha256_in
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

if TYPE_CHECKING:
    from trainer.data.pairs import Source
    from trainer.inference.open_model import OpenModel

IMAGES: Final = "img_emb"
TEXTS: Final = "text_emb"
_PATTERNS: Final = {IMAGES: "img_emb/img_emb_{:05d}.npy", TEXTS: "text_emb/text_emb_{:05d}.npy"}
_TABLES: Final = "metadata/metadata_{:05d}.parquet"
_MANIFESTS: Final = "shards/{:05d}.json"


@dataclass(frozen=True)
class Row:
    """A pair to embed."""

    id: str  # Of no other row: the name of its image, with a number where several rows have one image.
    path: str
    place: str  # Text of its `Location`.
    caption: str
    label: str
    split: str


@dataclass(frozen=True)
class Shard:
    """Successive rows that are embedded together, into files of one number."""

    number: int
    rows: tuple[Row, ...]

    def to_json(self) -> str:
        """Return it as a text, for another process."""
        return json.dumps([self.number, [astuple(row) for row in self.rows]])

    @classmethod
    def from_json(cls, text: str) -> Shard:
        """Return the shard that `to_json` wrote."""
        number, rows = json.loads(text)
        return cls(number, tuple(Row(*row) for row in rows))


@dataclass(frozen=True)
class WrittenShard:
    """What was made of a shard."""

    number: int
    rows: int  # How many pairs it holds.
    unreadable: dict[str, str] = field(default_factory=dict)  # Row -> why its image could not be read; it is left out.
    kept: bool = False  # Whether it was there already.
    waited: float = 0.0  # Share of the time in which the model waited for pictures.


def cut(splits: dict[str, Sequence[Source]], rows: int) -> list[Shard]:
    """Return the pairs of all splits in order, at most `rows` in a shard."""
    several = Counter(source.relative for sources in splits.values() for source in sources)
    met: Counter[str] = Counter()
    listed = []
    for split, sources in splits.items():
        for source in sources:
            met[source.relative] += 1
            number = f"#{met[source.relative]}" if several[source.relative] > 1 else ""
            name, path = _printable(source.relative), str(source.path)
            listed.append(Row(f"{name}{number}", name, path, source.caption, source.label, split))
    return [Shard(n, tuple(listed[at : at + rows])) for n, at in enumerate(range(0, len(listed), rows))]


def write_shard(model: OpenModel, shard: Shard, folder: Path, digest: str) -> WrittenShard:
    """Embed a shard and write its files, unless they are there.

    Args:
        digest: SHA-256 that tells the model's weights.

    Raises:
        UserError: The folder cannot be written.
    """
    key = _key(shard, digest)
    if (existing := written(folder, shard.number, key)) is not None:
        return existing
    began = time.perf_counter()
    arrays, columns, unreadable, waited_s = _embedded(model, shard)
    waited = waited_s / (time.perf_counter() - began)
    names = {_PATTERNS[kind].format(shard.number): rows for kind, rows in arrays.items()}
    with told_if_unwritable(folder, "Choose another folder."):
        for name, rows in names.items():
            _write(folder / name, partial(np.save, arr=rows))
        table = _TABLES.format(shard.number)
        _write(folder / table, partial(_save_table, columns=columns))
        files = {name: sha256_in(folder, name) for name in (*names, table)}
        manifest = {"key": key, "rows": len(columns["id"]), "unreadable": unreadable, "files": files}
        _write(folder / manifest_of(shard.number), lambda draft: draft.write_text(json.dumps(manifest)) and None)
    return WrittenShard(shard.number, len(columns["id"]), unreadable, waited=waited)


def written(folder: Path, number: int, key: str) -> WrittenShard | None:
    """Return a shard that is whole and was made of the same rows by the same model; else None."""
    try:
        manifest = json.loads(confined.read(folder, manifest_of(number), untrusted_files.MOST_FACTS))
        complete = manifest["key"] == key and all(
            sha256_in(folder, name) == digest for name, digest in manifest["files"].items()
        )
        return (
            WrittenShard(number, int(manifest["rows"]), dict(manifest["unreadable"]), kept=True) if complete else None
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def manifest_of(number: int) -> str:
    """Return the name of a shard's manifest, below the folder of all shards."""
    return _MANIFESTS.format(number)


def files_of(folder: Path, number: int) -> list[str]:
    """Return the names of a written shard's files, without its manifest."""
    return list(json.loads(confined.read(folder, manifest_of(number), untrusted_files.MOST_FACTS))["files"])


def _key(shard: Shard, digest: str) -> str:
    """Return what tells a shard's contents: model, rows, and what their files were when they were listed."""
    facts = [digest, [[*asdict(row).values(), *_stamp(row.place)] for row in shard.rows]]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = file_of(location(path)).stat()
        return status.st_size, status.st_mtime_ns
    except OSError:
        return 0, 0


def _embedded(
    model: OpenModel, shard: Shard
) -> tuple[dict[str, np.ndarray], dict[str, list[str]], dict[str, str], float]:
    rows, pixels, images, waited_s = shard.rows, [""] * len(shard.rows), [], 0.0
    unreadable: dict[str, str] = {}
    if model.model.visual is not None:
        good = []
        paths = [row.place for row in rows]
        for part, pictures, reasons, waited in pictures_ahead(paths, model.image_size, model.preprocessing):
            waited_s += waited
            unreadable |= {row.id: reason for row, reason in zip(rows[part], reasons, strict=True) if reason}
            read = [index for index, reason in enumerate(reasons) if not reason]
            good += [part.start + index for index in read]
            if read:
                images.append(model.embed_images(pictures[read]))
                for index, digest in zip(read, pixel_digests(pictures[read]), strict=True):
                    pixels[part.start + index] = digest
        rows, pixels = tuple(rows[row] for row in good), [pixels[row] for row in good]
    arrays = {}
    if model.model.visual is not None:
        blank = np.zeros((1, model.image_size, model.image_size, 3), np.uint8)
        arrays[IMAGES] = np.concatenate(images) if images else model.embed_images(blank)[:0]
    if model.model.text is not None:
        captions = [row.caption for row in rows]
        arrays[TEXTS] = embed_sentences(model, captions) if captions else model.embed_texts([""])[:0]
    columns = {name: [getattr(row, name) for row in rows] for name in ("id", "path", "caption", "label", "split")}
    return arrays, columns | {"place": [_printable(row.place) for row in rows], "pixels": pixels}, unreadable, waited_s


def _write(path: Path, write: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, write)


def _save_table(draft: Path, *, columns: dict[str, list[str]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), draft)


def _printable(text: str) -> str:
    """Return a text that a table can hold: odd bytes of a file's name are question marks."""
    return text.encode("utf-8", "replace").decode()
