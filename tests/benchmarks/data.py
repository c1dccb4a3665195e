"""Loading speed of pairs in training: the prepared cache against decoding each image again, as open_clip does."""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from trainer import config, data, methods
from trainer.config import default_paths, presets
from trainer.data import Pairs
from trainer.data.augment import random_crops
from trainer.data.batch_stream import BatchStream
from trainer.data.order import batches
from trainer.data.prepared import Loading
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.format_detection import recognize
from trainer.images import open_image
from trainer.store import Workspace
from trainer.training.session import TrainingSession


@dataclass(frozen=True)
class DataSpeed:
    """One data set, measured in one process.

    Attributes:
        pairs: Training pairs.
        prepare_s: Seconds to decode them all into the cache, once.
        ours: Pairs a second of the loader alone: gathered from the cache, cropped, normalized.
        streamed: Pairs a second of our loader where the cache does not fit: decoded by worker processes, then the same.
        theirs: Pairs a second of decoding and transforming each image in worker processes.
        train_ours: Pairs a second of whole training steps from the cache.
        train_theirs: Pairs a second of the same steps fed by the worker processes.
        wait: Share of our step that waits for its batch.
        wait_theirs: The same of the steps fed by the worker processes.
    """

    name: str
    pairs: int
    image_size: int
    batch_size: int
    workers: int
    prepare_s: float
    ours: float
    streamed: float
    theirs: float
    train_ours: float
    train_theirs: float
    wait: float
    wait_theirs: float

    @property
    def ratio(self) -> float:
        """The speed of our loader relative to open_clip's."""
        return self.ours / self.theirs


def measure(run: config.Run, workspace_folder: Path, *, workers: int, seconds: float) -> DataSpeed:
    """Load and train for about `seconds` each way, with the run's own model.

    Args:
        run: Data, model, objective and batch size.
        workspace_folder: Holds the cache.
        workers: Processes that decode for the other way and for streaming; the cache needs none.
        seconds: For each of the five measurements, after a warm-up.

    Raises:
        Problem: The data cannot be used.
    """
    began = time.perf_counter()
    size, batch = run.model.image_size, run.optimizer.batch_size
    pairs = _pairs(run, workspace_folder, "prepared")
    prepare_s = time.perf_counter() - began
    tokenizer = train_tokenizer(pairs.captions, run.model.vocabulary)
    loader = _loader(pairs, tokenizer, run, workers)
    ours = _rate(_cached(pairs, run), batch, seconds)
    streamed = _rate(_streamed(_pairs(run, workspace_folder, "streamed"), run, workers), batch, seconds)
    theirs = _rate(_forever(loader), batch, seconds)
    train_ours, wait = _train(TrainingSession(run, pairs, tokenizer, torch.device("cpu")), batch, seconds)
    train_theirs, wait_theirs = _train(_Fed(run, pairs, tokenizer, _forever(loader)), batch, seconds)
    return DataSpeed(
        name=pairs.name,
        pairs=len(pairs),
        image_size=size,
        batch_size=batch,
        workers=workers,
        prepare_s=prepare_s,
        ours=ours,
        streamed=streamed,
        theirs=theirs,
        train_ours=train_ours,
        train_theirs=train_theirs,
        wait=wait,
        wait_theirs=wait_theirs,
    )


def _pairs(run: config.Run, workspace_folder: Path, loading: Loading) -> Pairs:
    quiet = lambda share, note: None  # noqa: E731
    size = run.model.image_size
    return data.load(
        run.data, image_size=size, workspace_folder=workspace_folder, progress=quiet, loading=loading
    ).train


