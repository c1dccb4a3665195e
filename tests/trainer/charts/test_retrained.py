"""Whether retraining helped: the paired test equals a plain count, and other pairs are refused."""

import numpy as np
import pytest
from scipy.stats import binomtest

from trainer import config
from trainer.charts import ChartError
from trainer.charts.retrained import retrained, retrained_lines
from trainer.store import Items, Workspace, snapshot_name, write_snapshot

N = 80


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def add(workspace: Workspace, name: str, noise: float, *, split: str, order: np.ndarray, extra: int = 0) -> int:
    """Add a run whose snapshot has the pairs in this order, and `extra` others."""
    number = workspace.runs.create(config.Run(name=name))
    rng = np.random.default_rng(int(noise * 100))
    base = np.random.default_rng(1).normal(size=(N, 12))
    image, text = (unit(base + noise * rng.normal(size=base.shape))[order] for _ in range(2))
    more = unit(rng.normal(size=(extra, 12))) if extra else np.empty((0, 12), np.float32)
    image, text = np.concatenate([image, more]), np.concatenate([text, more])
    n = len(image)
    ids = [*order.tolist(), *range(N, N + extra)]
    items = Items(
        np.arange(n),
        [f"/{split}/{i}.jpg" for i in ids],
        [f"caption {i}" for i in ids],
        [""] * n,
        [split] * n,
        content=[f"pixels {i}" for i in ids],
    )
    folder = workspace.runs.get(number).folder / "snapshots" / snapshot_name(dataset="d", split=split, step=3)
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_snapshot(folder, image=image, text=text, items=items, step=3, dataset="d", split=split, model=name)
    workspace.results.add_snapshot(number, 3, "d", split, folder, n=n, d=12)
    return number


def test_it_is_the_paired_test_of_the_same_questions(workspace: Workspace):
    old = add(workspace, "old", 1.2, split="renderings", order=np.arange(N))
    order = np.random.default_rng(5).permutation(N)
    new = add(workspace, "new", 0.7, split="heldout", order=order, extra=40)
    found = retrained(workspace, old, new)
    assert (found.n, found.dataset, found.split, found.steps) == (N, "d", "renderings", (3, 3))
    ps = []
    for way, one in enumerate(found.directions):
        right = []
        for noise in (1.2, 0.7):
            rng = np.random.default_rng(int(noise * 100))
            base = np.random.default_rng(1).normal(size=(N, 12))
            image, text = (unit(base + noise * rng.normal(size=base.shape)).astype(np.float64) for _ in range(2))
            asks, answers = ((image, text), (text, image))[way]
            right.append(
                [all(asks[i] @ answers[i] > asks[i] @ answers[j] for j in range(N) if j != i) for i in range(N)]
            )
        only_a = sum(a and not b for a, b in zip(*right, strict=True))
        only_b = sum(b and not a for a, b in zip(*right, strict=True))
        assert (one.discordant.only_a, one.discordant.only_b) == (only_a, only_b)
        assert one.old == pytest.approx(sum(right[0]) / N)
        assert one.new == pytest.approx(sum(right[1]) / N)
        assert one.paired.difference == pytest.approx((only_b - only_a) / N)
        assert one.paired.low < one.paired.difference < one.paired.high
        p = binomtest(only_a, only_a + only_b).pvalue
        assert one.discordant.p == pytest.approx(p)
        ps.append(p)
    low, high = sorted(ps)
    corrected = sorted(one.p for one in found.directions)
    assert corrected == pytest.approx([min(2 * low, 1), min(max(2 * low, high), 1)])
    lines = "\n".join(retrained_lines(found))
    assert "held-out" in lines
    assert "held−out" not in lines
    assert "n = 80" in lines
    assert "Holm over both directions" in lines


def test_other_held_out_pairs_are_refused(workspace: Workspace):
    old = add(workspace, "old", 1.2, split="renderings", order=np.arange(N))
    new = add(workspace, "new", 0.7, split="heldout", order=np.arange(N - 1))
    with pytest.raises(ChartError, match="was not measured on the 80 held-out pairs"):
        retrained(workspace, old, new)
