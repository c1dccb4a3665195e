"""Build what many files of tests need: members of a tar, a workspace that a test may write, a server, a lock."""

import contextlib
import http.server
import io
import os
import shutil
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from trainer.store import Workspace


def add_members(archive: tarfile.TarFile, members: Iterable[tuple[str | bytes, bytes]]) -> None:
    """Append files of these names and contents."""
    for name, content in members:
        member = tarfile.TarInfo(os.fsdecode(name))
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


def writable_copy(workspace: Path, folder: Path) -> Workspace:
    """Copy a workspace that others only read to a new folder, and open the copy as one's own."""
    copy = Workspace(shutil.copytree(workspace, folder))
    copy.adopt()
    return copy


@contextlib.contextmanager
def served(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Answer requests on a free port while the context lasts; yield the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@contextlib.contextmanager
def locked(workspace: Workspace) -> Iterator[None]:
    """Hold the lock on the database, so that nobody else can write."""
    blocker = sqlite3.connect(workspace.database_file, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
