"""Limits on memory and time for untrusted arrays, tables and documents, with an error message."""

import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders import add_members
from tests.nightly import few_plain
from trainer.data import csv_lines
from trainer.projection import ProjectError
from trainer.projection.coordinates import read_coordinates
from trainer.store import Items, StoreError, manifests, owner_key, read_snapshot, snapshot_files, write_snapshot
from trainer.store.task_records import read_records
from trainer.untrusted import bounded
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.arrays import load_npy, load_npz, map_npy
from trainer.untrusted.bounded.headers import check_safetensors

pytestmark = [pytest.mark.faults, pytest.mark.skipif(sys.platform != "linux", reason="measures in /proc")]

MEMORY_MIB = 500
N, D = 8, 4


def array_header(shape: tuple[int, ...]) -> bytes:
    words = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(words)) + words


def sparse(file: Path, begin: bytes, size: int) -> Path:
    """Create a file with a beginning and holes up to `size`."""
    with file.open("wb") as opened:
        opened.write(begin)
        opened.truncate(size)
    return file


def lying(file: Path) -> None:
    """Make a Parquet file claim that its columns decompress to a hundred bytes."""

    def number(value: int, width: int = 0) -> bytes:
        value, found = value << 1, bytearray()
        while value or len(found) < max(width, 1):
            found.append(value & 127 | 128)
            value >>= 7
        found[-1] &= 127
        return bytes(found)

    about = pq.ParquetFile(file).metadata
    groups = [about.row_group(group) for group in range(about.num_row_groups)]
    sizes = {group.total_byte_size for group in groups}
    sizes |= {group.column(place).total_uncompressed_size for group in groups for place in range(group.num_columns)}
    content = file.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:]
    for size in (one for one in sizes if one > 100_000):
        footer = footer.replace(number(size), number(100, len(number(size))))
    file.write_bytes(content[:start] + footer)
    told = pq.ParquetFile(file).metadata.row_group(0)
    assert sum(told.column(place).total_uncompressed_size for place in range(told.num_columns)) < 100_000


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "snapshots" / "one"
    rows = np.eye(N, D, dtype=np.float32)
    names = [f"{number}.png" for number in range(N)]
    more = {"words": ["a", "é", "", "b", "c", "d", "e", "f"], "number": list(range(N)), "share": [0.5] * N}
    items = Items(np.arange(N), names, names, ["x", ""] * 4, ["test"] * N, more)
    folder.parent.mkdir(parents=True)
    write_snapshot(folder, image=rows, text=rows, items=items, step=1, dataset="x", split="test", model="run 1")
    return folder


def big_page(file: Path) -> Path:
    """Return 160 MB of captions in pages of a few kB, which the metadata does not mention."""
    long = pa.array([f"{number}" + "y" * 20_000_000 for number in range(N)])
    plain = pq.read_table(file)
    pq.write_table(plain.set_column(2, "caption", long), file, compression="zstd", use_dictionary=False)
    lying(file)
    return file


