"""Untrusted files are read by modules that limit them; exceptions state why."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import called, nodes

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for room in ("trainer", "explorer") for path in (ROOT / room).rglob("*.py"))

METHODS = {"read_text": "trainer/untrusted/files.py", "read_bytes": "trainer/untrusted/files.py"}
"""Of `Path`: they read to the end of a file, which may have none."""
ARRAYS, TABLES = "trainer/untrusted/bounded/arrays.py", "a reader of trainer/untrusted/bounded"
CALLS = {
    "np.load": ARRAYS,
    "np.fromfile": ARRAYS,
    "np.memmap": ARRAYS,
    "np.loadtxt": TABLES,
    "np.genfromtxt": TABLES,
    "json.load": "trainer/untrusted/files.py",
    "tomllib.load": "trainer/untrusted/files.py",
    "tomllib.loads": "trainer/untrusted/files.py: Python takes hours for some of 1 MB",
    "pq.ParquetFile": TABLES,
    "pq.read_table": TABLES,
    "pq.read_schema": TABLES,
    "pq.read_metadata": TABLES,
    "parquet.ParquetFile": TABLES,
    "parquet.read_table": TABLES,
    "parquet.read_schema": TABLES,
    "pyarrow.parquet.ParquetFile": TABLES,
    "pyarrow.parquet.read_table": TABLES,
    "pyarrow.parquet.read_schema": TABLES,
    "csv.read_csv": TABLES,
    "csv.open_csv": TABLES,
    "csv.reader": "trainer/data/csv_lines.py",
    "csv.DictReader": "trainer/data/csv_lines.py",
    "tarfile.open": "trainer/data/tar_files.py",
    "gzip.open": "trainer/data/tar_files.py",
    "zipfile.ZipFile": f"{ARRAYS} or trainer/untrusted/archives.py",
    "load_file": "trainer/untrusted/bounded/headers.py: check_safetensors comes first",
    "safe_open": "trainer/untrusted/bounded/headers.py: check_safetensors comes first",
}
"""Call -> where it belongs."""

OWN = "reads what this program, or the system, has put there"
DOOR = "is the door"
HELPER = "runs in a helper process, whose memory and time are bounded"
BEGINNING = "reads cells out of a text that one of the doors has cut to a few megabytes"
LISTED = "reads members one by one, none longer than a file of words, and holds none"
CHECKED = "its header was compared with its size"
WITHOUT = {
    "trainer/untrusted/files.py": DOOR,
    "trainer/untrusted/archives.py": LISTED,
    "trainer/untrusted/bounded/arrays.py": DOOR,
    "trainer/untrusted/bounded/coordinates.py": HELPER,
    "trainer/untrusted/bounded/log_reading.py": BEGINNING,
    "trainer/untrusted/bounded/tracker_files.py": HELPER,
    "trainer/render_html/live_map.py": OWN,
    "trainer/untrusted/bounded/parquet.py": f"{HELPER}; but for `whole`, which is for what this computer has sealed",
    "trainer/untrusted/bounded/torch_archive.py": "reads one member that is not compressed, and no more than 64 MiB",
    "trainer/untrusted/bounded/vector_tables.py": HELPER,
    "trainer/untrusted/bounded/word_vectors.py": HELPER,
    "trainer/untrusted/bounded/child.py": OWN,
    "trainer/images/location.py": HELPER,
    "trainer/data/csv_lines.py": BEGINNING,
    "trainer/format_detection/tables.py": BEGINNING,
    "explorer/views/runs/new_run.py": BEGINNING,
    "trainer/data/tar_files.py": LISTED,
    "trainer/data/stored_pairs.py": LISTED,
    "trainer/checkpoints/checkpoint.py": CHECKED,
    "trainer/pretrained/weights.py": CHECKED,
    "trainer/checkpoints/tensor_file.py": "compares the directory of the archive with its size",
    "trainer/data/batch_stream.py": OWN,
    "trainer/data/streamed_images.py": OWN,
    "trainer/data/class_names.py": OWN,
    "trainer/images/decoder.py": OWN,
    "trainer/prompt_suites.py": OWN,
    "trainer/charts/published_numbers.py": OWN,
    "trainer/cli/bundle.py": OWN,
    "trainer/cli/report.py": OWN,
    "trainer/render_html/report.py": OWN,
    "trainer/training/provenance.py": OWN,
    "trainer/store/process_lock.py": OWN,
    "explorer/event_loop/process_age.py": OWN,
    "explorer/theme/icons.py": OWN,
    "explorer/theme/marks.py": OWN,
}
"""Module -> why it may read past the doors."""


def reads(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that reads a file without limits."""
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        function = called(node)
        owner, _, name = function.rpartition(".")
        whole = name in METHODS and owner not in ("untrusted_files", "")
        if (function in CALLS or whole) and not _writes(node):
            yield node.lineno, function


def _writes(node: ast.Call) -> bool:
    """Return whether an archive is opened for writing."""
    modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and str(mode.value).startswith(("w", "x", "a")) for mode in modes)


def test_files_are_read_through_doors() -> None:
    found = {
        f"{name}:{line} {call}"
        for path in SOURCES
        if (name := path.relative_to(ROOT).as_posix()) not in WITHOUT
        for line, call in reads(path.read_text(encoding="utf-8"))
    }
    assert not found, f"read it by trainer/untrusted/files.py or trainer/untrusted/bounded: {sorted(found)}"


def test_every_exception_is_needed() -> None:
    for name, why in WITHOUT.items():
        assert why
        found = list(reads((ROOT / name).read_text(encoding="utf-8")))
        assert found or why == DOOR, f"{name} needs no exception any more"


@pytest.mark.parametrize(
    "planted",
    [
        "np.load(path)",
        "np.load(path, mmap_mode='r', allow_pickle=False)",
        "np.fromfile(path, np.uint8)",
        "json.loads(path.read_text(encoding='utf-8'))",
        "(folder / 'a.json').read_text()",
        "Path(name).read_bytes()",
        "json.load(file)",
        "tomllib.loads(text)",
        "pq.read_table(path)",
        "pyarrow.parquet.read_table(path, memory_map=True)",
        "pq.ParquetFile(path)",
        "csv.read_csv(path)",
        "csv.reader(file)",
        "tarfile.open(path)",
        "tarfile.open(path, 'r:gz')",
        "gzip.open(path)",
        "zipfile.ZipFile(path)",
        "load_file(path)",
    ],
)
def test_a_planted_read_is_found(planted: str) -> None:
    assert list(reads(planted))


@pytest.mark.parametrize(
    "harmless",
    [
        "untrusted_files.read_text(path)",
        "untrusted_files.read_json(path)",
        "load_npy(path)",
        "bounded.read('trainer.untrusted.bounded.parquet:parts', files, {})",
        "tarfile.open(path, 'w')",
        "zipfile.ZipFile(draft, 'w', zipfile.ZIP_DEFLATED)",
        "json.loads(line)",
        "csv.writer(file)",
    ],
)
def test_reading_through_a_door_is_none(harmless: str) -> None:
    assert not list(reads(harmless))
