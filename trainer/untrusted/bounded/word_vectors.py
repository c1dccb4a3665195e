"""Read words with their vectors in the helper process: `word v1 ... vd` a line, as GloVe, word2vec and fastText write.

The first line may be the number of words and of their numbers. Where most lines begin with a fraction, as
`numpy.savetxt` writes a matrix, there are no words. A word may hold spaces: the last d parts of a line are
the numbers. Lines are given to Arrow's reader of cells, which takes a tenth of the time of Python's. They may be
compressed by gzip. In word2vec's own `.bin` the numbers of a word are float32 behind it and a space.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.arrays import MOST_WIDTH

_GZIP: Final = ".gz"
_BINARY: Final = ".bin"
WORDS: Final = (".txt", ".vec", f".txt{_GZIP}", f".vec{_GZIP}", _BINARY)
LABEL: Final = "label"
_BLOCK: Final = 4 << 20
_FRACTION: Final = re.compile(rb"[-+]?(\d+\.\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_FIRST: Final = 100
"""Lines from which the width is told."""
_GAP: Final = "\x1f"
"""Stands for a space within a word while a line is read."""
_MOST_UNFOLDED: Final = 100
"""Times its size that a compressed file may have: numbers as text have three times."""
_MOST_WORD: Final = 10_000
"""Bytes of a word in word2vec's own form."""
_AT_ONCE: Final = 1_024


