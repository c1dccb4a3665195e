"""Concepts of two runs: planted ones are found, named and given to their run; what is kept equals naive numbers."""

import math

import numpy as np
import pytest

from trainer import config
from trainer.analysis.concepts import concept_words, learned_and_held
from trainer.analysis.sparse_dictionary import SparseDictionary, matched
from trainer.analysis.units import units_of_numbers
from trainer.charts import ChartError, registry
from trainer.charts.measures.concepts import ConceptsSettings, compute
from trainer.charts.spec import Request, Target
from trainer.store import Items, RunLog, Workspace, snapshot_name, write_snapshot

pytestmark = pytest.mark.slow

N, WIDTHS = 400, (24, 16)
WORDS = ("apple", "boat", "cloud", "drum", "eagle", "fern", "glove", "harp", "iris", "jug", "kite", "lamp")
ONLY = {"apple": 0, "boat": 1}
"""Words that one of the runs alone sees."""
SETTINGS = ConceptsSettings(concepts=16, active=3, listed=3)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return two runs whose embeddings are sums of the directions of two words, with a gap between the modalities."""
    workspace = Workspace(tmp_path_factory.mktemp("concepts"))
    rng = np.random.default_rng(0)
    # Captions of as many words each would let a vector be added to all directions.
    said = [sorted(rng.choice(len(WORDS), rng.integers(1, 4), replace=False)) for _ in range(N)]
    strengths = [dict(zip(words, rng.uniform(0.5, 1.5, len(words)), strict=True)) for words in said]
    captions = [f"{' '.join(WORDS[w] for w in words)} {i}" for i, words in enumerate(said)]
    blank = [""] * N
    items = Items(np.arange(N), [f"{i}.png" for i in range(N)], captions, blank, blank, {})
    for place, width in enumerate(WIDTHS):
        directions = np.linalg.qr(rng.standard_normal((width, len(WORDS) + 1)))[0].T
        gap = directions[-1]
        unseen = [WORDS.index(word) for word, owner in ONLY.items() if owner != place]
        seen = [sum(s * directions[w] for w, s in one.items() if w not in unseen) for one in strengths]
        # A word that a run does not see is noise to it, of the same length.
        blind = np.array([math.hypot(*(s for w, s in one.items() if w in unseen)) for one in strengths])[:, None]
        noise = rng.standard_normal((N, width))
        rows = np.array([np.zeros(width) + one for one in seen])
        rows += blind * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        sides = [rows + sign * gap + 0.02 * rng.standard_normal(rows.shape) for sign in (1, -1)]
        image, text = (np.float32(side / np.linalg.norm(side, axis=1, keepdims=True)) for side in sides)
        with RunLog.claim(workspace, workspace.runs.create(config.Run(name="AB"[place]))) as log:
            folder = log.folder / "snapshots" / snapshot_name(dataset="toys", split="val", step=8)
            write_snapshot(folder, image=image, text=text, items=items, step=8, dataset="toys", split="val", model="m")
            log.snapshot(8, "toys", "val", folder, N, width)
            log.status("finished")
    return workspace


@pytest.fixture(scope="module")
def found(two: Workspace):
    first, whole = compute(two, Request((Target("A"), Target("B"))), SETTINGS, lambda share, note: None)
    assert all(math.isnan(concept.stability) for concept in first.concepts), "known before the other seeds are trained"
    names = [[(each.number, each.words) for each in part.concepts] for part in (first, whole)]
    assert names[0] == names[1]
    assert math.isnan(first.stable) is not math.isnan(whole.stable)
    return whole


def sides(workspace: Workspace, run: str) -> tuple[np.ndarray, np.ndarray]:
    from trainer.store import read_snapshot

    snapshot = read_snapshot(workspace.results.snapshots(workspace.runs.get(run).id)[0].folder)
    return np.float64(snapshot.image), np.float64(snapshot.text)


def test_each_word_is_a_concept_with_its_name_its_pictures_and_its_owner(found) -> None:
    strong = [one for one in found.concepts if one.stability >= 0.7 and one.frequency > 0.05]
    by_word = {one.words[0]: one for one in strong if one.words}
    assert set(by_word) == set(WORDS)
    for word, one in by_word.items():
        assert one.owner == ONLY.get(word, -1)
        assert sum(one.parts) == pytest.approx(1)
        assert len(one.pairs) == len(one.strengths) == 6
        assert all(word in found.items.caption[row] for row in one.pairs)
        assert one.strengths[0] == 1
        assert list(one.strengths) == sorted(one.strengths, reverse=True)
        assert one.of_images == pytest.approx(0.5, abs=0.1)
    assert found.stable > 0.5
    assert len(found.concepts) <= found.size == 16


def naive_recall(image: np.ndarray, text: np.ndarray) -> float:
    hits = 0
    for i in range(len(image)):
        own = image[i] @ text[i] / np.linalg.norm(text[i])
        hits += all(own > image[i] @ text[j] / np.linalg.norm(text[j]) for j in range(len(text)) if j != i)
    return hits / len(image)


def test_what_is_embedded_and_what_components_keep_equals_naive_numbers(two: Workspace, found) -> None:
    learned, held, _ = learned_and_held(units_of_numbers(np.arange(N), np.arange(N)))
    assert sorted([*learned, *held]) == list(range(N))
    assert (found.pairs, found.held) == (N, N // 5)
    spaces, means, scales = [], [], []
    for run in "AB":
        image, text = sides(two, run)
        mean = image[learned].mean(0), text[learned].mean(0)
        centered = np.concatenate([image - mean[0], text - mean[1]])
        both = np.concatenate([learned, learned + N])
        scale = math.sqrt(np.mean([row @ row for row in centered[both]]))
        spaces.append(centered / scale)
        means.append(mean)
        scales.append(scale)
    rows = np.concatenate(spaces, axis=1)
    _, _, directions = np.linalg.svd(rows[np.concatenate([learned, learned + N])], full_matrices=False)
    kept = rows @ directions[:3].T @ directions[:3]
    start = 0
    for place, run in enumerate("AB"):
        image, text = sides(two, run)
        assert found.kept[place].recall[0] == pytest.approx(naive_recall(image[held], text[held]), abs=1 / 80)
        own = slice(start, start := start + WIDTHS[place])
        both = np.concatenate([held, held + N])
        left, total = rows[both, own] - kept[both, own], rows[both, own]
        share = 1 - sum(row @ row for row in left) / sum(row @ row for row in total)
        assert found.kept[place].explained[1] == pytest.approx(share, abs=1e-5)
        again = [
            kept[both[half], own] * scales[place] + mean
            for half, mean in zip((slice(0, 80), slice(80, 160)), means[place], strict=True)
        ]
        assert found.kept[place].recall[2] == pytest.approx(naive_recall(*again), abs=1 / 80)
        assert found.kept[place].explained[0] > found.kept[place].explained[1]


def test_words_are_terms_of_the_divergence() -> None:
    captions = ["red circle", "red square", "blue circle", "blue square"]
    weights = np.array([[1.0, 1], [1, 0], [0, 1], [0, 0]])
    assert concept_words(weights, captions) == (("red",), ("circle",))
    assert concept_words(weights, ["", "1", "", ""]) == ((), ())
    given, everywhere = 2 / 2, 2 / 4
    assert given * math.log(given / everywhere) == pytest.approx(math.log(2))


def test_one_run_has_concepts_too_and_too_few_pairs_are_refused(two: Workspace) -> None:
    *_, alone = compute(two, Request((Target("A"),)), SETTINGS, lambda share, note: None)
    assert all(one.parts == (1.0,) and one.owner == -1 for one in alone.concepts)
    chart = registry.load("concepts")
    panel = chart.panel(alone, SETTINGS)
    assert panel.mark("concepts").x.label == "Images' part in its activations (%)"
    with pytest.raises(ChartError, match="no used concept 999"):
        chart.panel(alone, ConceptsSettings(concept=999))


def test_counterparts_of_a_permuted_dictionary_are_perfect() -> None:
    decoder = np.random.default_rng(1).standard_normal((5, 8))
    one = SparseDictionary(decoder.T, np.zeros(5), decoder, np.zeros(8), (4, 4), 2)
    assert matched(one.decoder, one.decoder[::-1])[1] == pytest.approx(np.ones(5))
