"""Runs for Python users: their curves, numbers, snapshots and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, UInt8

from trainer import config
from trainer.api.frames import frame, frame_of_rows
from trainer.images import UnreadableImage
from trainer.store import RunRow, Workspace

if TYPE_CHECKING:
    import pandas as pd
    from PIL import Image

    from trainer.inference.open_model import OpenModel


@dataclass(frozen=True)
class SnapshotArrays:
    """The stored embeddings of one split at one step; row i of every member is pair i.

    Attributes:
        step: Updates that the model had seen.
        dataset, split: Of the pairs.
        image: Unit image embeddings, a read-only memory map; None for a run without images.
        text: Unit text embeddings, a read-only memory map; None for a run without texts.
        items: One row per pair: id, path, caption, label, split, and the data set's own columns.
    """

    step: int
    dataset: str
    split: str
    image: Float[np.ndarray, "n d"] | None = field(repr=False)
    text: Float[np.ndarray, "n d"] | None = field(repr=False)
    items: pd.DataFrame = field(repr=False)


class RunModel:
    """The towers of a run at a checkpoint, for inference.

    Attributes:
        step: Updates that the model has seen.
        image_size: Side of its input images, in pixels.
        context_length: Tokens of the longest text; longer ones are truncated.
    """

    def __init__(self, opened: OpenModel) -> None:
        self._opened = opened
        self.step = opened.step
        self.image_size = opened.image_size
        self.context_length = opened.context_length

    def encode_image(
        self, images: Sequence[str | Path | Image.Image | UInt8[np.ndarray, "h w 3"]]
    ) -> Float[np.ndarray, "n d"]:
        """Return unit float32 embeddings, row i of the i-th image.

        Args:
            images: Paths of image files, Pillow images, or RGB arrays of uint8.

        Raises:
            UnreadableImage: An image cannot be read; the message names it.
            ModelError: The run has no image tower.
        """
        from trainer.inference.batches import AT_ONCE

        parts = [self._encode_some(images[at : at + AT_ONCE]) for at in range(0, len(images), AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def encode_text(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return unit float32 embeddings, row i of the i-th text.

        Raises:
            TypeError: A single string is given.
            ModelError: The run has no text tower.

        >>> from trainer import api as ce
        >>> model = ce.workspace("runs").run("squares").model()
        >>> model.encode_text(["a red square", "a blue square"]).shape
        (2, 16)
        """
        from trainer.inference.embed import embed_sentences

        if isinstance(texts, str):
            raise TypeError("encode_text takes a list of texts, not one string: encode_text([text]).")
        return embed_sentences(self._opened, texts)

    def _encode_some(self, images: Sequence[Any]) -> Float[np.ndarray, "n d"]:
        from trainer.images import read_pictures

        size, preprocessing = self._opened.image_size, self._opened.file_preprocessing
        paths = [str(image) for image in images if isinstance(image, str | Path)]
        pixels, decoded = read_pictures(paths, size, preprocessing) if paths else (np.zeros((0, size, size, 3)), [])
        for path, picture in zip(paths, decoded, strict=True):
            if picture.reason:
                raise UnreadableImage(f"{path}: {picture.reason}")
        read = iter(pixels)
        rows = [next(read) if isinstance(image, str | Path) else self._pixels(image) for image in images]
        return self._opened.embed_images(np.stack(rows).astype(np.uint8))

    def _pixels(self, image: Image.Image | np.ndarray) -> UInt8[np.ndarray, "s s 3"]:
        from PIL import Image

        from trainer.images import pixels_of

        if isinstance(image, np.ndarray):
            if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
                raise UnreadableImage(
                    f"An image array must be uint8 with shape (height, width, 3), not {image.dtype} {image.shape}."
                )
            image = Image.fromarray(image)
        return pixels_of(image, self._opened.image_size, self._opened.file_preprocessing)


