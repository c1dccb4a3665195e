"""Charts over many runs, against plain computations: distances, the plane, who is odd, fields and their importance."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import procrustes as scipy_procrustes

from tests.builders import writable_copy
from trainer import config
from trainer.__main__ import main
from trainer.analysis.model_distances import apartness, plane_of, procrustes_distances
from trainer.analysis.units import units_of_numbers
from trainer.charts import ChartError, field_grid
from trainer.charts.config_difference import ConfigDifferenceSettings
from trainer.charts.config_difference import compute as differences
from trainer.charts.field_grid import grid
from trainer.charts.field_importance import importance
from trainer.charts.parallel_coordinates import best_quarter, scaled
from trainer.charts.run_fields import run_fields
from trainer.charts.small_multiples import unmatched_cosines
from trainer.charts.spec import Target
from trainer.store import RunLog, Workspace


def silent(_share: float, _note: str) -> None:
    """Say nothing."""


def test_the_procrustes_distance_is_the_root_of_scipys_disparity():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(40, 6)), rng.normal(size=(40, 6))
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    whole = procrustes_distances([first, second, 3.0 * first @ turn + 2.0, np.ones((40, 6))])
    assert whole[0, 1] ** 2 == pytest.approx(scipy_procrustes(first, second)[2], abs=1e-12)
    assert whole[0, 2] == pytest.approx(0.0, abs=1e-6)
    assert np.isnan(whole[3, :3]).all()
    assert (whole[:3, :3] == whole[:3, :3].T).all()
    assert np.diag(whole).tolist() == [0.0] * 4


def test_the_plane_keeps_distances_that_fit_into_it():
    points = np.random.default_rng(1).normal(size=(7, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    places, stress = plane_of(distances)
    assert np.linalg.norm(places[:, None] - places[None], axis=-1) == pytest.approx(distances, abs=1e-3)
    assert stress < 1e-3
    assert plane_of(distances)[0] == pytest.approx(places), "the same each time"
    assert plane_of(distances[:2, :2])[0][1, 0] == pytest.approx(distances[0, 1])
    whole = 1.0 - np.eye(8)
    _, lossy = plane_of(whole)
    assert lossy > 0.1, "eight points that are all equally far lie in no plane"


def test_the_odd_one_is_far_from_all_others():
    points = np.random.default_rng(2).normal(size=(8, 2))
    points[5] += 40.0
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    mean, unusual = apartness(distances)
    for place in range(8):
        assert mean[place] == pytest.approx(sum(distances[place][i] for i in range(8) if i != place) / 7)
    assert int(unusual.argmax()) == 5
    assert unusual[5] > 3.5
    assert np.isnan(apartness(distances[:3, :3])[1]).all(), "of three nobody can say"


def test_unmatched_cosines_are_of_distinct_captions_that_are_not_the_pictures_own():
    rng = np.random.default_rng(3)
    image, text = rng.normal(size=(2, 9, 4))
    captions, pictures = np.array([0, 1, 2, 0, 1, 2, 3, 4, 5]), np.array([0, 1, 2, 3, 4, 5, 6, 6, 7])
    edges = set(zip(pictures.tolist(), captions.tolist(), strict=True))
    first = {caption: captions.tolist().index(caption) for caption in range(6)}
    naive = [
        sum(image[pictures.tolist().index(i)][c] * text[first[j]][c] for c in range(4))
        for i in range(8)
        for j in range(6)
        if (i, j) not in edges
    ]
    found = unmatched_cosines(image, text, units_of_numbers(pictures, captions))
    assert sorted(found) == pytest.approx(sorted(naive)), "five of the others are all of them"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return 24 runs whose recall follows beta, whatever the batch size. Read only."""
    workspace = Workspace(tmp_path_factory.mktemp("sweep") / "sweep")
    rng = np.random.default_rng(0)
    for number in range(24):
        beta, batch = float(2 + number % 8), int(rng.choice([32, 64, 128]))
        run = config.Run(name=f"run {number}", objective=config.Cloob())
        run = config.replace(config.replace(run, "beta", str(beta)), "batch", str(batch))
        with RunLog.claim(workspace, workspace.runs.create(run)) as log:
            log.scalars(1, {"val/image_to_text_R@1": 0.05 * beta, "train/loss": 1.0})
            log.status("finished")
    return workspace


@pytest.fixture
def own_sweep(sweep: Workspace, tmp_path: Path) -> Workspace:
    """Return a copy of `sweep`, to which a test may add runs."""
    return writable_copy(sweep.folder, tmp_path / "sweep")


def targets(workspace: Workspace) -> list[Target]:
    return [Target(run.id) for run in workspace.runs.all()]


def test_what_explains_the_outcome_comes_first(sweep: Workspace):
    about = run_fields(sweep, targets(sweep), "")
    assert set(about.fields) == {"objective.scale_hopfield", "optimizer.batch_size"}
    assert about.values.tolist() == pytest.approx([0.05 * (2 + n % 8) for n in range(24)])
    found = importance(about, silent)
    assert found.fields[0] == "objective.scale_hopfield"
    assert found.r2 > 0.7
    assert found.mean[0] > 10 * abs(found.mean[1])
    few = dataclasses.replace(about, values=np.full(24, np.nan))
    assert importance(few, silent).fields == ()
    noise = dataclasses.replace(about, values=np.random.default_rng(5).normal(size=24))
    assert importance(noise, silent).r2 < 0.3


