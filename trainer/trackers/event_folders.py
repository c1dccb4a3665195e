"""Join the folders in which a writer of TensorBoard puts parts of one run.

`SummaryWriter.add_scalars(main, {key: value})` of torch writes the tag `main` into the folder `main_key` next to its
own events (`main/key` in tensorboardX); `add_hparams` writes settings and last numbers into a folder that is called by
the time. TensorBoard shows each as a run of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from trainer.trackers.curves import Curves


def join_parts(curves: Curves, folders: Collection[str]) -> None:
    """Make what those two calls wrote curves and settings of the run of their writer, and note it there.

    Args:
        curves: Their runs are the folders, named from the one that is imported.
        folders: All that have event files.
    """
    joined: defaultdict[str, list[str]] = defaultdict(list)
    for folder in sorted(curves.runs, key=len, reverse=True):
        if (part := _scalars_part(folder, curves.runs[folder], folders)) is not None:
            parent, tag, key = part
            if (name := f"{tag}/{key}") not in curves.runs.get(parent, {}):
                curves.runs.setdefault(parent, {})[name] = curves.runs.pop(folder)[tag]
                joined[parent].append(folder)
    for parent, sessions in _sessions(curves.settings, folders).items():
        curves.settings[parent] = curves.settings[sessions[0]]
        for folder in sessions:
            del curves.settings[folder]
            _join_session(curves, parent, folder)
            joined[parent].append(folder)
    for parent, parts in joined.items():
        if parent in curves.runs:
            many = f"{len(parts)} folders" if len(parts) > 1 else "One folder"
            curves.note(
                parent, f"{many} that add_scalars or add_hparams wrote next to the run joined it, as its curves."
            )


def _scalars_part(folder: str, tags: Mapping[str, object], folders: Collection[str]) -> tuple[str, str, str] | None:
    """Return run, tag and key of a folder of `add_scalars`: it has one tag, whose name begins its own."""
    if len(tags) != 1:
        return None
    (tag,) = tags
    parents = [folder[:end] for end, sign in enumerate(folder) if sign == "/"][::-1] + ([""] if folder else [])
    for parent in parents:
        if parent in folders:
            name = folder[len(parent) :].removeprefix("/")
            for begin in (f"{tag.replace('/', '_')}_", f"{tag}/"):
                if name.startswith(begin) and len(name) > len(begin):
                    return parent, tag, name[len(begin) :]
            return None
    return None


def _sessions(settings: Mapping[str, dict[str, str]], folders: Collection[str]) -> dict[str, list[str]]:
    """Return run -> its folders of settings; several are those of one run only where they say the same."""
    sessions: defaultdict[str, list[str]] = defaultdict(list)
    for folder in sorted(settings):
        parent = folder.rpartition("/")[0]
        if folder and parent in folders and parent not in settings:
            sessions[parent].append(folder)
    return {
        run: parts for run, parts in sessions.items() if all(settings[part] == settings[parts[0]] for part in parts)
    }


def _join_session(curves: Curves, parent: str, folder: str) -> None:
    target = curves.runs.setdefault(parent, {})
    for name, curve in curves.runs.pop(folder, {}).items():
        chosen = f"hparams/{name}" if name in target else name
        if chosen in target:
            for step, (time, value) in curve.points.items():
                target[chosen].add(step, time, value)
        else:
            target[chosen] = curve
