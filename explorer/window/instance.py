"""One window per workspace: a lock that dies with its process, and a bell that brings the first window forward."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLockFile, QObject

LOCK: Final = "explorer.lock"
ANSWER_MS: Final = 1_500


def claim(folder: Path) -> QLockFile | None:
    """The lock of this workspace, held as long as the object lives; None while another window holds it.

    The lock of a process that was killed is taken over.
    """
    lock = QLockFile(str(folder / LOCK))
    lock.setStaleLockTime(0)
    return lock if lock.tryLock(0) else None


def ring(folder: Path) -> bool:
    """Asks the window that has this workspace to come forward; whether it heard."""
    from PySide6.QtNetwork import QLocalSocket

    socket = QLocalSocket()
    socket.connectToServer(_name(folder))
    if not socket.waitForConnected(ANSWER_MS):
        return False
    heard = socket.waitForReadyRead(ANSWER_MS)
    socket.disconnectFromServer()
    return heard


def answer_the_bell(folder: Path, come_forward: Callable[[], object], parent: QObject) -> None:
    """From here on a second start with this workspace makes this window come forward."""
    from PySide6.QtNetwork import QLocalServer

    server = QLocalServer(parent)
    server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
    QLocalServer.removeServer(_name(folder))

    def answer() -> None:
        connection = server.nextPendingConnection()
        connection.disconnected.connect(connection.deleteLater)
        connection.write(b"coming\n")
        come_forward()

    server.newConnection.connect(answer)
    server.listen(_name(folder))


def _name(folder: Path) -> str:
    return "contrastive-explorer-" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
