"""The comparison uses each split's newest evaluation and marks the best."""

import dataclasses

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.analysis.intervals import wilson
from trainer.charts import ChartError
from trainer.charts.evaluation import evaluation
from trainer.charts.evaluation_scores import draw as draw_scores
from trainer.charts.groups import draw
from trainer.charts.measures.comparison import CERTAIN_NOTE, comparison
from trainer.charts.measures.curves import curves
from trainer.charts.measures.groups import GroupSettings, group_table
from trainer.store import Question, RunLog, Workspace
from trainer.store.question import retrieval_question
from trainer.store.task_records import TaskRecord, evaluation_folder, write_task

pytestmark = pytest.mark.slow


def test_newest_evaluations_side_by_side(charted):
    table = comparison(charted, [1, 2])
    assert [run.step for run in table.runs] == [240, 240]
    assert {row.split for row in table.rows} == {"renderings", "combinations"}
    row = next(r for r in table.rows if (r.name, r.split) == ("image_to_text_R@1", "renderings"))
    assert list(row.values) == [charted.results.last_values(i)["val/image_to_text_R@1"] for i in (1, 2)]
    assert row.n == (240, 240)
    assert row.intervals[0] == wilson(row.values[0], 240)
    assert row.best == (max((0, 1), key=lambda i: row.values[i]),)
    assert (row.certain, row.label) == (False, "Image to text R@1, unseen renderings, n = 240")
    gap = next(r for r in table.rows if r.name == "modality_gap")
    assert gap.best == (), "no gap is better than another"
    assert gap.intervals == (None, None)


def test_captions_that_repeat_widen_the_interval_of_text_to_image(workspace):
    number = workspace.runs.create(dataclasses.replace(config.Run(), name="a"))
    with RunLog.claim(workspace, number) as log:
        found = {"val/text_to_image_R@1": 0.5, "val/image_to_text_R@1": 0.5}
        asked = Question("retrieval", 480, gallery=60, protocol="240 distinct pictures")
        log.evaluation(5, "folder", "heldout", found, {"retrieval": asked})
        log.status("stopped")
    rows = {row.name: row for row in comparison(workspace, ["a"]).rows}
    assert rows["text_to_image_R@1"].intervals == (wilson(0.5, 60),)
    assert rows["image_to_text_R@1"].intervals == (wilson(0.5, 240),)
    assert {name: row.n for name, row in rows.items()} == {"text_to_image_R@1": (60,), "image_to_text_R@1": (240,)}


def test_held_out_pictures_that_runs_were_trained_on_are_told_once_for_all(workspace):
    for name, copies in (("a", 3), ("b", 3), ("c", 0), ("d", None)):
        number = workspace.runs.create(dataclasses.replace(config.Run(), name=name))
        with RunLog.claim(workspace, number) as log:
            log.facts(heldout_pairs={"heldout": 40}, **({"heldout_copies": {"heldout": copies}} if name != "d" else {}))
            log.evaluation(5, "folder", "heldout", {"modality_gap": 0.5}, {"similarity": Question("similarity", 40)})
            log.scalars(5, {"val/modality_gap": 0.5, "train/loss": 1.0})
            log.status("stopped")
    table = comparison(workspace, ["a", "b", "c", "d"])
    words = "3 of 40 held-out pairs show pictures that CLIP · a, CLIP · b were trained on (equal pixels); "
    assert table.warnings == (f"{words}trainer data duplicates lists them.",)
    held, loss = curves(workspace, ["a", "b", "c", "d"], ["val/modality_gap", "train/loss"])
    assert (held.warnings, loss.warnings) == (table.warnings, ())
    assert comparison(workspace, ["c", "d"]).warnings == ()


def test_ties_missing_values_and_nothing(workspace):
    for name in ("a", "b", "c"):
        number = workspace.runs.create(dataclasses.replace(config.Run(), name=name))
        with RunLog.claim(workspace, number) as log:
            if name != "c":
                found = {"val/image_to_text_R@1": 0.5, "val/text_to_image_R@1": float("nan")}
                log.evaluation(5, "folder", "heldout", found, {"retrieval": Question("retrieval", 40)})
            log.status("stopped")
    table = comparison(workspace, ["a", "b", "c"])
    recall = table.rows[0]
    assert recall.values == (0.5, 0.5, None)
    assert recall.best == (), "two equal values: neither is better"
    assert recall.n == (40, 40, 40)
    assert table.rows[1].best == ()
    with pytest.raises(ChartError, match="none of CLIP · c has been evaluated"):
        comparison(workspace, ["c"])


RETRIEVAL = Question("retrieval", 40, gallery=4, protocol="7 distinct pictures")
ZERO_SHOT = Question("zero_shot", 40, classes=4)


def compared(tmp_path, *values: dict[str, float]) -> Workspace:
    workspace = Workspace(tmp_path)
    for place, found in enumerate(values):
        number = workspace.runs.create(dataclasses.replace(config.Run(), name=f"run {place}"), status="finished")
        with RunLog.claim(workspace, number) as log:
            log.evaluation(5, "folder", "heldout", found, {"retrieval": RETRIEVAL, "zero_shot": ZERO_SHOT})
            log.status("finished")
    return workspace