def ending(path: Path) -> str:
    """Return how the name of a file ends, with what is compressed: `.txt.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [_GZIP] else suffixes[-1:])


def opened(path: Path, names: str, columns: list[str] | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int]:
    """Return schema, batches and the number of rows: `label` is the word, its numbers are `names` and their place.

    Args:
        names: How the columns of numbers begin.
        columns: What to read of a row; None: everything.

    Raises:
        Unreadable: Its lines are no such, or a first line claims others.
    """
    if ending(path) == _BINARY:
        return _binary(path)
    first = [line.split() for line in islice(chain.from_iterable(_lines(path, has_head=False)), _FIRST)]
    head = first[0] if first and len(first[0]) == 2 and all(cell.isdigit() for cell in first[0]) else []
    lines = [line for line in first[bool(head) :] if line]
    has_words = 2 * sum(bool(_FRACTION.fullmatch(line[0])) for line in lines) <= len(lines)
    widths = Counter(len(line) - has_words for line in lines)
    width = widths.most_common(1)[0][0] if widths else 0
    if not 2 <= width <= MOST_WIDTH:
        raise Unreadable(f"{path.name} holds no words with 2 to {MOST_WIDTH:,} numbers each: `word v1 v2 ...` a line.")
    rows = sum(len(lines) for lines in _lines(path, has_head=bool(head)))
    claimed = [cell.decode()[:20].lstrip("0") for cell in head]
    if claimed not in ([], [str(rows), str(width)]):
        raise Unreadable(
            f"{path.name} claims {' words of '.join(claimed)} numbers and has {rows:,} of {width:,}. Copy it again."
        )
    numbers = [(f"{names}{number}", pa.float32()) for number in range(width)]
    schema = pa.schema([(LABEL, pa.string()), *numbers] if has_words else numbers)
    return schema, _batches(path, bool(head), schema, columns), rows


def _lines(path: Path, *, has_head: bool) -> Iterator[list[bytes]]:
    """Yield some megabytes of lines at a time, without the first and blank ones."""
    is_packed = path.suffix.lower() == _GZIP
    most = _MOST_UNFOLDED * path.stat().st_size + _BLOCK
    with gzip.open(path) if is_packed else path.open("rb") as file:
        if has_head:
            file.readline()
        while lines := file.readlines(_BLOCK):
            if is_packed and file.tell() > most:
                raise Unreadable(f"{path.name} unfolds to more than {_MOST_UNFOLDED} times its size. Unpack it first.")
            yield [line for line in lines if not line.isspace()]


def _batches(path: Path, has_head: bool, schema: pa.Schema, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    reading = pa.csv.ReadOptions(use_threads=False, column_names=schema.names, block_size=1 << 30)
    parsing = pa.csv.ParseOptions(delimiter=" ", quote_char=False)
    converting = pa.csv.ConvertOptions(column_types=schema, include_columns=columns)
    start = 1 + has_head
    for lines in _lines(path, has_head=has_head):
        block = b"\n".join(_cells(path, start + at, line, schema) for at, line in enumerate(lines))
        # What is no UTF-8 would be refused.
        text = block.decode("utf-8", "replace").encode()
        try:
            table = pa.csv.read_csv(pa.BufferReader(text), reading, parsing, converting)
        except pa.ArrowInvalid as error:
            reason = str(error).partition(": ")[2]
            raise Unreadable(f"{path.name} holds a number that is none after line {start:,}: {reason}.") from error
        if LABEL in table.column_names:
            labels = pc.replace_substring(table[LABEL], _GAP, " ")
            table = table.set_column(table.column_names.index(LABEL), LABEL, labels)
        start += len(lines)
        yield from table.combine_chunks().to_batches(1_024)


def _cells(path: Path, number: int, line: bytes, schema: pa.Schema) -> bytes:
    """Return a line of one space between its cells."""
    cells, has_words = line.rstrip(), LABEL in schema.names
    width = len(schema) - has_words
    if (
        cells.count(b" ") + 1 == len(schema)
        and not any(sign in cells for sign in (b"  ", b"\t", b"\r"))
        and cells[0] != 32
    ):
        return cells
    parts = cells.split()
    if len(parts) < len(schema) or (len(parts) > width and not has_words):
        raise Unreadable(
            f"Line {number:,} of {path.name} has {max(0, len(parts) - has_words):,} numbers, and the first ones "
            f"{width:,}. It was cut, or holds something else: copy it again."
        )
    word = [_GAP.encode().join(parts[:-width])] if has_words else []
    return b" ".join([*word, *parts[-width:]])


def _binary(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int]:
    """Return what `opened` does of word2vec's own form: `label` and, as a list, `vectors`."""
    with path.open("rb") as file:
        head = file.readline(64).split()
    if len(head) != 2 or not all(cell.isdigit() for cell in head):
        raise Unreadable(
            f"{path.name} does not begin with a number of words and their width, as word2vec writes it. Of fastText, "
            "choose the .vec."
        )
    rows, width = map(int, head)
    size = path.stat().st_size
    if not 2 <= width <= MOST_WIDTH or rows * (4 * width + 1) > size:
        raise Unreadable(
            f"{path.name} claims {rows:,} words of {width:,} numbers and has {size:,} bytes. Copy it again."
        )
    schema = pa.schema([(LABEL, pa.string()), ("vectors", pa.list_(pa.float32(), width))])
    return schema, _binary_batches(path, rows, width, schema), rows


def _binary_batches(path: Path, rows: int, width: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    data, at, row = b"", 0, 0
    with path.open("rb") as file:
        file.readline(64)
        for start in range(0, rows, _AT_ONCE):
            labels, numbers = list[str](), list[bytes]()
            for row in range(start, min(start + _AT_ONCE, rows)):
                if len(data) - at < _MOST_WORD + 4 * width:
                    data, at = data[at:] + file.read(_BLOCK), 0
                space = data.find(b" ", at, at + _MOST_WORD)
                end = space + 1 + 4 * width
                if space < 0 or end > len(data):
                    raise Unreadable(f"{path.name} claims {rows:,} words and has {row:,}. It was cut: copy it again.")
                # The program of word2vec ends a row by a line break, gensim does not.
                labels.append(data[at:space].lstrip(b"\n").decode("utf-8", "replace"))
                numbers.append(data[space + 1 : end])
                at = end
            flat = np.frombuffer(b"".join(numbers), "<f4")
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), width)
            yield pa.record_batch([pa.array(labels, pa.string()), vectors], schema=schema)
        if (data[at:] + file.read(2)).strip(b"\n"):
            raise Unreadable(f"{path.name} has more behind its {rows:,} words of {width:,} numbers. Copy it again.")
