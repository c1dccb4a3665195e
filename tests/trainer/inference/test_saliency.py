"""Saliency of two runs, each at its own step, through the code that serves the window."""

from pathlib import Path

import numpy as np
import pytest

from trainer.messages import Saliency, SaliencyAnswer
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace

pytestmark = pytest.mark.slow


def test_each_run_is_explained_at_its_own_step(asked: Workspace, images: list[Path]) -> None:
    answers = RequestHandlers(asked)

    def ask(runs: tuple[int, ...], steps: tuple[int | None, ...] = ()) -> tuple[SaliencyAnswer, np.ndarray]:
        question = Saliency(runs=runs, image=str(images[1]), caption="a red circle", grid=4, steps=steps)
        answer = answers.answer(question, lambda *_: None)
        return answer, np.load(answer.array)

    (both, maps), (first, map_a), (second, map_b) = ask((1, 2), (4, 8)), ask((1,), (4,)), ask((2,), (8,))
    assert both.steps == (4, 8)
    assert both.cosines == pytest.approx([*first.cosines, *second.cosines], abs=1e-6)
    np.testing.assert_allclose(maps, np.concatenate((map_a, map_b)), atol=1e-6)
    assert np.abs(maps[0] - ask((1,), (8,))[1][0]).max() > 1e-6, "the other step answers otherwise"
    assert ask((1, 2), (8, 4))[0].steps == (8, 4)
    assert ask((1, 2))[0].steps == (8, 8)
