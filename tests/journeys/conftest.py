"""Two real runs on data other than Scenes, stopped at different steps."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image, ImageDraw

from tests.trained_once import folder_of
from trainer.__main__ import main

if TYPE_CHECKING:
    from explorer.window import Window
    from trainer.store import Workspace

COLORS = ("red", "green", "blue", "gold", "purple", "white", "black")
SHAPES = ("circle", "square", "bar", "cross")
SMALL = (
    "data.heldout_share=0.5",
    "model.image_size=32",
    "model.image_width=8",
    "model.text_width=32",
    "model.text_layers=1",
    "model.text_heads=2",
    "model.embed_dim=16",
    "optimizer.batch_size=8",
    "optimizer.learning_rate=3e-3",
    "optimizer.warmup_steps=4",
    "watching.log_every=1",
    "watching.evaluate_every=12",
    "watching.checkpoint_every=12",
    "watching.snapshots=3",
)


@dataclass(frozen=True)
class TwoRuns:
    """A workspace with run 1 (CLIP) and run 2 (CLOOB, with half as many more steps), and the table of their images."""

    workspace: Path
    table: Path
    steps: tuple[int, int]

    @property
    def pictures(self) -> list[Path]:
        """The images of the table, in order."""
        return sorted(self.table.parent.glob("*.png"))


@pytest.fixture(scope="session")
def two_runs(trained_once: Callable[[str, Callable[[Path], object]], Workspace]) -> TwoRuns:
    """Return two runs; a test may add something under its own name."""
    workspace = trained_once("walk", _train)
    steps = tuple(workspace.runs.get(run).step for run in (1, 2))
    workspace.close()
    return TwoRuns(workspace.folder, folder_of(_train, "walk") / "pictures" / "pairs.csv", steps)


def _train(folder: Path) -> None:
    table = _draw_table(folder / "pictures")
    for preset, epochs in (("clip-folder", 6), ("cloob-folder", 9)):
        words = [word for change in (*SMALL, f"optimizer.epochs={epochs}") for word in ("--set", change)]
        words += ["--preset", preset, "--data", str(table), "--workspace", str(folder / "workspace")]
        # Here, where torch is loaded already: test_first_day.py trains by real processes.
        assert main(["fit", *words]) == 0


def _draw_table(folder: Path) -> Path:
    folder.mkdir()
    with (folder / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["filepath", "title", "label"])
        for number, (color, shape, side) in enumerate(product(COLORS, SHAPES, ("left", "right"))):
            name = f"{number:02d}.png"
            _draw(color, shape, side).save(folder / name)
            table.writerow([name, f"a {color} {shape} on the {side}", shape])
    return folder / "pairs.csv"


def _draw(color: str, shape: str, side: str) -> Image.Image:
    picture = Image.linear_gradient("L").resize((48, 32)).convert("RGB")
    draw, x = ImageDraw.Draw(picture), 4 if side == "left" else 24
    if shape == "circle":
        draw.ellipse((x, 6, x + 20, 26), fill=color)
    elif shape == "square":
        draw.rectangle((x, 6, x + 20, 26), fill=color)
    elif shape == "bar":
        draw.rectangle((x, 13, x + 20, 19), fill=color)
    else:
        draw.line((x, 6, x + 20, 26), fill=color, width=4)
        draw.line((x, 26, x + 20, 6), fill=color, width=4)
    return picture


@pytest.fixture(autouse=True, scope="module")
def projections_when_asked(cold_models: Callable[..., None]) -> Iterator[None]:
    """Start no projection process in advance, which would compile UMAP for a minute (test_projection_process.py)."""
    from explorer.model_client.client import ModelClient

    patch, warm_up = pytest.MonkeyPatch(), cold_models
    patch.setattr(
        ModelClient, "warm_up", lambda self, runs=(), *, projections=False: projections or warm_up(self, runs)
    )
    yield
    patch.undo()


def at_work(window: Window) -> bool:
    """Return whether something is computed, or can be cancelled."""
    from PySide6.QtWidgets import QPushButton

    return window.background.busy or any(
        button.text() == "Cancel" and button.isVisible() and button.window() is window
        for button in window.findChildren(QPushButton)
    )


@contextmanager
def opened_window(request: pytest.FixtureRequest, workspace: Path, *, safe: bool = False) -> Iterator[Window]:
    """Provide the real window of a workspace with two runs, once both are known."""
    from pytestqt.qtbot import QtBot

    from tests.real_window import real_window

    with real_window(workspace, safe=safe) as window:
        window.resize(1280, 800)
        QtBot(request).waitUntil(lambda: len(window.services.jobs.runs) == 2)
        yield window
