"""The key by which this user's own workspaces and files are known: 32 random bytes in the user's configuration.

It is drawn once and derived from nothing: what other users of the computer can read (its number, its name, the user's
number) makes no key. Without it, or with one that others can read, nothing is this user's own. Imports no torch.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from trainer.config import default_paths
from trainer.store.rows import StoreError
from trainer.untrusted import confined

NAME: Final = "owner.key"
LENGTH: Final = 32
_READ: Final[dict[Path, bytes]] = {}


class NoKey(StoreError):
    """This user's key cannot be read or made; the message says why, what follows and what to do."""


def path() -> Path:
    """Return where this user's key lies."""
    return default_paths.user_folder() / NAME


def owner_key() -> bytes:
    """Return this user's key, which is drawn at the first call of all.

    Raises:
        NoKey: It cannot be kept, or others can read it.
    """
    if (key := existing_key()) is not None:
        return key
    try:
        _make(path().parent)
    except OSError as error:
        raise _trouble(error) from error
    key = existing_key()
    if key is None:
        raise _trouble(OSError(errno.ENOENT, "it was removed at once"))
    return key


def existing_key() -> bytes | None:
    """Return this user's key; None if none was drawn yet. Makes nothing.

    Raises:
        NoKey: It is damaged, another user's, or others can read it.
    """
    file = path()
    if (key := _READ.get(file)) is not None:
        return key
    try:
        _check_folder(file.parent)
        with confined.open_file(file.parent, NAME) as opened:
            _check(file, os.fstat(opened.fileno()))
            key = opened.read(LENGTH + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _trouble(error) from error
    if len(key) != LENGTH:
        raise NoKey(
            f"The key {file} is damaged: it has not {LENGTH} bytes. Put it back from a backup, or remove it: then a "
            "new one is drawn, and your workspaces are look only until trainer doctor --adopt."
        )
    _READ[file] = key
    return key


def trouble() -> str:
    """Return why this user's key cannot be used, and what to do; empty if it can, or none was drawn yet."""
    try:
        existing_key()
    except NoKey as error:
        return str(error)
    return ""


def is_of_another(state: os.stat_result) -> bool:
    """Return whether a file or folder belongs to another user; never where a system has no numbers of users."""
    return hasattr(os, "geteuid") and state.st_uid != os.geteuid()


def _check_folder(folder: Path) -> None:
    state = folder.stat()
    if is_of_another(state):
        raise NoKey(
            f"{folder} belongs to another user (number {state.st_uid}), so no key of yours can be in it. Every "
            "workspace is look only: let XDG_CONFIG_HOME name a folder of your own."
        )
    if hasattr(os, "geteuid") and stat.S_IMODE(state.st_mode) & 0o022:
        folder.chmod(0o700)  # who may write there may put another key into its place


def _check(file: Path, state: os.stat_result) -> None:
    if is_of_another(state):
        raise NoKey(
            f"The key {file} belongs to another user (number {state.st_uid}), so it is not used, and every workspace "
            "is look only. Remove it: then one of your own is drawn."
        )
    if hasattr(os, "geteuid") and stat.S_IMODE(state.st_mode) & 0o077:
        raise NoKey(
            f"The key {file} can be read by other users, so it is not secret, and every workspace is look only. Remove "
            "it: then a new one is drawn, and your workspaces become yours again by trainer doctor --adopt."
        )


def _make(folder: Path) -> None:
    """Draw a key and put it in its place at once and whole, unless another process was faster."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "geteuid") and not is_of_another(folder.stat()):
        folder.chmod(0o700)
    draft = f".tmp-{secrets.token_hex(8)}"
    try:
        with confined.open_file(folder, draft, "wb") as file:  # for its owner alone
            file.write(secrets.token_bytes(LENGTH))
            os.fsync(file.fileno())
        confined.give_name(folder, draft, NAME)
    finally:
        confined.remove(folder, draft)


def _trouble(error: OSError) -> NoKey:
    file = path()
    return NoKey(
        f"The key that tells your workspaces from those of others cannot be kept as {file} "
        f"({error.strerror or error}). Without it every workspace is look only and none can be made: allow writing "
        "there, or let XDG_CONFIG_HOME name a folder of yours that stays (in a container, on a volume)."
    )