# -- what this computer wrote is read here, what a stranger wrote in a helper ------------------------------------


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of files read in a helper."""
    names: list[str] = []
    read = bounded.read

    def told(reader: str, files: list[Path], *rest: object, **more: object) -> object:
        names.extend(file.name for file in files)
        return read(reader, files, *rest, **more)

    monkeypatch.setattr(snapshot_files, "read", told)
    monkeypatch.setattr(snapshot_files, "_VERIFIED", {})
    return names


def test_what_this_computer_wrote_is_read_here(snapshot: Path, helped: list[str]):
    assert read_snapshot(snapshot).n == N
    assert helped == []


@few_plain(1, "stranger", ["without a manifest", "without a seal", "with another seal", "of another user"])
def test_what_a_stranger_wrote_is_read_once_in_a_helper(
    stranger: str, snapshot: Path, helped: list[str], monkeypatch: pytest.MonkeyPatch
):
    own = read_snapshot(snapshot).items
    monkeypatch.setattr(snapshot_files, "_VERIFIED", {})
    if stranger == "of another user":
        monkeypatch.setattr(owner_key, "_READ", {owner_key.path(): b"somebody else's key, of 32 bytes"})
    else:
        (snapshot / manifests.NAME).unlink()
        if stranger != "without a manifest":
            manifests.write_manifest(snapshot, {} if stranger == "without a seal" else {"seal": "0" * 64})
    found = read_snapshot(snapshot)
    assert helped == ["items.parquet"]
    assert found.items.metadata == own.metadata
    for name in ("path", "caption", "label", "split"):
        assert getattr(found.items, name) == getattr(own, name)
    assert found.items.id.tolist() == own.id.tolist()
    read_snapshot(snapshot)
    assert helped == ["items.parquet"], "it is harmless by now"


def test_a_seal_is_of_these_files_alone(snapshot: Path, helped: list[str]):
    document = json.loads((snapshot / manifests.NAME).read_text())
    pq.write_table(pq.read_table(snapshot / "items.parquet"), snapshot / "items.parquet", compression="gzip")
    (snapshot / manifests.NAME).unlink()
    manifests.write_manifest(snapshot, {"seal": document["seal"]})
    assert read_snapshot(snapshot).n == N
    assert helped == ["items.parquet"]


# -- memory of what unfolds --------------------------------------------------------------------------------------

SCRIPT = """
import re, resource, sys
from pathlib import Path
from trainer.errors import UserError
{imports}
try:
    print("read", {call})
except UserError as error:
    print(error)
own = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measured(imports: str, call: str) -> tuple[str, float]:
    """Return the reader's output, and its memory in MiB including its helper."""
    command = [sys.executable, "-c", SCRIPT.format(imports=imports, call=call)]
    *said, kib = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return "\n".join(said), float(kib) / 2**10


def of_pairs(file: Path) -> tuple[str, str]:
    imports = "from trainer import config\nfrom trainer.data.table import table_sources"
    table = f"config.Table(path={str(file)!r}, image_column='a', caption_column='b')"
    return imports, f"[len(part) for part in table_sources({table})]"


def json_objects(folder: Path) -> tuple[str, str]:
    """Return sixty megabytes of empty objects, thirty times as much when parsed together."""
    (folder / "table.json").write_text('[{"a":"b","b":"c"}' + ",{}" * 400_000 + ',{"a":[' + "{}," * 19_000_000 + "0]}]")
    return of_pairs(folder / "table.json")


def json_keys(folder: Path) -> tuple[str, str]:
    """Return a million keys of one object, in one of many records."""
    keys = ",".join(f'"{number}":{number}' for number in range(250_000))
    (folder / "table.json").write_text('[{"a":"b","b":"c"}' + f",{{{keys}}}" * 8 + "]")
    return of_pairs(folder / "table.json")


def json_cell(folder: Path) -> tuple[str, str]:
    """Return one caption of 100 MB."""
    (folder / "table.json").write_text('[{"a":"b","b":"' + "x" * 100_000_000 + '"}]')
    return of_pairs(folder / "table.json")


def json_lines(folder: Path) -> tuple[str, str]:
    """Return lines of the maximum length, of empty objects."""
    line = '{"a":"b","b":"c","d":[' + "{}," * 1_390_000 + "0]}\n"
    (folder / "table.jsonl").write_text(line * 8)
    return of_pairs(folder / "table.jsonl")


def csv_columns(folder: Path) -> tuple[str, str]:
    """Return a million columns with 20 rows."""
    with (folder / "table.csv").open("w") as file:
        file.write("a,b," + ",".join(map(str, range(500_000))) + "\n")
        for _ in range(20):
            file.write("x,y" + ",zz" * 500_000 + "\n")
    return of_pairs(folder / "table.csv")


def csv_cells(folder: Path) -> tuple[str, str]:
    """Return lines of a million cells under a header of two."""
    (folder / "table.csv").write_text("a,b\n" + (",zz" * 1_390_000 + "\n") * 8 + "x,y\n")
    return of_pairs(folder / "table.csv")


