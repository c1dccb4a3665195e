"""Logs that a person's own training writes: tables and JSON lines with a column of steps become curves."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.trained_once import folder_of
from tests.trainer.trackers.test_importing import notes, points
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.trackers.import_curves import import_curves
from trainer.trackers.recognition import tracker_of
from trainer.untrusted.bounded.log_reading import LogReading, document_records
from trainer.untrusted.bounded.tracker_files import _results

pytestmark = [pytest.mark.slow]


def curves_of(file: Path, tmp_path: Path) -> tuple[dict[str, dict[int, float]], str]:
    """Import a log; return its curves and what was said of it."""
    workspace = Workspace(tmp_path / "ws")
    try:
        (run,) = import_curves(workspace, file)
        names = workspace.results.scalar_names(run.id)
        said = notes(workspace, run.id) if "import_notes" in workspace.runs.get(run.id).facts else ""
        return {name: points(workspace, run.id, name) for name in names}, said
    finally:
        workspace.close()


def _log(folder: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger
    from timm.utils.summary import update_summary
    from transformers import TrainerState

    for epoch in range(7):
        train, evaluation = {"loss": 5 / (epoch + 1)}, {"loss": 6 / (epoch + 1), "top1": 10.0 * epoch}
        file = folder / "summary.csv"
        update_summary(epoch, train, evaluation, str(file), lr=1e-3 * epoch, write_header=not epoch)
    for version in range(2):
        logger = CSVLogger(str(folder / "logs"), name="clip")
        for step in range(6):
            logger.log_metrics({"train_loss": 5 - version - step / 10, "epoch": step // 3}, step=step)
        logger.log_metrics({"val_loss": 4.0 - version}, step=5)
        logger.save()
    for step in (9, 10):
        log = [{"loss": 5 - n / 2, "epoch": n / 4, "step": n} for n in range(1, step + 1)]
        evaluated = [*log[:-1], {"eval_loss": 2.0, "epoch": step / 4, "step": step}]
        for name, history in (("trained", log), ("evaluated", evaluated)):
            file = folder / name / f"checkpoint-{step}" / "trainer_state.json"
            file.parent.mkdir(parents=True)
            TrainerState(log_history=history).save_to_json(str(file))


@pytest.fixture
def logged() -> Path:
    """Return what timm, Lightning and transformers have written, which takes ten seconds to import."""
    return folder_of(_log, "training-logs", written_by=["timm", "lightning", "transformers"])


def test_a_summary_of_timm_has_the_numbers_that_pandas_reads(tmp_path: Path, logged: Path) -> None:
    import pandas as pd

    file = Path(shutil.copy(logged / "summary.csv", tmp_path))
    curves, said = curves_of(tmp_path, tmp_path)
    table = pd.read_csv(file)
    for name in ("train_loss", "eval_loss", "eval_top1"):
        assert curves[name] == dict(zip(table["epoch"], table[name], strict=True))
    assert said == "Its steps are epochs, by the column 'epoch'."


def test_versions_of_lightning_are_runs_wherever_one_points_to(tmp_path: Path, logged: Path) -> None:
    import pandas as pd

    shutil.copytree(logged / "logs", tmp_path / "logs")
    workspace = Workspace(tmp_path / "ws")
    try:
        for folder, before in ((tmp_path / "logs", "clip-"), (tmp_path / "logs" / "clip", "")):
            runs = import_curves(workspace, folder)
            assert [run.name for run in runs] == [f"{before}version_{version}" for version in range(2)]
            for version, run in enumerate(runs):
                table = pd.read_csv(tmp_path / "logs" / "clip" / f"version_{version}" / "metrics.csv")
                for name in ("train_loss", "val_loss"):
                    numbers = table[["step", name]].dropna()
                    assert points(workspace, run.id, name) == dict(numbers.itertuples(index=False))
    finally:
        workspace.close()


def test_lines_of_json_under_any_name_have_their_numbers(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"iter": 10 * n, "loss": 1 / (n + 1), "eval": {"r1": n}, "note": "warm"} for n in range(9)
    ]
    file = tmp_path / "log.txt"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    curves, said = curves_of(file, tmp_path)
    assert curves == {
        "loss": {record["iter"]: record["loss"] for record in records},
        "eval.r1": {record["iter"]: record["eval"]["r1"] for record in records},
    }
    assert said == "Columns of texts are not read: 'note'."


@pytest.mark.parametrize(
    ("text", "curves", "said"),
    [
        (
            "epoch,split,loss\n0,train,4\n0,val,4.5\n1,train,3\n1,val,3.5\n",
            {"train/loss": {0: 4, 1: 3}, "val/loss": {0: 4.5, 1: 3.5}},
            "Its steps are epochs, by the column 'epoch'.",
        ),
        (
            "step,metric,value\n0,loss,4\n1,loss,3\n0,acc,1\n1,acc,2\n",
            {"loss": {0: 4, 1: 3}, "acc": {0: 1, 1: 2}},
            "",
        ),
        ("Wall time,Step,Value\n1700000000.5,0,4\n1700000010.5,10,2\n", {"log": {0: 4, 10: 2}}, ""),
        ("step,loss\n0,9\n1,8\n2,7\n3,6\n2,5\n3,4\n", {"loss": {0: 9, 1: 8, 2: 5, 3: 4}}, "logged again (2)."),
        (
            "epoch,step,loss\n0,0,9\n0,50,8\n1,0,7\n1,50,6\n",
            {"loss": {0: 9, 50: 8, 51: 7, 101: 6}},
            "Steps start over in each epoch: they were put one after the other, which is a guess.",
        ),
        (
            "\ufeffStep;Loss;Note\n0;0,5;warm\n1;0,25;\n",
            {"Loss": {0: 0.5, 1: 0.25}},
            "Numbers with a comma (2) were read with a decimal point. Columns of texts are not read: 'Note'.",
        ),
        (
            "epoch,batch,loss\n0,0,9\n0,1,8\n1,0,7\n",
            {"loss": {0: 9, 1: 8, 2: 7}},
            "Steps start over in each epoch: they were put one after the other, which is a guess.",
        ),
        ("Global Step,Loss\n0,1\n10,2\n", {"Loss": {0: 1, 10: 2}}, ""),
        ("step,loss,loss\n0,1,2\n1,3,4\n", {"loss": {0: 1, 1: 3}, "loss (2)": {0: 2, 1: 4}}, ""),
        ("epoch,loss\n0,1\n0.5,2\n1,3\n", {"loss": {0: 1, 500: 2, 1000: 3}}, "at thousandths of an epoch"),
        (" epoch, box\n 1, 2\n", {"box": {1: 2}}, "Its steps are epochs, by the column 'epoch'."),
        (",loss\n0,1\n1,3\n", {"loss": {0: 1, 1: 3}}, "Its steps are its first column, which has no name: a guess."),
        (
            "epoch,steps,cosine_pearson\n0,-1,0.5\n1,-1,0.75\n",
            {"cosine_pearson": {0: 0.5, 1: 0.75}},
            "Rows that count no steps are at their epoch, which is a guess.",
        ),
        (
            "epoch,steps,cosine_pearson\n0.5,50,0.5\n1.0,-1,0.75\n1.5,150,0.25\n",
            {"cosine_pearson": {50: 0.75, 150: 0.25}},
            "Rows that count no steps are at the last step before them, which is a guess.",
        ),
    ],
    ids=[
        *(
            "parts",
            "tidy",
            "tensorboard",
            "resumed",
            "anew",
            "comma",
            "batches",
            "words",
            "twice",
            "half",
            "ultralytics",
            "pandas",
        ),
        *("sentence-transformers", "sentence-transformers within epochs"),
    ],
)
def test_tables_have_their_numbers(tmp_path: Path, text: str, curves: dict[str, Any], said: str) -> None:
    file = tmp_path / "log.csv"
    file.write_text(text, encoding="utf-8")
    assert tracker_of(file) == "log"
    read, sentences = curves_of(file, tmp_path)
    assert read == curves
    assert said in sentences
    assert bool(said) == bool(sentences)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("captions.csv", "step,filepath,title\n1,0.png,a cat\n"),
        ("scores.csv", "loss,acc\n1,2\n"),
        ("train.log", "2024-01-01 INFO Epoch [1/30] step 100 loss: 4.0\n"),
        ("trainer_state.json", json.dumps({"global_step": 100, "max_steps": 100}, indent=2)),
        ("notes.txt", "step,loss\n1,2\n"),
        ("recipe.txt", "Step 1: take 3 eggs.\nStep 2: add 2 cups.\nStep 3: bake 30 min.\nIn epoch 2 it rose.\n"),
    ],
)
def test_a_list_of_images_a_document_or_prose_is_no_log(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert tracker_of(tmp_path / name) is None


PRINTED = {
    "examples/imagenet of PyTorch": (
        [
            f"Epoch: [{epoch}][{batch:4d}/20]\tTime  0.311 ( 0.501)\tLoss {7 - epoch - batch / 20:.4e} (6.9e+00)\t"
            f"Acc@1   {epoch:.2f} (  0.78)"
            for epoch in range(2)
            for batch in (0, 10)
        ],
        {"Loss": {0: 7, 10: 6.5, 11: 6, 21: 5.5}, "Acc@1": {0: 0, 10: 0, 11: 1, 21: 1}},
    ),
    "examples/mnist of PyTorch": (
        [
            "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.298158",
            "Train Epoch: 1 [640/60000 (1%)]\tLoss: 1.75",
            "",
            "Test set: Average loss: 0.0483, Accuracy: 9842/10000 (98%)",
            "Train Epoch: 2 [0/60000 (0%)]\tLoss: nan",
        ],
        {"train/Loss": {0: 2.298158, 640: 1.75, 641: float("nan")}},
    ),
    "references of torchvision, MAE, DETR": (
        [
            f"Epoch: [{epoch}]  [{batch:4d}/1251]  eta: 0:01:10  lr: 0.1  loss: {3 - epoch - batch / 100} (9)  mem: 3"
            for epoch in range(2)
            for batch in (0, 10)
        ],
        {
            "loss": {0: 3, 10: 2.9, 11: 2, 21: 1.9},
            "lr": dict.fromkeys((0, 10, 11, 21), 0.1),
            "mem": dict.fromkeys((0, 10, 11, 21), 3),
        },
    ),
    "CoOp": (
        [
            f"epoch [{epoch}/50] batch [{batch}/12] time 0.101 (0.201) data 0.5 (0.3) loss {epoch}.{batch:02} (1.5) "
            f"acc {batch}.5 (2.0) lr 2.0e-03 eta 0:01:02"
            for epoch in (1, 2)
            for batch in (5, 10)
        ],
        {
            "loss": {5: 1.05, 10: 1.1, 15: 2.05, 20: 2.1},
            "acc": {5: 5.5, 10: 10.5, 15: 5.5, 20: 10.5},
            **{name: dict.fromkeys((5, 10, 15, 20), value) for name, value in (("lr", 0.002), ("data", 0.5))},
            "time": dict.fromkeys((5, 10, 15, 20), 0.101),
        },
    ),
    "timm": (
        [
            f"Train: {n} [   0/1251 (  0%)]  Loss: 6.9{n} (6.95)  Time: 8.2s,  31.1/s  LR: 1.0e-0{n + 4}"
            for n in range(3)
        ],
        {"train/Loss": {0: 6.9, 1: 6.91, 2: 6.92}, "train/LR": {0: 1e-4, 1: 1e-5, 2: 1e-6}},
    ),
    "transfer learning of PyTorch": (
        [
            line
            for n in range(3)
            for line in (
                f"Epoch {n}/2",
                "-" * 10,
                f"train Loss: {3 - n}.25 Acc: 0.{n}",
                f"val Loss: {3 - n}.5 Acc: 0.{n + 1}",
            )
        ],
        {
            "train/Loss": {n: 3.25 - n for n in range(3)},
            "train/Acc": {n: n / 10 for n in range(3)},
            "val/Loss": {n: 3.5 - n for n in range(3)},
            "val/Acc": {n: (n + 1) / 10 for n in range(3)},
        },
    ),
    "Keras": (
        [
            line
            for n in range(1, 4)
            for line in (
                f"Epoch {n}/3",
                f"  1/938 [....] - ETA: 2:10 - loss: 9\r938/938 [====] - 2s 2ms/step - loss: {4 - n}.5 - val_loss: {n}",
            )
        ],
        {"loss": {n: 4.5 - n for n in range(1, 4)}, "val_loss": {n: n for n in range(1, 4)}},
    ),
    "nanoGPT": (
        [
            line
            for n in range(3)
            for line in (
                f"step {n * 250}: train loss {4 - n:.4f}, val loss {4.5 - n:.4f}",
                f"iter {n * 250}: loss 4, time 9ms",
            )
        ],
        {
            "train loss": {0: 4, 250: 3, 500: 2},
            "val loss": {0: 4.5, 250: 3.5, 500: 2.5},
            "loss": {0: 4, 250: 4, 500: 4},
        },
    ),
    "Trainer of transformers 4": (
        [
            line
            for n in range(1, 4)
            for line in (
                f"{{'loss': {4 - n}.5, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': {n / 2}}}",
                f"{{'eval_loss': {4 - n}, 'eval_runtime': 3.2, 'epoch': {n / 2}}}",
            )
        ],
        {
            "loss": {n * 500: 4.5 - n for n in range(1, 4)},
            "grad_norm": dict.fromkeys((500, 1000, 1500), float("nan")),
            "learning_rate": dict.fromkeys((500, 1000, 1500), 5e-5),
            "eval_loss": {n * 500: 4 - n for n in range(1, 4)},
            "eval_runtime": dict.fromkeys((500, 1000, 1500), 3.2),
        },
    ),
    "tqdm of epochs, which Lightning draws": (
        [
            "\r".join(f"Epoch {n}:  50%|##  | {at}/4 [00:00<00:01, 9.8it/s, v_num=0, loss={n}.{at}]" for at in (2, 4))
            for n in range(2)
        ],
        {"loss": {2: 0.2, 4: 0.4, 6: 1.2, 8: 1.4}, "v_num": dict.fromkeys((2, 4, 6, 8), 0)},
    ),
    "tqdm without a name": (
        [f"\r 50%|##  | {at}/4 [00:00<00:01, 9.8it/s, loss={n}.{at}]" for n in range(2) for at in (2, 4)],
        {"loss": {2: 0.2, 4: 0.4, 6: 1.2, 8: 1.4}},
    ),
    "DeepSpeed with the Trainer of transformers": (
        [
            line
            for n in range(1, 4)
            for line in (
                f"[2024-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] step={n}, skipped=0, lr=[1e-05]",
                f"{{'loss': {n}.5, 'epoch': {n}.5}}",
            )
        ],
        {"skipped": dict.fromkeys((1, 2, 3), 0), "loss": {n * 1000 + 500: n + 0.5 for n in range(1, 4)}},
    ),
    "Trainer of transformers 5": (
        [f"{{'loss': '{4 - n}.5', 'epoch': '{n}.0256'}}" for n in range(3)],
        {"loss": {n * 1000 + 26: 4.5 - n for n in range(3)}},
    ),
    "a logger of one's own": (
        [f"2024-01-02 03:04:0{n} INFO global_step={n} {{'loss': {n}.5, 'lr': 1e-4}} eta 0:12:33" for n in range(4)],
        {"loss": {n: n + 0.5 for n in range(4)}, "lr": dict.fromkeys(range(4), 1e-4)},
    ),
}


@pytest.mark.parametrize("printed", PRINTED)
def test_lines_that_a_training_prints_have_their_numbers(tmp_path: Path, printed: str) -> None:
    lines, expected = PRINTED[printed]
    log = tmp_path / "train.log"
    log.write_text("\n".join(["Namespace(lr=0.1, epochs=90)", "=> creating model 'resnet50'", *lines, "done"]))
    assert tracker_of(log) == "log"
    curves, said = curves_of(log, tmp_path)
    assert expected.keys() <= curves.keys() <= {*expected, "Time"}
    for name, curve in expected.items():
        assert curves[name] == pytest.approx(curve, nan_ok=True), name
    assert "which is a guess; " in said


def test_the_state_of_a_trainer_of_transformers_has_what_it_logged(tmp_path: Path, logged: Path) -> None:
    shutil.copytree(logged / "evaluated", tmp_path, dirs_exist_ok=True)
    newest = tmp_path / "checkpoint-10"
    for path in (newest / "trainer_state.json", newest, tmp_path):
        curves, said = curves_of(path, tmp_path)
        assert curves == {"loss": {n: 5 - n / 2 for n in range(1, 10)}, "eval_loss": {10: 2.0}}
        assert said == ""


@pytest.mark.parametrize(
    ("name", "text", "curves", "said"),
    [
        ("training.log", "epoch,loss,val_loss\n0,3,4\n1,2,NA\n", {"loss": {0: 3, 1: 2}, "val_loss": {0: 4}}, "epochs"),
        (
            "history.json",
            json.dumps({"loss": [3, 2], "val_loss": [4]}),
            {"loss": {0: 3, 1: 2}},
            "which is a guess. Lists of more or fewer than 2 numbers are not read: 'val_loss'.",
        ),
        (
            "scalars.json",
            "".join(
                f"{json.dumps(record)}\n"
                for record in (
                    {"loss": 3, "time": 0.5, "epoch": 1, "iter": 50, "step": 50},
                    {"acc": 7, "time": 0.25, "step": 1},
                    {"loss": 2, "time": 0.5, "epoch": 2, "iter": 100, "step": 100},
                    {"acc": 8, "time": 0.25, "step": 2},
                )
            ),
            {"loss": {50: 3, 100: 2}, "acc": {50: 7, 100: 8}}
            | {"time": {50: 0.5, 100: 0.5}, "val/time": {50: 0.25, 100: 0.25}},
            "Rows that count no steps are at the last step before them, which is a guess.",
        ),
        ("history.json", '{"train_losses": [3, 2]}', {"train_losses": {0: 3, 1: 2}}, "which is a guess"),
        ("progress.csv", "loss,training_iteration\n3,1\n2,2\n", {"loss": {1: 3, 2: 2}}, ""),
        ("progress.csv", "time/total_timesteps,loss\n90,3\n", {"loss": {90: 3}}, ""),
        (
            "comet.json",
            json.dumps([{"metricName": name, "metricValue": "3.5", "step": 7, "timestamp": 1} for name in ("a", "b")]),
            {"a": {7: 3.5}, "b": {7: 3.5}},
            "",
        ),
        ("run-clip-tag-loss_train.csv", "Wall time,Step,Value\n1700000000,1,2\n", {"loss_train": {1: 2}}, ""),
    ],
)
def test_files_of_other_libraries_have_their_numbers(
    tmp_path: Path, name: str, text: str, curves: dict[str, Any], said: str
) -> None:
    (tmp_path / name).write_text(text)
    read, sentences = curves_of(tmp_path / name, tmp_path)
    assert read == curves
    assert said in sentences


def test_a_dropped_log_is_imported_as_curves(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n0,1\n1,2\n")
    assert tracker_of(tmp_path / "log.csv") == "log"


def test_what_a_log_holds_beside_its_steps_is_told() -> None:
    remarks: dict[str, None] = {}
    assert document_records({"log_history": [{"step": 1, "loss": 2.0}, 7, None]}, remarks) == [{"step": 1, "loss": 2.0}]
    assert list(remarks) == ["Of its log_history 2 entries are not read: an object is expected."]
    reading = LogReading("log")
    rows = [row for row in reading.rows({"step": 3, "iter": 30, "loss": 1.0}) if row is not None]
    assert [(row.name, row.step) for row in rows] == [("loss", 3)]
    assert list(reading.notes) == ["Steps are counted by 'step'; 'iter' is not read."]


def test_checkpoints_and_summaries_of_one_training_are_one_run_and_those_of_two_are_two(
    tmp_path: Path, logged: Path
) -> None:
    for name in ("a", "b"):
        shutil.copytree(logged / "trained", tmp_path / name)
    (tmp_path / "a" / "all_results.json").write_text(json.dumps({"epoch": 3.0, "train_loss": 3.0}))
    (tmp_path / "a" / "eval").mkdir()
    (tmp_path / "a" / "eval" / "triplet_evaluation_results.csv").write_text("epoch,steps,accuracy\n0.5,5,0.5\n")
    curves, said = curves_of(tmp_path / "a", tmp_path / "1")
    assert curves == {"loss": {n: 5 - n / 2 for n in range(1, 11)}}
    read = "checkpoint-10/trainer_state.json"
    assert said == f"Not read next to {read}: all_results.json, eval/triplet_evaluation_results.csv."
    workspace = Workspace(tmp_path / "ws")
    try:
        assert [run.name for run in import_curves(workspace, tmp_path)] == ["a", "b"]
    finally:
        workspace.close()


def test_a_folder_of_mmengine_is_one_run_for_each_of_its_starts(tmp_path: Path) -> None:
    for start in ("20240101_000000", "20240102_000000"):
        folder = tmp_path / "work" / start
        (folder / "vis_data").mkdir(parents=True)
        scalars = "".join(
            json.dumps({"loss": 3 - n / 10, "epoch": 1, "iter": n, "step": n}) + "\n" for n in range(1, 5)
        )
        for name in ("scalars.json", f"{start}.json"):
            (folder / "vis_data" / name).write_text(scalars)
        printed = (f"01/01 00:00:0{n} - INFO - Epoch(train) [1][{n}/4]  loss: {3 - n / 10}\n" for n in range(1, 5))
        (folder / f"{start}.log").write_text("".join(printed))
    curves, said = curves_of(folder, tmp_path / "1")
    assert curves == curves_of(folder / "vis_data", tmp_path / "2")[0]
    assert curves["loss"] == {n: 3 - n / 10 for n in range(1, 5)}
    assert said.endswith("Not read next to vis_data/scalars.json: 20240102_000000.log, vis_data/20240102_000000.json.")
    workspace = Workspace(tmp_path / "ws")
    try:
        runs = import_curves(workspace, tmp_path / "work")
        assert [(run.name, run.curves) for run in runs] == [("20240101_000000", 1), ("20240102_000000", 1)]
    finally:
        workspace.close()


def test_tables_from_tensorboards_page_are_curves_of_the_runs_that_their_names_state(tmp_path: Path) -> None:
    files = ["run-clip_a-tag-loss.csv", "run-clip_a-tag-acc_val.csv", "run-clip_b-tag-loss.csv"]
    for number, name in enumerate([*files, "run-clip_a-tag-loss (1).csv"]):
        (tmp_path / name).write_text(f"Wall time,Step,Value\n1700000000,0,{number}\n1700000001,10,{number}.5\n")
    workspace = Workspace(tmp_path / "ws")
    try:
        runs = import_curves(workspace, tmp_path)
        names = {run.name: workspace.results.scalar_names(run.id) for run in runs}
        assert {name: sorted(found) for name, found in names.items()} == {
            "clip_a": ["acc_val", "loss"],
            "clip_a (1)": ["loss (1)"],
            "clip_b": ["loss"],
        }
        assert points(workspace, runs[0].id, "loss") == {0: 0, 10: 0.5}
        guess = "2 tables that TensorBoard's page names by one run are its curves, which is a guess."
        assert [run.notes for run in runs] == [(guess,), (), ()]
    finally:
        workspace.close()


def test_what_open_clip_classifies_without_pairs_to_validate_on_is_at_its_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import logging
    from types import SimpleNamespace

    import open_clip_train.train as open_clip_training
    import torch

    accuracies = {0: 0.12344, 2: 0.25, 4: 0.25}
    named = "imagenet-zeroshot-val-top1"
    monkeypatch.setattr(
        open_clip_training,
        "zero_shot_eval",
        lambda model, data, epoch, args, tokenizer: {named: accuracies[epoch]} if epoch in accuracies else {},
    )
    (tmp_path / "oc" / "checkpoints").mkdir(parents=True)
    (tmp_path / "oc" / "params.txt").write_text("batch_size: 10\nworld_size: 1\naccum_freq: 1\n")
    log = logging.FileHandler(tmp_path / "oc" / "out.log")
    log.setFormatter(logging.Formatter("%(asctime)s | %(levelname)s | %(message)s", datefmt="%Y-%m-%d,%H:%M:%S"))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(log)
    root.setLevel(logging.INFO)
    args = SimpleNamespace(
        device="cpu", precision="fp32", save_logs=True, wandb=False, rank=0, local_rank=0, distributed=False
    )
    args.checkpoint_path = str(tmp_path / "oc" / "checkpoints")
    for epoch in range(5):
        if epoch:
            for step in range(1, 11):
                logging.info(f"Train Epoch: {epoch - 1} [{10 * step}/100 ({10 * step}%)] LR: 0.001 Loss: {step} (5.0)")
        open_clip_training.evaluate(torch.nn.Identity(), {}, epoch, args)
    root.removeHandler(log)
    root.setLevel(level)
    log.close()
    curves, said = curves_of(tmp_path / "oc", tmp_path)
    assert curves["val/zero_shot_acc1"] == {10 * epoch: value for epoch, value in accuracies.items()}
    assert "which out.log has not" not in said


def test_records_of_open_clip_without_a_log_are_a_guess(tmp_path: Path) -> None:
    (tmp_path / "params.txt").write_text("batch_size: 10\n")
    (tmp_path / "out.log").write_text("")
    (tmp_path / "results.jsonl").write_text('{"top1": 0.5}\n{"top1": 0.75}\n')
    with pytest.raises(UserError, match=r"without an epoch, which out.log has not \(2\)"):
        curves_of(tmp_path, tmp_path / "1")
    rows = [row for row in _results(tmp_path / "results.jsonl") if row is not None]
    assert not any(row.name == "val/top1" for row in rows)
    (tmp_path / "out.log").unlink()
    rows = [row for row in _results(tmp_path / "results.jsonl") if row is not None]
    assert {row.step: row.value for row in rows if not row.remark} == {1: 0.5, 2: 0.75}
    assert rows[-1].text == "Lines of results.jsonl without an epoch are counted from 1 on, which is a guess."


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_json_objects_has_the_numbers_that_pandas_reads(tmp_path: Path, indent: int | None) -> None:
    import pandas as pd

    file = tmp_path / "log.json"
    file.write_text(json.dumps([{"step": 10 * n, "loss": 1 / (n + 1), "note": "x"} for n in range(5)], indent=indent))
    peer = pd.read_json(file, precise_float=True)
    curves, said = curves_of(file, tmp_path)
    assert curves == {"loss": dict(zip(peer["step"], peer["loss"], strict=True))}
    assert said == "Columns of texts are not read: 'note'."


@pytest.mark.parametrize("name", ["summary.csv", "results.csv", "metrics.jsonl"])
def test_folders_with_a_log_each_are_runs(tmp_path: Path, name: str) -> None:
    for number, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        lines = [json.dumps({"step": 0, "loss": number})] if name.endswith("l") else ["step,loss", f"0,{number}"]
        (tmp_path / folder / name).write_text("\n".join([*lines, ""]))
    workspace = Workspace(tmp_path / "ws")
    try:
        runs = import_curves(workspace, tmp_path)
        assert {run.name: points(workspace, run.id, "loss") for run in runs} == {"a": {0: 0}, "b": {0: 1}}
    finally:
        workspace.close()
