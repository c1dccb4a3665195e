"""Decompression bombs in tables: little memory and time, an error message, and correct rows of valid tables."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.nightly import nightly_except
from trainer import config
from trainer.data.pairs import DataError
from trainer.data.table import table_sources
from trainer.untrusted import bounded

pytestmark = [pytest.mark.faults, pytest.mark.skipif(sys.platform != "linux", reason="measures in /proc")]

MEMORY_MIB = 500
CPU_S = 2.0
SCRIPT = """
import re, resource, sys
from pathlib import Path
from trainer import config
from trainer.data.pairs import DataError
from trainer.data.table import table_sources
try:
    found, problems = table_sources(config.Table(path=sys.argv[1], image_column="filepath", caption_column="title"))
    print(len(found), "used;", problems[:1])
except DataError as error:
    print(error)
# Not `ru_maxrss` of this process: before `exec` it was as large as the one that started it.
own = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
both = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(own + both[1].ru_maxrss, sum(one.ru_utime + one.ru_stime for one in both))
"""


def named(count: int) -> list[str]:
    return [f"{number}.png" for number in range(count)]


def once(count: int, words: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([words]))


def table(file: Path, captions: pa.Array, **options: object) -> Path:
    pq.write_table(pa.table({"filepath": named(len(captions)), "title": captions}), file, compression="zstd", **options)
    return file


def parquet_bomb(folder: Path, scale: int) -> Path:
    """Return a caption of up to 50 MB, stored once for 40 rows."""
    return table(folder / "bomb.parquet", once(40, "x" * (scale * 5_000_000)))


def parquet_pages(folder: Path, scale: int) -> Path:
    """Return captions of up to 50 MB, stored separately, compressed to almost nothing."""
    return table(folder / "pages.parquet", pa.array(["x" * (scale * 5_000_000)] * 20), use_dictionary=False)


def parquet_many(folder: Path, scale: int) -> Path:
    """Return the longest allowed caption, stored once, a hundred thousand times."""
    return table(folder / "many.parquet", once(scale * 10_000, "z" * 100_000))


def parquet_lists(folder: Path, scale: int) -> Path:
    """Return lists of one caption each, all the same."""
    lists = pa.ListArray.from_arrays(pa.array(range(3_001), pa.int32()), once(3_000, "y" * (scale * 10_000)))
    return table(folder / "lists.parquet", lists)


def json_depth(folder: Path, scale: int) -> Path:
    """Return lists in lists, as deep as a line may be long."""
    (folder / "deep.jsonl").write_text(
        '{"title": ' + "[" * (scale * 300_000) + "\n" + '{"filepath": "a", "title": "b"}\n'
    )
    return folder / "deep.jsonl"


def csv_line(folder: Path, scale: int) -> Path:
    """Return a line of up to 200 MB."""
    with (folder / "line.csv").open("w") as file:
        file.write("filepath,title\n0.png,")
        for _ in range(scale * 20):
            file.write("x" * 1_000_000)
        file.write("\n1.png,sound\n")
    return folder / "line.csv"


BOMBS: dict[Callable[[Path, int], Path], str] = {
    parquet_bomb: "longer than 100,000 characters",
    parquet_pages: "once it is unpacked|MiB of memory",
    parquet_many: "repeat themselves",
    parquet_lists: "MiB of memory|repeat themselves|3000 used",
    json_depth: "1 used; .*not JSON",
    csv_line: "1 used; .*longer than",
}


def measured(file: Path) -> tuple[str, float, float]:
    """Return the reader's output, its memory in MiB including its helper, and its CPU seconds."""
    command = [sys.executable, "-c", SCRIPT, str(file)]
    *said, numbers = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    kib, cpu_s = map(float, numbers.split())
    return "\n".join(said), kib / 2**10, cpu_s


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Return the program's CPU seconds for a table of one pair."""
    file = tmp_path_factory.mktemp("one") / "one.parquet"
    return min(measured(table(file, pa.array(["a"])))[2] for _ in range(2))


@pytest.mark.parametrize("bomb", nightly_except(BOMBS, parquet_bomb), ids=lambda bomb: bomb.__name__)
def test_a_bomb_takes_little_memory_and_says_why(bomb: Callable[[Path, int], Path], tmp_path: Path, faults, nothing):
    file = bomb(tmp_path, 10 if faults.whole else 3)
    said, memory, cpu_s = measured(file)
    sound = memory < MEMORY_MIB
    words = f"{file.stat().st_size:,} bytes: {memory:.0f} MiB, {cpu_s - nothing:.1f} s more than for one pair"
    faults.row("S6", f"a stranger's table: {bomb.__name__.replace('_', ' ')}", words, 1, int(sound))
    assert sound, words
    assert re.search(BOMBS[bomb], said, re.DOTALL), said
    assert not faults.whole or cpu_s - nothing < CPU_S


