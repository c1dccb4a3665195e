"""Logs whose numbers could be taken for others: thousands, several processes or runs, names that stand twice."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.trackers.test_importing import points
from tests.trainer.trackers.test_training_logs import curves_of
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.trackers.import_curves import import_curves
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.log_reading import LogGroups, LogReading

pytestmark = [pytest.mark.slow]

STEPS = range(500, 3_001, 500)


@pytest.mark.parametrize(
    ("line", "curves"),
    [
        ("step {0:,} | loss {0}", {"loss": {n: n for n in STEPS}}),
        ("step {0:_}: loss {0}", {"loss": {n: n for n in STEPS}}),
        ("step {0}k loss {0}", {"loss": {1_000 * n: n for n in STEPS}}),
        ("step {0} loss {0:,.1f}, acc 0.5", {"loss": {n: n for n in STEPS}, "acc": dict.fromkeys(STEPS, 0.5)}),
        ("step {0} loss 0,{0}, acc 0.5", {"acc": dict.fromkeys(STEPS, 0.5)}),
        ("step {0} loss tensor({0}.5, device='cuda:0', grad_fn=<X>)", {"loss": {n: n + 0.5 for n in STEPS}}),
        ("step={0} {{'loss': np.float64({0}.5)}}", {"loss": {n: n + 0.5 for n in STEPS}}),
        ("\x1b[32mINFO\x1b[0m step \x1b[33m{0}\x1b[0m loss \x1b[36m{0}\x1b[0m", {"loss": {n: n for n in STEPS}}),
        (
            "step {0} image loss: {0}.5, text loss: {0}.25",
            {"image loss": {n: n + 0.5 for n in STEPS}, "text loss": {n: n + 0.25 for n in STEPS}},
        ),
        (
            "step {0} train: loss {0}.5 acc 1 | val: loss {0}.25 acc 2",
            {"train/loss": {n: n + 0.5 for n in STEPS}, "val/loss": {n: n + 0.25 for n in STEPS}}
            | {"train/acc": dict.fromkeys(STEPS, 1), "val/acc": dict.fromkeys(STEPS, 2)},
        ),
        ("step {0} | lm loss: {0} | number of nan iterations:   0 |", {"loss": {n: n for n in STEPS}}),
        ("I0101 10:00:00 12 solver.cpp:228] Iteration {0}, loss = {0}", {"loss": {n: n for n in STEPS}}),
        (
            '| INFO | train_inner | {{"epoch": 1, "update": 0.5, "loss": "{0}.5", "num_updates": "{0}"}}',
            {"loss": {n: n + 0.5 for n in STEPS}},
        ),
        ("(main.py 223): INFO Train: [0/300][{0}/9000]\teta 0:10:10 lr 0.5", {"train/lr": dict.fromkeys(STEPS, 0.5)}),
    ],
)
def test_what_a_line_prints_around_its_numbers_is_no_part_of_them(
    tmp_path: Path, line: str, curves: dict[str, Any]
) -> None:
    (tmp_path / "train.log").write_text("".join(f"{line.format(step)}\n" for step in STEPS))
    read, _ = curves_of(tmp_path / "train.log", tmp_path)
    assert read == curves


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "2024-01-01 [INFO] [Rank {}] ", "Rank {}: "])
def test_of_several_processes_the_lowest_is_read_and_the_others_are_counted(tmp_path: Path, prefix: str) -> None:
    lines = (f"{prefix.format(rank)}step {n} loss {n}.{rank}\n" for n in STEPS for rank in (2, 0, 1))
    (tmp_path / "train.log").write_text("".join(lines))
    read, said = curves_of(tmp_path / "train.log", tmp_path)
    assert read == {"loss": {n: n for n in STEPS}}
    assert "numbers of other processes than the lowest (11)" in said
    assert "points of steps that were logged again (1)" in said


def test_a_column_of_ranks_is_of_processes_only_where_several_log_one_step() -> None:
    for ranks, process in ((range(2), "rank"), (range(1), "")):
        groups = LogGroups()
        for record in ({"step": step, "rank": rank, "loss": 1.0} for step in range(3) for rank in ranks):
            groups.add(record)
        assert groups.process == process
    (number, *_) = filter(None, LogReading("log").rows({"step": 1, "rank": 500}))
    assert (number.name, number.value) == ("rank", 500)


@pytest.mark.parametrize(
    ("column", "values"), [("dataset", ["coco", "flickr"]), ("layer", [0, 1]), ("direction", ["i2t", "t2i"])]
)
def test_curves_of_one_log_are_those_that_pandas_groups_by(tmp_path: Path, column: str, values: list[Any]) -> None:
    import pandas as pd

    rows = [{"step": step, column: value, "acc": 2.0 * step + n} for step in range(4) for n, value in enumerate(values)]
    pd.DataFrame(rows).to_csv(tmp_path / "log.csv", index=False)
    read, said = curves_of(tmp_path / "log.csv", tmp_path)
    assert read == {
        f"{column} {value}/acc" if column == "layer" else f"{value}/acc": dict(zip(of["step"], of["acc"], strict=True))
        for value, of in pd.read_csv(tmp_path / "log.csv").groupby(column)
    }
    assert said == f"Its curves are told apart by {column!r}, which is a guess."


@pytest.mark.parametrize(
    "line", ["Epoch {n} [{of}] loss: {n}.{k}", "epoch {n} | {of} loss {n}.{k}", "epoch {n} {of}: loss={n}.{k}"]
)
@pytest.mark.parametrize("words", [("train", "val"), ("i2t", "t2i"), ("coco", "flickr")])
def test_words_between_step_and_numbers_tell_curves_apart(tmp_path: Path, line: str, words: tuple[str, str]) -> None:
    lines = (line.format(n=n, of=of, k=k) for n in range(4) for k, of in enumerate(words))
    (tmp_path / "train.log").write_text("\n".join(lines))
    read, _ = curves_of(tmp_path / "train.log", tmp_path)
    assert [*read.values()] == [{n: n + k / 10 for n in range(4)} for k in range(2)]
    assert {re.sub(r"\W", " ", name) for name in read} == {f"{of} loss" for of in words}


def test_a_log_that_was_restarted_has_no_curves_by_its_times(tmp_path: Path) -> None:
    rows = [f"{epoch},{epoch}.5,00:1{epoch}{start}" for start in range(2) for epoch in range(5)]
    (tmp_path / "history.csv").write_text("\n".join(["epoch,loss,time", *rows]))
    read, said = curves_of(tmp_path / "history.csv", tmp_path)
    assert read == {"loss": {n: n + 0.5 for n in range(5)}}
    assert "points of steps that were logged again (5)" in said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.csv", "step,loss,acc\n0,3,1\n1,2,1\n2,1", "is cut off: its last line, of 2 of 3 cells, was left out."),
        ("log.csv", "step,loss,acc\n0,3,1\n1,2,1", ""),
        ("log.csv", "step,loss,acc\n0,3\n1,2\n", ""),
        ("log.jsonl", '{"step":0,"loss":3}\n{"step":1,"lo{"step":1,\n{"step":1,"loss":2}\n', "damaged lines (1)"),
        ("log.jsonl", '{"step":0,"loss":3}\n{"step":1,"loss":2}\n\0\0\0\n', "damaged lines (1)"),
    ],
)
def test_what_a_crash_left_of_a_line_is_told_and_the_others_are_read(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    read, sentences = curves_of(tmp_path / name, tmp_path)
    assert read["loss"] == {0: 3, 1: 2}
    assert said in sentences
    assert bool(said) == bool(sentences)


@pytest.mark.parametrize("column", ["run", "seed", "fold"])
@pytest.mark.parametrize("is_json", [True, False])
def test_runs_of_one_log_are_those_that_pandas_groups_by(tmp_path: Path, column: str, is_json: bool) -> None:
    import pandas as pd

    names = ["clip", "cloob"] if column == "run" else [0, 1]
    table = pd.DataFrame(
        [{column: name, "step": step, "loss": 2.0 * step + row} for step in range(4) for row, name in enumerate(names)]
    )
    log = tmp_path / ("log.jsonl" if is_json else "log.csv")
    table.to_json(log, orient="records", lines=True) if is_json else table.to_csv(log, index=False)
    workspace = Workspace(tmp_path / "ws")
    try:
        runs = import_curves(workspace, log)
        called = {name if column == "run" else f"{column} {name}": rows for name, rows in table.groupby(column)}
        assert {run.name: points(workspace, run.id, "loss") for run in runs} == {
            name: dict(zip(rows["step"], rows["loss"], strict=True)) for name, rows in called.items()
        }
        assert all(f"Its runs are told apart by {column!r}, which is a guess." in run.notes for run in runs)
    finally:
        workspace.close()
    one = tmp_path / "one.csv"
    table[table[column] == names[0]].to_csv(one, index=False)
    assert "loss" in curves_of(one, tmp_path / "one")[0]


@pytest.mark.parametrize(
    ("text", "loss", "said"),
    [
        ('step,loss\n"500","2.5"\n"1,000","1,234.5"\n', {500: 2.5, 1000: 1234.5}, "between their thousands (2)"),
        ("step;loss\n500;2,5\n1.000;1,5\n", {500: 2.5, 1000: 1.5}, "between their thousands (1)"),
        ("step\tloss\n500\t2.5\n1,000\t1.5\n", {500: 2.5, 1000: 1.5}, "between their thousands (1)"),
        ("step;loss\n1.000;2.5\n2.000;1.5\n", {1: 2.5, 2: 1.5}, ""),
        ("epoch,loss,acc\n0,3,7\nepoch,acc,loss\n1,8,2\n", {0: 3, 1: 2}, "stand again (1) and count from there on"),
        ("# lr=0.1\n# made by train.py\nstep,loss\n0,3\n1,2\n", {0: 3, 1: 2}, ""),
        ("step,loss\n0,3\n1,nan(ind)\n2,None\n3,2\n", {0: 3, 3: 2}, "cells without a number (1)"),
    ],
)
def test_cells_are_read_as_their_table_spells_numbers(
    tmp_path: Path, text: str, loss: dict[int, float], said: str
) -> None:
    (tmp_path / "log.csv").write_text(text)
    read, sentences = curves_of(tmp_path / "log.csv", tmp_path)
    assert read["loss"] == loss
    assert said in sentences


def test_tables_of_numpy_and_of_pandas_are_read_as_they_read_them(tmp_path: Path) -> None:
    import numpy as np
    import pandas as pd

    rows = np.array([[10 * n, 3 / (n + 1), n / 7] for n in range(6)])
    np.savetxt(tmp_path / "log.txt", rows, header="step loss acc")
    table = pd.DataFrame(rows, columns=["step", "loss", "acc"])
    (tmp_path / "shown.txt").write_text(table.to_string())
    for name, precision in (("log.txt", 1e-15), ("shown.txt", 1e-5)):
        read, _ = curves_of(tmp_path / name, tmp_path / name.partition(".")[0])
        for column in ("loss", "acc"):
            assert read[column] == pytest.approx(dict(zip(table["step"], table[column], strict=True)), abs=precision)


@pytest.mark.parametrize(
    "document",
    [
        {"loss": [3, 2], "val_loss": [4, 5]},
        {"config": {"lr": 0.1}, "history": {"loss": [3, 2], "val_loss": [4, 5]}},
        {"loss": {"0": 3, "1": 2}, "val_loss": {"0": 4, "1": 5}},
        {"0": {"loss": 3, "val_loss": 4}, "1": {"loss": 2, "val_loss": 5}},
        {"epoch_0": {"loss": 3, "val_loss": 4}, "epoch_1": {"loss": 2, "val_loss": 5}},
        {"epoch": [0, 1], "loss": [3, 2], "val_loss": [4, 5]},
    ],
)
def test_a_history_has_its_numbers_however_json_holds_it(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "history.json").write_text(json.dumps(document))
    read, said = curves_of(tmp_path / "history.json", tmp_path)
    assert read == {"loss": {0: 3, 1: 2}, "val_loss": {0: 4, 1: 5}}
    assert ("which is a guess" in said) == ("epoch" not in document)


def test_lists_of_parts_and_lists_at_stated_steps(tmp_path: Path) -> None:
    for name, document in (
        ("parts", {"train": {"loss": [3, 2]}, "val": {"loss": [4, 5]}}),
        ("steps", {"steps": [100, 200], "loss": [3, 2], "val_loss": [4]}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    read, _ = curves_of(tmp_path / "parts.json", tmp_path / "1")
    assert read == {"train/loss": {0: 3, 1: 2}, "val/loss": {0: 4, 1: 5}}
    read, said = curves_of(tmp_path / "steps.json", tmp_path / "2")
    assert read == {"loss": {100: 3, 200: 2}}
    assert said == "Lists of more or fewer than 2 numbers are not read: 'val_loss'."


def test_lines_of_mmcv_begin_with_what_the_run_was_made_by(tmp_path: Path) -> None:
    records = [{"env_info": "linux", "seed": None}]
    records += [{"mode": "train", "epoch": 1, "iter": n, "loss": 5 - n / 10} for n in (10, 20)]
    (tmp_path / "20210101.log.json").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert curves_of(tmp_path / "20210101.log.json", tmp_path)[0] == {"train/loss": {10: 4, 20: 3}}


@pytest.mark.parametrize(
    ("name", "step"),
    [
        (".aim/VERSION", "aim.Repo(FOLDER).query_metrics().dataframe().to_csv(FILE, index=False)"),
        ("vdlrecords.1700000000.log", "visualdl.LogReader(file_path=FILE)"),
        ("run-1-abc/files/output.log", "What the training printed is in output.log"),
        ("wandb-summary.json", "It has only the last numbers of a run."),
        ("preds_1_a.table.json", "It is a table that a run logged"),
        ("history.npz", "Write its numbers as CSV"),
        ("history.pkl", "it can run code"),
        ("log.csv.zst", "Unpack it first."),
    ],
)
def test_what_is_not_read_of_trackers_has_its_next_step(tmp_path: Path, name: str, step: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('{"_step": 7, "loss": 1}')
    with pytest.raises(UserError, match=re.escape(step)):
        curves_of(tmp_path if "/" in name else tmp_path / name, tmp_path / "w")


def test_what_aim_writes_has_its_runs_and_parts(tmp_path: Path) -> None:
    rows = [
        {"idx": n, "step": n, "value": n + k / 4, "epoch": 0, "time": f"2024-01-01 00:00:0{n}"}
        | {"run": run, "run.hparams.lr": 0.1, "metric": "loss", "context.subset": part}
        for k, (run, part) in enumerate((run, part) for run in ("a1", "b2") for part in ("train", "val"))
        for n in range(4)
    ]
    import pandas as pd

    pd.DataFrame(rows).to_csv(tmp_path / "aim.csv", index=False)
    workspace = Workspace(tmp_path / "ws")
    try:
        read = {
            (run.name, part): points(workspace, run.id, f"{part}/loss")
            for run in import_curves(workspace, tmp_path / "aim.csv")
            for part in ("train", "val")
        }
    finally:
        workspace.close()
    table = pd.DataFrame(rows)
    assert read == {
        keys: dict(zip(of["step"], of["value"], strict=True)) for keys, of in table.groupby(["run", "context.subset"])
    }


def test_objects_in_a_list_of_records_have_their_numbers(tmp_path: Path) -> None:
    records = [{"epoch": n, "train": {"loss": 3 - n}, "val": {"loss": 4 - n}} for n in range(2)]
    (tmp_path / "log.json").write_text(json.dumps(records, indent=2))
    read, _ = curves_of(tmp_path / "log.json", tmp_path)
    assert read == {"train.loss": {0: 3, 1: 2}, "val.loss": {0: 4, 1: 3}}


def _mmcv(iters_of_validation: int, *, is_within: bool = False) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [{"env_info": "Linux", "seed": 0}]
    for epoch in (1, 2, 3):
        for step in (50, 100, 150):
            records.append({"mode": "train", "epoch": epoch, "iter": step, "loss": epoch + step / 1000})
            if step == (100 if is_within else 150):
                records.append({"mode": "val", "epoch": epoch, "iter": iters_of_validation, "top1": epoch})
    return records


@pytest.mark.parametrize("is_within", [False, True])
@pytest.mark.parametrize("iters_of_validation", [40, 100])
def test_validations_of_mmcv_count_their_own_batches(tmp_path: Path, iters_of_validation: int, is_within: bool) -> None:
    lines = map(json.dumps, _mmcv(iters_of_validation, is_within=is_within))
    (tmp_path / "20240101_000000.log.json").write_text("".join(f"{line}\n" for line in lines))
    curves, said = curves_of(tmp_path / "20240101_000000.log.json", tmp_path)
    assert curves["train/loss"] == {
        150 * (epoch - 1) + step: epoch + step / 1000 for epoch in (1, 2, 3) for step in (50, 100, 150)
    }
    assert curves["val/top1"] == {150 * epoch - (50 if is_within else 0): epoch for epoch in (1, 2, 3)}
    assert "at the last step before them, which is a guess" in said


@pytest.mark.parametrize("counted", ["epochs", "iterations"])
def test_validations_of_mmengine_within_an_epoch_void_no_training(tmp_path: Path, counted: str) -> None:
    """A loop by iterations counts the epochs that ended where it validates, unless it is told to count iterations."""
    records: list[dict[str, Any]] = []
    for step in range(100, 1_300, 100):
        records.append({"loss": 1 / step, "time": 0.5, "iter": step, "step": step})
        if step % 300 == 0:
            records.append({"mIoU": step, "time": 0.25, "step": step if counted == "iterations" else step // 700})
    (tmp_path / "vis_data").mkdir()
    (tmp_path / "vis_data" / "scalars.json").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    curves, said = curves_of(tmp_path, tmp_path)
    assert curves == {
        "loss": {step: 1 / step for step in range(100, 1_300, 100)},
        "time": dict.fromkeys(range(100, 1_300, 100), 0.5),
        "mIoU": {step: step for step in (300, 600, 900, 1_200)},
        "val/time": dict.fromkeys((300, 600, 900, 1_200), 0.25),
    }
    assert "Rows without 'iter' are of validations; their time begin by val/." in said
    assert "Left out" not in said


@pytest.mark.parametrize(
    "text",
    [
        '"Name","State","User","lr","_step","loss"\n"a","finished","me","0.1","100","2"\n"b","failed","me","0.2","90","1"\n',
        "Name;State;train/global_step;loss\na;finished;100;2\nb;finished;90;1\n",
        ",summary,config,name\n0,\"{'_step': 3, 'loss': 0.5}\",{},a\n",
        "run_name,step,loss\na,100,2\nb,200,1\nc,300,3\n",
    ],
)
def test_a_table_of_runs_is_no_curve(tmp_path: Path, text: str) -> None:
    (tmp_path / "project.csv").write_text(text)
    with pytest.raises((UserError, Unreadable), match="is a table of runs: a row is a run with its last numbers"):
        import_curves(Workspace(tmp_path / "runs"), tmp_path / "project.csv")


@pytest.mark.parametrize("kind", ["wandb", "log"])
def test_a_table_of_runs_is_no_curve_though_somebody_says_so(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "project.csv").write_text("Name,State,_step,loss\na,finished,1,2\nb,finished,2,1\n")
    with pytest.raises(Unreadable, match="is a table of runs"):
        import_curves(Workspace(tmp_path / "runs"), tmp_path / "project.csv", kind)


@pytest.mark.parametrize("name", ["history.csv", "history.jsonl"])
def test_steps_that_a_history_replaces_are_counted(tmp_path: Path, name: str) -> None:
    rows = [(1, 1.0), (2, 0.9), (2, 0.8), (3, 0.7)]
    lines = [json.dumps({"_step": step, "loss": loss}) for step, loss in rows]
    cells = ["_step,loss", *(f"{step},{loss}" for step, loss in rows)]
    (tmp_path / name).write_text("".join(f"{line}\n" for line in (cells if name.endswith("csv") else lines)))
    curves, said = curves_of(tmp_path / name, tmp_path)
    assert curves["loss"] == {1: 1.0, 2: 0.8, 3: 0.7}
    assert said == "Left out: points of steps that were logged again (1)."


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "history.json"])
def test_lines_may_end_by_a_carriage_return_alone(tmp_path: Path, name: str) -> None:
    lines = [json.dumps({"step": step, "loss": 1 / step}) for step in (1, 2, 3)]
    if name.endswith("csv"):
        lines = ["step,loss", *(f"{step},{1 / step}" for step in (1, 2, 3))]
    (tmp_path / name).write_bytes("".join(f"{line}\r" for line in lines).encode())
    assert curves_of(tmp_path / name, tmp_path)[0] == {"loss": {1: 1, 2: 1 / 2, 3: 1 / 3}}


def test_parts_of_epochs_are_thousandths(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("epoch,loss\n" + "".join(f"{n / 4},{n}\n" for n in range(1, 6)))
    curves, said = curves_of(tmp_path / "log.csv", tmp_path)
    assert curves == {"loss": {250 * n: n for n in range(1, 6)}}
    assert said == "Lines that count only parts of an epoch are at thousandths of an epoch."


def test_deepspeed_prints_its_step_on_two_lines(tmp_path: Path) -> None:
    lines = (f"[INFO] [Rank 0] step={n}, skipped=0\nsteps: {n} loss: {1 / n:.4f} iter time (s): 0.5\n" for n in STEPS)
    (tmp_path / "train.log").write_text("".join(lines))
    curves, _ = curves_of(tmp_path / "train.log", tmp_path)
    assert curves == {"loss": {n: round(1 / n, 4) for n in STEPS}, "skipped": dict.fromkeys(STEPS, 0)}


def test_percent_of_a_table_is_read_without_its_sign(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("epoch,loss,acc\n1,0.5,50.5%\n2,0.25,75%\n")
    curves, said = curves_of(tmp_path / "log.csv", tmp_path)
    assert curves == {"loss": {1: 0.5, 2: 0.25}, "acc": {1: 50.5, 2: 75}}
    assert said.startswith("Numbers of percent (2) were read without the sign.")


@pytest.mark.parametrize("name", ["summary.csv.gz", "log.jsonl.bz2", "log.txt.xz", "history.json.gz"])
def test_logs_that_are_compressed_have_the_numbers_that_pandas_reads(tmp_path: Path, name: str) -> None:
    import pandas as pd

    table = pd.DataFrame({"epoch": range(1, 6), "train_loss": [5.0, 4.0, 3.0, 2.0, 1.0]})
    if "csv" in name:
        table.to_csv(tmp_path / name, index=False)
    else:
        table.to_json(tmp_path / name, orient="records", lines="json.gz" not in name)
    read, _ = curves_of(tmp_path / name, tmp_path / "w")
    assert read == {"train_loss": dict(zip(table.epoch, table.train_loss, strict=True))}


@pytest.mark.parametrize("name", ["summary.csv", "console.log"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_logs_in_utf_16_without_a_mark_are_a_guess(tmp_path: Path, name: str, encoding: str) -> None:
    lines = ["epoch,loss", *(f"{n},{n / 2}" for n in range(4))]
    if name == "console.log":
        lines = [f"epoch {n} loss {n / 2}" for n in range(4)]
    (tmp_path / name).write_text("\r\n".join([*lines, ""]), encoding=encoding)
    read, said = curves_of(tmp_path / name, tmp_path / "w")
    assert read == {"loss": {n: n / 2 for n in range(4)}}
    assert "has no mark of UTF-16 and is read as such, which is a guess" in said


@pytest.mark.parametrize("keys", [("x", "y"), ("steps", "values")])
def test_curves_with_steps_of_their_own_as_clearml_and_sacred_write_them(tmp_path: Path, keys: tuple[str, str]) -> None:
    curves = {"train": {0: 1.0, 10: 0.5, 20: 0.25}, "validation": {10: 2.0, 20: 1.5}}
    lists = {part: dict(zip(keys, (list(curve), [*curve.values()]), strict=True)) for part, curve in curves.items()}
    lists["odd"] = {keys[0]: [1, 2], keys[1]: [0.5]}
    (tmp_path / "run" / "1").mkdir(parents=True)
    (tmp_path / "run" / "1" / "metrics.json").write_text(json.dumps({"loss": lists}))
    for path in (tmp_path / "run", tmp_path / "run" / "1", tmp_path / "run" / "1" / "metrics.json"):
        read, said = curves_of(path, tmp_path / f"{len(path.parts)}")
        assert read == {f"loss/{part}": curve for part, curve in curves.items()}
        assert said == "'loss/odd' is not read: it has 2 steps and 1 values."


def test_tables_of_dvclive_are_curves_of_one_run_named_by_their_folders(tmp_path: Path) -> None:
    import pandas as pd

    live = tmp_path / "dvclive"
    for part, first in (("train", 1.0), ("val", 2.0)):
        (live / "plots" / "metrics" / part).mkdir(parents=True)
        table = pd.DataFrame({"step": range(3), "loss": [first / (n + 1) for n in range(3)]})
        table.to_csv(live / "plots" / "metrics" / part / "loss.tsv", sep="\t", index=False)
    (live / "metrics.json").write_text('{"train": {"loss": 0.3}, "val": {"loss": 0.6}, "step": 2}')
    read, _ = curves_of(live, tmp_path / "w")
    peer = {f"{part}/loss": {n: first / (n + 1) for n in range(3)} for part, first in (("train", 1), ("val", 2))}
    assert read == {name: pytest.approx(curve) for name, curve in peer.items()}


def test_lists_where_a_number_is_expected_are_counted(tmp_path: Path) -> None:
    rows = [{"step": n, "loss": [1 / (n + 1), 2.0], "accuracy": n / 10} for n in range(4)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    read, said = curves_of(tmp_path / "log.jsonl", tmp_path / "w")
    assert read == {"accuracy": {n: n / 10 for n in range(4)}}
    assert said == "Left out: lists where a number is expected (4)."


def test_validations_without_a_step_are_at_the_last_step_of_their_epoch(tmp_path: Path) -> None:
    import pandas as pd

    train = pd.DataFrame({"epoch": [0, 0, 1, 1], "step": [10, 20, 30, 40], "train_loss": [4.0, 3.0, 2.0, 1.0]})
    val = pd.DataFrame({"epoch": [0, 1], "val_loss": [9.0, 8.0]})
    last = val.merge(train.groupby("epoch", as_index=False)["step"].max())
    rows = pd.concat([train, val]).sort_values("epoch", kind="stable")
    rows.to_csv(tmp_path / "log.csv", index=False)
    read, said = curves_of(tmp_path / "log.csv", tmp_path)
    assert read == {
        "train_loss": dict(zip(train["step"], train["train_loss"], strict=True)),
        "val_loss": dict(zip(last["step"], last["val_loss"], strict=True)),
    }
    assert "Rows that count no steps are at the last step before them, which is a guess" in said
