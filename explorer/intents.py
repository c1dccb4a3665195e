"""What one part of the window asks of another: frozen values, so that neither knows the other.

A view emits `View.requested` with an intent. `explorer.window.intent_router` declares who takes each of them: a view,
by `View.carry_out`, or the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

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


class ChooseSlots(Struct, frozen=True):
    """Ask how many runs train at once."""


class OpenNewRun(Struct, frozen=True):
    """Ask for the configuration of a run that starts then."""


class TrainCopy(Struct, frozen=True):
    """Open the New run form for a copy of a run that trains on other data."""

    run_id: int
    data: config.Data


class EditAndRestart(Struct, frozen=True):
    """Open the New run form for a copy of a run."""

    run_id: int


class TrainLonger(Struct, frozen=True):
    """Open the New run form for a copy of a run with as many steps as suit its pairs."""

    run_id: int


class TrainDecoder(Struct, frozen=True):
    """Open the New run form for a decoder of a run."""

    run_id: int


class FineTune(Struct, frozen=True):
    """Open the New run form for a run that continues from the weights of another."""

    run_id: int


class MixRuns(Struct, frozen=True):
    """Open the New run form for a run that measures mixes of fine-tuned runs with their base."""

    run_ids: tuple[int, ...]


class TrainOnImport(Struct, frozen=True):
    """Open the New run form for imported data."""

    data: config.Data
    pairs: int | None  # Number of pairs to train on; None where it is unknown.
    image_size: int  # Side of the prepared pictures in pixels.
    captions_repeat: bool  # Whether several pairs have the same caption.


class TrainBoth(Struct, frozen=True):
    """Start an experiment of CLIP and CLOOB, and show it on Home."""

    run: config.Run  # The configuration of both but for the objective.
    seeds: int  # Of each.


class ShowRuns(Struct, frozen=True):
    """Select these runs in the table of runs."""

    run_ids: tuple[int, ...]


class CompareBoth(Struct, frozen=True):
    """Open Compare with runs A and B as they are chosen."""


class ShowExperiment(Struct, frozen=True):
    """Open Home with an experiment, by its name; empty: the newest, or the ways to begin where there is none."""

    name: str = ""


class AddSeeds(Struct, frozen=True):
    """Start an experiment of the settings of these two runs, with further seeds, and show it on Home."""

    run_ids: tuple[int, ...]


class EvaluateBoth(Struct, frozen=True):
    """Open Evaluate, which offers data to measure both runs on where they have none in common."""

    key: SplitKey | None = None  # The data on which both were measured, to show their scores; None where there is none.


class Replay(Struct, frozen=True):
    """Make one update of a run again, as run A."""

    run_id: int
    step: int


class MoveAlong(Struct, frozen=True):
    """Move what Decode decodes along a principal direction of the images, counted from 1."""

    direction: int


class ClassifyPictures(Struct, frozen=True):
    """Classify these image files."""

    paths: tuple[Path, ...]


class OpenImport(Struct, frozen=True):
    """Open the import dialog."""

    path: str = ""  # A folder, table or tar; empty for one to choose.
    compare: bool = False  # Whether a CLIP and a CLOOB run are queued on the data.
    more_pairs: tuple[int, int] | None = None  # Held-out pairs of an experiment, and how many would be enough.


class ChooseModel(Struct, frozen=True):
    """Open the dialog for a published model: its name, file or folder; empty for one to choose."""

    model: str = ""


class OpenSample(Struct, frozen=True):
    """Open the two finished runs that come with the application, in a window of their own."""


class ShowOwnRuns(Struct, frozen=True):
    """Bring the window of one's own runs to the front; without one say what a read-only workspace allows."""


class OpenVectors(Struct, frozen=True):
    """Open the dialog for vectors of other programs."""

    paths: tuple[Path, ...] = ()


class ImportCurves(Struct, frozen=True):
    """Open the dialog for curves of other programs."""

    path: Path | None = None


class WatchTraining(Struct, frozen=True):
    """Open the dialog that shows a training of another program as a run: its folder, None for one to choose."""

    path: Path | str | None = None


class OpenLink(Struct, frozen=True):
    """Show what a link to a view says, or take the file of a `file:` URL as if it were dropped."""

    link: str


class ExportFigure(Struct, frozen=True):
    """Ask how to export what the open view shows, in the format of this suffix first."""

    suffix: str = ""


class CopyCommand(Struct, frozen=True):
    """Copy the command that does without a window what the open view shows."""


class ShowCharts(Struct, frozen=True):
    """Open the gallery of all charts."""


class ChooseRun(Struct, frozen=True):
    """Open the list of the bar that chooses run A."""


class ShowControls(Struct, frozen=True):
    """Open the further controls of the open view, behind the bar's `...`."""


class ShowMethod(Struct, frozen=True):
    """Show formula, paper and caveats of the open view."""


ViewIntent = (
    OpenNewRun
    | ChooseSlots
    | TrainCopy
    | EditAndRestart
    | TrainLonger
    | TrainDecoder
    | FineTune
    | MixRuns
    | TrainOnImport
    | TrainBoth
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
    | ChooseRun
    | ShowControls
    | ShowMethod
)
"""What the window takes."""
Intent = ViewIntent | WindowIntent
