"""Snapshots on disk: the embeddings of one split at one step, as plain arrays with a table of the items.

Row i of `image.npy` and of `text.npy` is pair i, and row i of `items.parquet` describes it. Where the run keeps them,
row i of `features.npy` is what the image tower makes of image i before it projects it: what linear probes read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Shaped
from msgspec import Struct

from trainer.config import default_paths
from trainer.store import manifests, picture_paths
from trainer.store.columns import StoredColumn, integers, read_ids, strings
from trainer.store.files import write_atomically
from trainer.store.rows import StoreError
from trainer.untrusted import confined
from trainer.untrusted.bounded import read
from trainer.untrusted.bounded.arrays import map_npy
from trainer.untrusted.documents import decode

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS: Final = ("id", "path", "caption", "label", "split")
_CONTENT: Final = "content"
BY_PATH: Final = "path:"
"""Begins what identifies a picture by the path that another program names it by, which need not be a file here."""
_METADATA_PREFIX: Final = "meta."
_WORDS: Final = ("path", "caption", _CONTENT)
"""Columns that differ from pair to pair, and take most of the time to read."""
VERIFIED_BYTES: Final = 32 * 2**20
"""Up to which size a snapshot is compared with its manifest when it is read; `trainer doctor --check` reads all."""
_VERIFIED: Final[dict[Path, tuple[tuple[tuple[int, int, int], ...], bool]]] = {}
"""Folder -> how its files were when they were compared, and whether its table may be read in this process."""
_NO_NAME: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Signs that the name of a folder cannot have, on one system or another."""
_ITEMS: Final = "items.parquet"


@dataclass(frozen=True)
class Items:
    """The facts of each pair; columns read from disk are a `StoredColumn`, equal to the list of their values."""

    id: Shaped[np.ndarray, " n"]  # Item ids, unique in the snapshot.
    path: Sequence[str]  # Image files.
    caption: Sequence[str]  # Plain texts, never to be rendered as HTML.
    label: Sequence[str]  # Class names; empty where an item has none.
    split: Sequence[str]  # Name of the split each item is from.
    metadata: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # Further columns, one value an item.
    # Of each image a text that is equal exactly where the pixels are, or after `BY_PATH` where the paths are that
    # another program names it by; empty where neither is known.
    content: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.id)


class ArrayFile(Struct, frozen=True):
    """A `.npy` of unit rows on the disk of the workspace, which a new snapshot takes over: it is moved, not copied."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype
    sha256: str = ""  # Of its bytes, where its writer has computed it; empty: it is read for that.

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Zero: the room that the snapshot still needs for it."""
        return 0


