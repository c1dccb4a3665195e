"""Saliency of two runs, each at its own step, through the code that serves the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.messages import Saliency
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace

pytestmark = pytest.mark.slow


def test_each_run_is_explained_at_its_own_step(asked: Workspace, images: list[Path]) -> None:
    answers = RequestHandlers(asked)

    def ask(runs: tuple[int, ...], steps: tuple[int | None, ...] = (), step: int | None = None) -> dict[str, Any]:
        question = Saliency(runs=runs, image=str(images[1]), caption="a red circle", grid=4, steps=steps, step=step)
        answer = answers.answer(question, lambda *_: None)
        return answer | {"maps": np.load(answer["array"])}

    both, first, second = ask((1, 2), (4, 8)), ask((1,), (4,)), ask((2,), (8,))
    assert list(both["steps"]) == [4, 8]
    assert both["cosines"] == pytest.approx([*first["cosines"], *second["cosines"]], abs=1e-6)
    np.testing.assert_allclose(both["maps"], np.concatenate((first["maps"], second["maps"])), atol=1e-6)
    assert np.abs(both["maps"][0] - ask((1,), (8,))["maps"][0]).max() > 1e-6, "the other step answers otherwise"
    assert list(ask((1, 2), (8, 4))["steps"]) == [8, 4]
    assert list(ask((1, 2), step=4)["steps"]) == [4, 4]
    assert list(ask((1, 2))["steps"]) == [8, 8]
