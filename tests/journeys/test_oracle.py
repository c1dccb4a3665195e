"""Every number of `evaluate`, `compare` and `analyze` against numpy, scipy and scikit-learn on exported embeddings.

A number of the JSON that no oracle computes fails the test, unless `WITHOUT` says why there is none.

One run is trained on a folder a class, one on a captioned table, one on COCO's layout with one to five captions a
picture, repeated captions and copied pictures; all are made here.
"""

import csv
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.lazily import lazily
from tests.nightly import few_plain
from trainer.__main__ import main
from trainer.store import Snapshot, Workspace, read_snapshot

metrics = lazily("sklearn.metrics")
linear_model = lazily("sklearn.linear_model")
special = lazily("scipy.special")
stats = lazily("scipy.stats")
optimize = lazily("scipy.optimize")
spatial = lazily("scipy.spatial")

SEEDED = "a seeded bootstrap; tests/benchmarks/test_coverage.py simulates how often it holds the truth"
SPOILT = "of pixels that are spoilt by seeded noise: tests/trainer/evaluation/test_run_tasks.py"
DRAWN = "a mean over drawn labels: tests/trainer/evaluation/test_run_tasks.py"
SETTING = "a setting, not a result"
WITHOUT = {
    "similarity": dict.fromkeys(
        ("auc_hard10_low", "auc_hard10_high", "d_prime_hard10_low", "d_prime_hard10_high"), SEEDED
    ),
    "evaluate linear_probe": {
        "weight_decay": "chosen on a part of the training pairs; scikit-learn's probe takes it",
        **dict.fromkeys(("seed", "fewshot_k"), SETTING),
    },
    "evaluate few_shot": {
        **dict.fromkeys(("lp_acc1", "lp_acc5", "lp_mean_per_class_recall"), DRAWN),
        **dict.fromkeys(("seed", "fewshot_k", "draws"), SETTING),
    },
    "evaluate robustness": {f"robust_{kind}": SPOILT for kind in ("noise", "blur", "contrast", "jpeg", "occlusion")},
    "compare": {
        **dict.fromkeys(("robust_mean", "robust_kept"), "as `evaluate` stored it, and has its oracle there"),
        "linear_probe_acc1": "as `evaluate` stored it, and has its oracle there",
        "few_shot_1_acc1": DRAWN,
        "knn_words": "of the words that captions share: tests/trainer/evaluation/test_heldout_metrics.py",
    },
}
"""Command or analysis -> number without an oracle here -> why."""
FACTS: tuple[str, ...] = ("run", "step", "n", "pairs", "k", "d", "texts", "images", "captions_ranked", "n_unmatched")
FACTS += ("pictures", "captions", "whole", "classes", "templates", "gallery", "trained_on", "majority")
"""Whole numbers, which have to be met exactly."""
GRID = 2.0**36
"""Cosines are ranked as multiples of 1 / GRID: what is equal there is a tie, as the application documents it."""
KINDS = ("similarity", "gap", "hubness", "pairs", "geometry", "embedding-spectrum")
KINDS += tuple(f"hopfield-{name}" for name in ("retrieval", "pair", "beta", "batch-size", "spectrum"))

CLASSES = ("red kite", "blue tit", "green finch", "gray owl", "lone crow")
SMALL = ("model.image_size=32", "model.image_width=8", "model.text_width=32", "model.text_heads=2")
SMALL += ("model.text_layers=1", "model.context_length=16", "model.embed_dim=16", "device=cpu")
SHORT = ("optimizer.epochs=12", "optimizer.batch_size=16", "optimizer.warmup_steps=1", "watching.snapshots=2")


