"""Download files of published models once; an interrupted download resumes."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from trainer.analysis.progress import Progress
from trainer.pretrained.errors import PretrainedError
from trainer.store.files import make_folders
from trainer.untrusted import confined
from trainer.untrusted.files import refusal_of_downloads

_BLOCK: Final = 1 << 18
_TIMEOUT_S: Final = 20.0
_TELL_S: Final = 0.2
_SPARE: Final = 64 * 2**20
_HUB: Final = "https://huggingface.co"
_NOTHING_LEFT: Final = 416
"""Answer to a request for what is past the end of a file."""
_BROKEN: Final = (TimeoutError, ConnectionError, http.client.HTTPException)
"""What a connection raises that ends before its answer does."""


class MissingDownload(PretrainedError):
    """The repository exists, but the file does not."""


class LockedDownload(MissingDownload):
    """The file requires access rights."""


def hub_file(repository: str, names: tuple[str, ...], *, cache: Path, progress: Progress) -> Path:
    """Return the first existing file of a Hugging Face repository, from a cache if downloaded before.

    Raises:
        PretrainedError: None is there, or the hub cannot be reached.
    """
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", repository) or ".." in repository:
        raise PretrainedError(f"{repository!r} is not a Hugging Face repository name: write OWNER/NAME.")
    for name in names:
        if (cached := _in_hub_cache(repository, name)) is not None:
            return cached
    folder = cache / "models" / repository.replace("/", "--")
    endpoint = os.environ.get("HF_ENDPOINT", _HUB).rstrip("/")
    locked = False
    for name in names:
        try:
            return fetch(f"{endpoint}/{repository}/resolve/main/{name}", folder / name, progress)
        except MissingDownload as error:
            locked = locked or isinstance(error, LockedDownload)
    if locked:
        raise PretrainedError(
            f"{repository} is not public on the Hugging Face hub, or there is no such name: it requires a login. Check "
            "the name; or download it with your own account, and open its folder: local-dir:FOLDER."
        )
    raise PretrainedError(f"{repository} on the Hugging Face hub has none of {', '.join(names)}. Check the name.")


def fetch(url: str, file: Path, progress: Progress, *, sha256: str = "") -> Path:
    """Return the file of a URL, downloaded unless it exists; an exception from `progress` ends the download.

    A connection that breaks after it brought something is made again at once.

    Args:
        url: http or https.
        file: Where it is kept; while it arrives it is called `.part`.
        progress: Told the share and how much has arrived.
        sha256: What the digest begins with; empty if it is not known.

    Raises:
        MissingDownload: There is nothing at that address, or nothing for everybody (`LockedDownload`).
        PretrainedError: It cannot be reached, the disk is full, or what arrived is damaged.
    """
    if file.is_file():
        return file
    if not url.startswith(("http://", "https://")):
        raise PretrainedError(f"{url} is not a URL.")
    if refusal := refusal_of_downloads():
        raise PretrainedError(refusal)
    make_folders(file.parent)
    part = file.with_name(f"{file.name}.part")
    try:
        while not _fetch_rest(url, part, file.name, progress):
            pass
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise LockedDownload(f"{url} is not public: it requires a login (answer {error.code}).") from error
        if error.code in (404, 410):
            raise MissingDownload(f"{url} is not there (answer {error.code}). Check the name.") from error
        raise _unreachable(url, f"the answer is {error.code}", part) from error
    except (urllib.error.URLError, *_BROKEN) as error:
        reason = getattr(error, "reason", error)
        # What the resolver says, `[Errno -2] Name or service not known`, helps nobody.
        why = "no connection" if isinstance(reason, socket.gaierror) else getattr(reason, "strerror", "") or reason
        raise _unreachable(url, str(why), part) from error
    except OSError as error:
        raise PretrainedError(
            f"{file.name} cannot be written to {file.parent}: {error.strerror or error}. Free some space or choose "
            "another --workspace."
        ) from error
    if sha256 and not _digest(part).startswith(sha256):
        confined.remove(part.parent, part.name)
        raise PretrainedError(f"{file.name} arrived damaged from {url}: its SHA-256 is another. Start it again.")
    confined.replace(file.parent, part.name, file.name)
    return file


def _fetch_rest(url: str, part: Path, name: str, progress: Progress) -> bool:
    """Download what is missing; return False if the connection broke after it brought more than there was."""
    begun = _size(part)
    try:
        _download(url, part, name, progress, begun)
    except _BROKEN:
        if _size(part) <= begun:
            raise
        return False
    return True


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _download(url: str, part: Path, name: str, progress: Progress, begun: int) -> None:
    try:
        _go_on(url, part, name, begun, progress)
    except urllib.error.HTTPError as error:
        if error.code != _NOTHING_LEFT or not begun:
            raise
        # Cancelled between its last byte and its name, it is whole; or it is another file now.
        if error.headers.get("Content-Range") != f"bytes */{begun}":
            confined.remove(part.parent, part.name)
            _go_on(url, part, name, 0, progress)


def _go_on(url: str, part: Path, name: str, begun: int, progress: Progress) -> None:
    """Append the missing bytes to `part`, which has `begun` of them."""
    request = urllib.request.Request(url, headers={"User-Agent": "contrastive-explorer"})
    if begun:
        request.add_header("Range", f"bytes={begun}-")
    progress(0.0, f"Requesting {name}")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        if answer.status != 206:
            begun = 0
        total = 0 if answer.length is None else begun + answer.length
        room = shutil.disk_usage(part.parent).free + begun - _SPARE
        if total > room:
            raise PretrainedError(
                f"{name} has {total / 1e6:,.0f} MB, and {part.parent} has not as much free. Free some space."
            )
        opened = confined.open_file(part.parent, part.name, "ab" if begun else "wb")
        with io.BufferedWriter(opened) as file:  # type: ignore[type-var]
            done, reported = begun, 0.0
            # What has arrived, and no more: a server that sends a byte at a time can be cancelled, too.
            while block := answer.read1(_BLOCK):
                done += len(block)
                if done > room:  # it did not say how much it has, and may have no end
                    confined.remove(part.parent, part.name)
                    raise PretrainedError(
                        f"{name} has more than {room / 1e6:,.0f} MB, and {part.parent} has not as much free. Free some "
                        "space, or check the name: what has arrived was removed."
                    )
                file.write(block)
                if time.monotonic() - reported >= _TELL_S or done == total:
                    reported = time.monotonic()
                    of = f" of {total / 1e6:,.0f}" if total else ""
                    progress(done / total if total else 0.0, f"Downloading {name}: {done / 1e6:,.0f}{of} MB")
    if total and done < total:
        raise ConnectionError(f"it ended after {done / 1e6:,.1f} of {total / 1e6:,.1f} MB")


def _unreachable(url: str, why: str, part: Path) -> PretrainedError:
    host = url.split("/")[2]
    hint = " What has arrived is kept, and the next try continues." if _size(part) else ""
    return PretrainedError(
        f"{host} cannot be reached: {why}.{hint} Check the network; or get the model's folder on another computer and "
        "open it from there: local-dir:FOLDER."
    )


def _in_hub_cache(repository: str, name: str) -> Path | None:
    """Return a file that another program has downloaded from the hub."""
    try:
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(repository, name)
    except Exception:  # a cache of another version is no reason to stop
        return None
    return Path(path) if isinstance(path, str) else None


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
