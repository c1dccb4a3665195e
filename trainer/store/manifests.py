"""`manifest.json`: size and SHA-256 of every file in a folder, to detect flipped bits."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trainer.store import ownership
from trainer.store.owner_key import NoKey
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.headers import check_filled

NAME: Final = "manifest.json"
_FORMAT: Final = 2
_OWN: Final = "sha256"
_SEAL: Final = "seal"


def write_manifest(
    draft: Path, facts: Mapping[str, Any], *, sealed: bool = False, digests: Mapping[str, str] | None = None
) -> None:
    """Describe all files in the folder, together with `facts`; to be called after writing them.

    Args:
        draft: Where they are: a folder that `write_atomically` puts into its place.
        facts: Plain values.
        sealed: Say that this user wrote them, in words that no other can make (see `ownership.seal`).
        digests: SHA-256 of files that were computed as they were written: a gigabyte takes a second to read again.
    """
    files = {path.name: _described(path, (digests or {}).get(path.name, "")) for path in sorted(draft.iterdir())}
    document = {"format": _FORMAT, **facts, "files": files}
    if sealed:
        with contextlib.suppress(NoKey):  # then they are read as a stranger's are
            document |= {_SEAL: ownership.seal(_sealed_words(files))}
    document |= {_OWN: digest_of(document)}
    (draft / NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def verified(folder: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return the manifest of a folder after verifying its files, or those of them that are named.

    Raises:
        OSError: A file is missing.
        ValueError: A file is not what was written, or a name leads out of the folder; the message says which.
        KeyError: The manifest lacks one of `names`.
    """
    try:
        document = untrusted_files.read_json(folder / NAME)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        raise ValueError(f"{NAME} is not what was saved")
    stored_digest = document.pop(_OWN, None)
    try:
        digest = digest_of(document)
    except RecursionError as error:
        raise ValueError(f"{NAME} is not what was saved") from error
    if stored_digest != digest:
        raise ValueError(f"{NAME} is not what was saved")
    for name in names or document["files"]:
        if not _is_as_described(folder, name, document["files"][name]):
            raise ValueError(f"{untrusted_files.spelled(name)} is not what was saved")
    return document


def is_sealed(manifest: Mapping[str, Any]) -> bool:
    """Return whether this user wrote the files of a verified manifest."""
    return ownership.is_seal(manifest.get(_SEAL), _sealed_words(manifest["files"]))


def _sealed_words(files: Mapping[str, Any]) -> str:
    return json.dumps(files, sort_keys=True)


def sha256_in(folder: Path, name: str) -> str:
    """Return the SHA-256 of a file in a folder.

    Raises:
        OSError: There is no ordinary file of that name.
    """
    path = confined.inside(folder, name)
    untrusted_files.check_ordinary(path)
    return str(_described(path)["sha256"])


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON document, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _is_as_described(folder: Path, name: str, described: Any) -> bool:
    """Return whether a file matches an untrusted manifest; with another size, it is not read."""
    path = confined.inside(folder, name)
    untrusted_files.check_ordinary(path)
    if not isinstance(described, dict) or described.get("bytes") != path.stat().st_size:
        return False
    check_filled(path)
    return _described(path) == described


def _described(path: Path, sha256: str = "") -> dict[str, Any]:
    digest = hashlib.sha256()
    for block in () if sha256 else _blocks(path):
        digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": sha256 or digest.hexdigest()}


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
