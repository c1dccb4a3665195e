"""Data sets with one fault each, made from a seed: what is usable, and the first bad row."""

import gzip
import io
import json
import os
import random
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.builders import add_members

ROWS = 8
BIG = 100_000_000
"""Bytes of a cell that is no caption."""


@dataclass(frozen=True)
class Faulty:
    """A data set.

    Attributes:
        path: What a person points at.
        used: Pairs that are sound; 0 if it is refused as a whole.
        reported: Rows that are not.
        first: Where the first of these is said to be; empty if any place will do.
    """

    path: Path
    used: int
    reported: int = 0
    first: str = ""


Make = Callable[[Path, random.Random], Faulty]
FAULTS: dict[str, Make] = {}


def fault(name: str) -> Callable[[Make], Make]:
    """Add a factory to the corpus."""

    def put(make: Make) -> Make:
        assert name not in FAULTS
        FAULTS[name] = make
        return make

    return put


def picture(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16), (shade % 256, 99, 200)).save(buffer, "PNG")
    return buffer.getvalue()


def rows(folder: Path) -> list[list[str]]:
    """Return valid rows, with their images in the folder."""
    for number in range(ROWS):
        (folder / f"{number}.png").write_bytes(picture(20 * number))
    return [[f"{number}.png", f"number {number}"] for number in range(ROWS)]


def table(folder: Path, lines: Sequence[str | bytes], name: str = "pairs.csv", end: bytes = b"\n") -> Path:
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    (folder / name).write_bytes(end.join(encoded) + end)
    return folder / name


# -- tables of cells: a row is spoiled, the others are used ---------------------------------------------------------


def _spoiled(spoil: Callable[[list[str]], str | bytes]) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        good, at = rows(folder), rng.randrange(ROWS)
        lines: list[str | bytes] = [",".join(row) for row in good]
        lines[at] = spoil(good[at])
        return Faulty(table(folder, ["filepath,title", *lines]), ROWS - 1, 1, f"line {at + 2}")

    return make


for name, spoil in {
    "a quote is not closed": lambda row: f'{row[0]},"{row[1]}',
    "a quote is not closed, before a comma": lambda row: f'{row[0]},"{row[1]}, and more',
    "a quote is not closed, before the name": lambda row: f'"{row[0]},{row[1]}',
    "words after a closed quote": lambda row: f'{row[0]},"{row[1]}" and more',
    "quotes within quotes": lambda row: f'{row[0]},"so "called" {row[1]}"',
    "a NUL in a caption": lambda row: f"{row[0]},a\0b",
    "a NUL in a name": lambda row: f"{row[0]}\0.png,{row[1]}",
    "half of a letter of UTF-8": lambda row: f"{row[0]},".encode() + b"\xf0\x9f\x98",
    "a surrogate in UTF-8": lambda row: f"{row[0]},".encode() + b"\xed\xa0\x80",
    "a cell is missing": lambda row: row[0],
    "a cell too many": lambda row: f"{row[0]},{row[1]},more",
    "an empty caption": lambda row: f"{row[0]},  ",
    "an empty name": lambda row: f",{row[1]}",
    "an address for a name": lambda row: f"https://127.0.0.1:9/{row[0]},{row[1]}",
    "a share for a name": lambda row: f"//server/share/{row[0]},{row[1]}",
    "a command for a name": lambda row: f"pipe:cat {row[0]},{row[1]}",
    "a cell of 100 MB": lambda row: f"{row[0]},{'x' * BIG}",
    "a name of 100 MB": lambda row: f"{'x' * BIG},{row[1]}",
    "a cell of 200 kB": lambda row: f"{row[0]},{'x' * 200_000}",
    "a cell of 120 kB": lambda row: f"{row[0]},{'word ' * 24_000}",
}.items():
    FAULTS[f"CSV: {name}"] = _spoiled(spoil)


def _pictureless(name: str) -> Make:
    """Make a row whose image is unreadable: the report names the row by its image."""

    def make(folder: Path, rng: random.Random) -> Faulty:
        good, at = rows(folder), rng.randrange(ROWS)
        good[at][0] = name
        return Faulty(table(folder, ["filepath,title", *(",".join(row) for row in good)]), ROWS - 1, 1)

    return make


