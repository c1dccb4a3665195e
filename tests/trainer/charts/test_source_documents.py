"""Charts of the source documents: noise of sampled gradients, prototypes, effective robustness; against loops."""

import json
import math

import numpy as np
import pytest
import torch

from trainer import config
from trainer.__main__ import main
from trainer.analysis import prototypes as clusters
from trainer.analysis.effective_robustness import DRAWS, robustness_line
from trainer.analysis.gradient_noise import direction_variance
from trainer.charts import ChartError, registry, sampling_variance
from trainer.charts.spec import Request, Target
from trainer.losses.proto_nce import concentration
from trainer.store import Items, RunLog, Workspace, snapshot_name, write_snapshot

pytestmark = pytest.mark.slow

rng = np.random.default_rng(3)


@pytest.mark.parametrize(("distance", "noise", "dimension"), [(0.3, 0.1, 3), (1.0, 0.05, 64), (0.2, 0.4, 8)])
def test_the_variance_of_a_direction_is_that_of_drawn_noise(distance: float, noise: float, dimension: int):
    drawn = noise * np.random.default_rng(0).standard_normal((200_000, dimension))
    drawn[:, 0] += distance
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    total = unit.var(axis=0).sum()
    assert direction_variance(np.array([distance]), noise, dimension)[0] == pytest.approx(total, abs=2e-3)


def test_without_noise_there_is_no_variance_and_at_no_distance_all():
    assert direction_variance(np.array([0.5, 0.0]), 0.0, 16).tolist() == [0, 1]
    assert direction_variance(np.array([1e-9]), 0.1, 16)[0] == pytest.approx(1, abs=1e-6)
    far = direction_variance(np.linspace(0.05, 2, 50), 0.05, 128)
    assert (np.diff(far) < 0).all()