def test_a_grid_has_the_mean_range_and_number_of_each_cell(sweep: Workspace):
    about = run_fields(sweep, targets(sweep), "")
    found = grid(about, "batch_size", "scale_hopfield")
    assert found.names == ("optimizer.batch_size", "objective.scale_hopfield")
    configs = [sweep.runs.config_of(run) for run, _ in about.runs]
    for r, batch in enumerate(found.row_values):
        for c, beta in enumerate(found.column_values):
            cell = [
                about.values[at]
                for at, one in enumerate(configs)
                if f"{one.optimizer.batch_size}" == batch and f"{one.objective.scale_hopfield:g}" == beta
            ]
            assert found.count[r, c] == len(cell)
            if cell:
                assert found.mean[r, c] == pytest.approx(sum(cell) / len(cell))
                assert (found.low[r, c], found.high[r, c]) == (min(cell), max(cell))
            else:
                assert np.isnan(found.mean[r, c])
    assert found.count.sum() == 24
    assert grid(about).names == tuple(about.fields), "the fields that differ, if none is chosen"
    with pytest.raises(ChartError, match="do not differ in 'epochs'"):
        grid(about, "epochs")
    one = dataclasses.replace(about, fields={"seed": about.fields["optimizer.batch_size"]})
    assert grid(one).names == ("", "")
    with pytest.raises(ChartError, match="two fields"):
        grid(one, "seed")


def test_a_grid_chooses_the_fields_that_fill_it_and_says_which_runs_did_not_finish(workspace: Workspace):
    for number, (objective, seed) in enumerate([(o, s) for o in (config.Clip(), config.Cloob()) for s in (0, 1)]):
        run = config.Run(name=f"run {number}", objective=objective, seed=seed)
        with RunLog.claim(workspace, workspace.runs.create(run)) as log:
            log.scalars(1, {"val/image_to_text_R@1": 0.1 * (number + 1)})
            log.status("stopped" if number == 3 else "finished")
    about = run_fields(workspace, targets(workspace), "")
    assert {"objective", "objective.inv_tau", "seed"} <= set(about.fields)
    assert set(grid(about).names) != {"objective", "objective.inv_tau"}, "those two say the same: half is empty"
    assert grid(about).count.sum() == 3, "the stopped one is in no mean"
    assert (
        "1 run not counted, because it did not finish: CLOOB · s1."
        in field_grid.CHART.panel(grid(about), field_grid.FieldGridSettings()).warnings
    )
    assert grid(about, "seed").names[0] == "seed"
    assert about.unfinished == 1
    assert "1 of 4 runs did not finish" in about.warnings[0]
    with RunLog.claim(workspace, workspace.runs.create(config.Run(data=config.Folder(path="own")))) as log:
        log.scalars(1, {"val/image_to_text_R@1": 0.5})
        log.status("finished")
    mixed = run_fields(workspace, targets(workspace), "")
    assert mixed.warnings[0].startswith("Different data: Scenes, own; their outcomes do not compare.")
    assert mixed.warnings[0] in field_grid.CHART.panel(grid(mixed), field_grid.FieldGridSettings()).warnings


def test_the_best_quarter_and_scaling_by_factors(sweep: Workspace):
    about = run_fields(sweep, targets(sweep), "image_to_text_R@1")
    best = best_quarter(about)
    assert best.sum() >= 6
    assert about.values[best].min() >= about.values[~best].max()
    assert scaled(np.array([1.0, 10.0, 100.0]))[0] == pytest.approx([0.0, 0.5, 1.0])
    assert scaled(np.array([1.0, 2.0, 3.0])) == (pytest.approx([0.0, 0.5, 1.0]), False)
    assert scaled(np.array([4.0, np.nan, 4.0]))[0].tolist()[::2] == [0.5, 0.5]


def test_losses_of_two_objectives_explain_nothing(own_sweep: Workspace):
    own_sweep.runs.create(config.Run(name="clip"))
    with pytest.raises(ChartError, match="different quantities"):
        run_fields(own_sweep, targets(own_sweep), "train/loss")


def test_configurations_differ_in_what_was_set(own_sweep: Workspace):
    request = dataclasses.replace(_request(own_sweep), targets=tuple(targets(own_sweep)[:3]))
    found = differences(own_sweep, request, ConfigDifferenceSettings(), silent)
    flat = [config.flatten(own_sweep.runs.config_of(run)) for run, _ in found.runs]
    naive = {name for name in flat[0] if name != "name" and len({str(one[name]) for one in flat}) > 1}
    assert set(found.different) == naive
    assert found.different["objective.scale_hopfield"] == ("2", "3", "4")
    own_sweep.runs.create(config.Run(name="one more"))
    with pytest.raises(ChartError, match="at most 24"):
        differences(own_sweep, _request(own_sweep), ConfigDifferenceSettings(), silent)


def _request(workspace: Workspace):
    from trainer.charts.spec import Request

    return Request(tuple(targets(workspace)))


def test_the_commands_take_a_filter(sweep: Workspace, tmp_path: Path, capsys):
    out = tmp_path / "lines.csv"
    words = ["--filter", "beta>7", "--out", str(out), "--workspace", str(sweep.folder)]
    assert main(["export", "parallel-coordinates", *words]) == 0
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert rows
    capsys.readouterr()
    assert (
        main(["analyze", "field-importance", "--filter", "name:run", "--json", "--workspace", str(sweep.folder)]) == 0
    )
    assert "objective.scale_hopfield" in capsys.readouterr().out
    assert main(["analyze", "config-difference", "--filter", "beta>99", "--workspace", str(sweep.folder)]) == 2
    assert "No run fits" in capsys.readouterr().err


def test_an_analysis_without_values_says_why(sweep: Workspace, capsys):
    words = ["analyze", "field-importance", "1", "2", "3", "--workspace", str(sweep.folder)]
    why = "3 of 3 runs have Image to text R@1, held-out; at least 10 are needed."
    assert main(words) == 0
    assert capsys.readouterr().out.strip() == why
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"analysis": "field-importance", "runs": [], "notes": [why]}