for name, words in {
    "missing.png": "a file is missing",
    ".": "a folder for a picture",
    "x" * 300 + ".png": "a name that is too long",
    "~nobody/0.png": "a home of nobody",
    "/dev/null": "a device for a picture",
    "../../../../../../etc/hostname": "a way out of the folder",
    "pairs.csv": "the table for a picture",
}.items():
    FAULTS[f"CSV: {words}"] = _pictureless(name)


@fault("CSV: three rows are bad in three ways")
def _(folder: Path, rng: random.Random) -> Faulty:
    good = [",".join(row) for row in rows(folder)]
    good[5], good[2], good[3] = "5.png", b"2.png,\xff", '3.png,"open'
    return Faulty(table(folder, ["filepath,title", *good]), ROWS - 3, 3, "line 4")


@fault("CSV: every row has an open quote")
def _(folder: Path, rng: random.Random) -> Faulty:
    rows(folder)
    lines = [f'{number % ROWS}.png,"{number}' for number in range(2_001)]
    return Faulty(table(folder, ["filepath,title", *lines, "0.png,sound", "1.png,sound"]), 2, 2_001, "line 2")


@fault("CSV: the last line is cut short")
def _(folder: Path, rng: random.Random) -> Faulty:
    lines = [",".join(row) for row in rows(folder)]
    path = table(folder, ["filepath,title", *lines])
    path.write_bytes(path.read_bytes()[: -rng.randrange(11, 14)])
    return Faulty(path, ROWS - 1, 1, f"line {ROWS + 1}")


# -- tables of cells: odd, and all of it usable ---------------------------------------------------------------------


def _whole(write: Callable[[Path, list[list[str]]], Path]) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        return Faulty(write(folder, rows(folder)), ROWS)

    return make


def _encoded(encoding: str, separator: str = ",", end: str = "\n", mark: bytes = b"") -> Make:
    def write(folder: Path, good: list[list[str]]) -> Path:
        text = end.join(separator.join(row) for row in [["filepath", "title"], *good]) + end
        (folder / "pairs.csv").write_bytes(mark + text.encode(encoding))
        return folder / "pairs.csv"

    return _whole(write)


FAULTS |= {
    "CSV: a mark at the beginning (BOM)": _encoded("utf-8-sig"),
    "CSV: UTF-16, little end first": _encoded("utf-16-le", mark=b"\xff\xfe"),
    "CSV: UTF-16, big end first": _encoded("utf-16-be", mark=b"\xfe\xff"),
    "CSV: UTF-16 with tabs, as Excel writes it": _encoded("utf-16-le", "\t", "\r\n", b"\xff\xfe"),
    "CSV: line ends of Windows": _encoded("utf-8", end="\r\n"),
    "CSV: line ends of old Macs": _encoded("utf-8", end="\r"),
    "CSV: Windows-1252": _whole(
        lambda folder, good: table(folder, ["filepath,title", *(f"{a},{b} du café".encode("cp1252") for a, b in good)])
    ),
    "CSV: one letter of Windows-1252": _whole(
        lambda folder, good: table(folder, ["filepath,title", *(f"{a},{b}" for a, b in good[:-1]), b"7.png,caf\xe9"])
    ),
    "CSV: semicolons": _encoded("utf-8", ";"),
    "CSV: tabs": _encoded("utf-8", "\t"),
    "CSV: blank lines between": _encoded("utf-8", end="\n\n\n"),
    "CSV: a cell over several lines": _whole(
        lambda folder, good: table(folder, ["filepath,title", *(f'{a},"{b}\nand more"' for a, b in good)])
    ),
    "CSV: a quote within a cell": _whole(
        lambda folder, good: table(folder, ["filepath,title", *(f'{a},12" {b}' for a, b in good)])
    ),
    "CSV: a million columns of nothing": _whole(
        lambda folder, good: table(folder, ["filepath,title" + ",x" * 9, *(f"{a},{b}" + "," * 9 for a, b in good)])
    ),
}


@fault("CSV: rows twice")
def _(folder: Path, rng: random.Random) -> Faulty:
    lines = [",".join(row) for row in rows(folder)]
    return Faulty(table(folder, ["filepath,title", *lines, *lines]), 2 * ROWS)


ODD_NAMES = {
    "a line end": "a\nb",
    "letters from right to left": "תמונה \u202egnp",
    "255 bytes": "ä" * 125 + "x",
    "a formula": "=cmd|' C calc'!A0",
    "a dash": "--help",
    "a quote and a comma": 'a",b',
    "markup": "<b>x<img src=x>",
    "an emoji": "🦊",
    "spaces": "  a  b",
    "a backslash": "a\\b",
    "two colons, as a member of a tar has": "a::1+2::b",
    "brackets, as a cell of a table has": "a::image[3]",
    "a percent sign": "%s%n%00",
    "an escape of a terminal": "\x1b[31mred",
}