def pictures(folder: Path, names: Sequence[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shade = np.random.default_rng(sum(map(ord, Path(name).parent.name))).integers(40, 215, 3)
        pixels = np.clip(shade + rng.integers(-40, 40, (24, 24, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name)


def coco(folder: Path) -> Path:
    """Write COCO's captions of 80 pictures, 10 of them copies of others; return the JSON file."""
    names = [f"val2017/{i:012}.png" for i in range(80)]
    pictures(folder, names[:70], 3)
    for place, name in enumerate(names[70:]):
        (folder / name).write_bytes((folder / names[5 * place]).read_bytes())
    rng, captions = np.random.default_rng(4), []
    for i in range(80):
        said = [f"a {CLASSES[rng.integers(5)]} near branch {rng.integers(40)}" for _ in range(rng.integers(1, 6))]
        captions += [{"image_id": i, "id": len(captions) + at, "caption": one} for at, one in enumerate(said)]
    shown = [{"id": i, "file_name": Path(name).name} for i, name in enumerate(names)]
    file = folder / "captions_val2017.json"
    file.write_text(json.dumps({"images": shown, "annotations": captions}))
    return file


@pytest.fixture(scope="module")
def trained(trained_once: Callable[[str, Callable[[Path], object]], Workspace]) -> Workspace:
    """Return runs 1 (class folders; one class is never held out), 2 (a table, two images per caption) and 3 (COCO)."""
    return trained_once("oracle", _train)


def _train(place: Path) -> None:
    names = [f"{name}/{i:02}.png" for name in CLASSES for i in range(2 if name == "lone crow" else 24)]
    pictures(place / "birds", names, 1)
    rows = [f"{i:03}.png" for i in range(96)]
    pictures(place / "captioned", rows, 2)
    with (place / "captioned" / "captions.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filepath", "caption"])
        table.writerows((name, f"a {CLASSES[i // 2 % 5]} on branch {i // 2}") for i, name in enumerate(rows))
    presets = ("clip-folder", "cloob-folder", "clip-folder")
    sources = (place / "birds", place / "captioned" / "captions.csv", coco(place / "coco"))
    for preset, data in zip(presets, sources, strict=True):
        sets = [word for one in (*SMALL, *SHORT, "data.heldout_share=0.3") for word in ("--set", one)]
        words = ["fit", "--preset", preset, "--data", str(data), *sets, "--workspace", str(place / "workspace")]
        assert main(words) == 0


def answer(workspace: Workspace, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json", "--workspace", str(workspace.folder)]) == 0
    return json.loads(capsys.readouterr().out)


def heldout(workspace: Workspace, run: int) -> Snapshot:
    """Return the last held-out snapshot of the run."""
    return read_snapshot([one for one in workspace.results.snapshots(run) if one.split == "heldout"][-1].folder)


def embedded(workspace: Workspace, capsys: pytest.CaptureFixture[str], out: Path, *what: str) -> np.ndarray:
    """Return the embeddings exported by `trainer embed`."""
    answer(workspace, capsys, "embed", *what, "--out", str(out))
    return np.load(out / "embeddings.npy").astype(np.float64)


@dataclass
class Seen:
    """A snapshot in float64.

    `distinct` are the first rows of each caption, `pictures` those of each picture, in order; `shown` numbers the
    pictures by the pixels of their files.
    """

    workspace: Workspace
    run: int
    step: int
    image: np.ndarray
    text: np.ndarray
    captions: np.ndarray
    distinct: np.ndarray
    labels: list[str]
    shown: np.ndarray
    pictures: np.ndarray
    others: list[Any] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.image)

    @property
    def images(self) -> np.ndarray:
        """The embedding of each distinct picture."""
        return self.image[self.pictures]

    @property
    def texts(self) -> np.ndarray:
        """The embedding of each distinct caption."""
        return self.text[self.distinct]

    @property
    def pairs(self) -> list[int]:
        """The first rows of each distinct pair of a picture and a caption."""
        both = list(zip(self.shown.tolist(), self.captions.tolist(), strict=True))
        return [place for place, one in enumerate(both) if one not in both[:place]]

    @property
    def alike(self) -> list[int]:
        """Of the first rows of the pictures, those whose caption no row before has."""
        rows: list[int] = []
        for place in self.pictures.tolist():
            if self.captions[place] not in self.captions[rows]:
                rows.append(place)
        return rows


def seen(workspace: Workspace, run: int, step: int | None = None) -> Seen:
    rows = [one for one in workspace.results.snapshots(run) if one.split == "heldout"]
    rows.sort(key=lambda one: one.step)
    chosen = rows[-1] if step is None else next(one for one in rows if one.step == step)
    held: Snapshot = read_snapshot(chosen.folder)
    captions = np.array(list(held.items.caption))
    first = np.sort(np.unique(captions, return_index=True)[1])
    image, text = (np.asarray(part, np.float64) for part in (held.image, held.text))
    pixels = [np.asarray(Image.open(path)).tobytes() for path in held.items.path]
    shown = np.array([pixels.index(one) for one in pixels])
    pictures = np.sort(np.unique(shown, return_index=True)[1])
    labels = list(held.items.label)
    return Seen(workspace, run, chosen.step, image, text, captions, first, labels, shown, pictures, rows)


def belongs(one: Seen, order: np.ndarray | None = None) -> np.ndarray:
    """Return a row a distinct picture and a column a distinct caption: whether a pair has both, by a loop."""
    captions = one.captions if order is None else one.captions[order]
    asked, texts = one.shown[one.pictures].tolist(), list(dict.fromkeys(captions.tolist()))
    found = np.zeros((len(asked), len(texts)), bool)
    for picture, caption in zip(one.shown.tolist(), captions.tolist(), strict=True):
        found[asked.index(picture), texts.index(caption)] = True
    return found


def numbers(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the leaf numbers of a flat row."""
    for name, value in row.items():
        assert not isinstance(value, dict | list), f"{name} is not a leaf"
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def check(kind: str, row: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Check that each leaf number matches its oracle or has a reason for none, and that no oracle is unused."""
    # Fewer than 10 other captions give the numbers another name.
    hard = f"hard{row.get('k', 10)}"
    without = {name.replace("hard10", hard): why for name, why in WITHOUT.get(kind, {}).items()}
    found = dict(numbers(row))
    assert not (bare := set(found) - set(wanted) - set(without)), f"{kind} prints without oracle or reason: {bare}"
    assert not (gone := set(wanted) - set(found)), f"{kind} does not print what an oracle computes: {gone}"
    assert not set(wanted) & set(without)
    assert set(without) <= set(found), f"a reason is given for a number that {kind} does not print"
    for name, value in wanted.items():
        if name in FACTS:
            assert found[name] == value, (kind, name)
        else:
            value, tolerance = value if isinstance(value, tuple) else (value, 2e-5)
            assert found[name] == pytest.approx(value, rel=2e-4, abs=tolerance, nan_ok=True), (kind, name)


# -- rankings, by loops ------------------------------------------------------------------------------------------


def on_grid(value: float) -> float:
    return round(value * GRID) / GRID


def similar(asks: np.ndarray, stored: np.ndarray) -> list[float]:
    """Return one query's cosines with all stored rows, by a loop."""
    return [on_grid(math.fsum(asks * other)) for other in stored]


def ranks(query: np.ndarray, stored: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return 1 + the number of wrong answers at least as good as the best right one."""
    found = []
    for asks, own in zip(query, right, strict=True):
        cosines = similar(asks, stored)
        best = max(c for c, r in zip(cosines, own, strict=True) if r)
        found.append(1 + sum(c >= best for c, r in zip(cosines, own, strict=True) if not r))
    return np.array(found)


def caption_ranks(one: Seen, image: np.ndarray | None = None, text: np.ndarray | None = None) -> np.ndarray:
    """Return the rank of each distinct picture's best caption among the distinct captions."""
    image, text = one.image if image is None else image, one.text if text is None else text
    return ranks(image[one.pictures], text[one.distinct], belongs(one))


def image_ranks(one: Seen, image: np.ndarray | None = None, text: np.ndarray | None = None) -> np.ndarray:
    """Return the rank of each distinct caption's best picture among the distinct pictures."""
    image, text = one.image if image is None else image, one.text if text is None else text
    return ranks(text[one.distinct], image[one.pictures], belongs(one).T)


def of_each_pair(one: Seen, values: np.ndarray, *, asking: str) -> np.ndarray:
    """Return for each pair what its picture or its caption has."""
    numbers, first = (one.shown, one.pictures) if asking == "picture" else (one.captions, one.distinct)
    return np.array([values[numbers[first].tolist().index(number)] for number in numbers.tolist()])


# -- an oracle a kind --------------------------------------------------------------------------------------------


def similarity(one: Seen) -> dict[str, Any]:
    """Return the separation of each distinct pair, and picture."""
    k = min(10, int((~belongs(one)).sum(1).min()))

    def measured(order: np.ndarray, matched: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return matched cosines of these rows, and each picture's with the k most similar other captions."""
        captions, text = one.captions[order], one.text[order]
        first = np.unique(captions, return_index=True)[1]
        hardest = []
        for place in one.pictures:
            image = one.image[place]
            own = set(captions[one.shown == one.shown[place]])
            wrong = [float(image @ text[row]) for row in first if captions[row] not in own]
            hardest += sorted(wrong)[-k:]
        return np.einsum("nd,nd->n", one.image, text)[matched], np.array(hardest)

    def separated(matched: np.ndarray, unmatched: np.ndarray) -> list[float]:
        truth = np.repeat([1, 0], [len(matched), len(unmatched)])
        both = np.concatenate([matched, unmatched])
        pooled = math.sqrt((np.var(matched) + np.var(unmatched)) / 2)
        edges = np.linspace(both.min(), both.max(), 101)
        shared = np.minimum(*(np.histogram(part, edges)[0] / len(part) for part in (matched, unmatched))).sum()
        distance = stats.ks_2samp(matched, unmatched).statistic
        return [metrics.roc_auc_score(truth, both), (matched.mean() - unmatched.mean()) / pooled, shared, distance]

    matched, unmatched = measured(np.arange(one.n), one.pairs)
    names = [f"{name}_hard{k}" for name in ("auc", "d_prime", "overlap", "ks")]
    rng, levels = np.random.default_rng(0), []
    for _ in range(10):
        order = rng.permutation(one.n)
        cycle = np.empty(one.n, int)
        cycle[order] = np.roll(order, 1)
        levels.append(separated(*measured(cycle, one.pictures.tolist())))
    near = 1.01 / len(one.pictures)  # a cosine on the edge of a bar
    tolerance = [2e-4, 2e-4, near, near]
    return {
        "run": one.run, "step": one.step, "n": one.n, "pairs": one.n, "pictures": len(one.pictures), "k": k,
        "n_unmatched": len(unmatched),
        "mean_matched": matched.mean(), f"mean_unmatched_hard{k}": unmatched.mean(),
        **dict(zip(names, zip(separated(matched, unmatched), tolerance), strict=True)),
        **{f"{name}_shuffled": (value, more) for name, value, more in zip(names, np.mean(levels, 0), tolerance)},
        "image_to_text_R@1": np.mean(caption_ranks(one) == 1),
    }  # fmt: skip


def apart(one: Seen, image: np.ndarray, text: np.ndarray) -> np.ndarray:
    """Return the mean over distinct pictures of their embedding minus the mean of their distinct captions."""
    texts = text[one.distinct]
    own = [texts[right].mean(0) for right in belongs(one)]
    return image[one.pictures].mean(0) - np.mean(own, axis=0)


def gap(one: Seen) -> dict[str, Any]:
    found: dict[str, Any] = {"run": one.run, "step": one.step, "n": len(one.alike), "pairs": one.n}
    for row in one.others:
        at = seen(one.workspace, one.run, row.step)
        found[f"gap at step {row.step}"] = np.linalg.norm(apart(at, at.image, at.text))
    steps, values, _ = one.workspace.results.series(one.run, "train/inv_tau")
    chosen = one.workspace.runs.config_of(one.run).objective
    before = [value for step, value in zip(steps, values) if step <= one.step]
    inv_tau = before[-1] if before else chosen.inv_tau  # the untrained run has that of its configuration
    vector, batch = apart(one, one.image, one.text), one.alike
    for share in (part / 10 for part in range(13)):
        image, text = one.image - share / 2 * vector, one.text + share / 2 * vector
        if share:
            image, text = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (image, text))
        found[f"gap at {share:g}"] = np.linalg.norm(apart(one, image, text))
        if chosen.kind == "cloob":
            both = retrievals(image[batch], text[batch], chosen.scale_hopfield)
            loss = sum(loob(*retrieved, inv_tau) for retrieved in both)
        else:
            logits = inv_tau * image[batch] @ text[batch].T
            columns = np.arange(len(batch))
            loss = metrics.log_loss(columns, special.softmax(logits, 1)) / 2
            loss += metrics.log_loss(columns, special.softmax(logits.T, 1)) / 2
        found[f"loss at {share:g}"] = loss, 2e-4
        found[f"image_to_text at {share:g}"] = np.mean(caption_ranks(one, image, text) == 1), 1.01 / len(one.pictures)
        found[f"text_to_image at {share:g}"] = np.mean(image_ranks(one, image, text) == 1), 1.01 / len(one.distinct)
        found[f"matched at {share:g}"] = np.einsum("nd,nd->n", image, text)[one.pairs].mean()
    return found


def retrievals(image: np.ndarray, text: np.ndarray, beta: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield what both modalities retrieve from images and from texts (Fuerst et al., 2022); anchors first."""
    for own, other in ((image, text), (text, image)):
        anchors, samples = (special.softmax(beta * state @ own.T, 1) @ own for state in (own, other))
        yield anchors / np.linalg.norm(anchors, axis=1)[:, None], samples / np.linalg.norm(samples, axis=1)[:, None]


def loob(anchors: np.ndarray, samples: np.ndarray, inv_tau: float) -> float:
    """Return InfoLOOB without each anchor's own sample in the denominator, times tau."""
    total = 0.0
    for place, anchor in enumerate(anchors):
        logits = inv_tau * samples @ anchor
        total += special.logsumexp(np.delete(logits, place)) - logits[place]
    return total / len(anchors) / inv_tau


def hubness(one: Seen) -> dict[str, Any]:
    text, image, right = one.text[one.distinct], one.image[one.pictures], belongs(one).T
    k = min(10, len(image))
    cosines = np.array([similar(row, image) for row in text])
    local = np.array([np.sort(column)[-k:].mean() for column in cosines.T])
    found: dict[str, Any] = {"run": one.run, "step": one.step, "k": k, "n": len(text), "texts": len(text)}
    found |= {"images": len(image), "pairs": one.n}
    csls = np.vectorize(on_grid)(cosines - local[None] / 2)
    for end, scores in (("", cosines), ("_csls", csls)):
        counts = np.bincount(
            np.concatenate([np.argsort(-row, kind="stable")[:k] for row in scores]), minlength=len(image)
        )
        found |= {f"skewness{end}": stats.skew(counts), f"greatest_hub{end}": counts.max()}
        found[f"never_found{end}"] = int((counts == 0).sum())
        places = np.array([1 + (row[~own] >= row[own].max()).sum() for row, own in zip(scores, right, strict=True)])
        found |= {f"recall_at_{at}{end}": np.mean(places <= at) for at in (1, 5, 10)}
    return found


def pairs(one: Seen) -> dict[str, Any]:
    cosines = np.einsum("nd,nd->n", one.image, one.text)
    places = of_each_pair(one, caption_ranks(one), asking="picture")
    found: dict[str, Any] = {"run": one.run, "step": one.step, "n": one.n, "captions_ranked": len(one.distinct)}
    found |= {"mean_cosine": cosines.mean(), "median_cosine": np.median(cosines)}
    for name, low, high in (("1", 1, 1), ("2–5", 2, 5), ("6–10", 6, 10), ("11–100", 11, 100), ("over 100", 101, 1e9)):
        found[f"rank_{name}"] = int(sum(low <= place <= high for place in places))
    return found


def spectrum(rows: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1].clip(0)


def directions(rows: np.ndarray) -> int:
    """Return how many directions hold 99 % of the variance."""
    shares = spectrum(rows) / spectrum(rows).sum()
    return next(count for count in range(1, len(shares) + 1) if shares[:count].sum() >= 0.99 - 1e-12)


def angles(rows: np.ndarray) -> np.ndarray:
    """Return the angles of all pairs of rows."""
    return np.array([math.acos(min(1.0, max(-1.0, float(a @ b)))) for a, b in itertools.combinations(rows, 2)])


def ajne(rows: np.ndarray) -> float:
    return len(rows) / 4 - angles(rows).sum() / (len(rows) * math.pi)


def gine(rows: np.ndarray) -> float:
    """Return Gine's statistic after Prentice, 1978, with the gamma function written out."""
    n, d = rows.shape
    ratio = special.gamma((d - 1) / 2) / special.gamma(d / 2)
    return n / 2 - (d - 1) / (2 * n) * ratio**2 * np.sin(angles(rows)).sum()


def even(rows: np.ndarray) -> float:
    """Return Wang and Isola's uniformity."""
    return math.log(np.mean(np.exp(-2 * spatial.distance.pdist(rows, "sqeuclidean"))))


def geometry(one: Seen) -> dict[str, Any]:
    found: dict[str, Any] = {"run": one.run, "step": one.step, "n": one.n, "pairs": one.n, "d": one.image.shape[1]}
    found["modality_gap"] = np.linalg.norm(apart(one, one.image, one.text))
    found["alignment"] = np.mean([np.sum((one.image[row] - one.text[row]) ** 2) for row in one.pairs])
    for name, raw in (("image", one.images), ("text", one.texts)):
        rng, null, n = np.random.default_rng(5), [], len(raw)
        for _ in range(199):
            drawn = rng.standard_normal(raw.shape)
            drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
            null.append((ajne(drawn), gine(drawn)))
        rows = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        tested = ajne(rows), gine(rows)
        found |= {f"n_{name}": n, f"d_{name}": rows.shape[1], f"n_tested_{name}": n}
        for place, what in enumerate(("ajne", "gine")):
            found[f"{what}_{name}"] = tested[place], 1e-3
            found[f"{what}_per_n_{name}"] = tested[place] / n, 1e-3
            larger = sum(drawn[place] >= tested[place] for drawn in null)
            found[f"p_{what}_{name}"] = (1 + larger) / 200, 0.06  # two simulations
        found[f"mean_angle_{name}"] = np.degrees(angles(rows).mean()), 0.02
        found[f"resultant_{name}"] = np.linalg.norm(rows.mean(0)), 1e-3
        found[f"uniformity_{name}"] = even(raw), 1e-4
        found[f"effective_eigenvalues_{name}"] = directions(raw)
    return found


def hopfield(one: Seen) -> dict[str, Any]:
    """Return the retrieval of image 0 among the distinct images, with beta 8."""
    stored, beta = one.images, 8.0

    def energy(state: np.ndarray) -> float:
        largest = max(float(row @ row) for row in stored)
        lse = special.logsumexp(beta * stored @ state) / beta
        return -lse + state @ state / 2 + math.log(len(stored)) / beta + largest / 2

    state, moved, made = stored[0], math.inf, 0
    shares = special.softmax(beta * stored @ state)
    while moved >= 1e-5:
        after = special.softmax(beta * stored @ state) @ stored
        moved, made, state = float(np.linalg.norm(after - state)), made + 1, after
    entropy = stats.entropy(shares)
    return {
        "Effective patterns": math.exp(entropy), "Stored patterns": len(stored), "Entropy (nats)": entropy,
        "Largest weight": shares.max(), "Weight of its own pair": shares[0],
        "Effective patterns, fixed point": math.exp(stats.entropy(special.softmax(beta * stored @ state))),
        "Updates": (made, 1), "Energy of the query": energy(stored[0]), "Energy of the fixed point": energy(state),
    }  # fmt: skip


def pair(one: Seen) -> dict[str, Any]:
    """Return what image x and text y of pair 0 retrieve from images (U) and texts (V), with beta 8."""
    found: dict[str, Any] = {"cos(x, y)": one.image[0] @ one.text[0], "n stored": len(one.alike)}
    for letter, stored in (("U", one.image[one.alike]), ("V", one.text[one.alike])):
        retrieved = []
        for name, state in (("x", one.image[0]), ("y", one.text[0])):
            shares = special.softmax(8.0 * stored @ state)
            found[f"own weight in {letter}_{name}"] = shares[0]
            found[f"patterns in {letter}_{name}"] = math.exp(stats.entropy(shares))
            retrieved.append(shares @ stored)
        found[f"cos({letter}_x, {letter}_y)"] = 1 - spatial.distance.cosine(*retrieved)
    return found


def batch_size(one: Seen) -> dict[str, Any]:
    images = one.images

    def own_share(beta: float) -> float:
        return np.mean([special.softmax(beta * images @ row)[place] for place, row in enumerate(images)])

    rule = 8 + math.log((len(images) - 1) / 511)
    cosines = [float(a @ b) for a, b in itertools.combinations(images, 2)]
    return {
        "Self-weight at N = n, β = 8": own_share(8.0), "Self-weight at N = n, β by the rule": own_share(rule),
        "β by the rule at N = n": rule, "Mean cosine of two patterns": np.mean(cosines), "n": len(images),
    }  # fmt: skip


def hopfield_spectrum(one: Seen) -> list[dict[str, Any]]:
    """Return spectra of images, of their retrieval from images, and of the texts' retrieval from images."""
    (after, across), _ = retrievals(one.images, one.text[one.pictures], 8.0)
    columns = []
    for rows in (one.images, after, across):
        found = spectrum(rows)
        shares = found / found.sum()
        columns.append({
            "Effective directions (99 %)": directions(rows), "Effective rank": math.exp(stats.entropy(shares)),
            "Variance in the first direction (%)": 100 * shares[0],
            "Variance in the first 10 (%)": 100 * shares[:10].sum(), "Total variance": found.sum(),
        })  # fmt: skip
    return columns


def embedding_spectrum(one: Seen) -> list[dict[str, Any]]:
    columns = []
    for rows in (one.images, one.texts):
        found = spectrum(rows)
        shares = found / found.sum()
        columns.append({
            "Effective directions (99 %)": directions(rows), "Effective rank": math.exp(stats.entropy(shares)),
            "Variance in the first (%)": 100 * shares[0], "Variance in the first 10 (%)": 100 * shares[:10].sum(),
            "Total variance": found.sum(), "Width d": rows.shape[1], "n": len(rows),
        })  # fmt: skip
    return columns


ORACLES: dict[str, Callable[[Seen], Any]] = {
    "similarity": similarity, "gap": gap, "hubness": hubness, "pairs": pairs, "geometry": geometry,
    "embedding-spectrum": embedding_spectrum, "hopfield-retrieval": hopfield, "hopfield-pair": pair,
    "hopfield-beta": lambda one: [], "hopfield-batch-size": batch_size, "hopfield-spectrum": hopfield_spectrum,
}  # fmt: skip


ELSE = pytest.mark.nightly
"""COCO's layout, where captions and pictures repeat, asks the most of a number: the plain suite has it alone."""
RUNS = pytest.mark.parametrize(
    "run",
    [pytest.param(1, id="classes", marks=ELSE), pytest.param(2, id="table", marks=ELSE), pytest.param(3, id="coco")],
)
SNAPSHOTS = {"classes": (1, -1), "table": (2, -1), "coco-1": (3, 0), "coco": (3, -1)}


def _asked() -> Iterator[Any]:
    """Yield every analysis with every snapshot; of CLOOB's loss alone the plain suite has a second one."""
    for kind, (name, at) in itertools.product(KINDS, SNAPSHOTS.items()):
        plain = name == "coco" or (kind, name) == ("gap", "table")
        yield pytest.param(kind, *at, id=f"{kind}-{name}", marks=() if plain else ELSE)


@few_plain(5, ("kind", "run", "at"), [*_asked()])
def test_every_number_of_an_analysis(
    trained: Workspace, capsys: pytest.CaptureFixture[str], kind: str, run: int, at: int
):
    step = seen(trained, run).others[at].step
    told = answer(trained, capsys, "analyze", kind, str(run), *(("--step", str(step)) if at == 0 else ()))
    rows = told["runs"] if "runs" in told else told["columns"]
    wanted = ORACLES[kind](seen(trained, run, step))
    for row, expected in zip(rows, wanted if isinstance(wanted, list) else [wanted], strict=True):
        check(kind, row, expected)


@RUNS
def test_every_number_of_representation_similarity(trained: Workspace, capsys: pytest.CaptureFixture[str], run: int):
    told = answer(trained, capsys, "analyze", "representation-similarity", str(run))["runs"]
    last = seen(trained, run)
    steps = [row.step for row in last.others]
    spaces = [(side, seen(trained, run, step)) for side in ("image", "text") for step in steps]
    once = {("image", "image"): last.pictures, ("text", "text"): last.distinct}
    assert [(one["run"], one["step"]) for one in told] == [(run, step) for _ in "it" for step in steps]
    wanted: dict[str, list[list[float]]] = {name: [] for name in ("cka", "rsa", "neighbors")}
    norm = np.linalg.norm
    for side, one in spaces:
        line: dict[str, list[float]] = {name: [] for name in wanted}
        for other_side, other in spaces:
            rows = once.get((side, other_side), last.alike)
            first, second = getattr(one, side)[rows], getattr(other, other_side)[rows]
            x, y = first - first.mean(0), second - second.mean(0)
            line["cka"].append(float(norm(y.T @ x) ** 2 / (norm(x.T @ x) * norm(y.T @ y))))
            # What differs in the last digits only is a tie.
            cosines = [
                [round(float(a @ b), 12) for a, b in itertools.combinations(unit(s), 2)] for s in (first, second)
            ]
            line["rsa"].append(stats.spearmanr(*cosines).statistic)
            near = zip(near_sets(first), near_sets(second))
            line["neighbors"].append(float(np.mean([len(a & b) / len(a | b) for a, b in near])))
        for name, values in line.items():
            wanted[name].append(values)
    for one, (side, _) in zip(told, spaces, strict=True):
        rest = {name: value for name, value in one.items() if name not in (*wanted, "run", "step")}
        n = len(once[side, side])
        check("representation-similarity", rest, {"n": n, "pairs": last.n, "k": 10})
    for name, tolerance in (("cka", 2e-4), ("rsa", 2e-4), ("neighbors", 1e-6)):
        assert np.array([one[name] for one in told]) == pytest.approx(np.array(wanted[name]), abs=tolerance)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def near_sets(rows: np.ndarray, k: int = 10) -> list[set[int]]:
    """Return the k nearest of each row; of equally near ones the first."""
    found = []
    for place, row in enumerate(rows):
        cosines = [(-cosine, other) for other, cosine in enumerate(similar(row, rows)) if other != place]
        found.append({other for _, other in sorted(cosines)[:k]})
    return found


@RUNS
def test_every_number_of_changes(trained: Workspace, capsys: pytest.CaptureFixture[str], run: int):
    last = seen(trained, run)
    first = seen(trained, run, last.others[0].step)
    told = answer(trained, capsys, "analyze", "changes", str(run), "--step", str(first.step), "last")["runs"][0]
    values: dict[str, np.ndarray] = {}
    for side, one in (("a", first), ("b", last)):
        values[f"image_rank_{side}"] = of_each_pair(one, caption_ranks(one), asking="picture")
        values[f"text_rank_{side}"] = of_each_pair(one, image_ranks(one), asking="caption")
        values[f"margin_{side}"] = margins(one)
    for what in ("image_rank", "text_rank", "margin"):
        values[f"{what}_change"] = values[f"{what}_b"] - values[f"{what}_a"]
    both = zip(near_sets(first.images), near_sets(last.images), strict=True)
    values["overlap"] = np.array([len(a & b) / len(a | b) for a, b in both])
    laid, onto, _ = spatial.procrustes(first.images, last.images)
    values["residual"] = np.linalg.norm(laid - onto, axis=1) * math.sqrt(len(first.images))
    if any(first.labels):
        values["verdict"] = (verdicts(first) == verdicts(last)).astype(float)
    wanted: dict[str, Any] = {"n": first.n, "pairs": first.n, "k": 10}
    wanted |= {"pictures": len(first.pictures), "captions": len(first.distinct)}
    wanted |= {"run_a": run, "run_b": run, "step_a": first.step, "step_b": last.step}
    for name, column in values.items():
        if len(column) == first.n:
            column = column[first.distinct if name.startswith("text_rank") else first.pictures]
        known = column[np.isfinite(column)]
        loose = {"verdict": 1.01 / first.n}.get(name, 2e-3 if "margin" in name else 2e-4)
        wanted |= {f"{name}_mean": (known.mean(), loose), f"{name}_median": (np.median(known), loose)}
    bad = [np.sqrt(values[f"image_rank_{side}"] * values[f"text_rank_{side}"]) for side in "ab"]
    # A picture weighs one, shared by its pairs, and is bad if one of them is.
    weight = np.array([1 / (first.shown == picture).sum() for picture in first.shown])
    share = [np.array([weight[one < b].sum() / weight.sum() for b in one]) for one in bad]
    low = [(part >= 0.9 - 1e-9) & (one > 1) for part, one in zip(share, bad, strict=True)]
    worst = [np.array([part[first.shown == first.shown[row]].any() for row in first.pictures]) for part in low]
    wanted |= {"bad_in_both": (worst[0] & worst[1]).sum(), "bad_only_in_a": (worst[0] & ~worst[1]).sum()}
    wanted |= {"bad_only_in_b": (~worst[0] & worst[1]).sum()}
    wanted["bad_in_both_by_chance"] = worst[0].mean() * worst[1].mean() * len(first.pictures)
    check("changes", told, wanted)


def margins(one: Seen) -> np.ndarray:
    """Return the right cosine minus the best wrong one, in deviations of the wrong ones."""
    found = []
    for place, image in enumerate(one.image):
        cosines = {one.captions[row]: float(image @ one.text[row]) for row in one.distinct}
        own = max(cosines.pop(said) for said in set(one.captions[one.shown == one.shown[place]]))
        found.append((own - max(cosines.values())) / np.std(list(cosines.values())))
    return np.array(found)


def verdicts(one: Seen) -> np.ndarray:
    """Return the class whose mean caption is the most similar."""
    labels = np.array(one.labels)
    means = unit(np.stack([one.text[labels == name].mean(0) for name in sorted(set(one.labels))]))
    return (one.image @ means.T).argmax(1)


# -- evaluate and compare ----------------------------------------------------------------------------------------


@dataclass
class Learned:
    """The inputs of the oracles for a run with classes, besides its snapshot."""

    one: Seen
    label: np.ndarray
    prompts: np.ndarray
    train: np.ndarray
    targets: np.ndarray
    inv_tau: float


def learned(workspace: Workspace, capsys: pytest.CaptureFixture[str], out: Path) -> Learned:
    one, names = seen(workspace, 1), sorted(CLASSES)
    root = Path(workspace.runs.config_of(1).data.path)
    held = set(read_snapshot(one.others[-1].folder).items.path)
    paths = sorted(str(path) for path in root.rglob("*.png") if str(path) not in held)
    sentences = [f"a photo of a {name}." for name in names]  # the captions that the run was trained on
    assert {*sentences} >= {*one.captions}
    prompts = embedded(workspace, capsys, out / "texts", "1", "--texts", *sentences).reshape(len(names), 1, -1)
    train = embedded(workspace, capsys, out / "train", "1", "--images", *paths)
    told = answer(workspace, capsys, "classify", paths[0], "--runs", "1", "--labels", *names)
    targets = np.array([names.index(Path(path).parent.name) for path in paths])
    label = np.array([names.index(name) for name in one.labels])
    return Learned(one, label, unit(prompts.mean(axis=1)), train, targets, told["runs"][0]["inv_tau"])


def zero_shot(of: Learned) -> dict[str, Any]:
    cosines = of.one.image @ of.prompts.T
    shuffled = np.random.default_rng(0).permutation(len(cosines))
    fit, rest = np.split(shuffled, [len(cosines) // 2])

    def surprise(log_inv_tau: float) -> float:
        shares = special.softmax(math.exp(log_inv_tau) * cosines[fit], axis=1)
        return metrics.log_loss(of.label[fit], shares, labels=range(len(CLASSES)))

    fitted = optimize.minimize_scalar(surprise, bounds=(math.log(1e-2), math.log(1e4)), method="bounded").x
    if surprise(math.log(1e4)) <= surprise(fitted):
        # Where every sample is right with room to spare, the likelihood is flat up to the bound.
        fitted = math.log(1e4)
    predicted = cosines.argmax(axis=1)
    return {
        "acc1": metrics.accuracy_score(of.label, predicted),
        "acc5": 1.0,  # of five classes
        "mean_per_class_recall": metrics.recall_score(of.label, predicted, labels=np.unique(of.label), average="macro"),
        "ece": calibration_error(of.inv_tau * cosines, of.label),
        "ece_fitted": (calibration_error(math.exp(fitted) * cosines[rest], of.label[rest]), 1e-2),
        "inv_tau_fitted": (math.exp(fitted), 1e-2 * math.exp(fitted)),
    }


def calibration_error(logits: np.ndarray, label: np.ndarray) -> float:
    """Return the calibration error after Guo et al., 2017: 15 bins, by a loop."""
    shares = special.softmax(logits, axis=1)
    sure, right, error = shares.max(axis=1), shares.argmax(axis=1) == label, 0.0
    for low in range(15):
        inside = (sure > low / 15) & (sure <= (low + 1) / 15)
        if inside.any():
            error += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    return error


def retrieval(one: Seen) -> dict[str, Any]:
    """Return retrieval of distinct captions by distinct pictures and back; all that belong together are right."""
    image, text, right = one.image[one.pictures], one.text[one.distinct], belongs(one)
    ways = {
        "text": ("image_to_text", image, text, right, caption_ranks(one)),
        "image": ("text_to_image", text, image, right.T, image_ranks(one)),
    }
    found: dict[str, Any] = {}
    for name, (long, query, stored, own, places) in ways.items():
        # A run's own split may be measured on embeddings in single precision, of which a snapshot keeps half: there
        # cosines that differ in their last digit only may stand either way.
        found |= {f"{long}_R@{k}": (np.mean(places <= k), 1.01 / len(places)) for k in (1, 5, 10)}
        found |= {f"{name}_retrieval_recall@{k}": value for k, value in by_clip_benchmark(one)[name].items()}
        precision = [metrics.average_precision_score(r, stored @ asks) for r, asks in zip(own, query, strict=True)]
        found |= {f"{long}_median_rank": (np.median(places), 1)}
        found |= {f"{long}_mAP": (np.mean(precision), 1.01 / len(places))}
    return found


def by_clip_benchmark(one: Seen) -> dict[str, dict[int, Any]]:
    """Return its recall@k: a caption's own picture, or one of a picture's own captions, is among the first k."""
    scores = np.array([similar(row, one.image[one.pictures]) for row in one.text])
    asked = one.shown[one.pictures].tolist()
    positive = np.zeros(scores.shape, bool)
    positive[np.arange(len(scores)), [asked.index(picture) for picture in one.shown.tolist()]] = True
    found: dict[str, dict[int, Any]] = {}
    for name, table, own in (("image", scores, positive), ("text", scores.T, positive.T)):
        first = np.argsort(-table, axis=1, kind="stable")
        hits = np.take_along_axis(own, first, axis=1)
        # Equal captions of several pictures tie, and the library takes either.
        ties = 1.01 / len(table) + np.mean((np.abs(table - np.where(own, table, -9).max(1)[:, None]) < 1e-3).sum(1) > 1)
        found[name] = {k: (np.mean(hits[:, :k].any(axis=1)), ties) for k in (1, 5, 10)}
    return found


def neighbors(of: Learned) -> dict[str, Any]:
    """Return votes of the 20 nearest training rows, weighted by exp(cosine / 0.07)."""
    right = []
    for image, own in zip(of.one.image, of.label, strict=True):
        cosines = of.train @ image
        votes = np.zeros(len(CLASSES))
        for place in np.argsort(-cosines, kind="stable")[:20]:
            votes[of.targets[place]] += math.exp(cosines[place] / 0.07)
        right.append(votes.argmax() == own)
    return {"knn_acc1": (np.mean(right), 1.01 / of.one.n)}


def linear_probe(of: Learned, decay: float) -> dict[str, Any]:
    """Return scikit-learn's linear probe with the selected weight decay."""
    shift, scale = of.train.mean(0), of.train.std(0)
    theirs = linear_model.LogisticRegression(C=1 / (decay * len(of.train)), tol=1e-9, max_iter=10_000)
    theirs.fit((of.train - shift) / scale, of.targets)
    rows = (of.one.image - shift) / scale
    said = theirs.predict(rows)
    return {
        "lp_acc1": (metrics.accuracy_score(of.label, said), 1.01 / of.one.n),
        "lp_acc5": 1.0,
        "lp_mean_per_class_recall": (np.mean([np.mean(said[of.label == c] == c) for c in set(of.label)]), 0.1),
    }


def robustness(of: Learned, told: dict[str, Any]) -> dict[str, Any]:
    clean = zero_shot(of)["acc1"]
    kinds = [told[f"robust_{kind}"] for kind in ("noise", "blur", "contrast", "jpeg", "occlusion")]
    return {"robust_clean": clean, "robust_mean": np.mean(kinds), "robust_kept": np.mean(kinds) / clean}


def test_every_number_of_evaluate_on_classes(trained: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    tasks = ("zero_shot", "retrieval", "knn", "linear_probe", "few_shot", "robustness")
    told = answer(trained, capsys, "evaluate", "1", "--task", *tasks)
    of = learned(trained, capsys, tmp_path)
    known = {"n": of.one.n, "whole": of.one.n, "trained_on": 0}
    for entry in told:
        flat = entry["metrics"]
        wanted = {
            "zeroshot_classification": lambda: zero_shot(of),
            "zeroshot_retrieval": lambda: retrieval(of.one),
            "knn": lambda: neighbors(of),
            "linear_probe": lambda flat=flat: linear_probe(of, flat["weight_decay"]),
            "few_shot": dict,
            "robustness": lambda flat=flat: robustness(of, flat),
        }[task_of(entry)]()
        check(f"evaluate {task_of(entry)}", flat, wanted)
        ranked = task_of(entry) == "zeroshot_retrieval"
        assert entry["split"] == "heldout"
        rest = {name: value for name, value in entry.items() if name not in ("metrics", "question")}
        check("evaluate", rest, known | {"classes": 0 if ranked else len(CLASSES)})
        templates = 1 if task_of(entry) in ("zeroshot_classification", "robustness") else 0
        gallery = len(of.one.distinct) if ranked else 0
        asked = {"n": of.one.n, "classes": 0 if ranked else 5, "templates": templates, "gallery": gallery}
        asked["majority"] = int(belongs(of.one).sum(axis=0).max()) if ranked else 0
        check("evaluate", entry["question"], asked)
    assert len(told) == len(tasks)


def task_of(entry: dict[str, Any]) -> str:
    """Return the task; few-shot and linear probe are one task in CLIP_benchmark's JSON."""
    few = entry["task"] == "linear_probe" and entry["metrics"]["fewshot_k"] > 0
    return "few_shot" if few else entry["task"]


@pytest.mark.parametrize("run", [pytest.param(2, id="table", marks=ELSE), pytest.param(3, id="coco")])
def test_every_number_of_evaluate_on_captions(trained: Workspace, capsys: pytest.CaptureFixture[str], run: int):
    (told,) = answer(trained, capsys, "evaluate", str(run), "--task", "retrieval")
    one = seen(trained, run)
    assert 1 < len(one.distinct) < one.n
    assert run == 2 or len(one.pictures) < len(set(read_snapshot(one.others[-1].folder).items.path)) < one.n
    check("evaluate zeroshot_retrieval", told["metrics"], retrieval(one))
    rest = {name: value for name, value in told.items() if name not in ("metrics", "question")}
    held, learned = ({*pixels} for pixels in sides(trained, run))
    copies = sum(pixels in learned for pixels in sides(trained, run)[0])
    assert (len(held & learned) > 0) == (copies > 0) == (run == 3)
    check("evaluate", rest, {"n": one.n, "whole": one.n, "trained_on": copies, "classes": 0})
    asked = {"n": one.n, "classes": 0, "templates": 0, "gallery": len(one.distinct)}
    check("evaluate", told["question"], asked | {"majority": int(belongs(one).sum(axis=0).max())})


def sides(workspace: Workspace, run: int) -> tuple[list[bytes], list[bytes]]:
    """Return the pixels of each held-out pair, and of every picture that is not held out."""
    held = read_snapshot(seen(workspace, run).others[-1].folder).items.path
    root = Path(workspace.runs.config_of(run).data.path).parent
    others = [str(path) for path in root.rglob("*.png") if str(path) not in set(held)]
    pixels = [[np.asarray(Image.open(path)).tobytes() for path in part] for part in (held, others)]
    return pixels[0], pixels[1]


@RUNS
def test_every_number_of_compare(trained: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path, run: int):
    told = answer(trained, capsys, "compare", str(run))
    one = seen(trained, run)
    found = {name: value for name, value in retrieval(one).items() if "_retrieval_recall" not in name}
    found |= {name: value for name, value in similarity(one).items() if re.fullmatch(r"auc_hard\d+", name)}
    found |= {"modality_gap": geometry(one)["modality_gap"]}
    if run == 1:
        of = learned(trained, capsys, tmp_path)
        shot = zero_shot(of)
        found |= {"zero_shot_acc1": shot["acc1"], "zero_shot_acc5": shot["acc5"], "zero_shot_ece": shot["ece"]}
        found |= {"zero_shot_mean_per_class": shot["mean_per_class_recall"], **neighbors(of)}
    for row in told["rows"]:
        name, without = row["metric"], WITHOUT["compare"]
        assert (name in found) != (name in without), f"compare prints {name} without oracle or reason"
        (value,), (interval,), (n,) = row["values"], row["intervals"], row["n"]
        if name in found:
            # Measured while it trained, in single precision; a snapshot is kept in half.
            check("", {name: value}, {name: loosened(found[name])})
        asked = {"image_to_text": len(one.pictures), "text_to_image": len(one.distinct)}
        assert n == (len(one.pictures) if name == "knn_words" else asked.get(name[:13], one.n))
        assert row["question"]["n"] == (len(one.pictures) if name == "knn_words" else one.n)
        assert row["question"]["gallery"] in (0, len(one.distinct))
        if interval is not None:
            # Captions of one picture are found or missed together.
            independent = min(n, len(one.pictures)) if name[:13] in asked else n
            assert interval == pytest.approx(wilson(value, independent), abs=1e-6)
    assert (told["runs"][0]["run"], told["runs"][0]["step"]) == (run, one.step)
    held, others = sides(trained, run) if run == 3 else ([], [])
    seen_twice, name = sum(pixels in others for pixels in held), trained.runs.get(run).short_name
    copies = f"{seen_twice} of {one.n} held-out pairs show pictures that {name} was"
    assert [words.startswith(copies) for words in told["warnings"]] == [True] * (run == 3)
    shares = {row["metric"] for row in told["rows"] if row["intervals"] != [None]}
    assert {"image_to_text_R@1", "text_to_image_R@10"} <= shares


def loosened(value: Any) -> tuple[float, float]:
    value, tolerance = value if isinstance(value, tuple) else (value, 0.0)
    return value, max(tolerance, 2e-3)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the Wilson interval as the roots of a parabola, at 1.96 deviations of the true share."""
    z = 1.96**2 / n
    low, high = sorted(np.roots([1 + z, -(2 * share + z), share**2]).real.tolist())
    return max(low, 0.0), min(high, 1.0)


def test_every_analysis_has_an_oracle(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["analyze", "none of them"])
    kinds = set(re.findall(r"'([a-z-]+)'", capsys.readouterr().err))
    elsewhere = {
        "data-efficiency": "compares groups of runs: tests/trainer/charts",
        "evaluation-curves": "shows what `evaluate` has stored",
        "concepts": "trains a dictionary: tests/trainer/charts/test_concepts.py",
        "replayed-step": "draws a stored replay: tests/trainer/training/test_replay.py",
        "generative-classes": "draws a stored result: tests/trainer/evaluation/test_generative.py",
        "effective-robustness": "is of any number of runs: tests/trainer/charts/test_source_documents.py",
        **dict.fromkeys(
            ("accuracy-by-size", "probe-by-set", "published-table"), "tests/trainer/charts/test_stored_accuracies.py"
        ),
        "bad-clustering": "draws what PCL logged: tests/trainer/training/test_objectives.py",
        "forgetting": "compares steps of a run: tests/trainer/training/test_fine_tuning.py",
        "separated-groups": "finds planted groups: tests/trainer/analysis/test_separated_groups.py",
        "prototypes": "clusters snapshots: tests/trainer/charts/test_source_documents.py",
        "retrieval-share": "compares runs of CLOOB alike in all but a share: tests/trainer/charts",
        "curves": "are what was logged: tests/trainer/charts/test_curves.py",
        "probe-strip": "searches every snapshot: tests/trainer/charts/test_probe_strip.py",
        "snapshot-curves": "measures every snapshot: tests/trainer/charts/test_timeline.py, test_snapshot_curves.py",
        **dict.fromkeys(
            ("comparison", "confusion", "evaluation-scores", "groups", "protocol", "caption-choice"),
            "show what `evaluate` has stored: tests/trainer/charts",
        ),
        **dict.fromkeys(
            ("calibration", "prompts", "search"), "needs a model that embeds: tests/trainer/charts, the walk"
        ),
        **dict.fromkeys(
            (
                *("config-difference", "field-grid", "field-importance"),
                *("map-of-models", "parallel-coordinates", "small-multiples"),
            ),
            "are of any number of runs: tests/trainer/charts/test_many_runs.py",
        ),
        "pair": "shows one pair: tests/trainer/charts/test_one_pair.py, the walk",
        "matrix": "shows every cosine: tests/trainer/charts/test_matrix.py",
        **dict.fromkeys(("axes", "word-map", "words"), "needs a model that embeds: tests/trainer/charts, the walk"),
        **dict.fromkeys(("experiment-curves", "experiment-verdict"), "need an experiment: tests/trainer/experiments"),
        **dict.fromkeys(
            ("attribute-probes", "batch-negatives", "gradient-saturation"),
            "needs Scenes or a logged temperature: tests/trainer/charts/test_diagnosis.py",
        ),
        **dict.fromkeys(
            (
                "hopfield-temperature",
                "loss-margins",
                "loss-views",
                "augmentations",
                "diffusion",
                "pixel-cnn",
                "skip-gram",
                "loss-saturation",
                "sampling-variance",
                "softmax-cost",
                "toy-batch",
            ),
            "shows formulas, not embeddings: tests/trainer/charts",
        ),
    }
    assert not kinds - {*KINDS, "changes", "representation-similarity", *elsewhere}, (
        "an analysis without oracle or reason"
    )
    assert {*KINDS, "changes", "representation-similarity"} <= kinds


def test_a_number_without_oracle_or_reason_fails():
    with pytest.raises(AssertionError, match="without oracle or reason"):
        check("geometry", {"n": 3, "new": 1.0}, {"n": 3})
    with pytest.raises(AssertionError, match="does not print"):
        check("geometry", {"n": 3}, {"n": 3, "gone": 1.0})
    with pytest.raises(AssertionError):
        check("geometry", {"alignment": 1.0}, {"alignment": 1.1})
