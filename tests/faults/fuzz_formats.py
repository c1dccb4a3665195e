"""Mutate files of vectors, logs, tars and tables of pairs, open them, and count how that ends.

    python -m tests.faults.fuzz_formats --seconds 3600 --seed 1 --keep FOLDER

A mutated file is read, or refused in words; anything else (an exception that is no `UserError`, words that are no
sentence, the end of the process, more than 20 s of the processor, or more than 300 MB) is kept and makes the exit code
1. Files are opened in a process of its own, which is started again when one of them ends it or takes two minutes.
"""

import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

SLOW_S: Final = 20.0
LARGE: Final = 300_000_000
STUCK_S: Final = 120.0
"""After which a process that opens a file is ended."""
_ROWS, _WIDTH = 40, 6
_IMPORTS: Final = 40
"""Logs that are imported into one workspace."""


def _vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(_ROWS, _WIDTH)).astype(np.float32)


# -- sound files: each returns the bytes of one ---------------------------------------------------------------------


def _npy() -> bytes:
    np.save(opened := io.BytesIO(), _vectors())
    return opened.getvalue()


def _npz() -> bytes:
    names = np.array([f"{i}.jpg" for i in range(_ROWS)])
    np.savez(opened := io.BytesIO(), image=_vectors(), text=_vectors(), labels=np.arange(_ROWS), paths=names)
    return opened.getvalue()


def _packed_npz() -> bytes:
    np.savez_compressed(opened := io.BytesIO(), image=_vectors(), text=_vectors())
    return opened.getvalue()


def _safetensors() -> bytes:
    from safetensors.numpy import save

    return save({"image": _vectors(), "text": _vectors()})


def _pt() -> bytes:
    import torch

    one = torch.from_numpy(_vectors())
    names = [f"{i}.jpg" for i in range(_ROWS)]
    torch.save(
        {"image": one, "text": one.bfloat16(), "filenames": names, "labels": torch.arange(_ROWS)},
        opened := io.BytesIO(),
    )
    return opened.getvalue()


def _table() -> Any:
    import pyarrow as pa

    rows = _vectors().tolist()
    return pa.table({"image": rows, "text": rows, "caption": ["x"] * _ROWS, "id": list(range(_ROWS))})


def _parquet() -> bytes:
    import pyarrow.parquet as pq

    pq.write_table(_table(), opened := io.BytesIO())
    return opened.getvalue()


def _feather() -> bytes:
    from pyarrow import feather

    feather.write_feather(_table(), opened := io.BytesIO())
    return opened.getvalue()


def _arrow() -> bytes:
    import pyarrow as pa

    table = _table()
    with pa.ipc.new_stream(opened := io.BytesIO(), table.schema) as writer:
        writer.write_table(table)
    return opened.getvalue()


def _cells(separator: str, header: bool) -> bytes:
    names = ["filenames", *(f"embedding_{i}" for i in range(_WIDTH)), "labels"]
    rows = [[f"{i}.jpg", *map(str, row), str(i % 3)] for i, row in enumerate(_vectors().tolist())]
    lines = [names, *rows] if header else [row[1:-1] for row in rows]
    return "".join(separator.join(line) + "\n" for line in lines).encode()


def _scalar_events() -> list[bytes]:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from tensorboard.util.tensor_util import make_tensor_proto

    events = [Event(file_version="brain.Event:2"), Event(session_log=SessionLog(status=SessionLog.START), step=7)]
    for step in range(20):
        event = Event(step=step, wall_time=1e9 + step)
        event.summary.value.add(tag=f"t{step % 3}", simple_value=step)
        one = event.summary.value.add(tag="tensor", tensor=make_tensor_proto(np.float32(step)))
        one.metadata.plugin_data.plugin_name = "scalars"
        events.insert(1 + step, event)
    settings = HParamsPluginData()
    settings.session_start_info.hparams["lr"].number_value = 0.1
    told = Event(step=0)
    told.summary.value.add(tag="_hparams_/session_start_info").metadata.plugin_data.plugin_name = "hparams"
    told.summary.value[0].metadata.plugin_data.content = settings.SerializeToString()
    return [one.SerializeToString() for one in (*events, told)]


def _framed(records: list[bytes]) -> bytes:
    from tests.faults.test_hostile_trackers import event_file

    return event_file(*records)


def _wandb() -> bytes:
    from tests.trainer.trackers.test_importing import write_records

    with tempfile.TemporaryDirectory() as folder:
        rows = [{"_step": i, "loss": 2.0, "a|b": i, "_timestamp": 1e9 + i} for i in range(900)]
        return write_records(Path(folder, "run-x.wandb"), "x", "n", {"lr": 1}, rows).read_bytes()