def _odd(name: str, kind: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        good = rows(folder)
        (folder / f"{name}.png").write_bytes(picture(7))
        if kind == "CSV":
            quoted = name.replace('"', '""')
            lines = ["filepath,title", *(",".join(row) for row in good), f'"{quoted}.png",odd']
            usable = name.strip() == name  # spaces around a cell do not count
            return Faulty(table(folder, lines), ROWS + usable, 1 - usable)
        if kind == "JSONL":
            lines = [json.dumps({"filepath": a, "title": b}) for a, b in [*good, [f"{name}.png", "odd"]]]
            return Faulty(table(folder, lines, "pairs.jsonl"), ROWS + 1)
        for number in range(ROWS):
            (folder / f"{number}.txt").write_text(f"number {number}")
        (folder / f"{name}.txt").write_text("odd")
        return Faulty(folder, ROWS + 1)

    return make


for words, name in ODD_NAMES.items():
    for kind in ("CSV", "JSONL", "folder"):
        FAULTS[f"{kind}: a name with {words}"] = _odd(name, kind)


# -- refused as a whole ---------------------------------------------------------------------------------------------


def _refused(name: str, content: bytes | Callable[[Path], bytes]) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        rows(folder)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content(folder))
        return Faulty(folder / name, 0)

    return make


def _cut(make: Callable[[Path], Path], share: float) -> Callable[[Path], bytes]:
    def content(folder: Path) -> bytes:
        whole = make(folder).read_bytes()
        return whole[: int(share * len(whole))]

    return content


def parquet(folder: Path, columns: dict[str, list] | None = None) -> Path:
    good = rows(folder)
    found = columns or {"filepath": [a for a, _ in good], "title": [b for _, b in good]}
    pq.write_table(pa.table(found), folder / "whole.parquet")
    return folder / "whole.parquet"


FAULTS |= {
    "CSV: nothing in it": _refused("pairs.csv", b""),
    "CSV: a header alone": _refused("pairs.csv", b"filepath,title\n"),
    "CSV: no column of captions": _refused("pairs.csv", b"filepath,colour\n0.png,red\n"),
    "CSV: no column of pictures": _refused("pairs.csv", b"title,colour\na,red\n"),
    "CSV: two columns of captions": _refused("pairs.csv", b"filepath,title,title\n0.png,a,b\n"),
    "CSV: an open quote in the header": _refused("pairs.csv", b'filepath,"title\n0.png,a\n'),
    "CSV: a NUL in the header": _refused("pairs.csv", b"filepath,title\0\n0.png,a\n"),
    "CSV: a Parquet file by another name": _refused("pairs.csv", lambda folder: parquet(folder).read_bytes()),
    "CSV: UTF-16 without its mark": _refused("pairs.csv", "filepath,title\n0.png,a\n".encode("utf-16-le")),
    "CSV: UTF-32": _refused("pairs.csv", "filepath,title\n0.png,a\n".encode("utf-32")),
    "Parquet: cut in half": _refused("pairs.parquet", _cut(parquet, 0.5)),
    "Parquet: its last byte is missing": _refused("pairs.parquet", lambda folder: parquet(folder).read_bytes()[:-1]),
    "Parquet: nothing in it": _refused("pairs.parquet", b""),
    "Parquet: a CSV by another name": _refused("pairs.parquet", b"filepath,title\n0.png,a\n"),
    "Parquet: no column of captions": _refused(
        "pairs.parquet", lambda f: parquet(f, {"filepath": ["0.png"]}).read_bytes()
    ),
    "Parquet: captions are numbers": _refused(
        "pairs.parquet", lambda folder: parquet(folder, {"filepath": ["0.png"], "title": [1]}).read_bytes()
    ),
    "JSONL: one array of all": _refused("pairs.jsonl", b'[{"filepath": "0.png", "title": "a"}]\n'),
    "JSONL: a hundred thousand levels deep": _refused("pairs.jsonl", b'{"filepath":' * 100_000),
    "tar: nothing in it": _refused("pairs.tar", bytes(10_240)),
    "tar: a page of HTML": _refused("pairs.tar", b"<html>404</html>"),
    "tar.gz: no gzip": _refused("pairs.tar.gz", b"<html>404</html>"),
}


