"""Headers that misstate their file: detected before it is mapped or read, and reported with its name."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from tests.nightly import nightly_except
from trainer.pretrained.errors import PretrainedError
from trainer.pretrained.weights import read_weights
from trainer.store import Items, StoreError, read_snapshot, write_snapshot
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.headers import check_npy, check_safetensors

N, D = 8, 4


def npy(words: str, values: int = N * D * 4, *, version: bytes = b"\1\0", length: int | None = None) -> bytes:
    header = words.encode("latin-1")
    told = len(header) if length is None else length
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<I", told) + header + bytes(values)


def about(shape: object = (N, D), descr: object = "<f4") -> str:
    return f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n"


LYING_ARRAYS = {
    "more rows than the file has": npy(about((10**9, D))),
    "fewer rows than the file has": npy(about((N - 1, D))),
    "a product beyond 64 bits": npy(about((2**40, 2**40))),
    "a product that wraps to what is there": npy(about((2**62 + N, D))),
    "a negative length": npy(about((-N, -D))),
    "a length that is true": npy(about((True, N * D))),
    "objects": npy(about(descr="|O")),
    "nothing a value": npy(about(descr="|V0")),
    "fields": npy(about(descr=[("a", "<f4")])),
    "text": npy(about(descr="<U1")),
    "a header longer than the file": npy(about(), version=b"\2\0", length=2**31),
    "a header of nests": npy("(" * 9_000),
    "another version": npy(about(), version=b"\x09\0"),
    "no header": b"\x93NUMPY",
    "nothing": b"",
}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "snapshots" / "one"
    rows = np.eye(N, D, dtype=np.float32)
    names = [f"{number}.png" for number in range(N)]
    items = Items(np.arange(N), names, names, [""] * N, ["test"] * N)
    folder.parent.mkdir(parents=True)
    write_snapshot(folder, image=rows, text=rows, items=items, step=1, dataset="x", split="test", model="run 1")
    (folder / "manifest.json").unlink(missing_ok=True)  # who lies about a file lies in its manifest, too
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "lie",
    nightly_except(LYING_ARRAYS, "more rows than the file has", "fewer rows than the file has", "objects"),
)
def test_a_snapshot_with_a_lying_array_is_not_used(lie: str, snapshot: Path, monkeypatch: pytest.MonkeyPatch):
    assert read_snapshot(snapshot).text.tolist() == np.eye(N, D).tolist()
    (snapshot / "text.npy").write_bytes(LYING_ARRAYS[lie])
    read = []
    load = np.load
    monkeypatch.setattr(np, "load", lambda file, **how: (read.append(Path(file).name), load(file, **how))[1])
    with pytest.raises(StoreError, match=r"cannot be used: text\.npy .*Embed the run's step again\."):
        read_snapshot(snapshot)
    assert "text.npy" not in read, "it was mapped"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_a_sound_array_passes(dtype: str, shape: tuple[int, ...], tmp_path: Path):
    np.save(tmp_path / "a.npy", np.zeros(shape, dtype))
    found = check_npy(tmp_path / "a.npy")
    assert (found.shape, found.dtype) == (shape, np.dtype(dtype))


def weights(header: Any, data: int = 16, *, length: int | None = None) -> bytes:
    words = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(words) if length is None else length) + words + bytes(data)


def one(**other: object) -> dict[str, object]:
    return {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16], **other}}


LYING_WEIGHTS = {
    "a header longer than the file": weights(one(), length=10**6),
    "a header of 2^63 bytes": weights(one(), length=2**63),
    "no JSON": weights(b"{" * 50),
    "nests": weights(b"[" * 100_000),
    "no object": weights([1, 2]),
    "more than the file has": weights(one(shape=[10**6], data_offsets=[0, 4 * 10**6])),
    "less than the file has": weights(one(shape=[2], data_offsets=[0, 8])),
    "a shape that is more than its bytes": weights(one(shape=[1000, 1000])),
    "a product that wraps": weights(one(shape=[2**62, 4, 2])),
    "a negative length": weights(one(shape=[-2, -2])),
    "an unknown type": weights(one(dtype="O8")),
    "offsets from behind": weights(one(data_offsets=[16, 0])),
    "no offsets": weights({"a": {"dtype": "F32", "shape": [4]}}),
    "a gap": weights(one(shape=[2], data_offsets=[8, 16])),
    "an overlap": weights({**one(), "b": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}),
    "nothing": b"",
}


@pytest.mark.parametrize("lie", LYING_WEIGHTS)
def test_a_file_of_weights_that_lies_is_not_opened(lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import safetensors

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was opened")

    monkeypatch.setattr(safetensors, "safe_open", never)
    file = tmp_path / "model.safetensors"
    file.write_bytes(LYING_WEIGHTS[lie])
    with pytest.raises(PretrainedError, match=r"^model\.safetensors .*[Gg]et it again"):
        read_weights(file)


def test_sound_weights_pass(tmp_path: Path):
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
    tensors = {str(kind): torch.zeros(3, number, dtype=kind) for number, kind in enumerate(kinds)}
    tensors["scalar"] = torch.tensor(1.0)
    save_file(tensors, tmp_path / "a.safetensors", metadata={"format": "pt"})
    check_safetensors(tmp_path / "a.safetensors", most=8)
    assert {name: tuple(one.shape) for name, one in read_weights(tmp_path / "a.safetensors").items()} == {
        name: tuple(one.shape) for name, one in tensors.items()
    }
    with pytest.raises(Unreadable, match="has 8 tensors"):
        check_safetensors(tmp_path / "a.safetensors", most=7)


def more_rows(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table] * 1_000)


def more_columns(table: pa.Table) -> pa.Table:
    for number in range(1_001):
        table = table.append_column(f"meta.{number}", pa.array([1] * N))
    return table


def long_once(table: pa.Table) -> pa.Table:
    """Return a value stored once that 8 rows of 5 columns repeat."""
    values = pa.DictionaryArray.from_arrays(pa.array([0] * N, pa.int32()), pa.array(["x" * 20_000_000]))
    for number in range(4):
        table = table.append_column(f"meta.{number}", values)
    return table


def long_each(table: pa.Table) -> pa.Table:
    return table.append_column("meta.long", pa.array([f"{number}" + "y" * 36_000_000 for number in range(N)]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lie", "told"),
    [
        (more_rows, "claims 8,000 rows"),
        (more_columns, "1,006 columns"),
        (long_once, "many times more"),
        pytest.param(long_each, "(once it is unpacked|MiB of memory)", marks=pytest.mark.nightly),
    ],
)
def test_a_table_of_items_that_unfolds_is_not_read(
    lie: Callable[[pa.Table], pa.Table],
    told: str,
    snapshot: Path,
):
    plain = pq.read_table(snapshot / "items.parquet")
    changed = lie(plain)
    dictionary = lie is not long_each
    pq.write_table(changed, snapshot / "items.parquet", compression="zstd", use_dictionary=dictionary)
    with pytest.raises(StoreError, match=rf"cannot be used: items\.parquet .*{told}.*Embed the run's step again\."):
        read_snapshot(snapshot)


@pytest.mark.slow
def test_a_long_value_is_read_as_ever(snapshot: Path):
    plain = pq.read_table(snapshot / "items.parquet")
    captions = pa.array(["z" * 3_000_000] * 3 + ["é", "", "b", "c", "d"])
    many = plain.set_column(plain.schema.get_field_index("caption"), "caption", captions)
    pq.write_table(many, snapshot / "items.parquet")
    found = read_snapshot(snapshot).items
    assert list(found.caption) == captions.to_pylist()
    assert list(found.path) == plain.column("path").to_pylist()