def test_the_table_of_samplers_equals_a_loop():
    settings = sampling_variance.SamplingVarianceSettings(dimension=16, negatives=31)
    chart = registry.load("sampling-variance")
    data = chart.result(None, Request(), settings, lambda share, note: None)
    table = chart.panel(data, settings).mark("samplers")
    lines = {line.words: line.values for line in table.lines}
    for place, name in enumerate(table.columns):
        weights, total, active = 0.0, 0.0, 0
        for d in data[name]:
            length = max(settings.contrastive - d, 0)
            weights += length**2
            total += length**2 * direction_variance(np.array([d]), settings.noise, 16)[0]
            active += length > 0
        assert lines["Active, contrastive (%)"][place] == pytest.approx(100 * active / len(data[name]))
        if weights:
            assert lines["Noise, contrastive"][place] == pytest.approx(total / weights)
    noise = dict(zip(table.columns, lines["Noise, margin"], strict=True))
    assert noise["hard"] > noise["distance-weighted"]


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a run whose four classes draw apart from step 4 to step 8."""
    workspace = Workspace(tmp_path_factory.mktemp("prototypes"))
    n, width = 120, 12
    kinds = rng.integers(4, size=n)
    items = Items(np.arange(n), [f"{i}.png" for i in range(n)], [f"pair {i}" for i in range(n)],
                  [f"class {k}" for k in kinds], [""] * n, {})  # fmt: skip
    with RunLog.claim(workspace, workspace.runs.create(config.Run(name="clusters"))) as log:
        for step, noise in ((4, 1.0), (8, 0.05)):
            rows = np.eye(width)[kinds] + noise * rng.standard_normal((n, width))
            image = np.float32(rows / np.linalg.norm(rows, axis=1, keepdims=True))
            folder = log.folder / "snapshots" / snapshot_name(dataset="toys", split="val", step=step)
            about = {"items": items, "step": step, "dataset": "toys", "split": "val", "model": "m"}
            write_snapshot(folder, image=image, text=image, **about)
            log.snapshot(step, "toys", "val", folder, n, width)
        log.status("finished")
    return workspace


def test_prototypes_of_a_snapshot_equal_loops(clustered: Workspace):
    chart = registry.load("prototypes")
    settings = chart.settings(clusters=4)
    data = chart.result(clustered, Request((Target("clusters"),)), settings, lambda share, note: None)
    (one,) = data.found
    assert one.steps == (4, 8)
    assert one.found[1].purity == 1
    assert one.found[1].purity > one.found[0].purity
    from trainer.store import read_snapshot

    for found, shot in zip(one.found, clustered.results.snapshots(1), strict=True):
        rows = np.float64(read_snapshot(shot.folder).image)
        right = 0
        for cluster in range(4):
            own = [one.items.label[i] for i in range(len(rows)) if found.assigned[i] == cluster]
            right += max(own.count(label) for label in set(own))
        assert found.purity == pytest.approx(right / len(rows))
        means = [rows[found.assigned == cluster].mean(axis=0) for cluster in range(4)]
        distance = [float(np.linalg.norm(row - means[at])) for row, at in zip(rows, found.assigned, strict=True)]
        phi = concentration(torch.tensor(distance, dtype=torch.float64), torch.from_numpy(found.assigned), 4)
        assert found.phi == pytest.approx(phi.numpy(), rel=1e-6)
        total = 0.0
        for row, own in zip(rows, found.assigned, strict=True):
            units = [mean / math.sqrt(sum(v * v for v in mean)) for mean in means]
            scores = [sum(a * b for a, b in zip(row, unit, strict=True)) / p for unit, p in zip(units, phi.tolist())]
            total += scores[own] - math.log(sum(math.exp(s) for s in scores))
        assert found.bound == pytest.approx(total / len(rows), abs=1e-6)


def test_labels_that_are_missing_count_for_nothing():
    assigned = np.array([0, 0, 0, 1, 1])
    assert clusters.purity_of(assigned, ["a", "a", "b", "", "c"], 2) == (3 / 4, ("a", "c"))
    assert math.isnan(clusters.purity_of(assigned, [""] * 5, 2)[0])


def test_the_command_prints_prototypes(clustered: Workspace, capsys):
    words = ["analyze", "prototypes", "clusters", "--clusters", "4", "--json", "--workspace", str(clustered.folder)]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["Purity (%)"] == pytest.approx(100)


def test_the_line_is_that_of_least_squares_in_logits_and_the_bootstrap_draws_runs():
    runs = []
    for _ in range(6):
        own = rng.uniform(0.1, 0.9, 5)
        line = -0.5 + 0.8 * np.log(own / (1 - own)) + 0.2 * rng.standard_normal(5)
        runs.append((own, 1 / (1 + np.exp(-line))))
    found = robustness_line(runs)
    x = [math.log(p / (1 - p)) for run in runs for p in run[0]]
    y = [math.log(p / (1 - p)) for run in runs for p in run[1]]
    slope, intercept = np.polyfit(x, y, 1)
    assert (found.intercept, found.slope) == pytest.approx((intercept, slope))
    assert found.draws.shape == (DRAWS, 2)
    low, high = found.interval(np.array([0.5]))
    middle = found.at(np.array([0.5]))[0]
    assert middle == pytest.approx(1 / (1 + math.exp(-intercept)))
    assert low[0] < middle < high[0]
    again = np.random.default_rng(0)
    chosen = [runs[at] for at in again.integers(6, size=6)]
    both = [[math.log(p / (1 - p)) for run in chosen for p in run[side]] for side in (0, 1)]
    assert found.draws[0][::-1] == pytest.approx(np.polyfit(*both, 1))
    assert robustness_line(runs[:2]) is None


def test_runs_that_share_the_line_have_no_effective_robustness(workspace):
    for number, (objective, lift) in enumerate([(config.Clip(), 0.0)] * 4 + [(config.Cloob(), 0.15)]):
        with RunLog.claim(workspace, workspace.runs.create(config.Run(name=f"r{number}", objective=objective))) as log:
            for step, own in ((8, 0.2 + 0.05 * number), (16, 0.5 + 0.05 * number)):
                shifted = 1 / (1 + math.exp(0.4 - math.log(own / (1 - own)))) + lift
                values = {"val/image_to_text_R@1": own, "combinations/image_to_text_R@1": shifted}
                log.scalars(step, values)
            log.status("finished")
    workspace.runs.create(config.Run(name="lacks both"))
    chart = registry.load("effective-robustness")
    with pytest.raises(ChartError, match="None of these runs has both"):
        chart.result(workspace, Request((Target("r0"),)), chart.settings(own="val/loss"), lambda share, note: None)
    settings = chart.settings()
    request = Request((*(Target(f"r{k}") for k in range(5)), Target("lacks both")))
    panel = chart.panel(chart.result(workspace, request, settings, lambda share, note: None), settings)
    # `CLIP · r0` is the label of r0.
    above = {line.words.rpartition(" ")[2]: line.values[2] for line in panel.mark("runs").lines}
    assert set(above) == {f"r{k}" for k in range(5)}, "no line of a run without the numbers"
    assert {dot.name for dot in panel.mark("robustness").dots} == {""}, "the table names runs, the legend does not"
    assert [above[f"r{k}"] for k in range(4)] == pytest.approx([0] * 4, abs=1e-6)
    assert above["r4"] == pytest.approx(15, abs=1e-6)
    few = Request((Target("r0"), Target("r4")))
    panel = chart.panel(chart.result(workspace, few, settings, lambda share, note: None), settings)
    assert [line.words for line in panel.mark("runs").lines] == ["CLIP · r0", "CLOOB · r4"], "a filter chooses the runs"
    assert panel.warnings == ("The line needs 3 runs of clip with both numbers.",)
