"""Probes: pictures and sentences asked in every run at every snapshot; pinned ones are kept in the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from trainer.errors import UserError
from trainer.store import Workspace
from trainer.store.snapshot_files import Items

KEY: Final = "probes"
"""Setting of the workspace: a list of kind and value."""
MOST: Final = 10
MOST_LETTERS: Final = 4_000


class PinnedProbe(Struct, frozen=True):
    """A picture or a sentence."""

    kind: Literal["image", "text"]  # Which of them.
    value: str  # The file of the picture as the data name it, or the sentence.

    @property
    def words(self) -> str:
        """It in a title."""
        return f"“{self.value}”" if self.kind == "text" else Path(self.value.rpartition("::")[2]).name

    def row_in(self, items: Items) -> int:
        """Return the first row of the data that has it; -1 where none has."""
        among = items.caption if self.kind == "text" else items.path
        return next((row for row, value in enumerate(among) if value == self.value), -1)


def pinned(workspace: Workspace) -> tuple[PinnedProbe, ...]:
    """Return the pinned probes; what somebody else wrote into the setting and is none is left out."""
    try:
        stored = workspace.setting(KEY, [])
    except ValueError:
        return ()
    pairs = (
        entry for entry in (stored if isinstance(stored, list) else []) if isinstance(entry, list) and len(entry) == 2
    )
    sound = (PinnedProbe(kind, value) for kind, value in pairs if kind in ("image", "text") and isinstance(value, str))
    return tuple(dict.fromkeys(probe for probe in sound if 0 < len(probe.value) <= MOST_LETTERS))[:MOST]


def pin(workspace: Workspace, probes: Sequence[PinnedProbe]) -> tuple[PinnedProbe, ...]:
    """Add probes to the pinned ones, and return all.

    Raises:
        UserError: There would be more than `MOST`.
        StoreError: The workspace is look only.
    """
    all_probes = tuple(dict.fromkeys((*pinned(workspace), *probes)))
    if len(all_probes) > MOST:
        raise UserError(f"At most {MOST} probes can be pinned. Remove one in Probe strip first.")
    return keep(workspace, all_probes)


def keep(workspace: Workspace, probes: Sequence[PinnedProbe]) -> tuple[PinnedProbe, ...]:
    """Pin exactly these, in this order, and return them."""
    workspace.set_setting(KEY, [[probe.kind, probe.value] for probe in probes])
    return tuple(probes)
