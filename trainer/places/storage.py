"""Files by name in a folder that several computers see: on a disk, in S3 (`s3://`) or in Google's store (`gs://`).

All by `pyarrow.fs`, which takes keys from where its stores keep them; `AWS_ENDPOINT_URL` names another S3,
`STORAGE_EMULATOR_HOST` an emulator of Google's.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.store import cells

_BLOCK: Final = 8 << 20
_ENDPOINTS: Final = {"s3": "AWS_ENDPOINT_URL", "gs": "STORAGE_EMULATOR_HOST"}
REMOTE: Final = ("s3://", "gs://")


class Storage:
    """A folder in a store; nothing is asked before the first file."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/") if is_remote(address) else os.path.expanduser(address)
        self._opened: tuple[Any, str] | None = None

    @property
    def folder(self) -> Path | None:
        """The folder where it is one of a disk that this computer sees."""
        return None if is_remote(self.address) else Path(self.address)

    def opened(self) -> tuple[Any, str]:
        """Return the file system of pyarrow, and the folder as a path in it.

        Raises:
            OutOfReach: There is none.
        """
        with self._answering() as opened:
            return opened

    def inside(self, name: str) -> Storage:
        """Return a folder in it."""
        return Storage(f"{self.address}/{_checked(name)}")

    def read(self, name: str, most: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileNotFoundError: There is none.
            OutOfReach: The store does not answer.
            PlaceError: It is larger than `most`.
        """
        with self._answering() as (files, root), files.open_input_stream(f"{root}/{_checked(name)}") as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise PlaceError(f"{self.address}/{name} is larger than {most:,} bytes.")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file: a reader sees all of it or none."""
        with self._writing(name) as stream:
            stream.write(content)

    def send(self, source: Path, name: str) -> None:
        """Bring a file of this computer there, whole or not at all."""
        with source.open("rb") as file, self._writing(name) as stream:
            while block := file.read(_BLOCK):
                stream.write(block)

    def fetch(self, name: str, draft: Path) -> None:
        """Write a file there to one here, which the caller has made the place for.

        Raises:
            FileNotFoundError: There is none.
        """
        with (
            self._answering() as (files, root),
            files.open_input_stream(f"{root}/{_checked(name)}") as stream,
            draft.open("wb") as file,
        ):
            while block := stream.read(_BLOCK):
                file.write(block)

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none."""
        with self._answering() as (files, root):
            info = files.get_file_info(f"{root}/{_checked(name)}")
        return int(info.size) if info.is_file else None

    def stamp(self, name: str) -> tuple[int, int] | None:
        """Return bytes and time of the last change of a file; None where there is none."""
        with self._answering() as (files, root):
            info = files.get_file_info(f"{root}/{_checked(name)}")
        return (int(info.size), int(info.mtime_ns or 0)) if info.is_file else None

    def open(self, name: str) -> Any:
        """Return a stream of a file's bytes, which the caller closes.

        Raises:
            FileNotFoundError: There is none.
        """
        with self._answering() as (files, root):
            return files.open_input_stream(f"{root}/{_checked(name)}")

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError), self._answering() as (files, root):
            files.delete_file(f"{root}/{_checked(name)}")

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders with files in a folder, in order; none where there is no folder."""
        # By their files: Google's store lists no folder that was not made as one.
        return sorted({path.split("/")[0] for path in self._files(folder, recursive=True) if "/" in path})

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder, in order; none where there is no folder."""
        return sorted(name for name in self._files(folder) if not name.startswith("."))

    def _files(self, folder: str, *, recursive: bool = False) -> list[str]:
        from pyarrow import fs

        with self._answering() as (files, root):
            folder_path = f"{root}/{_checked(folder)}" if folder else root
            infos = files.get_file_info(fs.FileSelector(folder_path, allow_not_found=True, recursive=recursive))
        return [info.path.removeprefix(f"{folder_path}/") for info in infos if info.is_file]

    def check(self) -> None:
        """Check that files can be written here and read again.

        Raises:
            OutOfReach: They cannot.
        """
        name = f".tmp-{secrets.token_hex(8)}"
        self.write(name, b"?")
        with self._answering() as (files, root):
            files.delete_file(f"{root}/{name}")

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[Any]:
        with self._answering() as (files, root):
            path = f"{root}/{_checked(name)}"
            parent, _, last = path.rpartition("/")
            if self.folder is None:  # an object appears once it is whole
                with files.open_output_stream(path) as stream:
                    yield stream
                return
            files.create_dir(parent, recursive=True)
            draft = f"{parent}/.tmp-{secrets.token_hex(4)}-{last}"
            try:
                with files.open_output_stream(draft) as stream:
                    yield stream
                files.move(draft, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    files.delete_file(draft)
                raise

    @contextlib.contextmanager
    def _answering(self) -> Iterator[tuple[Any, str]]:
        try:
            if self._opened is None:
                self._opened = _open(self.address)
            yield self._opened
        except FileNotFoundError:
            raise
        except OSError as error:
            raise OutOfReach(f"{self.address} does not answer: {str(error)[:300]}.") from error


def is_remote(address: str) -> bool:
    """Return whether an address names an object store and no folder."""
    return address.startswith(REMOTE)


def _open(address: str) -> tuple[Any, str]:
    from pyarrow import fs

    if not is_remote(address):
        return fs.LocalFileSystem(), str(Path(address).absolute())
    scheme, _, rest = address.partition("://")
    endpoint, more = os.environ.get(_ENDPOINTS[scheme], ""), ""
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        more = "?" + urlencode({"endpoint_override": parts.netloc, "scheme": parts.scheme})
        if scheme == "gs":  # an emulator has no keys
            address = f"gs://anonymous@{rest}"
    files, root = fs.FileSystem.from_uri(address + more)
    return files, root.rstrip("/")


def _checked(name: str) -> str:
    parts = PurePosixPath(name).parts
    if not parts or "/".join(parts) != name or not all(cells.is_one_level(part) for part in parts):
        raise PlaceError(f"{name[:100]!r} is not a name in a folder.")
    return name
