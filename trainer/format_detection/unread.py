"""What to do with files that are not read, by their names: sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_SHARD: Final = re.compile(r"(-\d+-of)?-\d+$")
"""What may stand behind an ending: `train.tfrecord-00000-of-00010`."""
_AS_TARS: Final = "Write its pairs as tars in the WebDataset layout, or as pictures, each with a .txt of its name."
TABLES: Final = {
    (".xlsx", ".xls", ".xlsm", ".ods", ".numbers"): "Save it as CSV.",
    tuple(
        f".{form}.{packed}" for form in ("csv", "tsv", "json", "jsonl", "txt") for packed in ("gz", "bz2", "xz", "zst")
    ): "Unpack it first.",
    (".mat",): "Write what it holds as CSV or .npy, by scipy.io.loadmat.",
    (".pkl", ".pickle", ".joblib"): (
        "It is not opened, because it can run code. Write its content as CSV, JSON or .npy where it was made."
    ),
}
"""Endings of what may tell of pictures that lie beside -> the next step."""
_OTHERS: Final = {
    (".zip", ".7z", ".rar", ".gz", ".bz2", ".xz", ".zst"): "Unpack it first.",
    (".tfrecord", ".tfrecords", ".mdb", ".lmdb", ".rec", ".beton"): _AS_TARS,
    (".arrow",): "Write it as Parquet: datasets.Dataset.from_file(FILE).to_parquet(NAME).",
    (".h5", ".hdf5"): "Write its arrays as .npy and its pictures as files, by h5py.",
    (".ann", ".hnsw", ".usearch"): "Write its vectors as .npy, by the library that made it.",
    (".faiss", ".index"): "Write its vectors as .npy, such as by faiss.read_index(FILE).reconstruct_n().",
}
UNREAD: Final = TABLES | _OTHERS
"""All of them."""


def next_step(name: str, kinds: Mapping[tuple[str, ...], str] = UNREAD) -> str:
    """Return what to do with a file that is not read; empty where its name is of no such kind."""
    plain = _SHARD.sub("", name.lower())
    return next((step for endings, step in kinds.items() if plain.endswith(endings)), "")


def unread_among(folder: Path, names: Iterable[str], kinds: Mapping[tuple[str, ...], str]) -> str:
    """Return a sentence on the first file of a folder that is not read; empty without one.

    An archive beside a folder of its name was unpacked there.
    """
    for name in sorted(names):
        if (
            not name.startswith(".")
            and (step := next_step(name, kinds))
            and not (folder / name.partition(".")[0]).is_dir()
        ):
            return f"{name!r} is not read. {step}"
    return ""
