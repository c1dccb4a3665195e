"""One picture has one probability: in Classify, in Prompts, of `trainer classify`, and computed anew."""

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from explorer.run_control.jobs import Jobs
from explorer.views.classify import ClassifyView
from explorer.views.prompts import PromptsView
from explorer.views.view import Context
from tests.explorer.answering_client import AnsweringClient
from trainer import prompt_suites
from trainer.__main__ import main
from trainer.config import default_paths
from trainer.inference.embed import embed_files, embed_sentences
from trainer.inference.model_cache import ModelCache
from trainer.prompt_suites import PromptSuite
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


def computed(cache: ModelCache, run: int, path: str, suite: PromptSuite) -> dict[str, float]:
    """Return the softmax over classes of the cosines with the normalized means of their sentences, by loops."""
    model = cache.get(run, None)
    image, logits = embed_files(model.opened, (path,)).vectors[0].astype(float), {}
    for name in suite.classes:
        each = embed_sentences(model.opened, suite.prompts_of(name)).astype(float)
        mean = [sum(vector[axis] for vector in each) / len(each) for axis in range(len(image))]
        product = sum(a * b for a, b in zip(mean, image, strict=True))
        logits[name] = model.inv_tau * product / math.sqrt(sum(value * value for value in mean))
    total = sum(math.exp(logit) for logit in logits.values())
    return {name: math.exp(logit) / total for name, logit in logits.items()}


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
    cache, suite = ModelCache(context.workspace), prompt_suites.prompt_suites()["scenes"]
    qtbot.waitUntil(lambda: prompts.calibration.samples.count() == len(paths), timeout=30_000)
    for place, path in enumerate(paths):
        prompts.calibration.sample_chosen.emit(place)
        classify.strip.choose(path)
        for index, run in enumerate((1, 2)):
            expected = computed(cache, run, path, suite)
            of_command = dict(zip(told["labels"], told["runs"][index]["probabilities"][place], strict=True))
            assert of_command == pytest.approx(expected, abs=2e-5)
            for bars in (classify.bars, prompts.calibration.bars):

                def shown(bars=bars, index=index) -> dict[str, float]:
                    column = bars.columns[index]
                    return dict(zip(bars.names, column.shares, strict=True)) if column.shares else {}

                qtbot.waitUntil(lambda bars=bars: len(bars.columns) == 2 and all(c.shares for c in bars.columns))
                assert shown() == pytest.approx(expected, abs=2e-5), (path, run, bars.objectName())
