"""Folders of transformers and Lightning are watched; whether a file is complete is told by its content."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from trainer.companion.folder_watch import FolderWatch, watched_run
from trainer.companion.watching_curves import read_training
from trainer.companion.watching_files import watched_folder
from trainer.evaluation.checkpoint_measurement import CheckpointMeasurement
from trainer.store import Workspace
from trainer.trackers.import_curves import import_curves
from trainer.untrusted.bounded.torch_archive import is_complete_archive, is_complete_safetensors, numbers_inside

pytestmark = pytest.mark.slow

SIDE = 32
CAPTIONS = ["a red square", "a green square", "a blue square", "a gray square"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    random = np.random.default_rng(1)
    for number in range(len(CAPTIONS)):
        Image.fromarray(random.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    lines = [f"{number}.png,{caption}" for number, caption in enumerate(CAPTIONS)]
    (folder / "val.csv").write_text("\n".join(["filepath,title", *lines]) + "\n")
    return folder / "val.csv"


def clip_model(seed: int) -> Any:
    from transformers import CLIPConfig, CLIPModel

    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    torch.manual_seed(seed)
    settings = CLIPConfig(
        text_config=tower | {"vocab_size": 49_408, "max_position_embeddings": 12, "eos_token_id": 49_407},
        vision_config=tower | {"image_size": SIDE, "patch_size": 16},
        projection_dim=16,
    )
    return CLIPModel(settings).eval()


def save(folder: Path, step: int, history: list[dict[str, float]], *, most: int = 100) -> Path:
    """Write a checkpoint in the order of `transformers.Trainer`, the state last."""
    checkpoint = folder / f"checkpoint-{step}"
    clip_model(step).save_pretrained(checkpoint)
    torch.save({}, checkpoint / "optimizer.pt")
    state = {"global_step": step, "max_steps": most, "log_history": history}
    (checkpoint / "trainer_state.json").write_text(json.dumps(state))
    return checkpoint


def test_each_checkpoint_of_transformers_is_a_step(tmp_path: Path, pairs: Path) -> None:
    import open_clip

    out = tmp_path / "out"
    history = [{"loss": 2.0 - step / 10, "learning_rate": 1e-3, "epoch": 1.0, "step": step} for step in (1, 2, 3)]
    history.append({"eval_loss": 1.5, "eval_runtime": 0.1, "eval_image_to_text_R@1": 0.9, "step": 3})
    for step in (3, 6):
        save(out, step, history)
    # Another one has its weights, and not yet its state.
    (save(out, 9, history) / "trainer_state.json").unlink()
    workspace = Workspace(tmp_path / "workspace")
    folder = watched_folder(out)
    assert folder.program == "transformers"
    with watched_run(workspace, folder, name="", dataset="val") as log:
        watch = FolderWatch(workspace, log, folder, CheckpointMeasurement(workspace, str(pairs)))
        while watch.look():
            pass
        assert not watch.failures
        assert not watch.has_ended
        log.status("stopped")
    run_id = log.run.id
    assert sorted(snapshot.step for snapshot in workspace.results.snapshots(run_id)) == [3, 6]
    steps, losses, _ = workspace.results.series(run_id, "train/loss")
    assert (steps.tolist(), losses.tolist()) == ([1, 2, 3], pytest.approx([1.9, 1.8, 1.7]))
    assert "val/runtime" not in workspace.results.scalar_names(run_id)
    _, theirs, _ = workspace.results.series(run_id, "val/transformers_image_to_text_R@1")
    assert theirs.tolist() == [0.9]
    model = clip_model(6)
    transform = open_clip.image_transform(SIDE, is_train=False)
    pixels = torch.stack([transform(Image.open(pairs.parent / f"{n}.png")) for n in range(len(CAPTIONS))])
    tokens = open_clip.tokenize(CAPTIONS, context_length=12)
    with torch.no_grad():
        answer = model(input_ids=tokens, pixel_values=pixels)
    expected = float((answer.logits_per_image.argmax(1) == torch.arange(len(CAPTIONS))).float().mean())
    steps, recalls, _ = workspace.results.series(run_id, "val/image_to_text_R@1")
    assert dict(zip(steps.tolist(), recalls.tolist(), strict=True))[6] == pytest.approx(expected)


def test_lightning_counts_updates_from_zero_and_its_last_is_a_copy(tmp_path: Path) -> None:
    version = tmp_path / "version_0"
    (version / "checkpoints").mkdir(parents=True)
    for name, step in (("epoch=0-step=4.ckpt", 4), ("epoch=1-step=8.ckpt", 8), ("last.ckpt", 8)):
        state = {"epoch": step // 4 - 1, "global_step": step, "state_dict": {"w": torch.zeros(2)}}
        torch.save(state, version / "checkpoints" / name)
    (version / "metrics.csv").write_text("epoch,step,train_loss,val_loss\n0,3,2.5,\n0,3,,2.0\n1,7,1.5,\n")
    folder = watched_folder(version / "checkpoints")
    checkpoints = folder.checkpoints()
    assert (folder.program, [checkpoint.number for checkpoint in checkpoints]) == ("lightning", [8, 4])
    assert checkpoints[0].path.name == "epoch=1-step=8.ckpt"
    curves = read_training(folder, checkpoints)
    assert curves is not None
    values = [(entry.step, dict(entry.values)) for entry in curves.entries]
    assert values == [(4, {"train/loss": 2.5, "val/loss": 2.0}), (8, {"train/loss": 1.5})]
    # Half a number is another number.
    with (version / "metrics.csv").open("a") as file:
        file.write("1,8,1.4")
    assert read_training(folder, checkpoints) is None


@pytest.mark.quick
def test_completeness_is_told_by_content(tmp_path: Path) -> None:
    archive, table = tmp_path / "a.pt", tmp_path / "a.safetensors"
    tensors = {"w": torch.arange(5_000.0)}
    torch.save({"epoch": 7, "global_step": 300, "state_dict": tensors}, archive)
    save_file(tensors, table)
    assert numbers_inside(archive, "epoch", "global_step") == {"epoch": 7, "global_step": 300}
    for file, is_complete in ((archive, is_complete_archive), (table, is_complete_safetensors)):
        content = file.read_bytes()
        assert is_complete(file)
        for length in {0, 1, 4, 8, 100, len(content) // 2, *range(len(content) - 30, len(content))}:
            file.write_bytes(content[:length])
            assert not is_complete(file), length
        # Of the right size, and not yet filled.
        file.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))
        assert is_complete(file) == (file is table)


def test_event_files_of_open_clip_count_updates(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    run = tmp_path / "toy"
    run.mkdir()
    line = "2026-11-28,12:00:01 | INFO | Train Epoch: 0 [ 8/8 (100%)] Loss: 2.0 (2.0)\n"
    (run / "out.log").write_text(line)
    (run / "params.txt").write_text("accum_freq: 1\nbatch_size: 2\nworld_size: 1\n")
    writer = SummaryWriter(str(run / "tensorboard"))
    for step in range(8):
        for name in ("loss", "scale", "samples_per_second"):
            writer.add_scalar(f"train/{name}", float(step), step)
    for epoch in (1, 2):
        writer.add_scalar("val/clip_val_loss", float(epoch), epoch)
    writer.close()
    workspace = Workspace(tmp_path / "workspace")
    (imported,) = import_curves(workspace, run / "tensorboard")
    steps, _, _ = workspace.results.series(imported.id, "val/loss")
    assert steps.tolist() == [4, 8]
    steps, _, _ = workspace.results.series(imported.id, "train/inv_tau")
    assert steps.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    (run / "out.log").unlink()
    (imported,) = import_curves(workspace, run / "tensorboard")
    assert "count epochs" in " ".join(imported.notes)


def save_state(folder: Path, step: int, history: list[dict[str, float]]) -> None:
    """Write a checkpoint with few weights."""
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir(parents=True, exist_ok=True)
    save_file({"w": torch.zeros(2)}, checkpoint / "model.safetensors")
    state = {"global_step": step, "max_steps": 100, "log_history": history}
    (checkpoint / "trainer_state.json").write_text(json.dumps(state))


def test_a_folder_of_transformers_that_went_back_has_no_step_of_the_time_before(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for step in (10, 20, 30):
        history = [{"loss": 2.0, "step": 10}, {"loss": 1.0, "step": 20}, {"loss": 0.5, "step": 30}]
        save_state(out, step, history[: step // 10])
        os.utime(out / f"checkpoint-{step}" / "trainer_state.json", (step, step))
    folder, workspace = watched_folder(out), Workspace(tmp_path / "workspace")

    def losses() -> dict[int, float]:
        with watched_run(workspace, folder, name="", dataset="val") as log:
            watch = FolderWatch(workspace, log, folder, None)
            while watch.look():
                pass
            log.status("stopped")
        steps, values, _ = workspace.results.series(log.run.id, "train/loss")
        return dict(zip(steps.tolist(), values.tolist(), strict=True))

    # Resumed from the first, and the second is written again.
    save_state(out, 20, [{"loss": 2.0, "step": 10}, {"loss": 9.0, "step": 20}])
    assert losses() == {10: 2.0, 20: 9.0}
    save_state(out, 30, [{"loss": 2.0, "step": 10}, {"loss": 9.0, "step": 20}, {"loss": 8.0, "step": 30}])
    assert losses() == {10: 2.0, 20: 9.0, 30: 8.0}
