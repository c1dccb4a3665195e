"""Downloads from a local server: progress, cancel, resume, and errors."""

import contextlib
import hashlib
import http.server
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from tests.builders import served
from tests.cancelled import cancelled
from trainer.pretrained import PretrainedError, downloads
from trainer.pretrained.downloads import fetch, hub_file
from trainer.untrusted.files import guard_downloads

CONTENT = bytes(range(256)) * 4096


class Handler(http.server.BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]
    most: int | None = None
    """How many bytes an answer has before the connection breaks."""
    answers: int | None = None
    """How many requests are answered before the server is away."""

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.asked.append((self.path, wanted))
        if self.answers is not None and len(self.asked) > self.answers:
            return
        for word, code in (("missing", 404), ("locked", 401), ("gated", 403), ("ill", 503)):
            if word in self.path:
                self.send_error(code)
                return
        if "silent" in self.path:
            time.sleep(1.5)
            return
        if wanted and int(wanted.removeprefix("bytes=").removesuffix("-")) >= len(CONTENT):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(CONTENT)}")
            self.end_headers()
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        end = start + self.most if self.most is not None else None
        if "chunked" in self.path:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + CONTENT[: self.most])
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    class Fresh(Handler):
        asked: list = []  # noqa: RUF012

    with served(Fresh) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield Fresh, address


def test_a_file_is_fetched_once_and_its_progress_told(server, tmp_path):
    handler, address = server
    told: list[tuple[float, str]] = []
    digest = hashlib.sha256(CONTENT).hexdigest()[:16]
    for _ in range(2):
        file = fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *said: told.append(said), sha256=digest)
        assert file.read_bytes() == CONTENT
    assert len(handler.asked) == 1
    assert told[-1] == (1.0, "Downloading m.pt: 1 of 1 MB")


def test_a_cancelled_download_goes_on_where_it_was(server, tmp_path):
    handler, address = server

    with cancelled(lambda share, _note: share > 0) as cancel:
        fetch(f"{address}/m.pt", tmp_path / "m.pt", cancel)
    assert not (tmp_path / "m.pt").exists()
    assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT
    assert handler.asked[1][1].startswith("bytes=")


def test_a_connection_that_breaks_is_made_again(server, tmp_path):
    handler, address = server
    handler.most = 300_000
    assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT
    assert [wanted for _, wanted in handler.asked] == [None, *(f"bytes={n}00000-" for n in (3, 6, 9))]


def test_a_server_that_goes_away_is_told_and_what_came_is_kept(server, tmp_path):
    handler, address = server
    handler.most, handler.answers = 300_000, 2
    with pytest.raises(PretrainedError, match=r"cannot be reached: .*the next try continues.*local-dir:FOLDER"):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None)
    assert (tmp_path / "m.pt.part").read_bytes() == CONTENT[:600_000]
    handler.answers = None
    assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT


def test_an_answer_in_chunks_that_breaks_is_told(server, tmp_path):
    handler, address = server
    handler.most = 300_000
    with pytest.raises(PretrainedError, match="cannot be reached"):
        fetch(f"{address}/chunked.pt", tmp_path / "m.pt", lambda *_: None)
    assert not (tmp_path / "m.pt").exists()


def test_what_arrives_damaged_is_thrown_away(server, tmp_path):
    _, address = server
    with pytest.raises(PretrainedError, match="arrived damaged"):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None, sha256="0" * 16)
    assert list(tmp_path.iterdir()) == []


def test_a_repository_gives_the_first_file_it_has(server, tmp_path):
    handler, _ = server
    file = hub_file("somebody/model", ("missing.safetensors", "there.bin"), cache=tmp_path, progress=lambda *_: None)
    assert (file.name, file.read_bytes()) == ("there.bin", CONTENT)
    assert handler.asked[0][0] == "/somebody/model/resolve/main/missing.safetensors"
    with pytest.raises(PretrainedError, match="has none of missing"):
        hub_file("somebody/model", ("missing.a",), cache=tmp_path, progress=lambda *_: None)
    with pytest.raises(PretrainedError, match="write OWNER/NAME"):
        hub_file("../../etc", ("missing.a",), cache=tmp_path, progress=lambda *_: None)