class SnapshotCard(Struct, frozen=True):
    """What `snapshot.json` says of a snapshot; `features` is their width, 0 where none were kept."""

    model: str
    step: int
    dataset: str
    split: str
    n: int
    d: int
    arrays: list[str]
    sampled: bool
    fingerprint: str = ""
    features: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as read: its arrays are read-only memory maps of unit rows."""

    folder: Path
    model: str  # The run (or the imported model) that made it.
    step: int
    dataset: str
    split: str
    n: int
    d: int
    image: Float[np.ndarray, "n d"] | None  # Image embeddings; None for a model without images.
    text: Float[np.ndarray, "n d"] | None  # Text embeddings; None for a model without texts.
    items: Items
    sampled: bool  # Whether it holds a sample of its split rather than the whole.
    fingerprint: str = ""  # Of the dataset; empty where unknown.
    # Of the images before the projection, of any length; None where they were not kept.
    features: Float[np.ndarray, "n w"] | None = None


def snapshot_name(*, dataset: str, split: str, step: int) -> str:
    """Return the folder's name, `scenes-renderings@000123`, in the run's `snapshots/`.

    A name of data that no folder can have on every system gets other signs and a digest, so that no two share a folder.
    """
    name = _NO_NAME.sub("_", dataset)
    if name != dataset:
        name += f"-{hashlib.sha256(dataset.encode()).hexdigest()[:8]}"
    return f"{name}-{split}@{step:06d}"


def write_snapshot(
    folder: Path,
    *,
    image: Float[np.ndarray, "n d"] | ArrayFile | None,
    text: Float[np.ndarray, "n d"] | ArrayFile | None,
    items: Items,
    step: int,
    dataset: str,
    split: str,
    model: str,
    sampled: bool = False,
    fingerprint: str = "",
    features: Float[np.ndarray, "n w"] | None = None,
) -> None:
    """Write the snapshot to `folder` atomically, replacing an existing one.

    Raises:
        StoreError: The arrays and the items do not have the same number of rows, or are no float16/float32 matrices.
    """
    arrays: dict[str, np.ndarray | ArrayFile] = {
        name: a if isinstance(a, ArrayFile) else np.asarray(a)
        for name, a in (("image", image), ("text", text))
        if a is not None
    }
    n, d = _shape(folder, arrays, items)
    dtype = str(next(iter(arrays.values())).dtype)
    card = {"format": 1, "model": model, "step": step, "dataset": dataset, "split": split, "n": n, "d": d}
    card |= {"dtype": dtype, "arrays": sorted(arrays), "sampled": sampled, "fingerprint": fingerprint}
    if features is not None:
        arrays["features"] = _checked_features(folder, features, n)
        card |= {"features": int(arrays["features"].shape[1])}

    def write(draft: Path) -> None:
        draft.mkdir(mode=0o700)
        for name, array in arrays.items():
            if isinstance(array, ArrayFile):
                confined.move(array.path, draft / f"{name}.npy")
            else:
                np.save(draft / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        _write_items(draft / _ITEMS, replace(items, path=picture_paths.stored(folder.parents[1], items.path)))
        (draft / "snapshot.json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        digests = {f"{name}.npy": array.sha256 for name, array in arrays.items() if isinstance(array, ArrayFile)}
        manifests.write_manifest(draft, {}, sealed=True, digests=digests)

    confined.make_in_run(folder.parents[1], folder.parent.name)
    write_atomically(folder, write)


def read_snapshot(folder: Path, items: Items | None = None, *, wordless: bool = False) -> Snapshot:
    """Read the snapshot in `folder`; its arrays are read-only memory maps.

    Args:
        items: What its pairs are, if that was read before: a million take a second.
        wordless: Paths, captions and contents of the items stay unread, and empty: what tells pairs apart is there.

    Raises:
        StoreError: A file is missing or damaged, or the shapes contradict `snapshot.json`.
    """
    try:
        trusted = _verify(folder)
        card = decode(folder / "snapshot.json", SnapshotCard)
        n, d = card.n, card.d
        arrays = {name: _read_array(folder / f"{name}.npy", n, d) for name in ("image", "text") if name in card.arrays}
        if not arrays:
            raise ValueError("it has neither images nor texts")
        features = _read_array(folder / "features.npy", n, card.features) if card.features else None
        items = _read_items(folder / _ITEMS, n, trusted=trusted, wordless=wordless) if items is None else items
        if len(items) != n:
            raise ValueError(f"items.parquet has {len(items)} rows, snapshot.json says {n}")
        return Snapshot(
            folder=folder,
            model=card.model,
            step=card.step,
            dataset=card.dataset,
            split=card.split,
            n=n,
            d=d,
            image=arrays.get("image"),
            text=arrays.get("text"),
            items=items,
            sampled=card.sampled,
            fingerprint=card.fingerprint,
            features=features,
        )
    except (OSError, ValueError, KeyError, TypeError, EOFError, OverflowError) as error:
        # pyarrow's own errors derive from ValueError and OSError.
        reason = str(error).rstrip(".")
        raise StoreError(f"The snapshot {folder} cannot be used: {reason}. Embed the run's step again.") from error


def _verify(folder: Path) -> bool:
    """Verify a snapshot, once until it changes (of a large one only the table); return whether it is sealed.

    Whether its table may be read in this process: this computer wrote it, it is of the sample workspace, or it has
    been read in a helper.

    Raises:
        ValueError: A file is not what was written; the message names it.
    """
    files = [file.stat() for file in sorted(folder.iterdir())]
    state = tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in files)
    earlier_state, trusted = _VERIFIED.get(folder, ((), False))
    if earlier_state != state:
        trusted = False
        if (folder / manifests.NAME).exists():
            large = sum(stat.st_size for stat in files) > VERIFIED_BYTES
            manifest = manifests.verified(folder, (_ITEMS,) if large else ())
            # The sample's come from where this program's own code does.
            trusted = manifests.is_sealed(manifest) or default_paths.is_sample(folder.parents[3])
        _VERIFIED[folder] = state, trusted
    return trusted


def _shape(folder: Path, arrays: Mapping[str, np.ndarray | ArrayFile], items: Items) -> tuple[int, int]:
    shapes = {a.shape for a in arrays.values()}
    columns = [items.path, items.caption, items.label, items.split, *items.metadata.values()]
    columns += [items.content] if len(items.content) else []
    problem = ""
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        problem = f"needs image or text embeddings of one shape (n, d), not {sorted(shapes)}"
    elif (
        any(a.dtype not in (np.float16, np.float32) for a in arrays.values())
        or len({a.dtype for a in arrays.values()}) != 1
    ):
        problem = "takes float16 or float32 arrays, both of the same"
    elif any(len(column) != len(items) for column in columns):
        problem = "has items with columns of different lengths"
    elif next(iter(shapes))[0] != len(items):
        problem = f"has {next(iter(shapes))[0]} embeddings but {len(items)} items"
    if problem:
        raise StoreError(f"The snapshot {folder.name} {problem}.")
    return next(iter(shapes))


def _checked_features(folder: Path, features: np.ndarray, n: int) -> np.ndarray:
    rows = np.asarray(features)
    if rows.ndim != 2 or len(rows) != n or not rows.shape[1] or rows.dtype not in (np.float16, np.float32):
        shape = f"{rows.dtype} {rows.shape}"
        raise StoreError(f"The snapshot {folder.name} takes a row of float16 or float32 features a pair, not {shape}.")
    return rows


def snapshot_bytes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a snapshot in bytes, by name; empty if there is none."""
    return {file.name: file.stat().st_size for file in sorted(folder.glob("*")) if file.is_file()}


