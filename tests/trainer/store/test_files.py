import numpy as np
import pytest

from trainer.store import Items, StoreError, disk, read_snapshot, snapshot_name, write_atomically, write_snapshot


def _items(n: int, **metadata: list) -> Items:
    names = [f"{i}.png" for i in range(n)]
    captions = ["=cmd|' /C calc'!A0", "<b>bold</b>", "a\nb", "ü 星"][:n] + ["plain"] * (n - 4)
    return Items(np.arange(n), names, captions, [""] * n, ["renderings"] * n, metadata)


def _write(folder, rng, dtype=np.float32, n=6, d=4, **changes):
    unit = rng.normal(size=(2, n, d))
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    image, text = unit.astype(dtype)
    arguments = {"image": image, "text": text, "items": _items(n, color=["red"] * n), "step": 3}
    arguments |= {"dataset": "scenes", "split": "renderings", "model": "run 1"}
    write_snapshot(folder, **(arguments | changes))
    return image, text


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_snapshot_comes_back_whole_and_read_only(tmp_path, dtype):
    folder = tmp_path / "snapshots" / snapshot_name(dataset="scenes", split="renderings", step=3)
    image, text = _write(folder, np.random.default_rng(0), dtype, sampled=True, fingerprint="f")
    found = read_snapshot(folder)
    assert folder.name == "scenes-renderings@000003"
    np.testing.assert_array_equal(found.image, image)
    np.testing.assert_array_equal(found.text, text)
    assert found.image.dtype == dtype
    assert isinstance(found.image, np.memmap)
    assert not found.image.flags.writeable
    assert found.items.caption == _items(6).caption
    assert found.items.metadata == {"color": ["red"] * 6}
    np.testing.assert_array_equal(found.items.id, np.arange(6))
    assert (found.n, found.d, found.step, found.split, found.sampled) == (6, 4, 3, "renderings", True)
    assert [p.name for p in folder.parent.iterdir()] == [folder.name], "no drafts stay behind"


def test_a_snapshot_is_replaced_as_a_whole(tmp_path):
    rng = np.random.default_rng(0)
    _write(tmp_path / "s", rng)
    image, _ = _write(tmp_path / "s", rng, text=None)
    found = read_snapshot(tmp_path / "s")
    np.testing.assert_array_equal(found.image, image)
    assert found.text is None
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"items": _items(5)}, "6 embeddings but 5 items"),
        ({"image": None, "text": None}, "needs image or text"),
        ({"image": np.zeros((6, 4)), "text": None}, "float16 or float32"),
        ({"image": np.zeros((6, 3), np.float32)}, "one shape"),
        ({"items": Items(np.arange(6), [""] * 6, [""] * 6, [""] * 5, [""] * 6)}, "different lengths"),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_not_written(tmp_path, changes, said):
    with pytest.raises(StoreError, match=said):
        _write(tmp_path / "s", np.random.default_rng(0), **changes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["snapshot.json", "image.npy", "items.parquet"])
def test_a_damaged_snapshot_is_named(tmp_path, file):
    _write(tmp_path / "s", np.random.default_rng(0))
    path = tmp_path / "s" / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StoreError, match="cannot be used"):
        read_snapshot(tmp_path / "s")


def test_shapes_are_checked_against_the_card(tmp_path):
    _write(tmp_path / "s", np.random.default_rng(0))
    np.save(tmp_path / "s" / "text.npy", np.zeros((6, 5), np.float32))
    with pytest.raises(StoreError, match=r"text\.npy"):
        read_snapshot(tmp_path / "s")


def test_pickled_arrays_are_refused(tmp_path):
    _write(tmp_path / "s", np.random.default_rng(0))
    np.save(tmp_path / "s" / "image.npy", np.array([object()] * 6), allow_pickle=True)
    with pytest.raises(StoreError, match="cannot be used"):
        read_snapshot(tmp_path / "s")


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.npy"
    write_atomically(path, lambda draft: np.save(draft, np.arange(3)))
    np.testing.assert_array_equal(np.load(path), np.arange(3))

    def fail(draft):
        draft.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fail)
    np.testing.assert_array_equal(np.load(path), np.arange(3))
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_an_array_of_which_a_part_was_written_is_a_full_disk(tmp_path):
    """numpy's error for it has no number."""
    with pytest.raises(disk.DiskTrouble, match="is full") as raised, disk.writing("The snapshot", tmp_path, 1 << 20):
        raise OSError("1280000 requested and 744416 written")
    assert raised.value.full
    with pytest.raises(OSError, match="something else"), disk.writing("The snapshot", tmp_path):
        raise OSError("something else")
