"""Allow one window per workspace: a lock tied to its process, and a socket that raises the first window."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QDir, QLockFile, QObject

from trainer.untrusted import confined
from trainer.untrusted.files import read_bytes

LOCK: Final = "explorer.lock"
ANSWER_MS: Final = 1_500
OPENING_S: Final = 5.0
"""How long a window that has the lock may take until its socket listens."""
_MOST_BYTES: Final = 20_000
_SOCKET_PREFIX: Final = "contrastive-explorer-"


def claim(folder: Path) -> QLockFile | None:
    """Lock this workspace for the lifetime of the returned object; None if another window holds the lock.

    The lock of a process that was killed is taken over.
    """
    _set_aside(folder)
    lock = QLockFile(str(folder / LOCK))
    lock.setStaleLockTime(0)
    if not lock.tryLock(0):
        return None
    if hasattr(os, "fchmod"):
        with contextlib.suppress(OSError), confined.open_file(folder, LOCK) as file:
            os.fchmod(file.fileno(), 0o600)  # Qt lets everybody read it
    return lock


def _set_aside(folder: Path) -> None:
    """Move what no window has made out of the lock's place: a link, a folder, a pipe, a file that names no process."""
    path = folder / LOCK
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and is_lock(read_bytes(path, _MOST_BYTES)):
            return
    except FileNotFoundError:
        return
    except OSError:  # it may not be read, or is far too long
        pass
    with contextlib.suppress(OSError):
        confined.move(path, folder / f"{LOCK}-odd-{time.strftime('%Y%m%d-%H%M%S')}")


def is_lock(content: bytes) -> bool:
    """Return whether a lock file is one of a window: empty while it is made, or with the process's number first."""
    first = content.split(b"\n", 1)[0].strip()
    return not content or (first.isdigit() and len(first) < 12)


def raise_running_window(folder: Path, link: str = "") -> bool:
    """Ask the window of this workspace to raise itself, and to show a link; return whether it was reached."""
    from PySide6.QtNetwork import QLocalSocket

    connection = QLocalSocket()
    deadline = time.monotonic() + OPENING_S
    connection.connectToServer(_socket_name(folder))
    while not connection.waitForConnected(ANSWER_MS):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
        connection.connectToServer(_socket_name(folder))
    if link:
        connection.write(f"{link}\n".encode()[:_MOST_BYTES])
        connection.flush()
    answered = connection.waitForReadyRead(ANSWER_MS)
    connection.disconnectFromServer()
    return answered


def listen_for_second_start(folder: Path, come_forward: Callable[[str], object], parent: QObject) -> None:
    """Listen for a second start with this workspace, which raises this window, until the window is deleted.

    `come_forward` gets an empty text, and a second time the link that the second start was given, if any.
    """
    from PySide6.QtNetwork import QLocalServer, QLocalSocket

    server = QLocalServer(parent)
    server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
    QLocalServer.removeServer(_socket_name(folder))

    def answer() -> None:
        connection = server.nextPendingConnection()
        connection.disconnected.connect(connection.deleteLater)
        connection.readyRead.connect(lambda: read_link(connection))
        connection.write(b"coming\n")
        come_forward("")
        if connection.bytesAvailable():
            read_link(connection)

    def read_link(connection: QLocalSocket) -> None:
        if connection.canReadLine():
            come_forward(bytes(connection.readLine(_MOST_BYTES).data()).decode("utf-8", "replace").strip())

    server.newConnection.connect(answer)
    server.listen(_socket_name(folder))
    # A folder for temporary files may hold thousands.
    threading.Thread(target=remove_stale_sockets, args=(Path(QDir.tempPath()),), name="sockets", daemon=True).start()
    # The window may still be referred to when the program ends, and then nobody deletes the server.
    QCoreApplication.instance().aboutToQuit.connect(server.close)


def remove_stale_sockets(folder: Path) -> None:
    """Remove the sockets of killed windows, whatever their workspace."""
    if os.name == "nt":
        return  # its pipes are no files, and end with their process
    for path in folder.glob(f"{_SOCKET_PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.is_socket() and path.stat().st_uid == os.getuid() and not _is_listening(path):
                confined.remove(folder, path.name)


def _is_listening(path: Path) -> bool:
    """Return whether a process listens at this socket, without notifying it."""
    # One of another kind is refused for its kind by a listener, and for nobody being there otherwise.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(str(path)) != errno.ECONNREFUSED


def _socket_name(folder: Path) -> str:
    return _SOCKET_PREFIX + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
