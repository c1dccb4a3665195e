"""A workspace with an experiment whose runs end with the outcomes that a test gives, without any training."""

from collections.abc import Callable, Mapping

import pytest

from trainer import config
from trainer.experiments.experiment import Experiment, Outcome, of_presets, to_toml
from trainer.store import Question, Workspace

OUTCOME = Outcome("image_to_text_R@1", "renderings")
RANK = Outcome("effective_rank_image", "renderings")
ASKED = Question("retrieval", 512, gallery=512)


@pytest.fixture
def clip_cloob() -> Experiment:
    return of_presets(
        "duel", ("clip-scenes", "cloob-scenes"), OUTCOME, secondaries=(RANK,), question="Which is better?", margin=0.02
    )


@pytest.fixture
def stored(workspace: Workspace, clip_cloob: Experiment) -> Experiment:
    workspace.experiments.add(clip_cloob.name, to_toml(clip_cloob))
    return clip_cloob


def end(
    workspace: Workspace, run: int, values: Mapping[str, float], *, status: str = "finished", asked: Question = ASKED
) -> None:
    """End a queued run with these numbers at its last step."""
    workspace.runs.change(run, status=status, step=40, total_steps=40)
    if values:
        workspace.results.add_evaluation(
            run, 40, "scenes", "renderings", {f"val/{k}": v for k, v in values.items()}, {"retrieval": asked}
        )


def end_all(workspace: Workspace, experiment: Experiment, value: Callable[[str, int], float]) -> None:
    """End every queued run of an experiment with the outcome of its arm and seed."""
    for row in workspace.runs.of_experiment(experiment.name):
        if row.status == "queued":
            seed = config.from_toml(workspace.runs.config_text(row.id)).seed
            found = value(row.arm, seed)
            end(workspace, row.id, {"image_to_text_R@1": found, "effective_rank_image": 10 * found})