def _chart() -> bytes:
    lines = ['"Step","a - b - loss","a - b - loss__MIN","c - loss","_timestamp"']
    return "\n".join(lines + [f'"{i}","{i / 3}","{i / 3}","","1e9"' for i in range(40)]).encode()


def _history() -> bytes:
    return "".join(json.dumps({"_step": i, "loss": i / 3, "n": {"m": i}}) + "\n" for i in range(40)).encode()


def _out_log() -> bytes:
    line = (
        "2026-11-27,02:34:{:02} | INFO | Train Epoch: {} [{:>3}/400 (9%)] Data (t): 0.1 Batch (t): 0.5, 200/s, "
        "LR: 0.000100 Logit Scale: 14.1 Contrastive_loss: 4.5 (4.6) Loss: {} (4.6)\n"
    )
    return "".join(line.format(i % 60, i // 10, (i % 10 + 1) * 40, i / 3) for i in range(40)).encode()


def _results() -> bytes:
    return "".join(json.dumps({"epoch": i, "clip_val_loss": 1.0, "num_samples": 9}) + "\n" for i in range(9)).encode()


def _params() -> bytes:
    return b"batch_size: 40\nworld_size: 1\naccum_freq: 1\nname: x\nmodel: ViT-B-32\nlr: 0.001\npretrained: \n" * 3


def _picture() -> bytes:
    from PIL import Image

    Image.new("RGB", (4, 4), (200, 10, 10)).save(opened := io.BytesIO(), "PNG")
    return opened.getvalue()


def _tar() -> bytes:
    with tarfile.open(fileobj=(opened := io.BytesIO()), mode="w") as tar:
        for i in range(6):
            for end, content in (("png", _picture()), ("txt", b"a word"), ("json", b'{"caption": "a word"}')):
                info = tarfile.TarInfo(f"{i:03}.{end}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return opened.getvalue()


def _pairs_csv() -> bytes:
    return ("image,caption,label\n" + "".join(f'{i}.png,"a ""word"", {i}",x\n' for i in range(12))).encode()


def _pairs_lines() -> bytes:
    return "".join(json.dumps({"file_name": f"{i}.png", "text": f"word {i}"}) + "\n" for i in range(12)).encode()


def _pairs_parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pictures = [{"bytes": _picture(), "path": f"{i}.png"} for i in range(12)]
    pq.write_table(pa.table({"image": pictures, "caption": [f"word {i}" for i in range(12)]}), opened := io.BytesIO())
    return opened.getvalue()


# -- ways to open them ----------------------------------------------------------------------------------------------


def _open_vectors(file: Path, _folder: Path) -> None:
    from trainer.vectors.item_table import SUFFIXES, read_items
    from trainer.vectors.matrices import find

    found = find(file)
    for one in (found.image, found.text):
        if one is not None:
            one.take(np.arange(min(one.rows, 10)))
    if file.suffix in SUFFIXES and found.image is not None:
        read_items((file,), np.arange(min(found.image.rows, 10)), found.image.rows, split="x")


def _open_log(file: Path, folder: Path) -> None:
    from trainer.store import Workspace
    from trainer.trackers.import_curves import import_curves

    workspace = Workspace(folder)
    try:
        source = file.parent if file.name in ("out.log", "params.txt", "results.jsonl") else file
        import_curves(workspace, source)
    finally:
        workspace.close()


def _open_pairs(file: Path, folder: Path) -> None:
    from trainer.data.dataset_index import listing
    from trainer.format_detection.proposal import recognize

    listing(recognize(file), folder, lambda *_: None)


@dataclass(frozen=True)
class Kind:
    """Name of a file, what makes a sound one, what opens it, and the files next to it."""

    name: str
    make: Callable[[], bytes]
    open: Callable[[Path, Path], None]
    near: dict[str, Callable[[], bytes]] = field(default_factory=dict)


_RUN: Final = {"out.log": _out_log, "params.txt": _params, "results.jsonl": _results}
_PICTURES: Final = {f"{i}.png": _picture for i in range(12)}


KINDS: Final[dict[str, Kind]] = {
    "npy": Kind("v.npy", _npy, _open_vectors),
    "npz": Kind("v.npz", _npz, _open_vectors),
    "packed npz": Kind("v.npz", _packed_npz, _open_vectors),
    "pt": Kind("v.pt", _pt, _open_vectors),
    "safetensors": Kind("v.safetensors", _safetensors, _open_vectors),
    "parquet": Kind("v.parquet", _parquet, _open_vectors),
    "feather": Kind("v.feather", _feather, _open_vectors),
    "arrow": Kind("v.arrow", _arrow, _open_vectors),
    "csv": Kind("v.csv", lambda: _cells(",", header=True), _open_vectors),
    "tsv": Kind("tensors.tsv", lambda: _cells("\t", header=False), _open_vectors),
    "events": Kind("events.out.tfevents.1", lambda: _framed(_scalar_events()), _open_log),
    "framed events": Kind("events.out.tfevents.1", lambda: _framed(_scalar_events()), _open_log),
    "wandb": Kind("run-x.wandb", _wandb, _open_log),
    "chart": Kind("chart.csv", _chart, _open_log),
    "history": Kind("history.jsonl", _history, _open_log),
    "out.log": Kind("out.log", _out_log, _open_log, _RUN),
    "results": Kind("results.jsonl", _results, _open_log, _RUN),
    "params": Kind("params.txt", _params, _open_log, _RUN),
    "tar": Kind("shard-000000.tar", _tar, _open_pairs),
    "pairs csv": Kind("pairs.csv", _pairs_csv, _open_pairs, _PICTURES),
    "pairs lines": Kind("metadata.jsonl", _pairs_lines, _open_pairs, _PICTURES),
    "pairs parquet": Kind("pairs.parquet", _pairs_parquet, _open_pairs),
}
"""What is mutated -> how. Of framed events the records are mutated, and their checksums are right."""


# -- mutations ------------------------------------------------------------------------------------------------------


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return the content with some bytes changed, put in, left out, repeated or cut off."""
    changed = bytearray(content)
    way = rng.randrange(8)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if not changed:
            break
        # Headers, directories at the end, and anywhere.
        at = rng.randrange(min(len(changed), rng.choice([64, 300, len(changed)])))
        if rng.random() < 0.25:
            at = len(changed) - 1 - rng.randrange(min(len(changed), 400))
        if way == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            changed[at] = rng.choice(b'\x00\xff\x7f\x80"\n,;\t-9{[')
        elif way == 2:
            changed[at : at + 8] = struct.pack("<q", rng.choice([-1, 2**62, 2**31, 2**40, 0]))
        elif way == 3:
            del changed[at : at + rng.randrange(1, 20)]
        elif way == 4:
            changed[at:at] = rng.randbytes(rng.randrange(1, 20))
        elif way == 5:
            changed[at:at] = changed[at : at + rng.randrange(1, 200)] * rng.choice([1, 3, 50])
        elif way == 6:
            changed[at : at + 6] = rng.choice([b"nan", b"1e999", b"-1", b"9" * 40, b'""', b"\xed\xa0\x80", b"\r"])
        else:
            del changed[at + 1 :]
    return bytes(changed)


def case(kind: str, seed: int) -> bytes:
    """Return the mutated file of a kind that a seed gives."""
    rng = random.Random(f"{kind} {seed}")
    if kind == "framed events":
        return _framed([mutated(one, rng) if rng.random() < 0.5 else one for one in _scalar_events()])
    return mutated(sound(kind), rng)


_SOUND: dict[str, bytes] = {}


def sound(kind: str) -> bytes:
    """Return a file of a kind as its program writes it."""
    if kind not in _SOUND:
        _SOUND[kind] = KINDS[kind].make()
    return _SOUND[kind]


# -- one case -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How the opening of a file ended: `read`, `refused`, or what is wrong; processor time, and memory that it took."""

    kind: str
    seed: int
    end: str
    cpu_s: float
    grown: int
    words: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it ended as it should, in time and in bounds."""
        return self.end in ("read", "refused") and self.cpu_s <= SLOW_S and self.grown <= LARGE


def tried(kind: str, seed: int, folder: Path, content: bytes | None = None) -> Outcome:
    """Open one mutated file in this process; `folder` is for it and for what opening it makes."""
    from trainer.errors import UserError

    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, make in KINDS[kind].near.items():
        (place / name).write_bytes(make())
    file = place / KINDS[kind].name
    file.write_bytes(case(kind, seed) if content is None else content)
    # Never at an earlier path: a process refuses a workspace that was replaced.
    workspace = folder / f"workspace-{kind.replace(' ', '-')}-{seed // _IMPORTS}"
    for earlier in set(folder.glob(f"{workspace.name.rpartition('-')[0]}-*")) - {workspace}:
        shutil.rmtree(earlier, ignore_errors=True)
    _forget_peak()
    before, started, end, words = _memory("VmRSS"), _cpu_s(), "read", ""
    try:
        KINDS[kind].open(file, workspace)
    except UserError as error:
        words = str(error)
        end = "refused" if _is_sentence(words) else "no sentence"
    except Exception as error:
        end, words = type(error).__name__, traceback.format_exc()
    return Outcome(kind, seed, end, _cpu_s() - started, _memory("VmHWM") - before, words)


def _is_sentence(words: str) -> bool:
    """Return whether a refusal is one or more sentences of a bounded length."""
    plain = words.strip()
    return (
        bool(re.search(r"\w+ \w+", plain)) and plain[-1:] in ".!?)…" and len(plain) < 3_000 and "Traceback" not in plain
    )


def _cpu_s() -> float:
    """Return seconds of the processor of this process and of helpers that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _memory(name: str) -> int:
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    except OSError:
        return 0
    return 1_000 * int(found[1]) if found else 0


# -- many cases -----------------------------------------------------------------------------------------------------


def rounds(kinds: list[str], first: int) -> Iterator[tuple[str, int]]:
    """Yield kinds and seeds without end, each kind once a round."""
    seed = first
    while True:
        yield from ((kind, seed) for kind in kinds)
        seed += 1


def work(kinds: list[str], first: int, skip: int, until: float, folder: Path) -> None:
    """Open files until the time is over; print a line before each, and one of how it ended."""
    for number, (kind, seed) in enumerate(rounds(kinds, first)):
        if time.time() > until:
            return
        if number >= skip:
            print(json.dumps([number, kind, seed]), flush=True)
            print(json.dumps(vars(tried(kind, seed, folder))), flush=True)


def _supervised(kinds: list[str], first: int, until: float, folder: Path) -> Iterator[Outcome]:
    """Yield how the cases end, each opened by another process, which is started again when a file ends it."""
    import threading

    skip = 0
    while time.time() < until:
        words = [sys.executable, "-m", "tests.faults.fuzz_formats", "--work", "--seed", str(first), "--skip", str(skip)]
        words += ["--until", str(until), "--folder", str(folder), "--kinds", ",".join(kinds)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        begun: list[Any] = []
        stuck = threading.Timer(STUCK_S, process.kill)
        stuck.start()
        for line in process.stdout:
            answer = json.loads(line)
            stuck.cancel()
            if isinstance(answer, list):
                begun = answer
                stuck = threading.Timer(STUCK_S, process.kill)
                stuck.start()
            else:
                skip, begun = begun[0] + 1, []
                yield Outcome(**answer)
        stuck.cancel()
        code = process.wait()
        if begun:
            skip = begun[0] + 1
            yield Outcome(begun[1], begun[2], f"the process ended with {code}", 0.0, 0)
        elif code:
            raise SystemExit(f"The process that opens files ended with {code} between two of them.")


def fuzz(kinds: list[str], first: int, seconds: float, folder: Path, keep: Path) -> Counter[tuple[str, str]]:
    """Open mutated files for some time; print what is wrong, keep those files, and return kind and end -> how many."""
    ends: Counter[tuple[str, str]] = Counter()
    for outcome in _supervised(kinds, first, time.time() + seconds, folder):
        ends[outcome.kind, outcome.end if outcome.is_good else f"WRONG {outcome.end}"] += 1
        if not outcome.is_good:
            keep.mkdir(parents=True, exist_ok=True)
            name = KINDS[outcome.kind].name
            (keep / f"{outcome.kind.replace(' ', '-')}-{outcome.seed}-{name}").write_bytes(
                case(outcome.kind, outcome.seed)
            )
            print(f"{outcome.kind} {outcome.seed}: {outcome.end}, {outcome.cpu_s:.1f} s, {outcome.grown / 1e6:.0f} MB")
            print(outcome.words[-1_500:], flush=True)
    return ends


def main() -> int:
    """Fuzz as the words of the command say; 1 if a file did not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kinds", default=",".join(KINDS), help="names between commas")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "fuzz-kept"))
    for word, kind in (("--skip", int), ("--until", float), ("--folder", Path)):
        parser.add_argument(word, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    kinds = args.kinds.split(",")
    if args.work:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        work(kinds, args.seed, args.skip, args.until, args.folder)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        ends = fuzz(kinds, args.seed, args.seconds, Path(folder), args.keep)
    for kind in kinds:
        print(kind, ", ".join(f"{end} {count}" for (of, end), count in sorted(ends.items()) if of == kind), sep=": ")
    wrong = sum(count for (_, end), count in ends.items() if end.startswith("WRONG"))
    print(f"Seed {args.seed}: {sum(ends.values())} files, {wrong} wrong.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
