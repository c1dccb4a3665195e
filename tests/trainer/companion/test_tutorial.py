"""The loop of the tutorial runs as it is printed."""

import re
from pathlib import Path

import pytest

from trainer.store import Workspace

PAGE = Path(__file__).parents[3] / "assets" / "docs" / "tutorials" / "my-own-training.md"


@pytest.mark.slow
def test_the_loop_of_the_tutorial_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S) if "log_run" in block
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(source, str(PAGE), "exec"), {"__name__": "__main__"})
    store = Workspace(tmp_path / "runs")
    (row,) = store.runs.all()
    assert (row.name, row.status, row.step) == ("own loop", "finished", 60)
    assert [snapshot.step for snapshot in store.results.snapshots(row.id)] == [15, 30, 45, 60]
    _, losses, _ = store.results.series(row.id, "train/loss")
    assert losses[-1] < losses[0]