def csv_useless(folder: Path) -> tuple[str, str]:
    """Return three million invalid rows."""
    (folder / "table.csv").write_text("a,b\n" + "x\n" * 3_000_000)
    return of_pairs(folder / "table.csv")


def tar_names(folder: Path) -> tuple[str, str]:
    """Return a compressed tar of a hundred thousand texts without images, and one pair."""
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "PNG")
    with tarfile.open(folder / "0.tar.gz", "w:gz", compresslevel=1) as archive:
        for number in range(60_000):
            archive.addfile(tarfile.TarInfo(f"{number}.txt"))
        add_members(archive, (("p.png", picture.getvalue()), ("p.txt", b"a pair")))
    imports = "from trainer.data.tar_files import shard_sources\nfrom trainer import config"
    space = str(folder / "space")
    (folder / "space").mkdir()
    data = f"config.Shards(path={str(folder / '0.tar.gz')!r})"
    call = f"[len(p) for p in shard_sources({data}, Path({space!r}), lambda *_: None)]"
    return imports, call


def coordinates_cell(folder: Path) -> tuple[str, str]:
    """Return a cell of 200 MB."""
    (folder / "xy.csv").write_text("x,y\n1," + "1" * 200_000_000 + "\n")
    return of_points(folder / "xy.csv")


def coordinates_bomb(folder: Path) -> tuple[str, str]:
    """Return numbers repeated a few hundred million times, with metadata that does not say so."""
    zeros = pa.array(np.zeros(15_000_000))
    pq.write_table(pa.table({"x": zeros, "y": zeros}), folder / "xy.parquet", compression="zstd")
    lying_rows = folder / "xy.parquet"
    return of_points(lying_rows)


def of_points(file: Path) -> tuple[str, str]:
    return "from trainer.projection.coordinates import read_coordinates", f"read_coordinates(Path({str(file)!r})).shape"


UNFOLDING: dict[Callable[[Path], tuple[str, str]], str] = {
    json_objects: r"a value at character [\d,]+ is longer than 4,194,304",
    json_keys: r"read \[1, 8\]",
    json_cell: "longer than 4,194,304",
    json_lines: r"read \[8, 0\]",
    csv_columns: "at most 1,000 are read",
    csv_cells: r"read \[1, 8\]",
    csv_useless: "more than 500,000 rows that cannot be used. The first: line 2",
    tar_names: r"read \[1, 60000\]",
    coordinates_cell: "cannot be read",
    coordinates_bomb: r"read \(15000000, 2\)|MiB of memory",
}


LARGEST = (json_objects, json_keys, json_lines, csv_cells, csv_useless, tar_names, coordinates_cell)
"""Take seconds to unfold, by readers that another bomb reaches too: with `-m faults` and `-m nightly` only."""


@few_plain(
    1,
    "bomb",
    [pytest.param(bomb, marks=[pytest.mark.nightly] * (bomb in LARGEST)) for bomb in UNFOLDING],
    ids=lambda bomb: bomb.__name__,
)
def test_what_unfolds_takes_little_memory_and_says_why(bomb: Callable[[Path], tuple[str, str]], tmp_path: Path, faults):
    said, memory = measured(*bomb(tmp_path))
    faults.row("S6", f"a stranger's file: {bomb.__name__.replace('_', ' ')}", f"{memory:.0f} MiB", 1, int(memory < 500))
    assert memory < MEMORY_MIB, said
    assert re.search(UNFOLDING[bomb], said), said


def test_a_snapshot_whose_table_lies_about_itself(snapshot: Path, faults):
    big_page(snapshot / "items.parquet")
    (snapshot / manifests.NAME).unlink()
    manifests.write_manifest(snapshot, {})
    imports = "from trainer.store import read_snapshot"
    said, memory = measured(imports, f"read_snapshot(Path({str(snapshot)!r})).n")
    faults.row("S6", "a snapshot's table that lies about its size", f"{memory:.0f} MiB", 1, int(memory < MEMORY_MIB))
    assert re.search(r"items\.parquet .*(MiB of memory|many times more)", said), said
    assert memory < MEMORY_MIB


