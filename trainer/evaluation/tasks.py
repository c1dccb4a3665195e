"""Evaluation tasks on embeddings: the metrics of each, and its answer for every sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.calibration import error_range, fitted_inv_tau, reliability, top_confidence
from trainer.analysis.distinct import Matching
from trainer.analysis.distinct import matching as distinct_items
from trainer.analysis.label_shares import labels_of_share, stratified
from trainer.analysis.linear_probe import SHOTS, few_shot, linear_probe
from trainer.analysis.neighbors import NEIGHBORS, voted
from trainer.analysis.progress import Progress, silent
from trainer.analysis.retrieval import RECALLS, average_precision, both_question_ranks, recall_at, retrieval_numbers
from trainer.analysis.tiled_neighbors import nearest
from trainer.analysis.tiles import exact
from trainer.analysis.word_scores import answerable, class_scores, class_words
from trainer.analysis.zero_shot import class_ranks, class_weights
from trainer.evaluation.fine_tuning import SHARES, FineTuned
from trainer.evaluation.word_answers import class_numbers, places_of
from trainer.store.task_records import TaskRecord

DRAWS: Final = 3
"""Draws of the labeled rows of a few-shot probe; their mean is reported."""


def zero_shot(
    image: Float[np.ndarray, "n d"],
    prompts: Float[np.ndarray, "c t d"],
    label: Int[np.ndarray, " n"],
    *,
    inv_tau: float,
    bias: float | None = None,
    seed: int = 0,
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return top-1, top-5, mean per class; calibration at the run's temperature and at one fitted on half.

    Args:
        image: Unit embeddings of images whose class is known.
        prompts: Of each class in each template.
        label: Place of each image's class.
        inv_tau: The run's own inverse temperature; NaN: no calibration at it.
        bias: Of SigLIP's logits, whose probabilities are sigmoids; None: probabilities by softmax.
        seed: Of the half that the temperature is fitted on; the error is that of the other half.

    Returns:
        Metrics, details, and arrays with a row an image.
    """
    weights = class_weights(prompts)
    ranks = class_ranks(image, weights, label)
    cosines = exact(image) @ weights.T
    predicted = cosines.argmax(axis=1)
    right = ranks == 1
    order = np.random.default_rng(seed).permutation(len(label))
    fit, rest = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    offset = None if bias is None else bias / inv_tau
    fitted = fitted_inv_tau(cosines[fit], label[fit], offset)
    diagrams = {}
    for name, value, rows in (("own", inv_tau, slice(None)), ("fitted", fitted, rest)):
        if math.isfinite(value):
            diagrams[name] = _diagram(*top_confidence(cosines[rows], label[rows], value, offset), value)
    metrics = {
        "zero_shot_acc1": recall_at(ranks, 1),
        "zero_shot_acc5": recall_at(ranks, 5),
        "zero_shot_mean_per_class": mean_per_class(right, label),
        "zero_shot_ece": diagrams.get("own", {}).get("ece", math.nan),
        "zero_shot_ece_fitted": diagrams.get("fitted", {}).get("ece", math.nan),
        "zero_shot_inv_tau_fitted": fitted,
    }
    details = {"reliability": diagrams, "inv_tau": inv_tau, "fitted_on": len(fit), "tried_on": len(rest)}
    details |= {} if bias is None else {"logit_bias": bias}
    return metrics, details, {"label": label, "predicted": predicted, "rank": ranks, "right": right}


