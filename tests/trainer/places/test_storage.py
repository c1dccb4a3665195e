"""Files in a folder and in an object store, the latter by a stand-in of S3 that pyarrow's own client speaks to."""

from pathlib import Path

import pytest

from trainer.places.remote_host import OutOfReach, PlaceError, parse
from trainer.places.storage import Storage

pytestmark = pytest.mark.slow


def test_files_are_written_read_sent_and_fetched(storage: Storage, tmp_path: Path) -> None:
    storage.check()
    assert storage.names() == []
    storage.write("one.json", b"first")
    storage.write("one.json", b"{}")
    assert storage.read("one.json", 2) == b"{}"
    with pytest.raises(PlaceError, match="larger than 1 byte"):
        storage.read("one.json", 1)
    large = bytes(range(256)) * 50_000
    (tmp_path / "large").write_bytes(large)
    inside = storage.inside("job-1")
    inside.send(tmp_path / "large", "out/00000.npy")
    assert inside.size("out/00000.npy") == len(large)
    assert inside.size("out/00001.npy") is None
    assert inside.names("out") == ["00000.npy"]
    assert storage.names() == ["one.json"]
    assert inside.folders("out") == []
    assert storage.folders("job-1") == ["out"]
    with inside.open("out/00000.npy") as stream:
        assert stream.read(3) == large[:3]
    assert inside.stamp("out/00000.npy")[0] == len(large)
    inside.fetch("out/00000.npy", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large
    with pytest.raises(FileNotFoundError):
        inside.read("none", 10)
    inside.remove("out/00000.npy")
    inside.remove("out/00000.npy")
    assert inside.stamp("out/00000.npy") is None
    assert inside.names("out") == []
    for name in ("../one.json", "/etc/passwd", "", "a//b", "."):
        with pytest.raises(PlaceError, match="not a name in a folder"):
            inside.read(name, 10)


def test_a_draft_that_fails_leaves_the_old_file(storage: Storage, tmp_path: Path) -> None:
    storage.write("state.json", b"old")
    with pytest.raises(FileNotFoundError):
        storage.send(tmp_path / "is not there", "state.json")
    assert storage.read("state.json", 10) == b"old"
    assert storage.names() == ["state.json"]


def test_a_store_that_does_not_answer_is_out_of_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutOfReach, match="does not answer"):
        Storage(str(tmp_path / "file")).check()


def test_addresses_of_stores_are_read() -> None:
    for storage in ("/shared/runs", "s3://bucket/runs", "gs://bucket"):
        assert parse("lab", f"ray://head?storage={storage}").options["storage"] == storage
    for storage in ("s3://", "s3://bucket/../x", "http://host/x", "s3://bu cket/x", "file:///x"):
        with pytest.raises(PlaceError, match="storage="):
            parse("lab", f"ray://head?storage={storage}")