def read(file: Path) -> list[tuple[str, str, str]]:
    found, _ = table_sources(config.Table(path=str(file), image_column="filepath", caption_column="title"))
    return [(one.relative, one.caption, one.metadata.get("more", "")) for one in found]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.string())], ids=str
)
@pytest.mark.parametrize("once", [True, False], ids=["dictionary", "plain"])
def test_a_sound_table_is_read_as_it_is(kind: pa.DataType, once: bool, tmp_path: Path):
    rng = np.random.default_rng(0)
    captions = [f"caption {rng.integers(9)} of ä{'b' * int(rng.integers(40))}" for _ in range(500)]
    stored = [[one, "another"] for one in captions] if pa.types.is_list(kind) else captions
    if pa.types.is_dictionary(kind):
        stored = captions = [f"kind {number % 5}" for number in range(500)]
    more = [None if number % 3 else number for number in range(500)]
    columns = {"filepath": named(500), "title": pa.array(stored, kind), "more": pa.array(more)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=90, use_dictionary=once)
    expected = [(name, words, "" if n is None else str(n)) for name, words, n in zip(named(500), captions, more)]
    read_pairs = read(tmp_path / "t.parquet")
    if pa.types.is_list(kind):  # each caption of a row is a pair
        assert {words for _, words, _ in read_pairs[1::2]} == {"another"}
        read_pairs = read_pairs[::2]
    assert read_pairs == expected


def test_a_caption_one_letter_too_long_is_named_and_the_rest_is_used(tmp_path: Path):
    captions = ["ü" * 100_000, "ü" * 100_001, "sound"]
    file = table(tmp_path / "t.parquet", pa.array(captions))
    found, problems = table_sources(config.Table(path=str(file), image_column="filepath", caption_column="title"))
    assert [one.caption for one in found] == [captions[0], "sound"]
    assert problems == [("row 2", "Its caption is longer than 100,000 characters.")]


@pytest.mark.nightly
def test_a_file_that_is_damaged_further_on_is_refused_whole(tmp_path: Path):
    rng = np.random.default_rng(0)
    captions = ["".join(map(chr, rng.integers(97, 123, 2_000))) for _ in range(20_000)]
    file = table(tmp_path / "t.parquet", pa.array(captions), row_group_size=1_000, use_dictionary=False)
    content = bytearray(file.read_bytes())
    place = len(content) * 9 // 10
    content[place : place + 4_000] = bytes(4_000)
    file.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read(file)


def endless(path: Path, options: dict) -> tuple[dict, pa.Schema, object]:
    """Consume what `options` say: time or memory."""

    def batches():
        held = []
        while options["what"] == "memory":
            held.append(np.ones(2**22))
        while options["what"] == "time":
            pass
        yield None

    return {}, pa.schema([]), batches()


@pytest.mark.parametrize("what", ["memory", "time"])
@pytest.mark.parametrize("enforced", [True, False], ids=["by the system", "watched"])
def test_a_reader_without_end_is_ended(what: str, enforced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The system enforces the limit, or the process that waits watches it."""
    if enforced and not bounded.ENFORCED:
        pytest.skip("this system does not enforce limits")
    (tmp_path / "a.parquet").write_bytes(b"")
    (tmp_path / "wild.py").write_text(Path(__file__).read_text())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    if not enforced:
        monkeypatch.setattr(bounded, "ENFORCED", False)
        monkeypatch.setenv(bounded.UNENFORCED, "1")
    files = [tmp_path / "a.parquet"]
    parts = bounded.read("wild:endless", files, {"what": what}, memory=64 * 2**20, cpu_s=0.3 if what == "time" else 20)
    limit = {"memory": "64 MiB of memory", "time": "0.3 seconds of processor time"}[what]
    with pytest.raises(bounded.Unreadable, match=limit):
        list(next(parts).rows)
    parts.close()


LOOKING = """
import sys, pyarrow as pa
def imported(path, options):
    pa.array([0])
    return {"pandas": "pandas" in sys.modules}, pa.schema([]), []
"""


def test_an_array_in_a_reader_does_not_import_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "looking.py").write_text(LOOKING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    (part,) = bounded.read("looking:imported", [tmp_path / "looking.py"], {})
    assert part.facts == {"pandas": False}


def test_no_row_is_lost_between_many_files(tmp_path: Path):
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(5):
        table(folder / f"{number}.parquet", pa.array([f"{number} {row}" for row in range(number * 7 + 1)]))
    options = {"image": "filepath", "caption": "title", "most": 100}
    files = sorted(folder.iterdir())
    words = [
        [row["title"] for batch in part.rows for row in batch.to_pylist()]
        for part in bounded.read("trainer.untrusted.bounded.parquet:parts", files, options)
    ]
    assert words == [[f"{number} {row}" for row in range(number * 7 + 1)] for number in range(5)]


def test_many_different_texts_take_no_dictionary_of_all(tmp_path: Path):
    count, file = 300_000, tmp_path / "items.parquet"
    pq.write_table(
        pa.table({"path": named(count), "caption": [f"a caption of its own, {i}" for i in range(count)]}), file
    )
    reader = bounded.read("trainer.untrusted.bounded.parquet:table", [file], {"rows": count}, memory=100 * 2**20)
    with contextlib.closing(reader):
        part = next(reader)
        assert pa.Table.from_batches(part.rows, part.schema).equals(pq.read_table(file))