def retrieval(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], matching: Matching
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return recall at 1, 5 and 10, median rank and mAP both ways, over distinct texts and images. Tiled.

    Each distinct picture asks once and every text of it is right; each distinct text asks once and every picture of it
    is right.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        matching: Which captions and which pictures are one.

    Returns:
        Metrics, how many distinct captions and images ask and are ranked, and of each pair the rank and the number of
        its question.
    """
    metrics, arrays = {}, {}
    both = both_question_ranks(image, text, matching)
    ways = (("image_to_text", image, text, matching.texts), ("text_to_image", text, image, matching.images))
    for (name, query, stored, answers), ranks in zip(ways, both, strict=True):
        metrics |= retrieval_numbers(name, ranks)
        # With one right answer each it follows from the rank.
        single = (np.diff(answers.starts) == 1).all()
        precision = 1 / ranks if single else average_precision(query, stored, answers, rows=answers.asking())
        metrics[f"{name}_mAP"] = float(precision.mean()) if len(precision) else math.nan
        arrays[name] = ranks[answers.question]
        arrays[f"{name}_asked"] = answers.question
    details: dict[str, Any] = {"captions": len(matching.texts), "images": len(matching.images)}
    # Where no caption repeats, both ways to count are one.
    alike = len(matching.texts) == len(text)
    details |= {} if alike else {"majority": matching.texts.majority}
    details["clip_benchmark"] = _clip_recalls(both) if alike else clip_benchmark_recalls(image, text, matching)
    return metrics, details, arrays


def clip_benchmark_recalls(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], matching: Matching
) -> dict[str, float]:
    """Return recall as CLIP_benchmark defines it, by its names: every caption of every picture is an item by itself.

    A caption finds its own picture alone, and a picture its own captions, so that an equal caption of another picture
    is wrong; each caption asks, and each picture once. `retrieval` ranks distinct captions instead. Items that tie
    stand before the right one. https://github.com/LAION-AI/CLIP_benchmark, clip_benchmark/metrics/zeroshot_retrieval.py
    """
    items = distinct_items(np.arange(len(text)), matching.texts.question)
    return _clip_recalls(both_question_ranks(image, text, items))


def _clip_recalls(both: tuple[Int[np.ndarray, " i"], Int[np.ndarray, " t"]]) -> dict[str, float]:
    """Return the recalls of texts that images find, and of images that texts find, by the names of CLIP_benchmark."""
    ranks = dict(zip(("text", "image"), both, strict=True))
    return {f"{name}_retrieval_recall@{k}": recall_at(ranks[name], k) for name in ranks for k in RECALLS}


def probe(
    train: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    tried: Float[np.ndarray, "m d"],
    label: Int[np.ndarray, " m"],
    classes: int,
    *,
    progress: Progress = silent,
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return the linear probe on all labels."""
    fit = linear_probe(train, targets, tried, classes, progress=progress)
    right, ranks = fit.predicted == label, fit.places(label)
    metrics = {
        "linear_probe_acc1": float(right.mean()),
        "linear_probe_acc5": recall_at(ranks, 5),
        "linear_probe_mean_per_class": mean_per_class(right, label),
    }
    arrays = {"label": label, "predicted": fit.predicted, "right": right, "rank": ranks}
    return metrics, {"decay": fit.decay, "fitted": fit.fitted}, arrays


