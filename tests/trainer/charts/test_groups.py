"""Groups of runs over seeds, and published numbers."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from trainer import config
from trainer.__main__ import main
from trainer.analysis.significance import holm
from trainer.charts import ChartError
from trainer.charts.groups import draw, records
from trainer.charts.measures.groups import GroupSettings, cell, group_table
from trainer.charts.panel_tables import as_latex, as_markdown
from trainer.charts.published_numbers import references
from trainer.config.default_paths import assets_dir
from trainer.store import Question, Workspace

pytestmark = pytest.mark.slow

A = {"zero_shot_acc1": [0.50, 0.52, 0.51, 0.49], "knn_acc1": [0.3, 0.5, 0.4, 0.2]}
B = {"zero_shot_acc1": [0.60, 0.61, 0.59, 0.62], "knn_acc1": [0.35, 0.45, 0.3, 0.4]}

ASKED = {"zero_shot": Question("zero_shot", 200, 10), "knn": Question("knn", 200)}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("seeds"))
    for name, values in (("clip", A), ("cloob", B)):
        for seed in range(4):
            run = workspace.runs.create(config.Run(name=f"{name}-{seed}", seed=seed), status="finished")
            found = {key: column[seed] for key, column in values.items()}
            workspace.results.add_evaluation(run, 10, "toys", "test", found, ASKED)
    return workspace


def test_only_a_real_difference_is_bold(seeds: Workspace):
    table = group_table(seeds, ["clip-*", "cloob-*"])
    lines = {line.name: line for line in table.lines}
    p = [stats.ttest_ind(B[name], A[name], equal_var=False).pvalue for name in lines]
    assert [line.p[0] for line in lines.values()] == pytest.approx(list(holm(np.array(p))))
    assert lines["zero_shot_acc1"].better == {1}
    assert lines["knn_acc1"].better == set()
    assert cell(lines["zero_shot_acc1"], 0) == "50.5 ± 1.3 %"
    assert "**60.5 ± 1.3 %**" in as_markdown(draw(table, GroupSettings()))
    assert r"\textbf{60.5 $\pm$ 1.3 \%}" in as_latex(draw(table, GroupSettings()))
    assert r"clip-*" in as_latex(draw(table, GroupSettings()))
    header, rows = records(table, GroupSettings())
    assert all(len(row) == len(header) for row in rows)


def test_every_later_group_is_tested_against_the_first(seeds: Workspace, capsys):
    patterns = ["clip-*", "cloob-*", "*-[01]"]
    values = [A["zero_shot_acc1"], B["zero_shot_acc1"], [*A["zero_shot_acc1"][:2], *B["zero_shot_acc1"][:2]]]
    raw = [stats.ttest_ind(later, values[0], equal_var=False).pvalue for later in values[1:]]
    line, other = group_table(seeds, patterns, "line").lines
    assert line.p == pytest.approx(tuple(holm(np.array(raw))))
    assert (line.better, other.better) == ({1}, set())
    # With every test of the table in the family, p is larger.
    whole = group_table(seeds, patterns)
    knn = [A["knn_acc1"], B["knn_acc1"], [*A["knn_acc1"][:2], *B["knn_acc1"][:2]]]
    raw += [stats.ttest_ind(later, knn[0], equal_var=False).pvalue for later in knn[1:]]
    assert [p for one in whole.lines for p in one.p] == pytest.approx(list(holm(np.array(raw))))
    # The first is strong where it is better than all others.
    assert group_table(seeds, ["cloob-*", "clip-*"]).lines[0].better == {0}
    assert group_table(seeds, ["cloob-*", "clip-*", "cloob-*"]).lines[0].better == set()
    words = [word for pattern in patterns for word in ("--group", pattern)]
    assert main(["compare", *words, "--holm", "line", "--workspace", str(seeds.folder)]) == 0
    said = capsys.readouterr().out
    assert "p (Welch, Holm) *-[01]" in said
    assert "Holm-corrected over the groups of a row" in said
    header, rows = records(whole, GroupSettings())
    assert {len(row) for row in rows} == {len(header)}


def test_compare_writes_groups_and_refuses_half_a_question(seeds: Workspace, tmp_path: Path, capsys):
    where = ["--workspace", str(seeds.folder)]
    out = tmp_path / "table.csv"
    assert main(["compare", "--group", "clip-*", "--group", "cloob-*", "--out", str(out), *where]) == 0
    assert "60.5 ± 1.3 % *" in capsys.readouterr().out
    assert {row["group"] for row in csv.DictReader(out.open(encoding="utf-8"))} == {"clip-*", "cloob-*"}
    assert main(["compare", "--group", "clip-*", *where]) == 2
    assert main(["compare", *where]) == 2
    with pytest.raises(ChartError, match="No run is called simclr"):
        group_table(seeds, ["simclr-*", "cloob-*"])


def test_published_numbers_have_a_source_and_are_found_by_name():
    every = references()
    assert len(every) == 254
    assert all(one.source and 0 < one.value < 1 for one in every)
    cars = [one for one in references("stanford-cars") if one.pretraining == "CC3M"]
    assert [(one.model, one.epochs, one.value, one.std, one.runs) for one in cars[:2]] == [
        ("CLIP RN50", "31", pytest.approx(0.0091), pytest.approx(0.001), 5),
        ("CLOOB RN50", "31", pytest.approx(0.0123), pytest.approx(0.001), 5),
    ]
    assert references("clothing-cc0") == ()
    assert {file.stem for file in (assets_dir() / "reference").glob("*.csv")} == {
        "cloob-cc",
        "cloob-linear-probe",
        "cloob-yfcc",
        "open-clip",
    }
    pets = [one for one in references("oxfordiiitpet") if (one.model, one.pretraining) == ("ViT-B-32", "openai")]
    assert [(one.task_label, one.value) for one in pets] == [("Zero-shot, mean per class", pytest.approx(0.87))]
    assert [one.task_label for one in references("flickr30k")[::6]] == ["Image to text R@1", "Text to image R@1"]
