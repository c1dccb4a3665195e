"""Groups of one embedding: planted ones are found, equal embeddings have none, the spectrum is the kernels' own."""

import numpy as np
import pytest

from tests.nightly import few_plain
from trainer.analysis import separated_groups as module
from trainer.analysis.separated_groups import compared_groups, separated_groups

NOISE = 0.5
"""Length of the noise, of vectors of clusters that have the length 1."""


def planted(
    seed: int, merged: tuple[tuple[int, ...], ...], n: int = 1_200
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two embeddings of ten clusters, of which the second one merges some, and the cluster of each row."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 10, n)
    sides = []
    for width in (24, 40):
        centers = np.linalg.qr(rng.normal(size=(width, width)))[0][:10]
        if sides:
            for group in merged:
                centers[list(group)] = centers[group[0]]
        rows = centers[label] + NOISE * rng.normal(size=(n, width)) / np.sqrt(width)
        sides.append((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    return sides[0], sides[1], label


@few_plain(1, "seed", [0, 1])
@few_plain(1, "merged", [((0, 1, 2), (7, 8)), ((0, 1), (2, 3)), ((0, 1),)])
def test_planted_groups_are_found_and_nothing_else(merged: tuple[tuple[int, ...], ...], seed: int):
    a, b, label = planted(seed, merged)
    groups, of_b = (side.groups for side in separated_groups(a, b))
    clusters = sorted(cluster for group in merged for cluster in group)
    assert len(groups) == len(clusters)
    named = []
    for group in groups:
        cluster = int(np.bincount(label[group.rows]).argmax())
        members = {*np.flatnonzero(label == cluster).tolist()}
        together = len(members & {*group.rows.tolist()})
        assert together >= 0.95 * len(members)
        assert together >= 0.95 * len(group.rows)
        named.append(cluster)
    assert sorted(named) == clusters
    for cluster, group in zip(named, groups, strict=True):
        mixed = next(of for of in merged if cluster in of)
        assert named[group.partner] in set(mixed) - {cluster}
    # What B merges is a group of B alone, and is told once.
    assert len(of_b) == len(merged)
    both = compared_groups(a, b), compared_groups(b, a)
    assert [len(side.groups) for each in both for side in each] == [len(clusters), 0, 0, len(clusters)]


def test_a_group_that_only_b_gathers_is_its_own():
    a, b, label = planted(4, ())
    rng = np.random.default_rng(9)
    rows = label == 6
    a[rows] = rng.normal(size=(int(rows.sum()), a.shape[1]))
    of_a, of_b = compared_groups(a, b)
    assert of_a.groups == ()
    assert [group.partner for group in of_b.groups] == [-1]
    assert np.isin(np.flatnonzero(rows), of_b.groups[0].rows).mean() >= 0.95


def test_equal_embeddings_and_those_turned_or_noisy_alike_have_none():
    a, b, _ = planted(5, ())
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))[0]
    same, *others = (separated_groups(a, other) for other in (a, (a @ turn).astype(np.float32), b))
    assert all(side.groups == () for sides in (same, *others) for side in sides)
    assert np.abs(same[0].eigenvalues).max() < 1e-8


def naive_kernel(rows: np.ndarray, width: float) -> np.ndarray:
    middle = rows.mean(axis=0)
    unit = [(row - middle) / np.linalg.norm(row - middle) for row in rows.astype(np.float64)]
    return np.array([[np.exp(-((x - y) ** 2).sum() / (2 * width**2)) for y in unit] for x in unit])


def test_the_spectrum_is_that_of_the_whole_kernels(monkeypatch: pytest.MonkeyPatch):
    a, b, _ = planted(2, ((0, 1),), n=90)
    found, turned = separated_groups(a, b)
    assert turned.eigenvalues.tolist() == (-found.eigenvalues[::-1]).tolist()
    difference = (naive_kernel(a, found.bandwidths[0]) - naive_kernel(b, found.bandwidths[1])) / 90
    wanted = np.linalg.eigvalsh(difference)
    # With as many landmarks as rows Nyström's features are exact.
    assert found.eigenvalues[-5:] == pytest.approx(wanted[-5:], abs=1e-6)
    assert found.eigenvalues[:5] == pytest.approx(wanted[:5], abs=1e-6)
    kernel = naive_kernel(a, found.bandwidths[0])
    for group in found.groups:
        rows = group.rows
        assert group.within_a == pytest.approx(kernel[np.ix_(rows, rows)].mean(), abs=1e-6)
    assert module.LANDMARKS > 90
