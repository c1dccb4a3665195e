"""Lightning and transformers themselves log toy trainings; what they log is what they hand over, at our steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from trainer import api as ce
from trainer.store import RunRow, Workspace, read_snapshot

pytestmark = pytest.mark.slow

TRAIN, HELD, WIDTH = 24, 12, 6
EPOCHS, BATCH = 3, 8
UPDATES = TRAIN // BATCH


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)


def only_run(folder: Path) -> RunRow:
    (row,) = Workspace(folder).runs.all()
    return row


def series(folder: Path, name: str) -> dict[int, float]:
    steps, values, _ = Workspace(folder).results.series(only_run(folder).id, name)
    return dict(zip(steps.tolist(), values.tolist()))


class TestLightning:
    @pytest.fixture
    def module(self) -> Any:
        pytest.importorskip("lightning.pytorch")
        import lightning.pytorch as pl

        class Pairs(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.save_hyperparameters({"width": WIDTH})
                self.towers = torch.nn.ModuleList([torch.nn.Linear(WIDTH, 4) for _ in range(2)])
                self.seen: dict[int, float] = {}

            def training_step(self, batch: Any, batch_idx: int) -> Any:
                image, text, _ = batch
                loss = (self.towers[0](image) - self.towers[1](text)).square().mean()
                self.log("train/loss", loss)
                self.seen[self.global_step + 1] = loss.item()
                return loss

            def validation_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
                image, text, ids = batch
                image, text = self.towers[0](image), self.towers[1](text)
                self.log("val_loss", (image - text).square().mean())
                return {"image": image, "text": text, "items": {"id": ids.tolist()}}

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.1)

        torch.manual_seed(0)
        return Pairs()

    @pytest.fixture
    def trained(self, module: Any, tmp_path: Path) -> Any:
        import lightning.pytorch as pl

        def train(**options: Any) -> Any:
            logger = ce.LightningLogger(tmp_path / "runs", name="toy")
            trainer = pl.Trainer(
                max_epochs=EPOCHS,
                logger=logger,
                callbacks=[ce.LightningCallback(logger), *options.pop("callbacks", [])],
                accelerator="cpu",
                log_every_n_steps=1,
                default_root_dir=tmp_path,
                enable_progress_bar=False,
                enable_model_summary=False,
                **options,
            )
            train_loader, held_loader = (
                DataLoader(TensorDataset(torch.randn(n, WIDTH), torch.randn(n, WIDTH), torch.arange(n)), BATCH)
                for n in (TRAIN, HELD)
            )
            trainer.fit(module, train_loader, held_loader)
            return trainer

        return train

    def test_a_fit_is_one_run(self, module: Any, trained: Any, tmp_path: Path) -> None:
        trainer = trained()
        row = only_run(tmp_path / "runs")
        total = EPOCHS * UPDATES
        assert (row.name, row.status, row.step, row.total_steps) == ("toy", "finished", total, total)
        assert row.facts["imported_settings"] == {"width": str(WIDTH)}
        losses = series(tmp_path / "runs", "train/loss")
        assert losses == {step: pytest.approx(loss) for step, loss in module.seen.items()}
        assert list(losses) == list(range(1, total + 1))
        assert list(series(tmp_path / "runs", "val/loss")) == [3, 6, 9]
        snapshots = Workspace(tmp_path / "runs").results.snapshots(row.id)
        # The check before the training, of two batches, is no step.
        assert [(snapshot.step, snapshot.n) for snapshot in snapshots] == [(3, HELD), (6, HELD), (9, HELD)]
        assert list(read_snapshot(snapshots[0].folder).items.id) == list(range(HELD))
        saved = row.facts["checkpoints_elsewhere"]
        assert list(saved) == [str(total)]
        assert Path(saved[str(total)]).is_file()
        assert trainer.checkpoint_callback.best_model_path == saved[str(total)]

    def test_an_exception_fails_the_run(self, module: Any, trained: Any, tmp_path: Path) -> None:
        step = module.training_step

        def diverging(batch: Any, batch_idx: int) -> Any:
            if module.global_step == 4:
                raise ValueError("the loss diverged")
            return step(batch, batch_idx)

        module.training_step = diverging
        with pytest.raises(ValueError, match="diverged"):
            trained()
        row = only_run(tmp_path / "runs")
        assert (row.status, row.reason, row.step) == ("failed", "the loss diverged", 4)

    def test_a_stop_of_the_window_ends_the_fit(self, trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        import lightning.pytorch as pl

        class Stops(pl.Callback):
            def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
                monkeypatch.setattr(type(trainer.logger.experiment), "stopping", True)

        assert trained(callbacks=[Stops()]).global_step < EPOCHS * UPDATES


class TestTransformers:
    @pytest.fixture
    def trained(self, tmp_path: Path) -> Any:
        transformers = pytest.importorskip("transformers")
        pytest.importorskip("accelerate", reason="the Trainer of transformers needs it")
        vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        model = transformers.CLIPModel(
            transformers.CLIPConfig(
                text_config={**vision, "vocab_size": 20, "max_position_embeddings": 8, "eos_token_id": 19},
                vision_config={**vision, "image_size": 8, "patch_size": 4},
                projection_dim=WIDTH,
            )
        )
        generator = torch.Generator().manual_seed(0)

        def pairs(n: int) -> list[dict[str, Any]]:
            pixels = torch.randn(n, 3, 8, 8, generator=generator)
            tokens = torch.randint(3, 18, (n, 5), generator=generator)
            tokens[:, -1] = 19
            return [
                {"pixel_values": pixels[i], "input_ids": tokens[i], "labels": torch.tensor(i), "return_loss": True}
                for i in range(n)
            ]

        def collate(batch: list[dict[str, Any]]) -> dict[str, Any]:
            stacked = {name: torch.stack([pair[name] for pair in batch]) for name in ("pixel_values", "input_ids")}
            return {**stacked, "return_loss": True}

        callback = ce.TransformersCallback(tmp_path / "runs", name="toy")
        trainer = transformers.Trainer(
            model,
            transformers.TrainingArguments(
                output_dir=str(tmp_path / "out"),
                num_train_epochs=EPOCHS,
                per_device_train_batch_size=BATCH,
                per_device_eval_batch_size=BATCH,
                logging_steps=1,
                eval_strategy="epoch",
                save_strategy="epoch",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                remove_unused_columns=False,
                label_names=[],
            ),
            train_dataset=pairs(TRAIN),
            eval_dataset=pairs(HELD),
            data_collator=collate,
            callbacks=[callback],
            compute_metrics=callback.with_embeddings(
                lambda prediction: {"image_to_text_R@1": 0.25}, items={"id": [f"v{i}" for i in range(HELD)]}
            ),
        )
        # Without labels the loss of CLIPModel is asked for by `return_loss` alone.
        trainer.can_return_loss = True
        trainer.train()
        return trainer

    def test_a_training_is_one_run(self, trained: Any, tmp_path: Path) -> None:
        row = only_run(tmp_path / "runs")
        total = EPOCHS * UPDATES
        assert (row.name, row.status, row.step, row.total_steps) == ("toy", "finished", total, total)
        assert (row.facts["val_batch"], row.facts["imported_settings"]["num_train_epochs"]) == (BATCH, str(EPOCHS))
        history = {entry["step"]: entry["loss"] for entry in trained.state.log_history if "loss" in entry}
        assert series(tmp_path / "runs", "train/loss") == {step: pytest.approx(v) for step, v in history.items()}
        assert list(history) == list(range(1, total + 1))
        evaluated = {entry["step"]: entry["eval_loss"] for entry in trained.state.log_history if "eval_loss" in entry}
        assert series(tmp_path / "runs", "val/loss") == {step: pytest.approx(v) for step, v in evaluated.items()}
        assert series(tmp_path / "runs", "val/image_to_text_R@1") == {3: 0.25, 6: 0.25, 9: 0.25}
        assert not {"epoch", "train_loss", "train_runtime"} & set(
            Workspace(tmp_path / "runs").results.scalar_names(row.id)
        )
        folders = row.facts["checkpoints_elsewhere"]
        assert list(folders) == ["3", "6", "9"]
        assert all((Path(folder) / "model.safetensors").is_file() for folder in folders.values())

    def test_the_embeddings_of_each_evaluation_are_a_step(self, trained: Any, tmp_path: Path) -> None:
        store = Workspace(tmp_path / "runs")
        snapshots = store.results.snapshots(only_run(tmp_path / "runs").id)
        assert [snapshot.step for snapshot in snapshots] == [3, 6, 9]
        stored = read_snapshot(snapshots[-1].folder)
        assert list(stored.items.id) == [f"v{i}" for i in range(HELD)]
        model = trained.model.eval()
        pixels = torch.stack([pair["pixel_values"] for pair in trained.eval_dataset])
        tokens = torch.stack([pair["input_ids"] for pair in trained.eval_dataset])
        with torch.no_grad():
            outputs = model(pixel_values=pixels, input_ids=tokens)
        for side, expected in (("image", outputs.image_embeds), ("text", outputs.text_embeds)):
            unit = torch.nn.functional.normalize(expected, dim=1).numpy()
            np.testing.assert_allclose(getattr(stored, side), unit, atol=2e-3)
