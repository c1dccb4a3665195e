"""The question of a stored number: its key, what is merged and what is separate."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainer import config
from trainer.analysis.distinct import matching
from trainer.charts.comparison import CHART as COMPARISON
from trainer.charts.groups import draw
from trainer.charts.measures.comparison import comparison
from trainer.charts.measures.groups import GroupSettings, group_table
from trainer.charts.panel_tables import as_markdown, as_text
from trainer.metrics import once_note
from trainer.store import Question, Workspace
from trainer.store.question import UNKNOWN, noted_chance, question_from_key, retrieval_question, task_of

pytestmark = pytest.mark.slow

MANY = Question("zero_shot", 960, 102, 2, names="a")
FEW = Question("zero_shot", 960, 101, 2, names="b")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "space")
    for name in ("one", "two"):
        made.runs.create(config.Run(name=name))
    return made


def test_a_question_is_its_key_and_what_is_none_is_refused():
    assert question_from_key(MANY.key) == MANY
    assert len({one.digest for one in (MANY, FEW, replace(MANY, protocol="p"), replace(MANY, n=9))}) == 4
    for broken in ("", "no", "[]", "{}", '{"task": "x"}', '{"task": "x", "n": "9"}', '{"task": "x", "n": true}'):
        assert question_from_key(broken) is None
    assert MANY.words() == "n = 960, 102 classes × 2 templates"


def test_retrieval_is_asked_by_distinct_pictures_and_captions():
    one = retrieval_question(172, texts=160, images=44)
    assert one.words() == "44 distinct pictures and 160 distinct texts of 172 pairs"
    ways = ("image_to_text_R@1", "text_to_image_R@1")
    assert [one.asked(way) for way in ways] == [44, 160]
    assert [one.answers(way) for way in ways] == [160, 44]
    same = retrieval_question(40, texts=40, images=40)
    assert same == Question("retrieval", 40, gallery=40, protocol="40 distinct pictures")
    assert same.words() == "n = 40, among 40 texts, 40 distinct pictures"


def test_several_captions_of_a_picture_are_no_more_independent_questions_than_pictures():
    flickr = retrieval_question(450, texts=450, images=150)
    assert (flickr.asked("text_to_image_R@1"), flickr.independent("text_to_image_R@1")) == (450, 150)
    assert (flickr.asked("image_to_text_R@1"), flickr.independent("image_to_text_R@1")) == (150, 150)
    folder = retrieval_question(979, texts=18, images=979)
    assert (folder.independent("image_to_text_R@1"), folder.independent("text_to_image_R@1")) == (979, 18)
    assert Question("zero_shot", 70).independent("zero_shot_acc1") == 70


def test_the_chance_level_counts_every_right_answer_and_says_where_k_says_little():
    one = retrieval_question(13, texts=9, images=13)
    assert one.chance("image_to_text_R@1") == "chance 11.1 %"
    assert one.chance("image_to_text_R@5") == "chance 55.6 %, says little: 5 of 9 candidates"
    assert one.chance("text_to_image_R@1") == f"chance {100 * (13 / 9) / 13:.1f} %", "13 right answers of 9 questions"
    assert (one.chance("image_to_text_mAP"), MANY.chance("zero_shot_acc1")) == ("", "chance 1.0 %")
    assert retrieval_question(5000, texts=5000, images=5000).chance("image_to_text_R@1") == "chance < 0.1 %"


def test_one_answer_to_all_is_told_where_a_caption_is_frequent():
    captions = np.repeat([0, 1, 2, 3], [7, 3, 2, 1])
    images = np.array([0, 0, *range(1, 12)])  # the first two pairs show one picture
    texts = matching(captions, images).texts
    constant = max(len({*images[captions == caption].tolist()}) for caption in range(4))
    assert texts.majority == constant == 6
    asked = retrieval_question(13, texts=4, images=12, majority=texts.majority)
    assert asked.chance("image_to_text_R@1") == "chance 27.1 %, majority baseline 50.0 %"
    assert "majority" not in asked.chance("text_to_image_R@1") + asked.chance("image_to_text_R@5")
    assert "majority" not in retrieval_question(13, texts=4, images=12).chance("image_to_text_R@1")
    even = retrieval_question(40, texts=4, images=40, majority=11)
    assert even.chance("image_to_text_R@1") == "chance 25.0 %", "hardly more than chance"
    stored = question_from_key(asked.key)
    assert stored == asked == retrieval_question(13, texts=4, images=12), "the same question, also of earlier runs"
    assert stored is not None
    assert stored.majority == 6
    facts = {"heldout_pairs": {"val": 13}, "heldout_questions": {"val": asked.noted_counts}}
    assert noted_chance("val/image_to_text_R@1", facts) == asked.chance("image_to_text_R@1")
    assert once_note("val/image_to_text_R@1", facts) == "of 13 pairs, each picture once"


def test_the_chance_level_of_a_logged_recall_comes_from_what_the_trainer_noted():
    facts = {"heldout_pairs": {"val": 13}, "heldout_questions": {"val": {"image_to_text": 13, "text_to_image": 9}}}
    assert noted_chance("val/image_to_text_R@1", facts) == "chance 11.1 %"
    assert noted_chance("val/text_to_image_R@5", facts).endswith("says little: 5 of 13 candidates")
    drawn = {"heldout_pairs": {"val": 900}, "heldout_questions": {"val": {"image_to_text": 50, "text_to_image": 50}}}
    assert noted_chance("val/image_to_text_R@1", drawn) == "", "among how many answers is not noted"
    assert noted_chance("val/image_to_text_R@1", {}) == noted_chance("val/loss", facts) == ""


def test_every_metric_of_a_task_belongs_to_it():
    named = {"zero_shot_acc5": "zero_shot", "val/text_to_image_R@5": "retrieval", "auc_hard10": "similarity"}
    named |= {"fine_tune_linear_1pct_acc1": "fine_tune", "knn_words": "knn", "shift_drop": "robustness", "acc1": ""}
    assert {name: task_of(name) for name in named} == named


def test_numbers_of_two_questions_stand_beside_each_other(workspace: Workspace):
    workspace.results.add_evaluation(
        1, 8, "cal", "heldout", {"zero_shot_acc1": 0.3, "zero_shot_acc5": 0.5}, {"zero_shot": MANY}
    )
    workspace.results.add_evaluation(1, 8, "cal", "heldout", {"zero_shot_acc1": 0.9}, {"zero_shot": FEW})
    workspace.results.add_evaluation(1, 8, "cal", "heldout", {"zero_shot_acc1": 0.4}, {"zero_shot": MANY})
    found = {row.question: row.metrics for row in workspace.results.answers(1)}
    assert found == {MANY: {"zero_shot_acc1": 0.4, "zero_shot_acc5": 0.5}, FEW: {"zero_shot_acc1": 0.9}}
    assert len(workspace.results.evaluations(1)) == 1


def test_two_questions_are_two_rows_and_nothing_is_best_across_them(workspace: Workspace):
    workspace.results.add_evaluation(1, 8, "cal", "heldout", {"zero_shot_acc1": 0.3}, {"zero_shot": MANY})
    workspace.results.add_evaluation(2, 8, "cal", "heldout", {"zero_shot_acc1": 0.9}, {"zero_shot": FEW})
    table = comparison(workspace, [1, 2])
    assert {row.question: (row.values, row.best) for row in table.rows} == {
        MANY: ((0.3, None), ()),
        FEW: ((None, 0.9), ()),
    }
    told = as_text(COMPARISON.draw(table, None))
    assert "*" not in told.replace("(or *)", "")
    assert "cal, held-out, zero shot, n = 960, 102 classes × 2 templates" in told
    assert "cal, held-out, zero shot, n = 960, 101 classes × 2 templates" in told
    workspace.results.add_evaluation(1, 8, "cal", "heldout", {"zero_shot_acc1": 0.2}, {"zero_shot": FEW})
    assert [row.best for row in comparison(workspace, [1, 2]).rows] == [(), (1,)]


def test_groups_test_nothing_across_questions(tmp_path: Path):
    made = Workspace(tmp_path / "space")
    for name, question, base in (("a", MANY, 0.2), ("b", FEW, 0.8)):
        for seed in range(3):
            run = made.runs.create(config.Run(name=f"{name}-{seed}", seed=seed), status="finished")
            made.results.add_evaluation(
                run, 8, "cal", "heldout", {"zero_shot_acc1": base + seed / 100}, {"zero_shot": question}
            )
    table = group_table(made, ["a-*", "b-*"])
    assert [line.tests for line in table.lines] == [(None,), (None,)]
    assert not any(line.better for line in table.lines)
    assert "102 classes" in as_text(draw(table, GroupSettings()))


def test_numbers_without_a_question_are_marked_and_never_best(workspace):
    for run, value in ((1, 0.3), (2, 0.9)):
        workspace.results.add_evaluation(run, 8, "cal", "heldout", {"zero_shot_acc1": value, "n": 960})
    assert [row.question for row in workspace.results.answers(1)] == [None]
    table = comparison(workspace, [1, 2])
    (row,) = table.rows
    assert (row.values, row.n, row.best) == ((0.3, 0.9), (None, None), ())
    assert UNKNOWN in as_markdown(COMPARISON.draw(table, None))
    workspace.results.add_evaluation(2, 8, "cal", "heldout", {"zero_shot_acc1": 0.5}, {"zero_shot": MANY})
    rows = comparison(workspace, [1, 2]).rows
    assert [(row.question, row.values) for row in rows] == [(MANY, (None, 0.5)), (None, (0.3, 0.9))]


def test_the_figure_of_groups_has_a_line_a_question_and_its_own_legend(tmp_path: Path):
    made = Workspace(tmp_path / "space")
    for name in ("a", "b"):
        run = made.runs.create(config.Run(name=name), status="finished")
        for question in (MANY, FEW):
            made.results.add_evaluation(run, 8, "cal", "heldout", {"zero_shot_acc1": 0.3}, {"zero_shot": question})
    plot = draw(group_table(made, ["a*", "b*"]), GroupSettings()).mark("shares")
    assert sum("102 classes" in row for row in plot.names) == sum("101 classes" in row for row in plot.names) == 1
    assert list(dict.fromkeys(dot.name for dot in plot.dots)) == ["a* · 1 run", "b* · 1 run"]


def test_what_cannot_be_understood_is_no_question():
    for key in ("", "no JSON", "[" * 100_000, "[]", "7", '{"split": 3}'):
        assert question_from_key(key) is None, key[:20]
