"""Downloads against a server on this computer: progress, cancelling, going on, and what can go wrong."""

from __future__ import annotations

import hashlib
import http.server
import threading

import pytest

from trainer.pretrained import PretrainedError
from trainer.pretrained.downloads import fetch, hub_file

CONTENT = bytes(range(256)) * 4096


class Handler(http.server.BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]
    cut = False

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.asked.append((self.path, wanted))
        if "missing" in self.path:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end = start + 300_000 if type(self).cut else None
        self.wfile.write(CONTENT[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    class Fresh(Handler):
        asked: list = []  # noqa: RUF012

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fresh)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{serving.server_port}")
    yield Fresh, f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


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

    class Cancelled(Exception):
        pass

    def cancel(share: float, note: str) -> None:
        if share > 0:
            raise Cancelled

    with pytest.raises(Cancelled):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", cancel)
    assert not (tmp_path / "m.pt").exists()
    assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT
    assert handler.asked[1][1].startswith("bytes=")


def test_a_connection_that_breaks_is_told_and_what_came_is_kept(server, tmp_path):
    handler, address = server
    handler.cut = True
    with pytest.raises(PretrainedError, match=r"cannot be reached: .*the next try goes on.*local-dir:FOLDER"):
        fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None)
    handler.cut = False
    assert fetch(f"{address}/m.pt", tmp_path / "m.pt", lambda *_: None).read_bytes() == CONTENT


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
