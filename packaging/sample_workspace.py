"""Packs two finished runs as the sample workspace: `uv run python packaging/sample_workspace.py [WORKSPACE]`.

Without a workspace the sample as it is gets packed anew, as is needed when maps or evaluations are computed in another
way. So it was on 2026-12-01: from the 512 pairs that it had, every other one of the 1,024, those below were chosen, and
their pictures, until then compressed more than the runs had seen them, were drawn.

The workspace holds a CLIP run and a CLOOB run of Scenes, trained alike:

    for preset in clip-scenes cloob-scenes; do
      trainer fit --preset $preset --set model.image_width=12 --set model.embed_dim=64 --set optimizer.epochs=20 \\
        --set watching.evaluate_every=96 --set watching.snapshots=12 --workspace WORKSPACE
    done

Of each run the curves, the last checkpoint without its optimizer and in half precision, and nine snapshots of the
unseen renderings are kept, in half precision and of as many pairs of each class. The pictures of these pairs are the
files that Scenes draws, byte by byte: what a model says of them is what its snapshots and evaluations hold. Maps (UMAP,
of every step), what the first start says of the runs (`card.json`), and zero-shot and retrieval by `trainer evaluate`
on every unseen rendering come with them. Nothing of the computer that trained them stays: no path, process or command.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from trainer.analysis.dominant_classes import dominant_points
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshot_series import snapshots_of
from trainer.config import default_paths
from trainer.distribution.sample_card import CARD, SampleCard, SampleMap
from trainer.projection.layouts import series
from trainer.store import RunRow, Workspace, caption_words, manifests, ownership
from trainer.store.snapshot_files import Snapshot, read_snapshot, write_snapshot

SPLIT: Final = "renderings"
PAIRS_OF_CLASS: Final = 36
"""So many of each of the ten colors are kept, the first ones."""
SNAPSHOTS: Final = 9
OBJECTIVES: Final = ("clip", "cloob")
TASKS: Final = ("zero_shot", "retrieval")
MOST_BYTES: Final = 8_000_000
_FORGET_PROCESS: Final = (
    "UPDATE run SET pid=NULL, start_ticks=NULL, boot_id='', launched_pid=NULL, launched_ticks=NULL, launched_at=NULL, "
    "heartbeat_at=NULL, slot='', rss_mib=NULL, gpu_mib=NULL, eta_s=NULL"
)


def main(source: Path | None) -> None:
    """Pack the newest CLIP and CLOOB run of `source`; print the size of the result and what its card says."""
    sample = default_paths.sample_workspace()
    with tempfile.TemporaryDirectory(dir=sample.parent) as draft:
        folder = Path(draft) / "draft"
        folder.mkdir()
        with closing(Workspace(source or sample)) as packed:
            pack(packed, folder)
        make_evaluations(folder)
        card = make_maps(folder)
        for part in (folder, *folder.rglob("*")):
            part.chmod(0o755 if part.is_dir() else 0o644)
        shutil.rmtree(sample, ignore_errors=True)
        shutil.move(folder, sample)
        size = Path(shutil.make_archive(f"{draft}/sample", "zip", sample)).stat().st_size
    print(f"{sample}: {size:,} bytes in a wheel. {card.verdict}.")
    if size > MOST_BYTES:
        sys.exit(f"It is larger than {MOST_BYTES:,} bytes.")


def pack(source: Workspace, folder: Path) -> None:
    """Write the rows, weights and snapshots of the newest run of each objective into an empty folder."""
    rows = [next(row for row in reversed(source.runs.all()) if row.objective == kind) for kind in OBJECTIVES]
    steps = {row.id: chosen_steps(source, row) for row in rows}
    any_snapshot = next(each for each in source.results.snapshots(rows[0].id) if each.split == SPLIT)
    kept = first_of_each(read_snapshot(any_snapshot.folder).items.label)
    copy_database(source.database_file, folder / default_paths.DATABASE, steps, len(kept))
    for row in rows:
        copy_run(source, row, folder / "runs" / row.folder.name, steps[row.id], kept)


def make_evaluations(folder: Path) -> None:
    """Evaluate the packed runs in a copy, where all pictures are drawn; keep the results and the pairs' pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        ownership.sign(copy)
        command = [sys.executable, "-m", "trainer", "evaluate", "1", "2", "--task", *TASKS, "--workspace", str(copy)]
        subprocess.run(command, check=True)
        for made in copy.glob("runs/*/evaluations"):
            shutil.copytree(made, folder / made.relative_to(copy))
        for path in read_snapshot(next(folder.glob("runs/*/snapshots/*"))).items.path:
            picture = folder / _inside(path)
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy / _inside(path), picture)
        with closing(sqlite3.connect(folder / default_paths.DATABASE, isolation_level=None)) as rows:
            rows.execute("ATTACH ? AS copy", (str(copy / default_paths.DATABASE),))
            rows.execute("DELETE FROM evaluation")
            rows.execute("INSERT INTO evaluation SELECT * FROM copy.evaluation")
            rows.execute("DETACH copy")
            rows.execute("VACUUM")