def few_shots(
    train: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    tried: Float[np.ndarray, "m d"],
    label: Int[np.ndarray, " m"],
    classes: int,
    *,
    progress: Progress = silent,
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return linear probes on 1, 2, 4, 8 and 16 labels per class: mean and deviation over label draws.

    Classes that are missing among the rows to learn from are left out of both; how many is told.
    """
    present = np.flatnonzero(np.bincount(targets, minlength=classes))
    renamed = np.full(classes, -1)
    renamed[present] = np.arange(len(present))
    counted = renamed[label] >= 0
    curve, others, metrics, arrays = [], [], {}, {"label": label}
    for number, shots in enumerate(SHOTS):
        progress(number / len(SHOTS), f"Few-shot probes: {shots} labels a class")
        accuracies, beside = [], []
        for seed in range(DRAWS):
            fit = few_shot(train, renamed[targets], tried[counted], len(present), shots=shots, seed=seed)
            if fit is None:
                break
            truth = renamed[label[counted]]
            right = fit.predicted == truth
            accuracies.append(float(right.mean()))
            beside.append((recall_at(fit.places(truth), 5), mean_per_class(right, truth)))
            if seed == 0:
                right_of_all = np.zeros(len(label), bool)
                right_of_all[counted] = right
                arrays[f"right_{shots}"] = right_of_all
        if len(accuracies) == DRAWS:
            metrics[f"few_shot_{shots}_acc1"] = float(np.mean(accuracies))
            curve.append([shots, float(np.mean(accuracies)), float(np.std(accuracies, ddof=1))])
            others.append([shots, *np.mean(beside, axis=0).tolist()])
    about = {"curve": curve, "top5_and_mean_per_class": others, "draws": DRAWS}
    return metrics, about | {"classes": len(present), "n": int(counted.sum())}, arrays


def word_zero_shot(
    logits: Float[np.ndarray, "n k"], vocabulary: list[str], classes: tuple[str, ...], label: Int[np.ndarray, " n"]
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return zero-shot results by the word scores of class names, which have no cosines to calibrate."""
    weights = class_words(classes, vocabulary)
    scores = class_scores(logits, weights)
    silent = [name for name, answered in zip(classes, answerable(weights), strict=True) if not answered]
    details = {"reliability": {}, "by": "words", "vocabulary": len(vocabulary), "classes_without_a_word": silent}
    metrics, arrays = _by_scores(scores, label)
    return metrics, details, arrays


def likelihood_zero_shot(
    likely: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"]
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return zero-shot results by log-likelihoods of the classes' prompts, which have no cosines to calibrate."""
    metrics, arrays = _by_scores(likely, label)
    return metrics, {"reliability": {}, "by": "captions"}, arrays


def _by_scores(
    scores: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"]
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    ranks, predicted = places_of(scores, label), scores.argmax(axis=1)
    right = ranks == 1
    metrics = class_numbers(scores, label) | {"zero_shot_mean_per_class": mean_per_class(right, label)}
    return metrics, {"label": label, "predicted": predicted, "rank": ranks, "right": right}


def fine_tuning(
    learn: Callable[[Int[np.ndarray, " k"], int], FineTuned],
    targets: Int[np.ndarray, " n"],
    label: Int[np.ndarray, " m"],
    *,
    n_labels: int,
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return fine-tuning on a share of each class's labels, and the linear probe on the same labels.

    Args:
        learn: Fine-tunes on rows of the labeled images, for so many epochs.
        targets: Classes of the labeled images.
        label: Of the tried images.
        n_labels: Images of the labeled split, of which these may be a sample: the share is one of the whole.
    """
    metrics, arrays, used, left_out = {}, {"label": label}, [], {}
    for share, epochs in SHARES.items():
        name = f"{100 * share:g}pct"
        counts = labels_of_share(targets, share, total=n_labels)
        if counts is None:
            left_out[name] = (
                f"{100 * share:g} % of {n_labels:,} labels are more than the {len(targets):,} that were read."
            )
            continue
        rows = stratified(targets, counts, seed=0)
        learned = learn(rows, epochs)
        for kind, logits in (("fine_tune", learned.tuned), ("fine_tune_linear", learned.linear)):
            ranks = places_of(logits, label)
            metrics |= {f"{kind}_{name}_acc1": recall_at(ranks, 1), f"{kind}_{name}_acc5": recall_at(ranks, 5)}
            arrays[f"{kind}_{name}"] = ranks
        used.append({"share": share, "labels": len(rows), "epochs": learned.epochs, "per_class": counts.tolist()})
    return metrics, {"shares": used, "left_out": left_out, "whole": n_labels, "seed": 0}, arrays


def knn(
    train: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    tried: Float[np.ndarray, "m d"],
    label: Int[np.ndarray, " m"],
) -> tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]:
    """Return weighted votes of the 20 nearest training rows (Wu et al., 2018)."""
    predicted = voted(targets, *nearest(tried, train, NEIGHBORS))
    right = predicted == label
    arrays = {"label": label, "predicted": predicted, "right": right}
    return {"knn_acc1": float(right.mean())}, {"neighbors": min(NEIGHBORS, len(train)), "stored": len(train)}, arrays


def mean_per_class(right: Bool[np.ndarray, " n"], label: Int[np.ndarray, " n"]) -> float:
    """Return the mean recall over occurring classes."""
    counts = np.bincount(label)
    shares = np.bincount(label, weights=right)[counts > 0] / counts[counts > 0]
    return float(shares.mean()) if len(shares) else float("nan")


def record(
    task: str,
    parts: tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]],
    *,
    paths: list[str],
    total: int,
    **details: Any,
) -> TaskRecord:
    """Return the parts as a record with samples identified by path."""
    metrics, measured, arrays = parts
    return TaskRecord(
        task, metrics, len(paths), total, measured | details, {"path": np.array(paths, dtype=str), **arrays}
    )


def _diagram(confidence: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"], inv_tau: float) -> dict[str, Any]:
    diagram, spread = reliability(confidence, right), error_range(confidence, right)
    columns = {name: getattr(diagram, name).tolist() for name in ("edges", "counts", "confidence", "accuracy")}
    sure = {"ece_low": spread.low, "ece_high": spread.high, "ece_calibrated": spread.calibrated}
    return {"inv_tau": inv_tau, "ece": diagram.error, **sure, **columns}