# -- what cannot unfold is as large as its file ------------------------------------------------------------------


def test_an_array_of_holes_is_not_read(snapshot: Path, tmp_path: Path):
    rows = 2**26
    begin = array_header((rows, 1024))
    file = sparse(tmp_path / "holes.npy", begin, len(begin) + 4 * 1024 * rows)
    for load in (load_npy, map_npy):
        with pytest.raises(Unreadable, match=r"holes\.npy claims [\d,]+ bytes and takes [\d,]+ on the disk"):
            load(file)
    with pytest.raises(ProjectError, match="nearly all of it is empty"):
        read_coordinates(file)
    os.replace(file, snapshot / "image.npy")
    # The manifest of a stranger says what the stranger wants, and reading a terabyte to compare takes an hour.
    document = json.loads((snapshot / manifests.NAME).read_text())
    document["files"]["image.npy"] = {"bytes": (snapshot / "image.npy").stat().st_size, "sha256": "0" * 64}
    document["sha256"] = manifests.digest_of({name: one for name, one in document.items() if name != "sha256"})
    (snapshot / manifests.NAME).write_text(json.dumps(document))
    with pytest.raises(ValueError, match="nearly all of it is empty"):
        manifests.verified(snapshot)
    with pytest.raises(StoreError, match="cannot be used"):
        read_snapshot(snapshot)


def test_weights_of_holes_are_not_read(tmp_path: Path):
    size = 2**40
    header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    begin = struct.pack("<Q", len(header)) + header
    file = sparse(tmp_path / "a.safetensors", begin, len(begin) + size)
    with pytest.raises(Unreadable, match="nearly all of it is empty"):
        check_safetensors(file, most=10)


def test_a_small_file_may_have_holes_and_a_large_one_be_compressed(tmp_path: Path):
    begin = array_header((2**20,))
    assert load_npy(sparse(tmp_path / "small.npy", begin, len(begin) + 4 * 2**20)).shape == (2**20,)


