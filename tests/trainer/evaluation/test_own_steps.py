"""Runs evaluated at one step each: every group of equal steps once, with all results reported together."""

from typing import Any

import pytest

from trainer.evaluation import run_tasks
from trainer.messages import Evaluate, EvaluateAnswer
from trainer.server import handlers
from trainer.store import Workspace

pytestmark = pytest.mark.slow


def test_each_run_is_evaluated_at_its_own_step(asked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[tuple[int, ...], int | None]] = []
    told: list[float] = []

    def measure(_models: Any, request: Any, progress: Any, _measured: Any) -> tuple[list[Any], dict[str, str]]:
        calls.append((request.runs, request.step))
        progress(0.5, "half")
        return [], {f"{request.runs[0]}: knn": f"step {request.step}"}

    monkeypatch.setattr(run_tasks, "_evaluate", measure)
    made = handlers.RequestHandlers(asked)
    question = Evaluate(runs=(1, 1, 2), steps=(4, None, 4))
    answer = made.answer(question, lambda share, _note: told.append(share))
    assert calls == [((1, 2), 4), ((1,), None)]
    assert told == [0.25, 0.75]
    left_out = {"1: knn, step 4": "step 4", "1: knn, step last": "step None"}
    assert answer == EvaluateAnswer(done=(), left_out=left_out)
    calls.clear()
    made.answer(Evaluate(runs=(1, 2), steps=(8, 8)), lambda *_: None)
    assert calls == [((1, 2), 8)], "one step of all: one call"
