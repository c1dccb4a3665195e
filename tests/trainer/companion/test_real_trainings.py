"""Trainings by the programs themselves, watched while they train: open_clip's script, Lightning, transformers."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

import trainer.evaluation.checkpoint_measurement  # noqa: F401  # before a training begins, which takes seconds
from trainer.__main__ import main
from trainer.store import RunRow, Workspace, read_snapshot

pytestmark = [pytest.mark.nightly, pytest.mark.slow]

TRAIN, HELD, SIDE, BATCH, EPOCHS = 48, 12, 32, 8, 3
UPDATES = TRAIN // BATCH
"""Of an epoch."""
SIZES: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": SIDE, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 12, "vocab_size": 49_408, "width": 64, "heads": 4, "layers": 1},
}
PREPROCESSING = {"mean": [0.5, 0.4, 0.3], "std": [0.25, 0.3, 0.2]}
RECALLS = tuple(f"{way}_R@{k}" for way in ("image_to_text", "text_to_image") for k in (1, 5, 10))
SECONDS = 240.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `train.csv`, `val.csv`, and the settings of a tiny model in `model`."""
    folder, random = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name, first, count in (("train", 0, TRAIN), ("val", TRAIN, HELD)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["filepath", "title"])
            for number in range(first, first + count):
                picture = folder / f"{number}.png"
                Image.fromarray(random.integers(0, 255, (SIDE + 8, SIDE + 8, 3), dtype=np.uint8)).save(picture)
                rows.writerow([str(picture), f"picture number {number}"])
    (folder / "model").mkdir()
    settings = {"model_cfg": SIZES, "preprocess_cfg": PREPROCESSING}
    (folder / "model" / "open_clip_config.json").write_text(json.dumps(settings))
    return folder


def tiny_model(data: Path) -> tuple[open_clip.CLIP, Callable[[Image.Image], torch.Tensor]]:
    """Return a model and its preprocessing as open_clip makes them."""
    model, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{data / 'model'}", load_weights=False)
    return model, preprocess


