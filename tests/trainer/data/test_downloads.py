"""Downloads of data sets: progress, cancel, stalls, and messages without a network."""

import http.server
import io
import socket
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torchvision
from PIL import Image

from tests.builders import served
from trainer import config
from trainer.data import DataError, load, named

CONTENT = bytes(range(256)) * 2048


class Cancelled(Exception):
    """The exception that the trainer raises on a stop request."""


class Server(http.server.BaseHTTPRequestHandler):
    silent = False
    content = CONTENT

    def do_HEAD(self) -> None:
        self._begin()

    def do_GET(self) -> None:
        if self.silent:
            time.sleep(4)
            return
        self._begin()
        self.wfile.write(self.content)

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Server]]:
    """Return the server that replaces torchvision's source of CIFAR-10."""

    class Fresh(Server):
        pass

    with served(Fresh) as address:
        monkeypatch.setattr(torchvision.datasets.CIFAR10, "url", f"{address}/cifar.tar.gz")
        yield Fresh


def read(root: Path, progress: object = lambda share, note: None) -> object:
    data = config.Named(name="CIFAR10", root=str(root / "root"))
    return load(data, image_size=32, workspace_folder=root, progress=progress)


def test_a_data_set_by_name_shows_its_download_and_can_be_cancelled(server: type[Server], tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []

    def cancel(share: float, note: str) -> None:
        told.append((share, note))
        if note.startswith("Downloading") and len(told) > 4:
            raise Cancelled

    with pytest.raises(Cancelled):
        read(tmp_path, cancel)
    assert told[0][1] == "Looking for CIFAR10"
    downloading = [(share, note) for share, note in told if note.startswith("Downloading CIFAR10: ")]
    assert 0 < downloading[0][0] < downloading[-1][0] <= 0.8
    assert not list(tmp_path.glob("data/kept/*"))
    assert socket.getdefaulttimeout() is None


@pytest.mark.parametrize("what", ["bytes", "archive"])
def test_what_is_not_the_data_set_is_said(what: str, server: type[Server], tmp_path: Path) -> None:
    if what == "archive":
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz"):
            pass
        server.content = packed.getvalue()
    with pytest.raises(DataError, match=r"CIFAR10 is not in .* and could not be downloaded: .*set data.root"):
        read(tmp_path)


def test_a_server_that_says_nothing_is_not_waited_for(
    server: type[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.silent = True
    monkeypatch.setattr(named, "_SILENCE_S", 0.5)
    with pytest.raises(DataError, match=r"could not be downloaded: .*timed out"):
        read(tmp_path)


def test_no_network_is_a_sentence(server: type[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "url", "http://127.0.0.1:9/cifar.tar.gz")
    with pytest.raises(DataError, match=r"could not be downloaded: .*refused.*Check the network"):
        read(tmp_path)


# -- the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.HubDataset:
    """Return a fake hub data set: the library's own Parquet reader, with caches in a new folder."""
    datasets = pytest.importorskip("datasets")
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    rows = {"image": [{"bytes": picture.getvalue(), "path": None}] * 50, "text": [f"red {n}" for n in range(50)]}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    real = datasets.load_dataset

    def from_here(name: str, subset: str | None, *, split: str) -> object:
        features = datasets.Features({"image": datasets.Image(), "text": datasets.Value("string")})
        files = str(tmp_path / "rows.parquet")
        return real("parquet", data_files=files, split=split, cache_dir=str(tmp_path / "cache"), features=features)

    monkeypatch.setattr(datasets, "load_dataset", from_here)
    return config.HubDataset(name="owner/reds")


@pytest.mark.slow
def test_a_data_set_of_the_hub_shows_its_bars(hub: config.HubDataset, tmp_path: Path) -> None:
    told: list[str] = []
    splits = load(hub, image_size=8, workspace_folder=tmp_path, progress=lambda share, note: told.append(note))
    assert splits.report.used == 50
    assert any(note.startswith("owner/reds: Generating train split") for note in told)


def test_a_data_set_of_the_hub_can_be_cancelled(hub: config.HubDataset, tmp_path: Path) -> None:
    from tqdm.std import tqdm

    before = tqdm.update

    def cancel(share: float, note: str) -> None:
        if "Generating" in note:
            raise Cancelled

    with pytest.raises(Cancelled):
        load(hub, image_size=8, workspace_folder=tmp_path, progress=cancel)
    assert tqdm.update is before
    assert not list(tmp_path.glob("data/kept/*"))


def test_a_hub_that_cannot_be_reached_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach 'owner/name' on the Hub (LocalEntryNotFoundError)")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(DataError, match=r"owner/name could not be opened: Couldn't reach.*and the network"):
        load(config.HubDataset(name="owner/name"), image_size=8, workspace_folder=tmp_path, progress=lambda *_: None)
