"""A figure of A and B says what the window's line says of them: over seeds where it compares scores, and collapses."""

from pathlib import Path

import pytest

from tests.two_runs import write_two_runs
from trainer import config
from trainer.__main__ import main
from trainer.charts.seed_note import seed_note
from trainer.store import Workspace

UNDECIDED, FLAW = "1 seed each: undecided", "CLIP · bad collapsed at step 42"


@pytest.fixture
def flawed(tmp_path: Path):
    """Two runs, of which the second collapsed."""
    write_two_runs(tmp_path, [(config.Run(name="good"), 0.2), (config.Run(name="bad"), 0.8)], curves=True)
    workspace = Workspace(tmp_path / "workspace")
    for run in (1, 2):
        workspace.results.add_evaluation(run, 20, "scenes", "renderings", {"val/image_to_text_R@1": 0.5})
    workspace.runs.raise_alert(2, "collapse", {"words": "The embeddings collapse.", "step": 42})
    yield workspace
    workspace.close()


def test_figures_and_the_report_say_what_the_line_of_the_window_says(flawed: Workspace, tmp_path: Path, umap_as_pca):
    pages = {}
    for kind, file in (("similarity", "similarity.md"), ("map", "map.svg")):
        where = ["--workspace", str(flawed.folder), "--out", str(tmp_path / file)]
        assert not main(["export", kind, "--runs", "1", "2", *where])
        pages[kind] = (tmp_path / file).read_text()
    assert pages["similarity"].rstrip().endswith(f"{UNDECIDED} · {FLAW}")
    assert FLAW in pages["map"]
    assert UNDECIDED not in pages["map"], "pictures decide nothing"
    assert not main(["report", "1", "2", "--workspace", str(flawed.folder), "--out", str(tmp_path / "report.html")])
    page = (tmp_path / "report.html").read_text()
    assert (f"means. {UNDECIDED} · {FLAW}</p>" in page, f"visible. {FLAW}</p>" in page) == (True, True)


def test_three_runs_are_told_by_their_seeds_and_one_run_is_not_compared(flawed: Workspace):
    third = flawed.runs.create(config.Run(name="third", seed=4))
    assert seed_note(flawed, "similarity", [1]) == seed_note(flawed, "runs", [1, 2]) == ""
    assert seed_note(flawed, "map", [1, "bad", third]) == FLAW
    assert seed_note(flawed, "gap", [1, 2, third]).startswith("One seed each (seeds 0, 0, 4)")