# -- JSONL and Parquet: a row is spoiled ----------------------------------------------------------------------------


def _spoiled_json(spoil: Callable[[dict], str | bytes]) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        good, at = [{"filepath": a, "title": b} for a, b in rows(folder)], rng.randrange(ROWS)
        lines: list[str | bytes] = [json.dumps(row) for row in good]
        lines[at] = spoil(good[at])
        return Faulty(table(folder, lines, "pairs.jsonl"), ROWS - 1, 1, f"line {at + 1}")

    return make


for name, spoil in {
    "a brace is missing": lambda row: json.dumps(row)[:-1],
    "no object": lambda row: "[1, 2]",
    "a number": lambda row: "12",
    "no JSON": lambda row: "filepath,title",
    "a field is missing": lambda row: json.dumps({"filepath": row["filepath"]}),
    "a caption is null": lambda row: json.dumps(row | {"title": None}),
    "a caption is a number": lambda row: json.dumps(row | {"title": 12}),
    "a caption is an object": lambda row: json.dumps(row | {"title": {"en": "x"}}),
    "half a letter": lambda row: json.dumps(row | {"title": "\ud83d"}),
    "half a letter in a name": lambda row: json.dumps(row | {"filepath": "\udc80.png"}),
    "a NUL in a name": lambda row: json.dumps(row | {"filepath": "a\0.png"}),
    "letters of Latin-1": lambda row: b'{"filepath": "a.png", "title": "caf\xe9"}',
    "a line of 100 MB": lambda row: json.dumps(row | {"title": "x" * BIG}),
    "a number of a million digits": lambda row: f'{{"filepath": "0.png", "title": "a", "n": {"9" * 1_000_000}}}',
    "deep": lambda row: '{"filepath": ' + "[" * 90_000 + "]" * 90_000 + "}",
}.items():
    FAULTS[f"JSONL: {name}"] = _spoiled_json(spoil)


def _spoiled_parquet(column: str, value: str | None) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        good, at = rows(folder), rng.randrange(ROWS)
        columns = {"filepath": [a for a, _ in good], "title": [b for _, b in good]}
        columns[column][at] = value
        (folder / "whole.parquet").unlink(missing_ok=True)
        return Faulty(parquet(folder, columns), ROWS - 1, 1, f"row {at + 1}")

    return make


FAULTS |= {
    "Parquet: a caption is null": _spoiled_parquet("title", None),
    "Parquet: a caption is blank": _spoiled_parquet("title", " \t"),
    "Parquet: a name is null": _spoiled_parquet("filepath", None),
    "Parquet: a name is an address": _spoiled_parquet("filepath", "s3://bucket/0.png"),
    "Parquet: a caption of 200 kB": _spoiled_parquet("title", "x" * 200_000),
}


@fault("Parquet: the bytes of a picture are damaged")
def _(folder: Path, rng: random.Random) -> Faulty:
    at = rng.randrange(ROWS)
    pictures = [picture(number) for number in range(ROWS)]
    pictures[at] = pictures[at][: rng.randrange(1, 40)]
    return Faulty(parquet(folder, {"filepath": pictures, "title": ["a"] * ROWS}), ROWS - 1, 1)


# -- JSON documents: a list of records, and COCO's captions ----------------------------------------------------------


def _document(spoil: Callable[[list], None], used: int, reported: int, first: str = "", coco: bool = False) -> Make:
    """Damage a record or a COCO caption; the others are used."""

    def make(folder: Path, rng: random.Random) -> Faulty:
        good = rows(folder)
        if coco:
            told: list = [{"image_id": number, "caption": words} for number, (_, words) in enumerate(good)]
            images = [{"id": number, "file_name": name} for number, (name, _) in enumerate(good)]
            spoil(told)
            text = json.dumps({"images": images, "annotations": told})
        else:
            told = [{"filepath": name, "title": words} for name, words in good]
            spoil(told)
            text = json.dumps(told)
        return Faulty(table(folder, [text], "captions.json"), used, reported, first)

    return make