def pairs_of(data: Path, name: str) -> tuple[list[Path], list[str]]:
    with (data / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [Path(row["filepath"]) for row in rows], [row["title"] for row in rows]


def recalls_by_open_clip(data: Path, weights: dict[str, torch.Tensor]) -> dict[str, float]:
    """Return what open_clip's own script computes for these weights on the validation pairs."""
    from open_clip_train.train import get_clip_metrics

    model, preprocess = tiny_model(data)
    model.load_state_dict(weights)
    model.eval()
    paths, captions = pairs_of(data, "val")
    pixels = torch.stack([preprocess(Image.open(path)) for path in paths])
    with torch.inference_mode():
        image, text, scale = model(pixels, open_clip.tokenize(captions, context_length=12))
    return {name: float(value) for name, value in get_clip_metrics(image, text, scale).items()}


def start_open_clip(data: Path, logs: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start `open_clip_train.main`, as a person does."""
    paths = {"--train-data": data / "train.csv", "--val-data": data / "val.csv", "--logs": logs}
    plain = (
        "--csv-img-key filepath --csv-caption-key title --csv-separator , --workers 0 --device cpu --precision fp32 "
        f"--batch-size {BATCH} --warmup 2 --lr 1e-3 --zeroshot-frequency 0 --log-every-n-steps 1 --name toy"
    )
    command = [sys.executable, "-m", "open_clip_train.main", "--model", f"local-dir:{data / 'model'}", *plain.split()]
    command += [word for name, path in paths.items() for word in (name, str(path))]
    with (logs.parent / "output.txt").open("ab") as output:
        return subprocess.Popen([*command, *options], stdout=output, stderr=output, cwd=logs.parent)


def watch(folder: Path, data: Path, workspace: Path, *options: str) -> RunRow:
    """Watch a folder by the command, and return its run."""
    if folder.name != "out":  # transformers saves the settings of its model
        options = ("--model", str(data / "model"), *options)
    code = main(["watch", str(folder), "--data", str(data / "val.csv"), *options, "--workspace", str(workspace)])
    assert code == 0
    (row,) = Workspace(workspace).runs.all()
    return row


def wait_for(is_there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while not is_there():
        assert process.poll() is None or is_there(), "the training ended early"
        assert time.monotonic() < end
        time.sleep(0.05)


def curve(workspace: Path, row: RunRow, name: str) -> dict[int, float]:
    steps, values, _ = Workspace(workspace).results.series(row.id, name)
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


def steps_of(workspace: Path, row: RunRow) -> list[int]:
    return [snapshot.step for snapshot in Workspace(workspace).results.snapshots(row.id)]


def check_recalls(workspace: Path, row: RunRow, by_step: dict[int, dict[str, float]]) -> None:
    """Check that each step has the recalls that open_clip computes with the checkpoint of this step."""
    assert steps_of(workspace, row) == sorted(by_step)
    for name in RECALLS:
        measured = curve(workspace, row, f"val/{name}")
        assert measured == {step: pytest.approx(numbers[name]) for step, numbers in by_step.items()}, name


def test_the_script_of_open_clip_is_a_run_while_it_trains(data: Path, tmp_path: Path) -> None:
    folder, workspace = tmp_path / "logs" / "toy", tmp_path / "workspace"
    process = start_open_clip(data, folder.parent, "--epochs", str(EPOCHS))
    try:
        wait_for(lambda: (folder / "params.txt").is_file() and (folder / "checkpoints").is_dir(), process)
        row = watch(folder, data, workspace)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
    assert (row.status, row.step, row.total_steps) == ("finished", EPOCHS * UPDATES, EPOCHS * UPDATES)
    weights = [torch.load(folder / "checkpoints" / f"epoch_{epoch}.pt")["state_dict"] for epoch in (1, 2, 3)]
    by_step = {UPDATES * epoch: recalls_by_open_clip(data, weights[epoch - 1]) for epoch in (1, 2, 3)}
    check_recalls(workspace, row, by_step)
    # The training itself has measured the same, under a name of its own.
    for name in RECALLS:
        theirs = curve(workspace, row, f"val/paired_{name}")
        assert theirs == {step: pytest.approx(numbers[name]) for step, numbers in by_step.items()}
    assert list(curve(workspace, row, "train/loss")) == list(range(1, EPOCHS * UPDATES + 1))
    stored = [read_snapshot(snapshot.folder) for snapshot in Workspace(workspace).results.snapshots(row.id)]
    assert [len(snapshot.items.id) for snapshot in stored] == [HELD] * EPOCHS
    # A training that is resumed from an older epoch replaces the newer ones, and then goes further.
    for epoch in (2, 3):
        (folder / "checkpoints" / f"epoch_{epoch}.pt").unlink()
    process = start_open_clip(data, folder.parent, "--epochs", "4", "--lr", "3e-3", "--resume", "latest")
    try:
        wait_for(lambda: "epochs: 4" in (folder / "params.txt").read_text(), process)
        row = watch(folder, data, workspace)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
    resumed = [torch.load(folder / "checkpoints" / f"epoch_{epoch}.pt")["state_dict"] for epoch in (1, 2, 3, 4)]
    assert not torch.equal(resumed[1]["text_projection"], weights[1]["text_projection"])
    numbers = [recalls_by_open_clip(data, state) for state in resumed]
    check_recalls(workspace, row, {UPDATES * (epoch + 1): number for epoch, number in enumerate(numbers)})
    assert (row.status, row.step) == ("finished", 4 * UPDATES)


def test_an_open_clip_that_is_killed_while_it_saves_is_continued(data: Path, tmp_path: Path) -> None:
    folder, workspace = tmp_path / "logs" / "toy", tmp_path / "workspace"
    process = start_open_clip(data, folder.parent, "--epochs", "2000")
    try:
        wait_for(lambda: (folder / "checkpoints" / "epoch_2.pt").is_file(), process)
    finally:
        process.kill()
    process.wait()
    newest = max(int(file.stem.removeprefix("epoch_")) for file in (folder / "checkpoints").glob("epoch_*.pt"))
    # As a kill amidst the last file leaves it.
    file = folder / "checkpoints" / f"epoch_{newest}.pt"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
    row = watch(folder, data, workspace, "--once")
    expected = [UPDATES * epoch for epoch in range(1, newest)]
    assert (row.status, steps_of(workspace, row)) == ("stopped", expected)


def test_a_fit_of_lightning_is_a_run(data: Path, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.loggers import CSVLogger

    workspace = tmp_path / "workspace"
    fit_by_lightning(lightning, data, CSVLogger(tmp_path))
    folder = tmp_path / "lightning_logs" / "version_0"
    row = watch(folder, data, workspace, "--once")
    saved = {
        int(file.stem.partition("step=")[2]): torch.load(file)["state_dict"]
        for file in (folder / "checkpoints").glob("epoch=*.ckpt")
    }
    assert sorted(saved) == [UPDATES * epoch for epoch in (1, 2, 3)]
    weights = {
        step: {name.removeprefix("model."): value for name, value in state.items()} for step, state in saved.items()
    }
    check_recalls(workspace, row, {step: recalls_by_open_clip(data, state) for step, state in weights.items()})
    assert list(curve(workspace, row, "train/loss")) == list(range(1, EPOCHS * UPDATES + 1))


def fit_by_lightning(lightning: Any, data: Path, logger: Any) -> None:
    """Train the tiny model by Lightning, with a checkpoint an epoch."""

    class Pairs(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model, self.preprocess = tiny_model(data)

        def training_step(self, batch: Sequence[torch.Tensor], batch_idx: int) -> torch.Tensor:
            image, text, scale = self.model(*batch)
            similarity = scale * image @ text.T
            targets = torch.arange(len(image))
            losses = [torch.nn.functional.cross_entropy(logits, targets) for logits in (similarity, similarity.T)]
            loss = (losses[0] + losses[1]) / 2
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    module, (paths, captions) = Pairs(), pairs_of(data, "train")
    pixels = torch.stack([module.preprocess(Image.open(path)) for path in paths])
    tokens = open_clip.tokenize(captions, context_length=12)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(pixels, tokens), BATCH)
    checkpoints = lightning.callbacks.ModelCheckpoint(save_top_k=-1, every_n_epochs=1, save_last=True)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        logger=logger,
        callbacks=[checkpoints],
        accelerator="cpu",
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)


def test_a_training_of_transformers_is_a_run(data: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs it")
    folder, workspace = tmp_path / "out", tmp_path / "workspace"
    train_by_transformers(transformers, data, folder)
    row = watch(folder, data, workspace)
    assert (row.status, row.step) == ("finished", EPOCHS * UPDATES)
    transform = open_clip.image_transform(SIDE, is_train=False)
    paths, captions = pairs_of(data, "val")
    pixels = torch.stack([transform(Image.open(path)) for path in paths])
    tokens = open_clip.tokenize(captions, context_length=12)
    from open_clip_train.train import get_clip_metrics

    by_step = {}
    for step in (UPDATES, 2 * UPDATES, 3 * UPDATES):
        model = transformers.CLIPModel.from_pretrained(folder / f"checkpoint-{step}").eval()
        with torch.inference_mode():
            outputs = model(input_ids=tokens, pixel_values=pixels)
        by_step[step] = get_clip_metrics(outputs.image_embeds, outputs.text_embeds, torch.tensor(1.0))
    check_recalls(workspace, row, by_step)
    state = json.loads((folder / f"checkpoint-{EPOCHS * UPDATES}" / "trainer_state.json").read_text())
    losses = {entry["step"]: entry["loss"] for entry in state["log_history"] if "loss" in entry}
    assert curve(workspace, row, "train/loss") == {step: pytest.approx(loss) for step, loss in losses.items()}


def train_by_transformers(transformers: Any, data: Path, folder: Path) -> None:
    """Train a tiny `CLIPModel` by `transformers.Trainer`, with a checkpoint an epoch."""
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    settings = transformers.CLIPConfig(
        text_config=tower | {"vocab_size": 49_408, "max_position_embeddings": 12, "eos_token_id": 49_407},
        vision_config=tower | {"image_size": SIDE, "patch_size": 16},
        projection_dim=16,
    )
    paths, captions = pairs_of(data, "train")
    transform, tokens = open_clip.image_transform(SIDE, is_train=False), open_clip.tokenize(captions, context_length=12)
    rows = [{"pixel_values": transform(Image.open(path)), "input_ids": row} for path, row in zip(paths, tokens)]

    def collate(batch: list[dict[str, torch.Tensor]]) -> dict[str, Any]:
        return {name: torch.stack([row[name] for row in batch]) for name in batch[0]} | {"return_loss": True}

    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        logging_steps=1,
        save_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=[],
        learning_rate=1e-3,
    )
    torch.manual_seed(0)
    transformers.Trainer(transformers.CLIPModel(settings), arguments, train_dataset=rows, data_collator=collate).train()
