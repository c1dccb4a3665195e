"""Different names of the same pairs, such as a run's held-out split evaluated under the data set's name.

A split is known by what is in it: by the hash of its images, captions and labels, or, of evaluations that were stored
without one, by the places of its images and the number of its captions. Counted twice it would be tested twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from trainer.store import RunRow, SnapshotRow, StoreError, Workspace, read_snapshot
from trainer.store.task_records import evaluation_folder, read_tasks
from trainer.untrusted import files as untrusted_files

Key = tuple[str, str]
"""Data set and split."""
_CONTENT: Final = "content "
_PLACES: Final = "places "


class SameSplits(Struct, frozen=True):
    """Split name -> the one of its names to show; a missing name is shown as is."""

    names: Mapping[Key, Key]

    def shown(self, dataset: str, split: str) -> Key:
        """Return the name under which this split is shown."""
        return self.names.get((dataset, split), (dataset, split))

    def also(self, key: Key) -> tuple[Key, ...]:
        """Return the other names of a split shown as `key`."""
        return tuple(name for name, group_name in self.names.items() if group_name == key != name)

    def asked(self, dataset: str | None, split: str | None) -> list[Key]:
        """Return the shown names that match a request; None matches everything."""
        fitting = [name for name in self.names if dataset in (None, name[0]) and split in (None, name[1])]
        return list(dict.fromkeys(self.names[name] for name in fitting))


def same_splits(workspace: Workspace, rows: Sequence[RunRow]) -> SameSplits:
    """Return all evaluated splits of the runs, under the name that most of them used."""
    counts: Counter[Key] = Counter()
    answered: Counter[Key] = Counter()
    folders: dict[Key, list[Path]] = {}
    snapshots: dict[Key, list[SnapshotRow]] = {}
    for row in rows:
        last = {(each.dataset, each.split): each.step for each in workspace.results.evaluations(row.id)}
        counts.update(last.keys())
        for key, step in last.items():
            if (folder := evaluation_folder(row.folder, *key, step)).is_dir():
                folders.setdefault(key, []).append(folder)
                answered[key] += 1
        for snapshot in workspace.results.snapshots(row.id):
            snapshots.setdefault((snapshot.dataset, snapshot.split), []).append(snapshot)
    keys = list(counts)
    if len(keys) < 2:
        return SameSplits({key: key for key in keys})
    marks: dict[Key, frozenset[str]] = {}
    for key in keys:
        of_tasks = (_task_marks(folder, _changed(folder)) for folder in folders.get(key, ()))
        marks[key] = _clear(_of_snapshots(snapshots.get(key, ())).union(*of_tasks))
    names: dict[Key, Key] = {}
    for group in _joined(keys, marks):
        # The answers to every sample lie under one name only, and "train heldout" says less than "emoji-pairs val".
        first = max(group, key=lambda key: (answered[key], counts[key], key[0] != "train", key))
        names |= dict.fromkeys(group, first)
    return SameSplits({key: names[key] for key in keys})


def _joined(keys: Sequence[Key], marks: Mapping[Key, frozenset[str]]) -> list[list[Key]]:
    """Group names that share a mark, directly or through others."""
    groups: list[tuple[list[Key], frozenset[str]]] = []
    for key in keys:
        shared, members, others = marks[key], [key], []
        for group in groups:
            if shared & group[1]:
                members, shared = [*group[0], *members], shared | group[1]
            else:
                others.append(group)
        groups = [*others, (members, shared)]
    return [members for members, _ in groups]


def _clear(marks: frozenset[str]) -> frozenset[str]:
    """Return the unambiguous marks of a name; `train heldout` may belong to different data sets."""
    locations = [mark for mark in marks if mark.startswith(_PLACES)]
    # The same pairs at two sizes have two hashes, but lie in one place.
    return marks if len(locations or marks) == 1 else frozenset()


@lru_cache(maxsize=1024)
def _task_marks(folder: Path, _changed: int) -> frozenset[str]:
    records = list(read_tasks(folder).values())
    marks = {f"{_CONTENT}{record.details['fingerprint']}" for record in records if record.details.get("fingerprint")}
    complete = (record for record in records if record.task == "retrieval" and record.n == record.whole)
    comparable = (record for record in complete if "captions" in record.details and "path" in record.arrays)
    return frozenset(
        marks | {_placed(record.arrays["path"].tolist(), int(record.details["captions"])) for record in comparable}
    )


def _of_snapshots(rows: Iterable[SnapshotRow]) -> frozenset[str]:
    """Return each content once; a run has snapshots of the same pairs at many steps."""
    marks: dict[str, str] = {}
    for row in rows:
        card = row.folder / "snapshot.json"
        content, sampled = _card(card, _changed(card))
        if content and not sampled and content not in marks:
            marks[content] = _places_of(row.folder, _changed(card))
    return frozenset([*(f"{_CONTENT}{content}" for content in marks), *filter(None, marks.values())])


def _changed(path: Path) -> int:
    """Return the modification time; 0 if the file does not exist."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4096)
def _card(file: Path, _changed: int) -> tuple[str, bool]:
    """Return the hash of the content ("" if unknown), and whether it is a sample."""
    try:
        card = untrusted_files.read_record(file)
        return str(card.get("fingerprint", "")), bool(card.get("sampled", False))
    except (OSError, ValueError, AttributeError):
        return "", True


@lru_cache(maxsize=256)
def _places_of(folder: Path, _changed: int) -> str:
    try:
        items = read_snapshot(folder).items
    except StoreError:
        return ""
    return _placed(list(items.path), len(set(items.caption)))


def _placed(paths: Sequence[str], captions: int) -> str:
    digest = hashlib.blake2b(f"{captions}".encode(), digest_size=16)
    for path in sorted(paths):
        digest.update(b"\0" + path.encode("utf-8", "surrogateescape"))
    return f"{_PLACES}{digest.hexdigest()}"