FAULTS |= {
    "JSON: a record is none": _document(lambda told: told.insert(3, 12), ROWS, 1, "record 4"),
    "JSON: a record lacks its caption": _document(lambda told: told[2].pop("title"), ROWS - 1, 1, "record 3"),
    "JSON: half a letter": _document(lambda told: told[2].update(title="\ud83d"), ROWS - 1, 1, "record 3"),
    "JSON: a caption of 200 kB": _document(lambda told: told[2].update(title="x" * 200_000), ROWS - 1, 1, "record 3"),
    "JSON: an address for a name": _document(
        lambda told: told[0].update(filepath="https://x/y"), ROWS - 1, 1, "record 1"
    ),
    "JSON: a NUL in a name": _document(lambda told: told[0].update(filepath="a\0.png"), ROWS - 1, 1, "record 1"),
    "COCO: a caption of no image": _document(
        lambda told: told.append({"image_id": 99, "caption": "x"}), ROWS, 1, "annotation 9", coco=True
    ),
    "COCO: an id is a list": _document(
        lambda told: told.append({"image_id": [1], "caption": "x"}), ROWS, 1, "annotation 9", coco=True
    ),
    "COCO: a caption is null": _document(
        lambda told: told[1].update(caption=None), ROWS - 1, 1, "annotation 2", coco=True
    ),
    "COCO: an image without a caption": _document(lambda told: told.pop(0), ROWS - 1, 1, "0.png", coco=True),
    "JSON: cut in half": _refused("a.json", b'[{"filepath": "0.png", "title": "a"}, {"filep'),
    "JSON: a hundred thousand levels deep": _refused("a.json", b'{"a":' * 100_000),
    "JSON: lists as deep": _refused("a.json", b"[" * 100_000),
    "JSON: a number of a million digits": _refused(
        "a.json", b'[{"filepath": "0.png", "n": ' + b"9" * 1_000_000 + b"}]"
    ),
    "JSON: a text": _refused("a.json", b'"filepath"'),
    "JSON: nothing in it": _refused("a.json", b""),
    "JSON: objects of nothing": _refused("a.json", b'{"images": [], "annotations": [], "caption": "x"}'),
    "Flickr: not one line has a caption": _refused("a.token.txt", b"0.png#0\t \n1.png#0\t\n"),
    "text: no table": _refused("a.txt", b"just a few words\n"),
}


@fault("Flickr: a line is spoiled")
def _(folder: Path, rng: random.Random) -> Faulty:
    good, at = rows(folder), rng.randrange(1, ROWS)
    lines = [f"{name}#0\t{words}" for name, words in good]
    lines[at] = "no name of a picture"
    return Faulty(table(folder, lines, "a.token.txt"), ROWS - 1, 1, f"line {at + 1}")


# -- tars -----------------------------------------------------------------------------------------------------------