@dataclass(frozen=True)
class RunHandle:
    """A run of a workspace; reads the store on every call, so that it is never stale.

    Attributes:
        store: The workspace that it is in.
        id: Its number.
    """

    store: Workspace
    id: int

    def __repr__(self) -> str:
        row = self.row
        return f"<run {row.id} {row.name!r}: {row.objective}, {row.status}, step {row.step} of {row.total_steps}>"

    @property
    def row(self) -> RunRow:
        """The run's row in the table of runs."""
        return self.store.runs.get(self.id)

    @property
    def name(self) -> str:
        """The run's name."""
        return self.row.name

    @property
    def config(self) -> config.Run:
        """The run's configuration, a frozen dataclass."""
        return self.store.runs.config_of(self.id)

    def curves(self) -> pd.DataFrame:
        """Return every logged number: columns `step`, `seconds` of training without pauses, and one per metric.

        A metric that was not logged at a step is NaN there. Rates are shares in [0, 1].

        Raises:
            MissingPandas: pandas is not installed.

        >>> from trainer import api as ce
        >>> curves = ce.workspace("runs").run("squares").curves()
        >>> int(curves["step"].max()), bool(curves["val/image_to_text_R@1"].dropna().between(0, 1).all())
        (8, True)
        """
        results = self.store.results
        series = {name: results.series(self.id, name) for name in results.scalar_names(self.id)}
        steps = np.unique(np.concatenate([steps for steps, _, _ in series.values()] or [np.zeros(0, np.int64)]))
        seconds = np.full(len(steps), np.nan)
        columns: dict[str, Any] = {"step": steps, "seconds": seconds}
        for name, (at, values, elapsed) in series.items():
            rows = np.searchsorted(steps, at)
            columns[name] = np.full(len(steps), np.nan)
            columns[name][rows], seconds[rows] = values, elapsed
        return frame(columns)

    def evaluations(self) -> pd.DataFrame:
        """Return the results of `trainer evaluate`: one row per metric with its question.

        Columns: `step`, `dataset`, `split`, `question` (n, classes, templates, gallery), `metric`, `value`.

        Raises:
            MissingPandas: pandas is not installed.
        """
        rows = [
            (record.step, record.dataset, record.split, record.question.words() if record.question else "", name, value)
            for record in self.store.results.answers(self.id)
            for name, value in sorted(record.metrics.items())
        ]
        return frame_of_rows(("step", "dataset", "split", "question", "metric", "value"), rows)

    def snapshot(
        self, step: int | None = None, *, dataset: str | None = None, split: str | None = None
    ) -> SnapshotArrays:
        """Return the stored embeddings at a step; None selects the last step and the preferred held-out split.

        Raises:
            ChartError: There is no such snapshot; names those there are.
            MissingPandas: pandas is not installed.

        >>> from trainer import api as ce
        >>> found = ce.workspace("runs").run("squares").snapshot()
        >>> found.image.shape, found.split, list(found.items.columns)[:3]
        ((7, 16), 'heldout', ['id', 'path', 'caption'])
        """
        from trainer.charts.snapshots import choose_snapshot
        from trainer.store import read_snapshot

        stored = read_snapshot(choose_snapshot(self.store, self.row, step=step, dataset=dataset, split=split).folder)
        items = stored.items
        plain = {name: getattr(items, name) for name in ("id", "path", "caption", "label", "split")}
        more = {name: values for name, values in items.metadata.items() if name not in plain}
        return SnapshotArrays(stored.step, stored.dataset, stored.split, stored.image, stored.text, frame(plain | more))

    def model(self, step: int | None = None, *, device: str = "auto") -> RunModel:
        """Return the model at a checkpoint; None selects the newest.

        Args:
            step: Of the checkpoint.
            device: `auto`, `cpu`, `cuda` or `mps`.

        Raises:
            CheckpointError: There is no such checkpoint, or it is damaged.
            UserError: There is no such device.
        """
        from trainer.inference.open_model import open_run

        return RunModel(open_run(self.store, self.id, step, on=device))

    def resume(self) -> RunHandle:
        """Resume training from the newest checkpoint to the end, in this process; return the run.

        Raises:
            FitError: Training cannot continue.
        """
        from trainer.training.fit import fit as train

        train(self.store, self.id)
        return self
