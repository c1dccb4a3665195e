"""`python -m tests.benchmarks many_pictures`: what comes before the first step, and how fast pictures stream.

Each measurement is a process of its own; its processor seconds include the processes that decode.

- `first step`: from the listing of the tars to the end of the first update, when all pictures are prepared before it,
  and when it begins at once.
- `training`: pairs a second of updates from the cache and from pictures decoded as they come, in turns, and the share
  of a step that waits for its batch.
- `embedding`: pictures a processor second of `trainer embed`, and of open_clip's loop (its transform in a `DataLoader`
  of as many processes, `encode_image` of 64), with the same model, in turns.
"""

import argparse
import importlib
import io
import json
import multiprocessing
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
from PIL import Image

from tests.builders import add_members
from trainer.analysis.progress import silent  # before torch: `trainer` lets its threads sleep while they wait

HELP = "seconds before the first step, and pairs a second from tars and from the cache"
PAIRS_A_TAR: Final = 4_096
_WORDS: Final = ("red", "blue", "small", "old", "dog", "cat", "house", "tree", "car", "river", "boat", "street", "sky")


def made(folder: Path, pairs: int, side: int) -> Path:
    """Write tars of so many JPEGs, of which 256 differ, each with a caption of its own."""
    rng = np.random.default_rng(0)
    pictures = []
    for _ in range(256):
        stream, coarse = io.BytesIO(), rng.integers(0, 255, (side // 8, side // 8, 3), np.uint8)
        Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC).save(stream, "JPEG", quality=85)
        pictures.append(stream.getvalue())
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, pairs, PAIRS_A_TAR):
        with tarfile.open(folder / f"{start // PAIRS_A_TAR:05d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for row in range(start, min(pairs, start + PAIRS_A_TAR)):
                caption = " ".join([*rng.choice(_WORDS, 6), str(row)])
                members = (("jpg", pictures[row % 256]), ("txt", caption.encode()))
                add_members(tar, ((f"{row:09d}.{ending}", content) for ending, content in members))
    return folder


def _training(tars: Path, workspace: Path, *, at_once: bool, batch: int, side: int, loading: str) -> Any:
    import torch

    from trainer import config
    from trainer.config import presets
    from trainer.data import load
    from trainer.data.tokenizer import train_tokenizer
    from trainer.training.session import TrainingSession

    run = config.replace(presets.preset("clip-folder"), "model.image_size", str(side))
    run = replace(run, data=config.Shards(path=str(tars)), optimizer=replace(run.optimizer, batch_size=batch))
    pairs = load(
        run.data,
        image_size=side,
        workspace_folder=workspace,
        progress=lambda share, note: None,
        loading=loading,
        prepared_first=0 if at_once else None,
    ).train
    return TrainingSession(run, pairs, train_tokenizer(pairs.captions[:20_000], 1_000), torch.device("cpu"))


def _processor_s() -> float:
    """Return the processor time of this process and of those below it, living and ended."""
    mine = psutil.Process()
    times = [process.cpu_times() for process in (mine, *mine.children(recursive=True))]
    ended = mine.cpu_times()
    return sum(time_.user + time_.system for time_ in times) + ended.children_user + ended.children_system


def first_step(tars: Path, *, at_once: bool, batch: int, side: int) -> dict[str, float]:
    """Return wall and processor seconds from the listing to the end of the first update."""
    importlib.import_module("trainer.training.session")  # not a part of what is measured
    with tempfile.TemporaryDirectory() as workspace:
        began, processor = time.perf_counter(), _processor_s()
        loading = "auto" if at_once else "prepared"
        training = _training(tars, Path(workspace), at_once=at_once, batch=batch, side=side, loading=loading)
        training.update()
        took = {"wall_s": time.perf_counter() - began, "processor_s": _processor_s() - processor}
        training.end()
        return took


def training_speed(tars: Path, *, batch: int, side: int, updates: int) -> dict[str, float]:
    """Return the medians of three turns of updates from the cache and as pictures come."""
    with tempfile.TemporaryDirectory() as workspace:
        ways = {
            way: _training(tars, Path(workspace), at_once=way == "streamed", batch=batch, side=side, loading=way)
            for way in ("prepared", "streamed")
        }
        rates: dict[str, list[float]] = {way: [] for way in ways}
        waits: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(3):
            for way, training in ways.items():
                training.update()
                made = [training.update() for _ in range(updates)]
                whole = sum(update.seconds for update in made)
                rates[way].append(batch * updates / whole)
                waits[way].append(sum(update.data_s for update in made) / whole)
                if training._stream is not None:
                    training._stream.close()  # else it decodes ahead in the other's turn
        for training in ways.values():
            training.end()
    numbers = {f"{way}_pairs_a_second": statistics.median(rates[way]) for way in ways}
    numbers |= {f"{way}_waits": statistics.median(waits[way]) for way in ways}
    ratio = statistics.median(s / p for s, p in zip(rates["streamed"], rates["prepared"], strict=True))
    return numbers | {"ratio": ratio}


def _open_clip_folder(folder: Path, side: int) -> Path:
    """Write a ViT of open_clip with random weights, 6 layers of 384."""
    import open_clip
    from safetensors.torch import save_file

    image = {"image_size": side, "layers": 6, "width": 384, "head_width": 64, "patch_size": 32}
    text = {"context_length": 12, "vocab_size": 49_408, "width": 32, "heads": 2, "layers": 2}
    sizes = {"embed_dim": 256, "vision_cfg": image, "text_cfg": text}
    folder.mkdir()
    weights = open_clip.CLIP(**sizes).state_dict()
    save_file({name: value.contiguous() for name, value in weights.items()}, folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": sizes, "preprocess_cfg": {"size": side}}))
    return folder


@dataclass
class _Pictures:
    """Pictures as open_clip reads them."""

    transform: Any
    places: list[str]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, row: int) -> Any:
        from trainer.images.location import location, opened

        return self.transform(Image.open(opened(location(self.places[row]))).convert("RGB"))


def _theirs(model: Any, pictures: _Pictures, workers: int) -> np.ndarray:
    import torch
    from torch.utils.data import DataLoader

    with torch.inference_mode():
        loader = DataLoader(pictures, batch_size=64, num_workers=workers, multiprocessing_context="fork")
        return torch.cat([model.encode_image(batch, normalize=True) for batch in loader]).numpy()


def embedding(tars: Path, few: Path, *, side: int, pictures: int) -> dict[str, float]:
    """Return pictures a processor second of both, medians of three turns, and how far the embeddings differ."""
    import open_clip

    from trainer import config, device
    from trainer.__main__ import main
    from trainer.data.tar_files import shard_sources
    from trainer.data.workers import processes
    from trainer.inference.open_model import open_run
    from trainer.inference.shards import Shard, cut, write_shard
    from trainer.store import Workspace

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        device.be_polite = lambda where: None  # else all that follows waits for other work
        hub, place = _open_clip_folder(folder / "hub", side), str(folder / "workspace")
        main(["open", str(hub), "--name", "it", "--data", str(few), "--set", "device=cpu", "--workspace", place])
        ours = open_run(Workspace(Path(place)), 1, on="cpu")
        theirs, _, transform = open_clip.create_model_and_transforms(f"local-dir:{hub}")
        sources, _ = shard_sources(config.Shards(path=str(tars)), folder, silent)
        rows = cut(sources, pictures)[0].rows
        took: dict[str, list[float]] = {"ours": [], "open_clip": []}
        waited, far = [], 0.0
        for turn in range(3):
            began = _processor_s()
            waited.append(write_shard(ours, Shard(turn, rows), folder / "out", "").waited)
            took["ours"].append(_processor_s() - began)
            began = _processor_s()
            vectors = _theirs(theirs.eval(), _Pictures(transform, [row.place for row in rows]), processes())
            took["open_clip"].append(_processor_s() - began)
            mine = np.load(folder / "out" / "img_emb" / f"img_emb_{turn:05d}.npy")
            far = max(far, float(np.abs(mine - vectors).max()))
    ratio = statistics.median(b / a for a, b in zip(took["ours"], took["open_clip"], strict=True))
    speeds = {f"{way}_a_processor_second": pictures / statistics.median(times) for way, times in took.items()}
    return speeds | {"ratio": ratio, "waited": statistics.median(waited), "furthest": far}


def _apart(measure: Callable[..., dict[str, float]], *arguments: Any, **named: Any) -> dict[str, float]:
    """Return what is measured in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, *arguments, **named).result()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add sizes."""
    parser.add_argument("--pairs", type=int, nargs="*", default=[5_000, 20_000, 100_000], help="(5000 20000 100000)")
    parser.add_argument("--most-prepared", type=int, default=20_000, help="prepared first up to so many (20000)")
    parser.add_argument("--picture", type=int, default=128, help="side of a JPEG (128)")
    parser.add_argument("--side", type=int, default=64, help="side of a picture of the model (64)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--embedded", type=int, default=512, help="pictures of 640 pixels that are embedded (512)")
    parser.add_argument("--updates", type=int, default=20, help="of a turn (20)")


def run(args: argparse.Namespace) -> int:
    """Print what was measured as lines of JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        if args.embedded:
            folders = [made(Path(scratch) / f"embed{n}", n, 640) for n in (args.embedded, 64)]
            print(json.dumps(_apart(embedding, *folders, side=224, pictures=args.embedded)), flush=True)
        for pairs in args.pairs:
            tars = made(Path(scratch) / f"{pairs}", pairs, args.picture)
            sizes = {"batch": args.batch_size, "side": args.side}
            for at_once in (True, False) if pairs <= args.most_prepared else (True,):
                took = _apart(first_step, tars, at_once=at_once, **sizes)
                print(json.dumps({"pairs": pairs, "at_once": at_once, **took}), flush=True)
            if pairs == args.pairs[0]:
                speed = _apart(training_speed, tars, updates=args.updates, **sizes)
                print(json.dumps({"pairs": pairs, **speed}), flush=True)
    return 0
