"""What Home says of the last finished runs: the newest two that compare, and what so few held-out pairs can show."""

import math

import pytest

from trainer import config
from trainer.analysis.intervals import FEWEST_HELD_OUT, smallest_difference
from trainer.experiments.last_runs import last_runs
from trainer.experiments.seed_truth import seed_truth
from trainer.store import Workspace

NAME = "val/image_to_text_R@1"


def finished(workspace: Workspace, run: config.Run, value: float, pairs: int, ended_at: float) -> int:
    number = workspace.runs.create(run)
    facts = {"heldout_pairs": {"renderings": pairs}}
    workspace.runs.change(number, status="finished", step=96, total_steps=96, metric=NAME, last=value)
    workspace.runs.change(number, ended_at=ended_at)
    workspace.runs.add_facts(number, facts)
    return number


def test_the_newest_two_that_compare_come_before_a_newer_one_on_other_data(workspace: Workspace):
    own = finished(workspace, config.Run(name="own"), 0.5, 1024, 1.0)
    loob = finished(workspace, config.Run(name="loob", objective=config.Cloob()), 0.6, 1024, 2.0)
    both = last_runs(workspace)
    assert [row.id for row in both.runs] == [row.id for row in both.repeated] == [own, loob]
    asked = {"renderings": {"image_to_text": 1024, "text_to_image": 512}}
    for run in (own, loob):
        workspace.runs.add_facts(run, {"heldout_questions": asked})
    both = last_runs(workspace)
    assert "n = 1,024 · chance 0.2 % · 96 steps" in both.about
    for run in (own, loob):
        workspace.runs.add_facts(
            run, {"heldout_questions": {"renderings": {"image_to_text": 1000, "text_to_image": 512}}}
        )
    assert "n = 1,000 · of 1,024 pairs, each picture once · " in last_runs(workspace).about
    both = last_runs(workspace)
    other = finished(workspace, config.Run(name="mine", data=config.Folder(path="mine")), 0.7, 512, 3.0)
    newest = last_runs(workspace)
    assert (newest.runs, newest.repeated, newest.headline) == (both.runs, both.repeated, both.headline)
    assert [row.id for row in newest.apart] == [loob, other]
    assert newest.apart_note == "CLIP · mine finished last; no other run was measured on mine."
    workspace.runs.change(own, ended_at=4.0)
    resumed = last_runs(workspace)
    assert ([row.id for row in resumed.runs], resumed.apart) == ([loob, own], ()), "it was resumed, and is the newest"


def test_opened_vectors_do_not_stand_beside_a_training_on_other_data(workspace: Workspace):
    vectors = config.run_elsewhere("theirs", config.Vectors(image_vectors="v.npz"))
    opened = finished(workspace, vectors, 0.926, 2000, 1.0)
    assert [row.id for row in last_runs(workspace).runs] == [opened], "nothing else is finished"
    own = finished(workspace, config.Run(name="own"), 0.1, 1024, 2.0)
    workspace.runs.change(opened, ended_at=3.0)
    last = last_runs(workspace)
    assert ([row.id for row in last.runs], last.apart) == ([own], ())
    assert not last.headline.startswith("Not comparable")
    loob = finished(workspace, config.Run(name="loob", objective=config.Cloob()), 0.6, 1024, 2.5)
    last = last_runs(workspace)
    assert ([row.id for row in last.runs], last.apart) == ([own, loob], ())


def test_two_runs_on_other_pairs_of_one_data_set_say_so_and_can_be_measured_alike(workspace: Workspace):
    runs = [finished(workspace, config.Run(name=f"run {n}"), 0.5, n, float(n)) for n in (512, 1024)]
    last = last_runs(workspace)
    assert [row.id for row in last.apart] == runs
    first, second = last.apart_note.split(", and ")
    assert first.endswith("was measured on Image to text R@1, unseen renderings, n = 512")
    assert second.endswith("n = 1,024.")


@pytest.mark.parametrize(("batch", "is_said"), [(8, True), (32, False)])
def test_what_further_seeds_of_cloob_do_in_small_batches_is_said(workspace: Workspace, batch: int, is_said: bool):
    run = config.replace(config.Run(name="mine", data=config.Folder(path="mine")), "optimizer.batch_size", str(batch))
    finished(workspace, run, 0.5, 1024, 1.0)
    assert ("CLOOB may collapse with batches of 8" in last_runs(workspace).flaws) is is_said


def test_two_runs_on_different_data_are_named_with_what_each_answers(workspace: Workspace):
    loob = finished(workspace, config.Run(name="loob", objective=config.Cloob()), 0.6, 1024, 2.0)
    other = finished(workspace, config.Run(name="mine", data=config.Folder(path="mine")), 0.7, 512, 3.0)
    newest = last_runs(workspace)
    assert [row.id for row in newest.runs] == [row.id for row in newest.apart] == [loob, other]
    assert newest.headline.startswith("Not comparable: CLOOB · loob 60.0 %, ")
    assert newest.headline.endswith("n = 512")
    assert "A and B" not in newest.about, "letters that Home does not show"
    assert newest.apart_note == "CLOOB · loob was measured on Scenes, and CLIP · mine was measured on mine."
    assert [row.id for row in newest.repeated] == [other], "seeds decide nothing between them"
    workspace.runs.add_facts(other, {"heldout_pairs": {"renderings": 12}})
    fewer = last_runs(workspace)
    assert fewer.headline.startswith("Not comparable: "), "that their data differ comes first"
    assert (fewer.repeated, fewer.apart_note) == ((), newest.apart_note)
    assert "Hold out 24 pairs" in fewer.note


@pytest.mark.parametrize(
    ("pairs", "note"),
    [
        (2, "So few pairs show no difference. Hold out 24 pairs or more."),
        (12, "So few pairs show only differences of 50 points or more. Hold out 24 pairs or more."),
    ],
)
def test_so_few_pairs_compare_nothing_and_no_seeds_are_offered(workspace: Workspace, pairs: int, note: str):
    for name, objective, value in (("own", config.Clip(), 0.5), ("loob", config.Cloob(), 1.0)):
        finished(workspace, config.Run(name=name, objective=objective), value, pairs, value)
    last = last_runs(workspace)
    assert (last.headline, last.repeated, last.note) == (f"{pairs} held-out pairs: too few to compare", (), note)
    assert last.about.startswith("CLOOB · loob finds the caption of 100.0 % of the images")
    truth = seed_truth(workspace, *(row.id for row in last.runs))
    assert (truth.text, truth.comparable) == (last.headline, False), "every view says what Home says"


def test_the_smallest_difference_is_that_of_a_sign_test():
    def p_value(wins: int) -> float:
        """Two-sided, where the same run alone is right each time."""
        return 2 * math.prod([0.5] * wins)

    for n in range(6, 100):
        needed = next(wins for wins in range(1, n + 1) if p_value(wins) < 0.05)
        assert smallest_difference(n) == pytest.approx(needed / n)
    assert smallest_difference(5) > 1
    assert smallest_difference(FEWEST_HELD_OUT) == 0.25
