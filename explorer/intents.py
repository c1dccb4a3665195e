"""What one part of the window asks of another: frozen dataclasses, so that neither knows the other.

A view emits `View.requested` with an intent. `explorer.window.intent_router` declares who takes each of them: a view,
by `View.carry_out`, or the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from trainer import config
    from trainer.store import SplitKey

EXPORTS: Final[tuple[tuple[str, str], ...]] = (
    ("pdf", "Figure as PDF"),
    ("svg", "Figure as SVG"),
    ("png", "Figure as PNG"),
    ("csv", "Data as CSV"),
    ("parquet", "Data as Parquet"),
)
"""Suffix and label of what every view can be exported as."""


@dataclass(frozen=True)
class ChooseSlots:
    """Ask how many runs train at once."""


@dataclass(frozen=True)
class OpenNewRun:
    """Ask for the configuration of a run that starts then."""


@dataclass(frozen=True)
class TrainCopy:
    """Open the New run form for a copy of a run that trains on other data."""

    run_id: int
    data: config.Data


@dataclass(frozen=True)
class EditAndRestart:
    """Open the New run form for a copy of a run."""

    run_id: int


@dataclass(frozen=True)
class TrainDecoder:
    """Open the New run form for a decoder of a run."""

    run_id: int


@dataclass(frozen=True)
class FineTune:
    """Open the New run form for a run that continues from the weights of another."""

    run_id: int


@dataclass(frozen=True)
class MixRuns:
    """Open the New run form for a run that measures mixes of fine-tuned runs with their base."""

    run_ids: tuple[int, ...]


@dataclass(frozen=True)
class TrainOnImport:
    """Open the New run form for imported data."""

    data: config.Data
    pairs: int | None  # Number of pairs to train on; None where it is unknown.
    image_size: int  # Side of the prepared pictures in pixels.
    captions_repeat: bool  # Whether several pairs have the same caption.
    compare: bool = False  # Whether a CLIP and a CLOOB run are queued instead, without a form.


@dataclass(frozen=True)
class ShowRuns:
    """Select these runs in the table of runs."""

    run_ids: tuple[int, ...]


@dataclass(frozen=True)
class CompareBoth:
    """Open Compare with runs A and B as they are chosen."""


@dataclass(frozen=True)
class ShowExperiment:
    """Open Home with an experiment, by its name; empty: the newest, or the ways to begin where there is none."""

    name: str = ""


@dataclass(frozen=True)
class AddSeeds:
    """Start an experiment of the settings of these two runs, with further seeds, and show it on Home."""

    run_ids: tuple[int, ...]


@dataclass(frozen=True)
class EvaluateBoth:
    """Open Evaluate, which offers data to measure both runs on where they have none in common."""

    key: SplitKey | None = None  # The data on which both were measured, to show their scores; None where there is none.


@dataclass(frozen=True)
class Replay:
    """Make one update of a run again, as run A."""

    run_id: int
    step: int


@dataclass(frozen=True)
class MoveAlong:
    """Move what Decode decodes along a principal direction of the images, counted from 1."""

    direction: int


@dataclass(frozen=True)
class ClassifyPictures:
    """Classify these image files."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class OpenImport:
    """Open the import dialog."""

    path: str = ""  # A folder, table or tar; empty for one to choose.
    compare: bool = False  # Whether a CLIP and a CLOOB run are queued on the data.


@dataclass(frozen=True)
class ChooseModel:
    """Open the dialog for a published model: its name, file or folder; empty for one to choose."""

    model: str = ""


@dataclass(frozen=True)
class OpenSample:
    """Open the two finished runs that come with the application, in a window of their own."""


@dataclass(frozen=True)
class ShowOwnRuns:
    """Bring the window of one's own runs to the front; without one say what a read-only workspace allows."""


@dataclass(frozen=True)
class OpenVectors:
    """Open the dialog for vectors of other programs."""

    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ImportCurves:
    """Open the dialog for curves of other programs."""

    path: Path | None = None


@dataclass(frozen=True)
class WatchTraining:
    """Open the dialog that shows a training of another program as a run: its folder, None for one to choose."""

    path: Path | None = None


@dataclass(frozen=True)
class OpenLink:
    """Show what a link to a view says, or take the file of a `file:` URL as if it were dropped."""

    link: str


@dataclass(frozen=True)
class ExportFigure:
    """Ask how to export what the open view shows, in the format of this suffix first."""

    suffix: str = ""


@dataclass(frozen=True)
class CopyCommand:
    """Copy the command that does without a window what the open view shows."""


@dataclass(frozen=True)
class ShowCharts:
    """Open the gallery of all charts."""


@dataclass(frozen=True)
class ShowMethod:
    """Show formula, paper and caveats of the open view."""


ViewIntent = (
    OpenNewRun
    | ChooseSlots
    | TrainCopy
    | EditAndRestart
    | TrainDecoder
    | FineTune
    | MixRuns
    | TrainOnImport
    | ShowRuns
    | CompareBoth
    | ShowExperiment
    | AddSeeds
    | EvaluateBoth
    | Replay
    | MoveAlong
    | ClassifyPictures
)
"""What a view takes."""
WindowIntent = (
    OpenImport
    | ChooseModel
    | OpenSample
    | ShowOwnRuns
    | OpenVectors
    | ImportCurves
    | WatchTraining
    | OpenLink
    | ExportFigure
    | CopyCommand
    | ShowCharts
    | ShowMethod
)
"""What the window takes."""
Intent = ViewIntent | WindowIntent