def _streamed(pairs: Pairs, run: config.Run, workers: int) -> Iterator[Tensor]:
    """Yield batches as `TrainingSession` makes them from images decoded again in every epoch."""
    size, seed, scale = run.optimizer.batch_size, run.seed, run.optimizer.crop_scale

    def upcoming(step: int) -> Iterator[Any]:
        endless = (rows for epoch in itertools.count() for rows in batches(len(pairs), size, seed, epoch))
        return itertools.islice(map(np.sort, endless), step, None)

    stream = BatchStream(pairs.images, upcoming, workers=workers)
    try:
        for step in itertools.count():
            rows, pixels = stream.batch(step)
            yield random_crops(torch.from_numpy(pixels), rows, seed, step // (len(pairs) // size), scale)
    finally:
        stream.close()


def _cached(pairs: Pairs, run: config.Run) -> Iterator[Tensor]:
    """Yield batches as `TrainingSession` makes them."""
    for epoch in itertools.count():
        for rows in batches(len(pairs), run.optimizer.batch_size, run.seed, epoch):
            rows.sort()
            yield random_crops(torch.from_numpy(pairs.images[rows]), rows, run.seed, epoch, run.optimizer.crop_scale)


class _Decoding(Dataset):
    """A pair decoded and transformed on access, like `open_clip_train.data.CsvDataset`."""

    def __init__(self, places: Sequence[str], tokens: Tensor, transform: Callable[[Any], Tensor]) -> None:
        self._places, self._tokens, self._transform = places, tokens, transform

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self._transform(open_image(self._places[index])), self._tokens[index]


def _loader(pairs: Pairs, tokenizer: Tokenizer, run: config.Run, workers: int) -> DataLoader:
    from open_clip import image_transform

    transform = image_transform(run.model.image_size, is_train=True, aug_cfg={"scale": (run.optimizer.crop_scale, 1.0)})
    tokens = tokenizer.encode(pairs.captions, run.model.context_length)
    return DataLoader(
        _Decoding(pairs.paths, tokens, transform),
        batch_size=run.optimizer.batch_size,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        persistent_workers=workers > 0,
    )


def _forever(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


class _Fed(TrainingSession):
    """The same training with batches from another source."""

    def __init__(self, run: config.Run, pairs: Pairs, tokenizer: Tokenizer, source: Iterator[Any]) -> None:
        super().__init__(run, pairs, tokenizer, torch.device("cpu"))
        self._source = source

    def batch(self) -> methods.Batch:
        images, tokens = next(self._source)
        return methods.Batch(images, tokens, torch.arange(len(images)), None, self.step)


def _rate(source: Iterator[Any], batch: int, seconds: float) -> float:
    for _ in range(3):
        next(source)
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        next(source)
        count += batch
    rate = count / (time.perf_counter() - began)
    if hasattr(source, "close"):
        source.close()
    return rate


def _train(training: TrainingSession, batch: int, seconds: float) -> tuple[float, float]:
    """Return pairs per second, and the share of the time that steps wait for their batch."""
    for _ in range(3):
        training.update()
    updates, began = [], time.perf_counter()
    while time.perf_counter() - began < seconds:
        updates.append(training.update())
    whole = sum(update.seconds for update in updates)
    return batch * len(updates) / whole, sum(update.data_s for update in updates) / whole


_WIDTHS = (8, 10, 11, 7, 9, 11, 7)

HELP = "our loader against open_clip's way: pairs a second, alone and in training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the data, the model and the duration."""
    parser.add_argument("--workspace", metavar="DIR", help="folder of runs (default: the user's own)")
    parser.add_argument(
        "--data", nargs="+", metavar="PATH", default=[], help="folders, tables or tars (default: Scenes)"
    )
    parser.add_argument("--preset", default="clip-scenes", help="model and objective (clip-scenes)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--workers", type=int, default=2, help="processes that decode for open_clip's way (2)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement (8)")


def run(args: argparse.Namespace) -> int:
    """Print one row per data set."""
    workspace = Workspace(args.workspace or default_paths.default_workspace())
    rows = []
    if not args.json:
        titles = ("pairs", "loader", "open_clip", "ratio", "train", "open_clip", "wait")
        print(f"{'data':<14}" + "".join(f"{title:>{width}}" for title, width in zip(titles, _WIDTHS, strict=True)))
    for path in args.data or [""]:
        chosen = config.replace(presets.preset(args.preset), "optimizer.batch_size", str(args.batch_size))
        if path:
            chosen = replace(chosen, data=recognize(path))
        speed = measure(chosen, workspace.folder, workers=args.workers, seconds=args.seconds)
        rows.append(asdict(speed) | {"ratio": speed.ratio})
        if not args.json:
            print(
                f"{speed.name:<14}{speed.pairs:>8,}{speed.ours:>8,.0f}/s{speed.theirs:>9,.0f}/s{speed.ratio:>6.1f}x"
                f"{speed.train_ours:>7,.0f}/s{speed.train_theirs:>9,.0f}/s{speed.wait:>7.1%}",
                flush=True,
            )
    if args.json:
        print(json.dumps(rows, indent=2))
    return 0
