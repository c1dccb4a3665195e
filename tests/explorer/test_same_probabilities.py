"""One picture has one probability: in Classify, in Prompts, and of `trainer classify`."""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

from explorer.run_control.jobs import Jobs
from explorer.views.classify import ClassifyView
from explorer.views.prompts import PromptsView
from explorer.views.view import Context
from tests.explorer.answering_client import AnsweringClient
from trainer.__main__ import main
from trainer.config import default_paths
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace

pytestmark = pytest.mark.slow
PICTURES = ("00200.jpg", "00306.jpg", "00000.jpg")


class ModelsHere(AnsweringClient):
    """Answers with the sample's models, in this process."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self.handlers = RequestHandlers(workspace)

    def answer_of(self, question: Any) -> Any:
        return self.handlers.answer(question, lambda share, note: None)

    def state(self, _kind: str) -> str:
        return "warm"

    def warm_up(self, *_: Any) -> None:
        """Do nothing, because the models are opened when they are asked."""


@pytest.fixture
def context(make_context) -> Iterator[Context]:
    made, workspace = make_context(), Workspace(default_paths.sample_workspace())
    made.client.close()
    jobs = Jobs(workspace, made.background, made.selection.undo)
    jobs.poll()
    context = dataclasses.replace(made, workspace=workspace, jobs=jobs, client=ModelsHere(workspace))
    context.selection.propose(run_a=1, run_b=2)
    yield context
    jobs.close()
    workspace.close()


def test_a_picture_of_the_sample_has_one_probability_everywhere(qtbot, context: Context, capsys) -> None:
    folder = next(context.workspace.folder.glob("data/*/renderings"))
    paths = [str(folder / name) for name in PICTURES]
    context.selection.queries = paths
    views = []
    for kind, name in ((ClassifyView, "classify"), (PromptsView, "prompts")):
        context.settings.set(f"{name}/suite", "scenes")
        views.append(view := kind(context))
        qtbot.addWidget(view)
        qtbot.addWidget(view.questions)
        view.resize(1100, 720)
        view.show()
    classify, prompts = views
    assert main(["classify", *paths, "--runs", "1", "2", "--suite", "scenes", "--sample", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    qtbot.waitUntil(lambda: prompts.calibration.samples.count() == len(paths), timeout=30_000)
    for place, path in enumerate(paths):
        prompts.calibration.sample_chosen.emit(place)
        classify.strip.choose(path)
        for index, run in enumerate((1, 2)):
            expected = dict(zip(told["labels"], told["runs"][index]["probabilities"][place], strict=True))
            for bars in (classify.bars, prompts.calibration.bars):

                def shown(bars=bars, index=index) -> dict[str, float]:
                    column = bars.columns[index]
                    return dict(zip(bars.names, column.shares, strict=True)) if column.shares else {}

                qtbot.waitUntil(lambda bars=bars: len(bars.columns) == 2 and all(c.shares for c in bars.columns))
                assert shown() == pytest.approx(expected, abs=2e-5), (path, run, bars.objectName())