def test_cancelled_after_its_last_byte_it_is_whole(server, tmp_path):
    handler, address = server

    def cancel(share: float, note: str) -> None:
        if share == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", cancel)
    assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT
    assert [wanted for _, wanted in handler.asked] == [None, f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_longer_than_the_file_is_begun_anew(server, tmp_path):
    _, address = server
    (tmp_path / "m.pt.part").write_bytes(CONTENT + b"of another")
    file = fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None)
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("missing.pt", r"missing\.pt is not there \(answer 404\)\. Check the name"),
        ("locked.pt", r"locked\.pt is not public: it requires a login \(answer 401\)"),
        ("gated.pt", r"gated\.pt is not public: it requires a login \(answer 403\)"),
        ("ill.pt", r"127\.0\.0\.1:\d+ cannot be reached: the answer is 503\. Check the network"),
    ],
)
def test_each_answer_of_a_server_is_a_sentence(server, tmp_path, path, sentence):
    _, address = server
    with pytest.raises(PretrainedError, match=sentence):
        fetch(f"{address}/{path}", tmp_path / "m.pt", lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_a_repository_that_asks_for_a_login_is_told_from_one_without_the_file(server, tmp_path):
    with pytest.raises(PretrainedError, match=r"locked/model is not public .* your own account.*local-dir:FOLDER"):
        hub_file("locked/model", ("a.pt", "b.pt"), cache=tmp_path, progress=lambda *_: None)
    with pytest.raises(PretrainedError, match=r"missing/model on the Hugging Face hub has none of a\.pt"):
        hub_file("missing/model", ("a.pt",), cache=tmp_path, progress=lambda *_: None)


def test_without_a_network_and_with_a_silent_server_there_is_a_sentence(server, tmp_path, monkeypatch):
    _, address = server
    monkeypatch.setattr(downloads, "_TIMEOUT_S", 0.3)
    with pytest.raises(PretrainedError, match=r"cannot be reached: .*timed out.*Check the network"):
        fetch(f"{address}/silent.pt", tmp_path / "m.pt", lambda *_: None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(PretrainedError, match=r"cannot be reached: .*refused.*local-dir:FOLDER"):
        fetch(f"{nobody}/m.pt", tmp_path / "m.pt", lambda *_: None)
    with pytest.raises(PretrainedError, match=r"^nowhere\.invalid cannot be reached: no connection\. Check"):
        fetch("http://nowhere.invalid/m.pt", tmp_path / "m.pt", lambda *_: None)


def _server_of(words: bytes, again: bytes) -> tuple[socket.socket, str]:
    """Serve a first answer, and then the same bytes without an end."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(10_000)
                    connection.sendall(words)
                    while True:
                        connection.sendall(again)
                        time.sleep(0.005 if len(again) < 100 else 0)

    threading.Thread(target=serve, daemon=True).start()
    return listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("length", [b"", b"Content-Length: none\r\n", b"Content-Length: -7\r\n"])
def test_a_download_without_an_end_leaves_the_disk_free(length: bytes, tmp_path, monkeypatch):
    listening, address = _server_of(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n", bytes(100_000))
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: SimpleNamespace(free=downloads._SPARE + 10**6))
    with listening, pytest.raises(PretrainedError, match=r"has more than 1 MB, and .* has not as much free"):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_a_byte_at_a_time_can_be_cancelled(tmp_path, monkeypatch):
    listening, address = _server_of(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x")
    monkeypatch.setattr(downloads, "_TELL_S", 0.0)
    told: list[float] = []

    def cancel(share: float, note: str) -> None:
        told.append(share)
        if len(told) > 3:
            raise KeyboardInterrupt

    with listening, pytest.raises(KeyboardInterrupt):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", cancel)
    assert max(told) < 0.01


def test_downloads_are_refused_while_the_guard_lasts(server, tmp_path):
    handler, address = server
    with guard_downloads(str):
        with guard_downloads(lambda: "It is a copy."), pytest.raises(PretrainedError, match="It is a copy"):
            fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None)
        assert not handler.asked
        assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT
