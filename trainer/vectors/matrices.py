"""Find matrices of vectors in what other programs write; nothing is read but headers.

Read are `.npy`, `.npz`, `.safetensors`, `.pt` (tensors, as CLIP_benchmark keeps its features), those of benchmarks of
search (`.fvecs`, `.fbin` and their like), Parquet, Arrow, Feather, JSON lines, CSV and TSV with columns of lists, or
of numbers (`embedding_0`, ...; `tensors.tsv` of TensorBoard's projector), words with their vectors as text (`.txt` of
GloVe, `.vec` of fastText, also with `.gz`; `.bin` of word2vec), data sets of Lance, folders of clip-retrieval
(`img_emb`, `text_emb`, `metadata`), of CLIP_benchmark (`features_train.pt`, `targets_train.pt`), those that `datasets`
has saved, and snapshots of the hub, whose tables lie in `data`; a pattern such as `data/train-*.parquet` names one of
several.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.errors import UserError
from trainer.format_detection.tables import encoding_and_separator
from trainer.format_detection.unread import next_step
from trainer.untrusted.bounded import Unreadable, read
from trainer.untrusted.bounded.arrays import (
    COUNTED,
    LED,
    load_npz,
    map_counted_rows,
    map_led_rows,
    map_npy,
    map_safetensors,
    rows_of,
)
from trainer.untrusted.bounded.word_vectors import WORDS, ending
from trainer.untrusted.files import spelled
from trainer.vectors.step_files import Side, step_files

if TYPE_CHECKING:
    import pyarrow as pa

SIDES: Final[dict[Side, tuple[str, ...]]] = {
    "image": ("image", "img", "visual", "vision", "picture"),
    "text": ("text", "txt", "caption", "sentence", "title"),
}
"""Side -> how a word in the names of its files, columns and tensors begins."""
TABLES: Final = (".parquet", ".arrow", ".feather", ".ipc")
TORCH: Final = (".pt", ".pth")
LANCE: Final = "_versions"
"""A folder in every data set of Lance."""
CELLS: Final = (".csv", ".tsv")
LINES: Final = (*CELLS, ".jsonl", ".ndjson")
TEXTS: Final = (*TABLES, *LINES, *WORDS)
"""What a helper reads from its beginning."""
ARRAYS: Final = (".npy", ".npz", ".safetensors", *TORCH, *LED, *COUNTED)
HDF5: Final = (".hdf5", ".h5")
READ: Final = (*ARRAYS, *TEXTS)
"""What files of vectors are called."""
_BFLOAT16: Final = "V"
"""Kind of the type that stands for it: numpy has none."""
_SPLIT: Final = re.compile(r"(.+)-\d{5}-of-\d{5}")
_MOST_TENSORS: Final = 1_000
_MOST_FILES: Final = 10_000
AT_ONCE: Final = 2_048
"""Rows of an array that are taken at once: sums of twice as many take 6 % less time, and twice the memory."""
_SECONDS: Final = 120.0
"""Processor time of the helper between two batches: rows that are not wanted are read, too."""


class VectorError(UserError):
    """Vectors that cannot be opened; the message says why and what to do."""


@dataclass(frozen=True)
class Matrix:
    """Rows of vectors in a file, of which only the wanted ones are read.

    Attributes:
        name: Of the array, tensor or column; the file's where it has one.
        rows, width: Its shape.
        parts: Yields rows by ascending number, as float16 or float32, some at a time.
        half: Whether the numbers are stored in half precision.
    """

    name: str
    rows: int
    width: int
    parts: Callable[[Int[np.ndarray, " k"]], Iterator[Float[np.ndarray, "_ d"]]]
    half: bool = False

    def take(self, rows: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """Return rows by ascending number."""
        return next(self.blocks(rows, max(1, len(rows))), np.zeros((0, self.width), np.float32))

    def blocks(self, rows: Int[np.ndarray, " k"], height: int = AT_ONCE) -> Iterator[Float[np.ndarray, "_ d"]]:
        """Yield rows by ascending number, `height` at a time, each of which is read once.

        Raises:
            VectorError: The file has fewer rows than when it was looked into.
        """
        waiting: list[np.ndarray] = []
        count = yielded = 0
        for part in self.parts(rows):
            while len(part):
                waiting.append(part[: height - count])
                part, count = part[height - count :], count + len(waiting[-1])
                if count == height or yielded + count == len(rows):
                    yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                    waiting, count, yielded = [], 0, yielded + count
        if yielded < len(rows):
            raise VectorError(f"{self.name} has {yielded + count:,} of {len(rows):,} rows left. Write it again.")


@dataclass(frozen=True)
class FoundVectors:
    """What a file or folder holds.

    Attributes:
        image, text: Its matrices; None where it has none.
        items: Files with a line for each row, in their order; empty for none.
        columns: What arrays and lists next to the vectors tell of each row, by their names.
        note: What of it is not used, in sentences.
        beside: Further tables of the same rows, each as `items`.
    """

    image: Matrix | None
    text: Matrix | None
    items: tuple[Path, ...] = ()
    columns: Mapping[str, Sequence[Any] | np.ndarray] = field(default_factory=dict)
    note: str = ""
    beside: tuple[tuple[Path, ...], ...] = ()

    @property
    def first(self) -> Matrix:
        """Of images where there are any; the other side has as many rows."""
        matrix = self.image or self.text
        assert matrix is not None
        return matrix


@dataclass
class _Contents:
    """All that a file or folder holds; columns may be of other numbers of rows than the vectors."""

    matrices: list[Matrix] = field(default_factory=list)
    items: tuple[Path, ...] = ()
    columns: dict[str, Sequence[Any] | np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find(path: Path, side: Side | None = None, column: str = "") -> FoundVectors:
    """Return the vectors in a file or folder; in one of several steps, those of the first.

    Args:
        side: What they are of, where the person says so; None: their names tell.
        column: Which, where the file has several; empty: found by its name.

    Raises:
        VectorError: There are none, or it is not clear which.
        UserError: A file is damaged, or claims what it does not hold.
    """
    if by_step := files_of_steps(path):
        return _of_step(path, next(iter(by_step.values())), side, column)
    try:
        contents = _contents(path)
    except UserError:
        raise
    except OSError as error:
        raise VectorError(
            f"{path} cannot be read: {error.strerror or error}. Name the file or folder again."
        ) from error
    except Exception as error:  # whatever a damaged file makes its reader raise
        reason = str(error).rstrip(".")[:300] or type(error).__name__
        raise VectorError(f"{path} cannot be read: {reason}. It is damaged: write it again.") from error
    matrices = contents.matrices
    if not matrices:
        seen = _seen(path)
        raise VectorError(
            f"{path} holds no vectors{seen and ' but ' + seen}: an array of two axes, rows and numbers, a column of "
            "lists, or columns such as embedding_0, embedding_1, ... are needed."
        )
    if side is not None:
        chosen = _one(path, matrices, side, column)
        by_side: dict[Side, Matrix | None] = {side: chosen}
    elif not (sides := {_side_of(matrix.name) for matrix in matrices} - {None}):
        if len(matrices) > 1:
            raise VectorError(f"{path} has several arrays: {_names(matrices)}. Say --image PATH --image-column NAME.")
        by_side = {"image": matrices[0]}
    else:
        by_side = {each: _one(path, matrices, each) for each in SIDES if each in sides}
    vectors = FoundVectors(by_side.get("image"), by_side.get("text"), contents.items, note=" ".join(contents.notes))
    columns = {name: values for name, values in contents.columns.items() if len(values) == vectors.first.rows}
    if (classes := _classes(path, vectors.first)) is not None:
        columns["targets"] = classes
    return replace(vectors, columns=columns)


def files_of_steps(path: Path) -> dict[int, dict[Side | None, Path]]:
    """Return step -> side -> file of a folder of several steps; empty for any other path."""
    return step_files(path, ARRAYS, _side_of)


def _of_step(folder: Path, files: Mapping[Side | None, Path], side: Side | None, column: str) -> FoundVectors:
    """Return the vectors of one step: of a file for each side, or of one file for what the person asks for."""
    if None in files or (side is None and len(files) == 1):
        return find(next(iter(files.values())), side, column)
    if side is not None:
        if side not in files:
            raise VectorError(f"{folder} has no {side} vectors of a step: its files are of the other side.")
        return find(files[side], side, column)
    sides = {each: find(files[each], each) for each in SIDES}
    image, text = sides["image"].image, sides["text"].text
    assert image is not None
    assert text is not None
    # The name of an array is that of its file here, which no other step has.
    return FoundVectors(replace(image, name=""), replace(text, name=""))


def _one(path: Path, matrices: Sequence[Matrix], side: Side, column: str = "") -> Matrix:
    """Return the matrix that is called `column`, or the one for this side."""
    if column:
        named = [matrix for matrix in matrices if matrix.name == column]
    else:
        named = (
            [matrix for matrix in matrices if _side_of(matrix.name) == side] if len(matrices) > 1 else list(matrices)
        )
    if not named:
        hint = f"--{side}-column NAME"
        what = f"no {column!r}" if column else f"several arrays, none of which is called {side}"
        raise VectorError(f"{path} has {what}: {_names(matrices)}. Name one of them: {hint}.")
    if len(named) > 1:
        raise VectorError(f"{path} has several of {side}s: {_names(named)}. Name one of them: --{side}-column NAME.")
    return named[0]


def _classes(path: Path, features: Matrix) -> Int[np.ndarray, " rows"] | None:
    """Return what CLIP_benchmark keeps next to `features_SPLIT.pt`: `targets_SPLIT.pt`, a class for each row."""
    begin, _, split = features.name.rpartition("_")
    file = (path if path.is_dir() else path.parent) / f"targets_{split}.pt"
    if begin != "features" or not file.is_file():
        return None
    targets = _of_torch(file).get(file.stem)
    is_one = isinstance(targets, np.ndarray) and targets.ndim == 1 and targets.dtype.kind in "iu"
    return targets if isinstance(targets, np.ndarray) and is_one and len(targets) == features.rows else None


def _side_of(name: str) -> Side | None:
    """Return the side that the first telling word of a name is of; features that say no more are those of images."""
    name_parts = re.split(r"[^a-z]+", name.lower())
    sides = (side for word in name_parts for side, begins in SIDES.items() if word.startswith(begins))
    return next(sides, "image" if any(word.startswith("feature") for word in name_parts) else None)


def _names(matrices: Sequence[Matrix]) -> str:
    return ", ".join(f"{matrix.name} ({matrix.rows:,} x {matrix.width})" for matrix in matrices[:12])


def _contents(path: Path) -> _Contents:
    if path.is_dir():
        return _of_folder(path)
    suffix = ending(path)
    if suffix in HDF5:
        raise VectorError(
            f"{path.name} is HDF5, which is not read. Write one of its arrays as .npy: "
            "python -c \"import h5py, numpy; numpy.save('train.npy', h5py.File('FILE')['train'])\""
        )
    if suffix not in READ:
        if step := next_step(path.name):
            raise VectorError(f"{path.name} is not read as vectors. {step}")
        if suffix == ".json":
            raise VectorError(f"{path.name} is one document. Write it as JSON lines (.jsonl), an object a row.")
        raise VectorError(f"{path.name} cannot be read as vectors; use {', '.join(READ)}, or a folder.")
    if suffix in TEXTS:
        files = tuple(sorted(path.parent.glob(path.name), key=_by_numbers)) if "*" in path.name else (path,)
        return _of_tables(files) if files else _Contents()
    return _of_arrays(path)


def _of_arrays(path: Path) -> _Contents:
    """Return the matrices of a file that numpy maps or loads; those of whole numbers only if there are no others."""
    if path.suffix.lower() in LED:
        return _Contents([_of_led_rows(path)])
    contents = _Contents()
    matrices: dict[str, np.ndarray] = {}
    for name, array in _arrays(path, contents.notes).items():
        if isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[1] >= 2:
            matrices[name] = array
        elif not isinstance(array, np.ndarray) or (array.ndim == 1 and array.dtype.kind in "iufbU"):
            contents.columns[name] = array
    for kinds in (("f", _BFLOAT16), ("i", "u")):
        if of_kind := [_of_array(name, [array]) for name, array in matrices.items() if array.dtype.kind in kinds]:
            contents.matrices = of_kind
            break
    return contents


def _arrays(path: Path, notes: list[str]) -> dict[str, np.ndarray | list[Any]]:
    """Return the arrays of a file by name, and lists of words; those of bfloat16 as values of two bytes."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return {path.stem: map_npy(path, "fiuU", sparse=True)}
    if suffix in COUNTED:
        return {path.stem: map_counted_rows(path)}
    if suffix == ".npz":
        others: list[str] = []
        loaded = load_npz(path, others=others)
        if others:
            notes.append(f"Not opened, as arrays of objects can run code: {', '.join(others[:8])}.")
        return dict(loaded)
    arrays = _of_torch(path) if suffix in TORCH else map_safetensors(path, most=_MOST_TENSORS)
    return {
        name: array.view("V2") if isinstance(array, np.ndarray) and array.dtype == np.uint16 else array
        for name, array in arrays.items()
    }


def _seen(path: Path) -> str:
    """Return what the arrays of a file are, in words; empty for tables, folders and files without any."""
    if path.is_dir() or ending(path) in TEXTS:
        return ""
    arrays = {name: array for name, array in _arrays(path, []).items() if isinstance(array, np.ndarray)}
    shapes = {name: (" x ".join(map(str, array.shape)), array.dtype) for name, array in arrays.items()}
    return ", ".join(f"{name} ({shape or 'a single value'}, {kind})" for name, (shape, kind) in shapes.items())[:300]


def _of_array(name: str, parts: Sequence[np.ndarray]) -> Matrix:
    """Return the matrix whose rows are those of the parts, one after the other."""
    firsts = np.cumsum([0, *(len(part) for part in parts)])

    def taken_parts(rows: Int[np.ndarray, " k"]) -> Iterator[Float[np.ndarray, "_ d"]]:
        ends = np.searchsorted(rows, firsts)
        for i, part in enumerate(parts):
            for start in range(ends[i], ends[i + 1], AT_ONCE):
                yield _plain(rows_of(part, rows[start : min(start + AT_ONCE, ends[i + 1])] - firsts[i]))

    half = all(part.dtype == np.float16 for part in parts)
    return Matrix(name, int(firsts[-1]), int(parts[0].shape[1]), taken_parts, half)