def test_what_cannot_differ_is_never_the_best(tmp_path, capsys):
    """R@5 among 4 texts and top-5 of 4 classes are 1 for any model; another value is one of rounding."""
    names = "image_to_text_R@1", "image_to_text_R@5", "text_to_image_R@5", "text_to_image_R@10", "zero_shot_acc5"
    low, high = ({f"val/{name}": value for name in names} for value in (0.0, 1.0))
    workspace = compared(tmp_path, low, high)
    rows = {row.name: row for row in comparison(workspace, [1, 2]).rows}
    assert {name for name, row in rows.items() if row.best} == {"image_to_text_R@1", "text_to_image_R@5"}
    assert {name: row.label for name, row in rows.items() if row.certain} == {
        "image_to_text_R@5": "Image to text R@5, held-out, n = 7 (k ≥ 4 answers)",
        "text_to_image_R@10": "Text to image R@10, held-out, n = 4 (k ≥ 7 answers)",
        "zero_shot_acc5": "Zero-shot top-5 accuracy (k ≥ 4 answers)",
    }
    assert main(["compare", "1", "2", "--workspace", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert CERTAIN_NOTE in " ".join(said.split())
    starred = [line for line in said.splitlines() if "*" in line and "Bold" not in line]
    assert [line.partition(",")[0].strip() for line in starred] == ["Image to text R@1", "Text to image R@5"]


@pytest.mark.parametrize(
    ("values", "best"),
    [((0.0, 1.0), (1,)), ((0.5, 0.6), ()), ((0.0, 0.0, 1.0), (2,)), ((0.0, 0.9, 1.0), ()), ((1.0, 1.0), ())],
)
def test_values_whose_intervals_overlap_have_no_best(tmp_path, values, best):
    found = [{"val/image_to_text_R@1": value} for value in values]
    workspace = compared(tmp_path, *found)
    (row,) = comparison(workspace, range(1, len(values) + 1)).rows
    assert row.best == best


def test_groups_do_not_test_what_cannot_differ(tmp_path):
    values = [{"val/image_to_text_R@1": 0.5 + i / 100, "val/image_to_text_R@5": 1 - i / 100} for i in range(4)]
    workspace = compared(tmp_path, *values)
    table = group_table(workspace, ["run [01]", "run [23]"])
    assert CERTAIN_NOTE in draw(table, GroupSettings()).notes
    lines = {line.name: line for line in table.lines}
    assert lines["image_to_text_R@5"].tests == (None,)
    assert not lines["image_to_text_R@5"].better
    assert lines["image_to_text_R@1"].p == pytest.approx([lines["image_to_text_R@1"].tests[0].welch])


def test_scores_compare_each_distinct_question_once(workspace):
    """40 pictures, of which the first has 20 captions and is right in A only: one discordant question, not 20."""
    picture = np.concatenate([np.zeros(20, int), np.arange(1, 40)])
    asked = retrieval_question(59, texts=59, images=40)
    for place in range(2):
        run = workspace.runs.create(config.Run(name=f"run {place}"), status="finished")
        places = np.where((picture > 0) & (picture < 30) | (picture == 0) & (place == 0), 1, 9)
        metrics = {"image_to_text_R@1": float((places[19:] == 1).mean())}
        arrays = {"path": np.array([f"{n}.png" for n in picture]), "image_to_text": places}
        folder = evaluation_folder(workspace.runs.get(run).folder, "folder", "heldout", 5)
        arrays["image_to_text_asked"] = picture
        write_task(folder, TaskRecord("retrieval", metrics, 59, 59, {}, arrays, asked))
        workspace.results.add_evaluation(run, 5, "folder", "heldout", metrics, {"retrieval": asked})
    lines = {line.question: line for line in evaluation(workspace, [1, 2], dataset="folder", split="heldout").lines}
    tested = lines[asked].difference
    assert (tested.mcnemar.only_a, tested.mcnemar.only_b, tested.mcnemar.p) == (1, 0, 1.0)
    assert tested.paired.difference == pytest.approx(lines[asked].values[1] - lines[asked].values[0]) == -1 / 40
    assert tested.paired.n == lines[asked].n[0] == 40


def test_scores_test_no_difference_that_cannot_be(workspace):
    """Top-5 of 4 classes is 1 for both; its p of 1 must not widen the p of the others."""
    for place in range(2):
        run = workspace.runs.create(config.Run(name=f"run {place}"), status="finished")
        rank = np.where(np.arange(40) % 4 < 2 + place, 1, 4)
        arrays = {"path": np.array([f"{n}.png" for n in range(40)]), "right": rank == 1, "rank": rank}
        metrics = {"zero_shot_acc1": float((rank == 1).mean()), "zero_shot_acc5": 1.0}
        folder = evaluation_folder(workspace.runs.get(run).folder, "folder", "heldout", 5)
        write_task(folder, TaskRecord("zero_shot", metrics, 40, 40, {"classes": list("abcd")}, arrays, ZERO_SHOT))
        workspace.results.add_evaluation(run, 5, "folder", "heldout", metrics, {"zero_shot": ZERO_SHOT})
    chart = evaluation(workspace, [1, 2], dataset="folder", split="heldout")
    lines = {line.name: line for line in chart.lines}
    assert lines["zero_shot_acc5"].difference is None
    tested = lines["zero_shot_acc1"].difference
    assert tested.p == tested.mcnemar.p == pytest.approx(2 * 0.5**10)
    assert CERTAIN_NOTE in draw_scores(chart, None).notes