def tar(members: Sequence[tuple[str | bytes, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        add_members(archive, members)
    return buffer.getvalue()


def members() -> list[tuple[str | bytes, bytes]]:
    pairs = [((f"{n}.png", picture(20 * n)), (f"{n}.txt", f"number {n}".encode())) for n in range(ROWS)]
    return [member for pair in pairs for member in pair]


def _in_tar(more: Sequence[tuple[str | bytes, bytes]], used: int, reported: int, first: str = "") -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        every, at = members(), 2 * rng.randrange(ROWS + 1)
        every[at:at] = more
        (folder / "0.tar").write_bytes(tar(every))
        return Faulty(folder / "0.tar", ROWS + used, reported, first)

    return make


for words, more, used, reported, first in (
    ("a text without a picture", [("x.txt", b"x")], 0, 1, "0.tar/x"),
    ("a picture without a text", [("x.png", picture(1))], 0, 1, "0.tar/x"),
    ("an empty text", [("x.png", picture(1)), ("x.txt", b" \n")], 0, 1, "0.tar/x"),
    ("a text of Latin-1", [("x.png", picture(1)), ("x.txt", b"caf\xe9")], 0, 1, "0.tar/x"),
    ("a text of 200 kB", [("x.png", picture(1)), ("x.txt", b"x" * 200_000)], 0, 1, "0.tar/x"),
    ("JSON that is broken", [("x.png", picture(1)), ("x.json", b"{")], 0, 1, "0.tar/x"),
    ("JSON that is deep", [("x.png", picture(1)), ("x.json", b"[" * 90_000)], 0, 1, "0.tar/x"),
    ("JSON with half a letter", [("x.png", picture(1)), ("x.json", b'{"caption": "\\ud83d"}')], 0, 1, "0.tar/x"),
    ("two pictures of a name", [("x.png", picture(1)), ("x.jpg", b"x"), ("x.txt", b"x")], 1, 1, "0.tar/x.jpg"),
    ("a picture that is damaged", [("x.png", picture(1)[:40]), ("x.txt", b"x")], 0, 1, "0.tar/x.png"),
    ("a picture of no bytes", [("x.png", b""), ("x.txt", b"x")], 0, 1, "0.tar/x.png"),
    ("a name that is no UTF-8", [(b"\xff.png", picture(1)), (b"\xff.txt", b"x")], 0, 1, "0.tar/\\udcff"),
    ("a name with a line end", [("a\nb.png", picture(1)), ("a\nb.txt", b"x")], 1, 0, ""),
    ("a name of 1,000 letters", [("x" * 1000 + ".png", picture(1)), ("x" * 1000 + ".txt", b"x")], 1, 0, ""),
    ("a name from right to left", [("תמונה.png", picture(1)), ("תמונה.txt", b"x")], 1, 0, ""),
    ("a name out of the folder", [("../../x.png", picture(1)), ("../../x.txt", b"x")], 1, 0, ""),
    ("members of no use", [("readme.md", b"x"), ("x.npy", b"x"), ("y.pkl", b"x")], 0, 0, ""),
):
    FAULTS[f"tar: {words}"] = _in_tar(more, used, reported, first)


@fault("tar: cut in the middle of a picture")
def _(folder: Path, rng: random.Random) -> Faulty:
    at = rng.randrange(1, ROWS)
    (folder / "0.tar").write_bytes(tar(members())[: 2048 * at + 512 + 20])
    return Faulty(folder / "0.tar", at, 1, "0.tar")


@fault("tar: its end is missing")
def _(folder: Path, rng: random.Random) -> Faulty:
    (folder / "0.tar").write_bytes(tar(members())[: 2048 * ROWS])
    return Faulty(folder / "0.tar", ROWS, 1, "0.tar")


@fault("tar: a header is damaged")
def _(folder: Path, rng: random.Random) -> Faulty:
    at, content = rng.randrange(1, ROWS), bytearray(tar(members()))
    content[2048 * at + 130] ^= 0x7F
    (folder / "0.tar").write_bytes(content)
    return Faulty(folder / "0.tar", at, 1, "0.tar")


@fault("tar: one of three is no tar")
def _(folder: Path, rng: random.Random) -> Faulty:
    for number in range(3):
        (folder / f"{number}.tar").write_bytes(tar(members()))
    (folder / "1.tar").write_bytes(b"<html>404</html>")
    return Faulty(folder, 2 * ROWS, 1, "1.tar")


@fault("tar.gz: cut short")
def _(folder: Path, rng: random.Random) -> Faulty:
    whole = gzip.compress(tar(members()))
    (folder / "0.tar").write_bytes(tar(members()))
    (folder / "1.tar.gz").write_bytes(whole[: len(whole) // 2])
    return Faulty(folder, ROWS, 1, "1.tar.gz")


# -- folders --------------------------------------------------------------------------------------------------------


def _in_folder(name: bytes, image: bytes | None, caption: bytes | None, used: int = 0) -> Make:
    def make(folder: Path, rng: random.Random) -> Faulty:
        rows(folder)
        for number in range(ROWS):
            (folder / f"{number}.txt").write_text(f"number {number}")
        for ending, content in ((b".png", image), (b".txt", caption)):
            if content is not None:
                Path(os.fsdecode(os.fsencode(folder) + b"/" + name + ending)).write_bytes(content)
        return Faulty(folder, ROWS + used, 1 - used)

    return make


FAULTS |= {
    "folder: a caption of Windows-1252": _in_folder(b"x", picture(1), b"caf\xe9", used=1),
    "folder: a caption of UTF-16": _in_folder(b"x", picture(1), "words".encode("utf-16"), used=1),
    "folder: a caption is missing": _in_folder(b"x", picture(1), None),
    "folder: a caption is empty": _in_folder(b"x", picture(1), b" \n"),
    "folder: a caption of no encoding": _in_folder(b"x", picture(1), b"caf\xe9\xff\xfe\x81"),
    "folder: a caption of 10 MB": _in_folder(b"x", picture(1), b"x" * 10_000_000),
    "folder: a picture of no bytes": _in_folder(b"x", b"", b"x"),
    "folder: a picture that is cut short": _in_folder(b"x", picture(1)[:50], b"x"),
    "folder: a name that is no UTF-8": _in_folder(b"\xff\xfe", picture(1), b"x"),
    "folder: half a letter in a name": _in_folder(b"\xed\xa0\x80", picture(1), b"x"),
}