def _read_array(path: Path, n: int, d: int) -> np.ndarray:
    array = map_npy(path, "f")
    if array.shape != (n, d) or array.dtype not in (np.float16, np.float32):
        raise ValueError(f"{path.name} is {array.dtype} {array.shape}, snapshot.json says ({n}, {d})")
    return array


def _write_items(path: Path, items: Items) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = np.asarray(items.id)
    columns: dict[str, Any] = {"id": integers(ids) if ids.dtype == np.int64 else pa.array(ids.tolist())}
    columns |= {name: strings(getattr(items, name)) for name in _COLUMNS[1:]}
    columns |= {_CONTENT: strings(items.content)} if len(items.content) else {}
    columns |= {_METADATA_PREFIX + name: pa.array(list(values)) for name, values in items.metadata.items()}
    # Ids rarely repeat: a dictionary of a million took 40 MB and most of the time.
    pq.write_table(pa.table(columns), path, use_dictionary=[name for name in columns if name != "id"])
    del columns
    # What Arrow keeps for later would be another 75 MB of a million pairs.
    pa.default_memory_pool().release_unused()


def _read_items(path: Path, n: int, *, trusted: bool, wordless: bool) -> Items:
    left_out = _WORDS if wordless else ()
    table = _read_table(path, n, left_out) if trusted else _read_by_helper(path, n)
    names = [name for name in table.column_names if name not in left_out]
    table_columns = {name: table.column(name) for name in names}
    if "path" in table_columns:
        table_columns["path"] = picture_paths.resolved_column(path.parents[2], table_columns["path"])
    columns: dict[str, Any] = {name: StoredColumn(column) for name, column in table_columns.items()}
    columns |= {"path": [""] * n, "caption": [""] * n} if wordless else {}
    metadata = {
        name.removeprefix(_METADATA_PREFIX): v for name, v in columns.items() if name.startswith(_METADATA_PREFIX)
    }
    paths, captions, labels, splits = (columns[name] for name in _COLUMNS[1:])
    return Items(read_ids(columns["id"]), paths, captions, labels, splits, metadata, columns.get(_CONTENT, ()))


def _read_table(path: Path, n: int, left_out: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa

    from trainer.untrusted.bounded.parquet import whole

    table = whole(path, rows=n, leave_out=left_out)
    pa.default_memory_pool().release_unused()
    return table


def _read_by_helper(path: Path, n: int) -> pa.Table:
    """Read an untrusted or unsealed table in the helper, and then remember it as harmless."""
    import pyarrow as pa

    reader = read("trainer.untrusted.bounded.parquet:table", [path], {"rows": n})
    with contextlib.closing(reader):
        part = next(reader)
        table = pa.Table.from_batches(part.rows, part.schema)
    if path.parent in _VERIFIED:
        _VERIFIED[path.parent] = _VERIFIED[path.parent][0], True
    return table