@pytest.mark.parametrize("lie", ["a bomb", "more than the member has", "a member cut off", "objects", "no archive"])
def test_arrays_of_an_evaluation_that_lie_are_left_out(lie: str, tmp_path: Path):
    stored = io.BytesIO()
    np.save(stored, np.zeros(37_500_000 if lie == "a bomb" else 10))
    content = stored.getvalue()
    if lie == "more than the member has":
        content = content.replace(b"(10,)", b"(99,)")
    elif lie == "a member cut off":
        content = content[:-8]
    elif lie == "objects":
        content = content.replace(b"'<f8'", b"'|O' ")
    with zipfile.ZipFile(tmp_path / "task.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("path.npy", content)
    if lie == "no archive":
        (tmp_path / "task.npz").write_bytes(b"PK\3\4" + bytes(500))
    (tmp_path / "task.json").write_text('{"task": "a", "metrics": {}, "n": 1, "whole": 1, "details": {}}')
    tracemalloc.start()
    with pytest.raises(Unreadable):
        load_npz(tmp_path / "task.npz")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert read_records(tmp_path) == []


def test_sound_arrays_of_an_evaluation_are_read_as_they_are(tmp_path: Path):
    rng = np.random.default_rng(0)
    arrays = {
        "numbers": rng.normal(size=(7, 3)),
        "columns": np.asfortranarray(rng.normal(size=(4, 5)).astype(np.float32)),
        "words": np.array(["a", "é", "longer"]),
        "right": rng.random(9) > 0.5,
        "none": np.zeros((0, 2), np.int64),
        "one": np.array(3),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = load_npz(tmp_path / "a.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tolist() == array.tolist()
        found[name][...] = array  # as of numpy itself, they may be changed


# -- manifests name files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["/dev/zero", "../../../outside", "pipe", "link", "/proc/self/mem", "a\0b"])
def test_a_manifest_reads_nothing_outside_and_nothing_without_end(name: str, snapshot: Path, tmp_path: Path):
    (tmp_path / "outside").write_text("x")
    os.mkfifo(snapshot / "pipe")
    (snapshot / "link").symlink_to(tmp_path / "outside")
    document = json.loads((snapshot / manifests.NAME).read_text())
    document["files"] = {name: {"bytes": 0, "sha256": "0" * 64}}
    document["sha256"] = manifests.digest_of({key: one for key, one in document.items() if key != "sha256"})
    (snapshot / manifests.NAME).write_text(json.dumps(document))
    with pytest.raises((OSError, ValueError)):
        manifests.verified(snapshot)


@pytest.mark.parametrize("name", ["snapshot.json", manifests.NAME, "items.parquet", "text.npy"])
@pytest.mark.parametrize("what", ["pipe", "endless", "long"])
def test_a_file_of_a_snapshot_without_an_end_is_not_read(name: str, what: str, snapshot: Path):
    (snapshot / name).unlink()
    if what == "pipe":
        os.mkfifo(snapshot / name)
    elif what == "endless":
        (snapshot / name).symlink_to("/dev/zero")
    else:
        sparse(snapshot / name, b"{", 2**40)
    with pytest.raises(StoreError, match="cannot be used"):
        read_snapshot(snapshot)


# -- counted, not timed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", ["[],", "{},", '{"a":1},', '"",', '"ab",', "1,", "1.5,", "null,", '"é",', '"x":[],'])
def test_no_document_takes_more_memory_than_is_counted(piece: str, monkeypatch: pytest.MonkeyPatch):
    count = 40_000
    if ":[" in piece:
        text = "{" + ",".join(f'"{number}":[]' for number in range(count)) + "}"
    else:
        text = "[" + piece * count + "0]"
    tracemalloc.start()
    found = untrusted_files.parse_json(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) >= count
    monkeypatch.setattr(untrusted_files, "_MOST_UNFOLDED", peak)
    monkeypatch.setattr(untrusted_files, "_SMALL", 0)
    with pytest.raises(ValueError, match="MiB of memory once it is parsed"):
        untrusted_files.parse_json(text)


def test_a_tokenizer_of_too_many_words_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from trainer.pretrained.errors import PretrainedError
    from trainer.pretrained.tokenizers import _read

    monkeypatch.setattr(untrusted_files, "_MOST_UNFOLDED", 2**24)
    words = ",".join(f'"{number}":{number}' for number in range(200_000))
    (tmp_path / "tokenizer.json").write_text(f'{{"model":{{"type":"WordLevel","vocab":{{{words}}}}}}}')
    with pytest.raises(PretrainedError, match="MiB of memory once it is parsed"):
        _read(tmp_path / "tokenizer.json")


@pytest.mark.nightly
def test_a_table_whose_every_line_opens_a_quote_is_looked_at_a_few_times(tmp_path: Path, monkeypatch):
    looked = []
    is_open = csv_lines._is_open
    monkeypatch.setattr(
        csv_lines, "_is_open", lambda text, *more, **how: (looked.append(len(text)), is_open(text, *more, **how))[1]
    )
    monkeypatch.setattr(csv_lines, "_LOOKED_AT_AGAIN", 4)
    rows = 200_000
    (tmp_path / "t.csv").write_text("a,b\n" + 'a"b,"c\n' * rows + "x,y\n")
    found = list(csv_lines.read_lines(tmp_path / "t.csv", ","))
    assert len(found) == rows + 2
    assert (found[-1].cells, found[5].reason) == (("x", "y"), "A quote is opened in it and not closed.")
    size = (tmp_path / "t.csv").stat().st_size
    assert sum(looked) < 6 * size + 5 * 2**20 + 200_000