def make_maps(folder: Path) -> SampleCard:
    """Make the maps of the packed runs, and the card; the workspace has an owner meanwhile, and none afterwards."""
    ownership.sign(folder)
    packed = Workspace(folder)
    card = card_of(packed, packed.runs.all())
    (folder / CARD).write_bytes(msgspec.json.encode(card) + b"\n")
    packed.close()
    (folder / ownership.NAME).unlink()
    with closing(sqlite3.connect(folder / default_paths.DATABASE)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    return card


def chosen_steps(source: Workspace, row: RunRow) -> list[int]:
    """Return the steps of the snapshots to keep, the first and the last among them."""
    every = sorted({snapshot.step for snapshot in source.results.snapshots(row.id) if snapshot.split == SPLIT})
    indices = np.unique(np.linspace(0, len(every) - 1, min(SNAPSHOTS, len(every))).round().astype(int))
    return [every[index] for index in indices]


def first_of_each(labels: Sequence[str]) -> list[int]:
    """Return the rows of the pairs to keep, in their order."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return sorted(row for of_label in rows.values() for row in of_label[:PAIRS_OF_CLASS])


def copy_database(source: Path, target: Path, steps: dict[int, list[int]], pairs: int) -> None:
    """Copy the rows of the runs, with the snapshots of these steps, now of so many pairs, and the last checkpoint."""
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old:
        old.execute("VACUUM INTO ?", (str(target),))
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        new.execute("PRAGMA foreign_keys=ON")
        for run in [run for (run,) in new.execute("SELECT id FROM run") if run not in steps]:
            new.execute("DELETE FROM run WHERE id = ?", (run,))
        new.execute(_FORGET_PROCESS)
        for run, of_run in steps.items():
            thin_rows(new, run, of_run, pairs)
        new.execute("DELETE FROM setting")
        new.execute("VACUUM")


def thin_rows(database: sqlite3.Connection, run: int, steps: list[int], pairs: int) -> None:
    """Keep of a run the snapshots of these steps, and the last checkpoint; forget the commands that trained it."""
    snapshots = database.execute("SELECT id, step, split FROM snapshot WHERE run = ?", (run,)).fetchall()
    for number, step, split in snapshots:
        if split == SPLIT and step in steps:
            database.execute("UPDATE snapshot SET n = ? WHERE id = ?", (pairs, number))
        else:
            database.execute("DELETE FROM snapshot WHERE id = ?", (number,))
    last = database.execute("SELECT MAX(step) FROM checkpoint WHERE run = ?", (run,)).fetchone()[0]
    database.execute("DELETE FROM checkpoint WHERE run = ? AND step < ?", (run, last))
    facts = json.loads(database.execute("SELECT facts FROM run WHERE id = ?", (run,)).fetchone()[0])
    facts.pop("sessions", None)
    database.execute("UPDATE run SET facts = ? WHERE id = ?", (json.dumps(facts), run))


def copy_run(source: Workspace, row: RunRow, target: Path, steps: list[int], kept: list[int]) -> None:
    """Copy a run's configuration, its last checkpoint, and the pairs to keep of its snapshots of these steps."""
    target.mkdir(parents=True)
    for name in ("config.toml", "tokenizer.json", caption_words.FILE):
        shutil.copyfile(row.folder / name, target / name)
    checkpoint = max(source.results.checkpoints(row.id), key=lambda each: each.step)
    halve_checkpoint(row.folder / "checkpoints" / f"step_{checkpoint.step:06d}", target / "checkpoints")
    for snapshot in source.results.snapshots(row.id):
        if snapshot.split == SPLIT and snapshot.step in steps:
            thin_snapshot(read_snapshot(snapshot.folder), kept, target / "snapshots" / snapshot.folder.name)


def halve_checkpoint(source: Path, folder: Path) -> None:
    """Copy a checkpoint with its matrices in half precision, and without the state of its training."""
    import torch
    from safetensors.torch import load_file, save_file

    target = folder / source.name
    target.mkdir(parents=True)
    weights = load_file(source / "model.safetensors")
    matrices = {name: value.half() for name, value in weights.items() if value.is_floating_point() and value.ndim > 1}
    save_file(weights | matrices, target / "model.safetensors")
    torch.save({}, target / "training.pt")
    shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
    facts = json.loads((source / manifests.NAME).read_text(encoding="utf-8"))
    manifests.write_manifest(target, {"step": facts["step"], "torch": facts["torch"].partition("+")[0]})


def thin_snapshot(snapshot: Snapshot, kept: list[int], target: Path) -> None:
    """Write these pairs of a snapshot, in half precision."""
    assert snapshot.image is not None
    assert snapshot.text is not None
    items = snapshot.items
    names = ("path", "caption", "label", "split", "content")
    columns: dict[str, Any] = {name: [getattr(items, name)[row] for row in kept] for name in names}
    thinned = replace(
        items,
        id=items.id[kept],
        metadata={name: [values[row] for row in kept] for name, values in items.metadata.items()},
        **columns | {"path": [f"workspace:{_inside(path)}" for path in columns["path"]]},
    )
    target.parent.mkdir(exist_ok=True)
    write_snapshot(
        target,
        image=snapshot.image[kept].astype(np.float16),
        text=snapshot.text[kept].astype(np.float16),
        items=thinned,
        step=snapshot.step,
        dataset=snapshot.dataset,
        split=snapshot.split,
        model=snapshot.model,
        sampled=True,
        fingerprint=snapshot.fingerprint,
    )
    (target / manifests.NAME).unlink()  # it is sealed with the key of who packs it
    manifests.write_manifest(target, {})


def _inside(path: str) -> str:
    """Return where a picture is in its workspace: `data/scenes-.../renderings/00000.jpg`."""
    return "/".join(Path(path).parts[-4:])


def card_of(packed: Workspace, rows: list[RunRow]) -> SampleCard:
    """Return what the first start says; the maps are made on the way, and kept."""
    steps = [[shot.folder for shot in snapshots_of(packed, row)] for row in rows]
    folders, umap = [each[-1] for each in steps], PointPlacement(method="umap")
    layouts = []
    for index, each in enumerate(steps):
        *earlier, last = series(packed.folder, each, umap, onto=folders[0] if index else None)
        layouts.append(last)
        for layout in earlier:
            lighten(layout.file)
    snapshots = [read_snapshot(folder) for folder in folders]
    classes = sorted({*snapshots[0].items.label})
    maps = []
    for row, snapshot, layout in zip(rows, snapshots, layouts, strict=True):
        labels = [classes.index(label) for label in snapshot.items.label]
        maps.append(map_of(row, np.load(layout.file), labels, classes))
    samples = rows[0].facts["heldout_questions"][SPLIT]["image_to_text"]
    return SampleCard(samples, rows[0].step, classes, "subject color", "UMAP", maps)


def lighten(file: Path) -> None:
    """Keep a layout of an earlier step in half precision, to 1/300 of its size or finer, without its note."""
    points = np.load(file)
    grid = 2.0 ** np.ceil(np.log2(300 / np.ptp(points, axis=0).max()))
    np.save(file, (np.rint(grid * points) / grid).astype(np.float16))
    facts = json.loads(file.with_suffix(".json").read_text())
    file.with_suffix(".json").write_text(json.dumps(facts | {"note": "", "seconds": 0.0}))


def map_of(row: RunRow, points: np.ndarray, labels: list[int], classes: list[str]) -> SampleMap:
    """Return the map of a run with the labels of the window, points in any order so that no kind hides the other."""
    low, high = points.min(axis=0), points.max(axis=0)
    xy = np.rint(1000 * (points - low) / (high - low)).astype(int)
    colors = np.array(labels * 2)
    named = {number: 1000 * (point - low) / (high - low) for number, point in dominant_points(colors, points).items()}
    captions = np.repeat([0, 1], len(labels))
    order = np.random.default_rng(0).permutation(len(xy))
    marks = [(int(xy[i, 0]), int(xy[i, 1]), int(colors[i]), int(captions[i])) for i in order]
    assert row.last is not None
    words = [(classes[number], round(x), round(y)) for number, (x, y) in named.items()]
    return SampleMap(row.label.partition(" ")[0], row.last, marks, words)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else None)
