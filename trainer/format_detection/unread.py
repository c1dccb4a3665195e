"""What to do with files that are not read, by their names: sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from trainer.format_detection.splits import SPLITS
from trainer.untrusted.texts import PACKED

_PACKED_TABLE: Final = re.compile(rf"\.(csv|tsv|json|jsonl|ndjson|jsonlines)({'|'.join(map(re.escape, PACKED))})$")
_SHARD: Final = re.compile(r"(-\d+-of)?-\d+$")
"""What may stand behind an ending: `train.tfrecord-00000-of-00010`."""
_AS_TARS: Final = "Write its pairs as tars in the WebDataset layout, or as pictures, each with a .txt of its name."
_OF_CELEBA: Final = (
    "It names attributes of each picture, and no class. Write a list of the classes of one, which is read: "
    'python -c "import pandas; t = pandas.read_csv({}); '
    "t['Smiling'].map({{1: 'smiling', -1: 'not_smiling'}}).to_csv('labels.txt', sep=' ', header=False)\""
)
TABLES: Final = {
    (".xlsx", ".xls", ".xlsm", ".ods", ".numbers"): "Save it as CSV.",
    (*(f".{form}.zst" for form in ("csv", "tsv", "json", "jsonl")), *(f".txt{end}" for end in (*PACKED, ".zst"))): (
        "Unpack it first."
    ),
    ("imagelabels.mat",): (
        'Write a list of its classes, which is read: python -c "from scipy.io import loadmat; '
        "[print(f'image_{n:05}.jpg', c - 1) for n, c in "
        "enumerate(loadmat('imagelabels.mat')['labels'][0].tolist(), 1)]\" > labels.txt"
    ),
    ("cars_train_annos.mat", "cars_test_annos_withlabels.mat"): (
        'Write a list of its classes, which is read: python -c "from scipy.io import loadmat; '
        "[print(a[-1][0], int(a[-2][0][0]) - 1) for a in loadmat('cars_train_annos.mat')['annotations'][0]]\" "
        "> labels.txt"
    ),
    ("_32x32.mat",): (
        'Write an .npz of its parts, which is read: python -c "import numpy; from scipy.io import loadmat; '
        "parts = {p: loadmat(p + '_32x32.mat') for p in ('train', 'test')}; numpy.savez('svhn.npz', "
        "**{p + '_images': a['X'].transpose(3, 0, 1, 2) for p, a in parts.items()}, "
        "**{p + '_labels': a['y'] % 10 for p, a in parts.items()})\""
    ),
    (".en", ".de", ".fr", ".cs"): (
        "Put the name of its picture before each line, by the list of names that has as many lines: "
        "paste NAMES.txt FILE > captions.txt"
    ),
    ("list_attr_celeba.txt",): _OF_CELEBA.format("'list_attr_celeba.txt', sep=r'\\s+', skiprows=1"),
    ("list_attr_celeba.csv",): _OF_CELEBA.format("'list_attr_celeba.csv', index_col=0"),
    (".mat",): "Write what it holds as CSV or .npy, by scipy.io.loadmat.",
    (".pkl", ".pickle", ".joblib"): (
        "It is not opened, because it can run code. Write its content as CSV, JSON or .npy where it was made."
    ),
}
"""Endings of what may tell of pictures that lie beside -> the next step."""
_OTHERS: Final = {
    ("-ubyte", "-ubyte.gz"): (
        "MNIST and the sets like it have files of the same names. Unpack them (gunzip *.gz) into a folder MNIST/raw, "
        "or FashionMNIST/raw if they are of Fashion-MNIST."
    ),
    (".zip", ".7z", ".rar", ".gz", ".bz2", ".xz", ".zst"): "Unpack it first.",
    (".tfrecord", ".tfrecords", ".mdb", ".lmdb", ".rec", ".beton"): _AS_TARS,
    (".arrow",): "Write it as Parquet: datasets.Dataset.from_file(FILE).to_parquet(NAME).",
    ("_x.h5", "_y.h5"): (
        'Write its pictures as files, by h5py and torchvision: python -c "import os; '
        "from torchvision.datasets import PCAM; "
        "[(os.makedirs(f'{s}/{c}', exist_ok=True), x.save(f'{s}/{c}/{n}.png')) for s in ('train', 'val', 'test') "
        "for n, (x, c) in enumerate(PCAM('FOLDER', s))]\", where FOLDER has the files in a folder pcam."
    ),
    (".h5", ".hdf5"): "Write its arrays as .npy and its pictures as files, by h5py.",
    (".ann", ".hnsw", ".usearch"): "Write its vectors as .npy, by the library that made it.",
    (".faiss", ".index"): "Write its vectors as .npy, such as by faiss.read_index(FILE).reconstruct_n().",
}
UNREAD: Final = TABLES | _OTHERS
"""All of them."""
_PIXEL: Final = re.compile(r"pixel_?\d+|\d+x\d+")
_LEAST_PIXELS: Final = 64
_PARTS: Final = {"Training": "train", "PublicTest": "val", "PrivateTest": "test", "validation": "val"}
"""Values of a column of parts -> how MedMNIST calls the part; those of FER2013 first."""


def of_pixels(columns: Sequence[str]) -> str:
    """Return what to do with a table whose cells are the pixels of pictures; empty for another one."""
    names = {column.strip().lower(): column.strip() for column in columns}
    if "pixels" not in names and sum(map(bool, map(_PIXEL.fullmatch, names))) < _LEAST_PIXELS:
        return ""
    label = next((names[name] for name in ("label", "emotion", "class") if name in names), "")
    if not label:
        return "Its cells are pixels, and no column is called label. Write the pictures as files."
    cells = "[p.split() for p in t['pixels']]" if "pixels" in names else f"t.filter(regex='{_PIXEL.pattern}')"
    split = next((names[name] for name in ("usage", *SPLITS) if name in names), "")
    parts = f"t['{split}'].replace({_PARTS})" if split else "numpy.full(len(t), 'train')"
    # No name of a stranger's file: what is here is pasted into a shell.
    return (
        "Its cells are pixels. Write an .npz of its pictures, where they are square, which is read: "
        "python -c \"import numpy, pandas; t = pandas.read_csv('FILE', skipinitialspace=True); "
        f"x = numpy.array({cells}).astype('uint8'); side = int(x.shape[1] ** 0.5); s = {parts}; "
        "numpy.savez('FILE.npz', **{f'{p}_{n}': a[s == p] for p in set(s) "
        f"for n, a in (('images', x.reshape(-1, side, side)), ('labels', t['{label}']))}})\""
    )


def next_step(name: str, kinds: Mapping[tuple[str, ...], str] = UNREAD) -> str:
    """Return what to do with a file that is not read; empty where its name is of no such kind."""
    plain = _SHARD.sub("", name.lower())
    if _PACKED_TABLE.search(plain):
        return ""
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