def _of_led_rows(path: Path) -> Matrix:
    """Return the matrix of a file each of whose rows begins with its width, which is checked where a row is read."""
    rows = map_led_rows(path)
    width = rows["numbers"].shape[1]

    def parts(chosen: Int[np.ndarray, " k"]) -> Iterator[Float[np.ndarray, "_ d"]]:
        for start in range(0, len(chosen), AT_ONCE):
            some = rows_of(rows, chosen[start : start + AT_ONCE])
            if (other := np.flatnonzero(some["width"] != width)).size:
                raise VectorError(
                    f"Row {chosen[start + other[0]]:,} of {path.name} claims {some['width'][other[0]]:,} numbers, and "
                    f"the first row {width:,}. It is damaged, or its rows are of different widths: write it again."
                )
            yield _plain(some["numbers"])

    return Matrix(path.stem, len(rows), width, parts)


def _plain(rows: np.ndarray) -> np.ndarray:
    """Return the rows as float16 or float32; those of bfloat16 arrive as two bytes."""
    if rows.dtype.kind == _BFLOAT16:
        return (np.ascontiguousarray(rows).view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.asarray(rows) if rows.dtype == np.float16 else np.asarray(rows, np.float32)


def _of_torch(path: Path) -> dict[str, np.ndarray | list[Any]]:
    """Return the tensors of a file of torch, one alone or a dictionary of them, and lists of words next to them."""
    from trainer.checkpoints import tensor_file

    loaded = tensor_file.load(path, mmap=True)
    named = loaded if isinstance(loaded, dict) else {path.stem: loaded}
    arrays: dict[str, np.ndarray | list[Any]] = {}
    for name, tensor in named.items():
        if hasattr(tensor, "is_floating_point"):
            if _is_stored(tensor):
                arrays[str(name)] = _of_tensor(tensor)
        elif isinstance(tensor, list | tuple) and all(isinstance(value, str | int | float) for value in tensor):
            arrays[str(name)] = list(tensor)
    return arrays


def _is_stored(tensor: Any) -> bool:
    """Return whether a tensor is a matrix of fractions or a row of whole numbers, and all of it is in the file.

    A description of a few bytes can claim terabytes: by strides of 0, as a sparse one, or on the device `meta`.
    """
    import torch

    plain = tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized
    if not plain or tensor.ndim not in (1, 2) or tensor.is_floating_point() != (tensor.ndim == 2):
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()


def _of_tensor(tensor: Any) -> np.ndarray:
    """Return the numbers without copying them; those of bfloat16 as uint16."""
    import torch

    plain = tensor.detach()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(np.uint16)
    exact = plain.dtype in (torch.float16, torch.float32, torch.float64) or not plain.is_floating_point()
    return (plain if exact else plain.float()).numpy()


def _of_tables(files: Sequence[Path]) -> _Contents:
    """Return a matrix for each vector that all files have, their rows one after the other."""
    columns = describe(files)
    shared = [name for name in columns[0]["vectors"] if all(facts["vectors"].get(name) for facts in columns)]
    items = tuple(files) if any(facts["plain"] for facts in columns) else ()
    return _Contents([_of_column(files, columns, name) for name in shared], items)


def describe(files: Sequence[Path], form: str = "") -> list[dict[str, Any]]:
    """Return `rows`, `vectors`, `wide` and `plain` of each table, as reported by its reader in the helper process.

    Args:
        form: Of tables of cells, as the reader calls it; it is added to what is returned.
    """
    options = {"cells": _cells(files), "forms": {os.fspath(file.absolute()): form for file in files if form}}
    reader = read("trainer.untrusted.bounded.vector_tables:describe", files, options, cpu_s=_SECONDS)
    columns = []
    for part in reader:
        columns.append(part.facts | {"form": form})
        for _ in part.rows:
            pass
    return columns


def _cells(files: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Return encoding and separator of each CSV and TSV, by its absolute path."""
    cells = {}
    for file in files:
        if file.suffix.lower() in CELLS:
            encoding, separator = encoding_and_separator(file)
            cells[os.fspath(file.absolute())] = encoding, "\t" if file.suffix.lower() == ".tsv" else separator
    return cells


def taken(
    files: Sequence[Path], columns: Sequence[dict[str, Any]], rows: Int[np.ndarray, " k"], options: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Yield the chosen rows of tables whose rows stand one after the other, read by one helper.

    Args:
        columns: Their facts.
        rows: Ascending.
        options: What to read of each row, as `rows` in the helper takes it.
    """
    firsts = np.cumsum([0, *(int(facts["rows"]) for facts in columns)])
    ends = np.searchsorted(rows, firsts)
    rows_of_file = {
        os.fspath(file.absolute()): (rows[ends[i] : ends[i + 1]] - firsts[i]).tolist() for i, file in enumerate(files)
    }
    chosen = [file for file in files if rows_of_file[os.fspath(file.absolute())]]
    forms = {os.fspath(file.absolute()): facts["form"] for file, facts in zip(files, columns) if facts.get("form")}
    options = options | {"rows": rows_of_file, "cells": _cells(chosen), "forms": forms}
    reader = read("trainer.untrusted.bounded.vector_tables:rows", chosen, options, cpu_s=_SECONDS)
    for part in reader:
        yield from part.rows


def _of_column(files: Sequence[Path], columns: Sequence[dict[str, Any]], name: str) -> Matrix:
    width, total = int(columns[0]["vectors"][name]), sum(int(facts["rows"]) for facts in columns)

    def parts(rows: Int[np.ndarray, " k"]) -> Iterator[Float[np.ndarray, "_ d"]]:
        wide = columns[0].get("wide", {}).get(name, [])
        batches = taken(files, columns, rows, {"vector": name, "width": width, "wide": wide})
        return (np.asarray(batch.column(0).flatten()).reshape(-1, width) for batch in batches)

    return Matrix(name, total, width, parts)


def _of_folder(folder: Path) -> _Contents:
    """Return the contents of a folder of clip-retrieval, of `datasets`, of CLIP_benchmark, or of Parquet."""
    if (folder / "img_emb").is_dir() or (folder / "text_emb").is_dir():
        return _of_clip_retrieval(folder)
    if (folder / LANCE).is_dir():
        return _of_tables([folder])
    for suffix in (".arrow", ".parquet"):
        if files := _numbered(folder, suffix):
            _check_one_split(files)
            return _of_tables(files)
    contents = _Contents()
    left_out: list[tuple[str, Unreadable]] = []
    for end in (".npy", ".npz", ".safetensors", ".pt", *LED, *COUNTED):
        for file in _numbered(folder, end):
            try:
                part = _of_arrays(file)
            except Unreadable as error:
                left_out.append((file.name, error))
                continue
            contents.matrices += part.matrices
            if end in (".npz", ".npy"):
                # Whole, because a map of a file that shrinks is fatal.
                for name, array in part.columns.items():
                    contents.columns[name] = rows_of(np.asanyarray(array), np.arange(len(array)))
            contents.notes += part.notes
    if not contents.matrices and left_out:
        raise left_out[0][1]
    contents.notes += [f"Left out: {error}" for _, error in left_out]
    tables = sorted(spelled(file.name) for file in folder.iterdir() if ending(file) in LINES and file.is_file())
    if contents.matrices and tables:
        contents.notes.append(f"Next to the vectors lie {', '.join(tables[:4])}: --items FILE tells what the rows are.")
    if not contents.matrices and _numbered(folder / "data", ".parquet"):
        return _of_folder(folder / "data")
    inside = {file.parent.name for suffix in (".arrow", ".parquet") for file in folder.glob(f"*/*{suffix}")}
    if inside and not contents.matrices:
        first = folder / min(inside)
        raise VectorError(f"{folder} holds tables in {', '.join(sorted(inside)[:12])}. Name one of these: {first}.")
    return contents


def _of_clip_retrieval(folder: Path) -> _Contents:
    """Return the vectors in the parts of `img_emb` and `text_emb`, and the tables of `metadata`.

    Raises:
        VectorError: A part is missing in one of the folders, or its rows are fewer than in another.
    """
    contents = _Contents(items=_numbered(folder / "metadata", ".parquet"))
    sizes: dict[str, dict[str, int]] = {}
    for side, name in (("image", "img_emb"), ("text", "text_emb")):
        if files := _numbered(folder / name, ".npy"):
            parts = {file: map_npy(file, "f", sparse=True) for file in files}
            sizes[name] = {_part_of(file): len(part) if part.ndim else 1 for file, part in parts.items()}
            # A job without a picture that could be read writes a part without rows, in whatever shape.
            if full := {file: part for file, part in parts.items() if part.size}:
                contents.matrices.append(_of_parts(side, full))
            if empty := len(parts) - len(full):
                contents.notes.append(f"{empty:,} of {len(parts):,} parts of {name} hold no vectors.")
    sizes["metadata"] = {_part_of(file): -1 for file in contents.items}
    first, *others = (name for name in sizes if sizes[name])
    for other in others:
        for part, rows in sizes[first].items():
            other_rows = sizes[other].get(part)
            if other_rows != rows and rows and (other_rows is None or other_rows >= 0):
                has = "is missing" if other_rows is None else f"has {other_rows:,} rows"
                raise VectorError(
                    f"Part {part or 'without a number'} has {rows:,} rows in {folder / first} and {has} in {other}. "
                    "Write the folder again, or copy what is missing."
                )
    return contents


def _part_of(file: Path) -> str:
    return "".join(re.findall(r"\d+", file.stem)[-1:])


def _check_one_split(files: Sequence[Path]) -> None:
    """Check that files named as on the hub (`train-00000-of-00002.parquet`) are of one split.

    Raises:
        VectorError: They are of several, of which one must be named.
    """
    splits = sorted({match[1] for file in files if (match := _SPLIT.fullmatch(file.stem))})
    if len(splits) > 1:
        raise VectorError(
            f"{files[0].parent} holds the splits {', '.join(splits[:12])}. Name one of them: "
            f"{files[0].parent / f'{splits[-1]}-*{files[0].suffix}'}"
        )


def _of_parts(name: str, parts: Mapping[Path, np.ndarray]) -> Matrix:
    """Return the matrix whose rows lie in several files.

    Raises:
        VectorError: One of them does not fit the others.
    """
    first = next(iter(parts.values()))
    width = first.shape[-1] if first.ndim else 0
    for file, part in parts.items():
        if part.ndim != 2 or part.shape[1] != width:
            shape = " x ".join(map(str, part.shape)) or "a single value"
            raise VectorError(f"{file} holds {shape}, and the first part rows of {width} numbers. Write it again.")
    return _of_array(name, list(parts.values()))


def _numbered(folder: Path, suffix: str) -> tuple[Path, ...]:
    """Return the files with this suffix in the order of the numbers in their names; none for a folder without them."""
    if not folder.is_dir():
        return ()
    files = [file for file in folder.iterdir() if file.suffix.lower() == suffix and file.name[0] not in "._"]
    if len(files) > _MOST_FILES:
        raise VectorError(f"{folder} has {len(files):,} files of vectors: more than {_MOST_FILES:,} are not opened.")
    return tuple(sorted(files, key=_by_numbers))


def _by_numbers(file: Path) -> tuple[list[int], str]:
    return [int(digits[:18]) for digits in re.findall(r"\d+", file.stem)], file.name
