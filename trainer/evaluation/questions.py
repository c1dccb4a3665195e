"""The question of each task: the key of its stored results, equal if they are comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from trainer.analysis.neighbors import NEIGHBORS
from trainer.evaluation.heldout import HeldOut
from trainer.evaluation.image_text_metrics import GRADIENT_BATCHES, hardest_of
from trainer.evaluation.neighbors import NeighborReference, asking_rows
from trainer.prompt_suites import PromptSuite
from trainer.store.question import Question, hash_of, retrieval_question

By = Literal["prompts", "words", "captions"]
"""How a model names classes: embeddings of prompts, scores of the words of names, likelihood of prompts."""

_PROTOCOL: Final = {"words": "by the words of their names", "captions": "by the likelihood of the prompts"}


MOST_PROMPTS: Final = 40
"""That a decoder of captions is asked while it trains: each costs a pass over all held-out images."""


def sparing(suite: PromptSuite) -> PromptSuite:
    """Return the suite with as many templates, at even distances, as `MOST_PROMPTS` allow; at least one."""
    count = min(len(suite.templates), max(1, MOST_PROMPTS // max(1, len(suite.classes))))
    chosen = tuple(suite.templates[index * len(suite.templates) // count] for index in range(count))
    return replace(suite, templates=chosen)


def zero_shot(n: int, suite: PromptSuite, *, by: By = "prompts") -> Question:
    """Return the classes and templates; by words, the class names alone."""
    templates = () if by == "words" else suite.templates
    protocol = _PROTOCOL.get(by, "")
    names, sentences = hash_of(suite.classes), hash_of(templates)
    if suite.sentences:
        prompts = [prompt for name in suite.classes for prompt in suite.sentences[name]]
        protocol, sentences = f"by {len(prompts):,} sentences of single classes", hash_of(prompts)
    return Question(
        "zero_shot", n, len(suite.classes), len(templates), protocol=protocol, names=names, sentences=sentences
    )


def learned(
    task: str, n: int, suite: PromptSuite, *, rows: int, source: str, of: str = "embeddings", more: str = ""
) -> Question:
    """Return the training data and protocol of a probe or the neighbors.

    Args:
        n: Samples tried.
        suite: Its classes are those to choose from.
        rows: Pairs learned from.
        source: What these pairs are: `training pairs`.
        of: What is read: `embeddings` or `features`.
        more: What decides the number besides.
    """
    read = "" if of == "embeddings" else f", on {of}"
    protocol = f"learned from {rows:,} {source}{read}{f', {more}' if more else ''}"
    return Question(task, n, len(suite.classes), protocol=protocol, names=hash_of(suite.classes))


def how(task: str, details: Mapping[str, Any]) -> str:
    """Return what else determines a probe's results, from its record."""
    if task == "knn":
        return f"{details['neighbors']} nearest"
    if task == "few_shot":
        return f"means of {details['draws']} draws"
    if task == "fine_tune":
        return ", ".join(f"{100 * share['share']:g} %: {share['labels']:,} labels" for share in details["shares"])
    return ""


def robustness(n: int, suite: PromptSuite | None, details: Mapping[str, Any]) -> Question:
    """Return the measure, and the second data set."""
    shift = details.get("shift")
    beside = f"; shifted to {shift['dataset']} {shift['split']}, n = {shift['n']:,}" if shift else ""
    protocol = f"{details['measure']} under corruption{beside}"
    if suite is None or details["measure"] == "image_to_text_R@1":
        return Question("robustness", n, protocol=protocol)
    return replace(zero_shot(n, suite), task="robustness", protocol=protocol)


def of_training(heldout: HeldOut, *, batch_size: int, both: bool, masks: bool, by: By) -> dict[str, Question]:
    """Return task -> question of a held-out split measured during training.

    Args:
        both: Whether the run has both towers; else no pictures are compared with texts, and none need to be read.
        masks: Whether the objective leaves right answers out of its negatives, in the loss and its gradient alike.
        by: How the run names classes.
    """
    pairs, suite = heldout.pairs, heldout.suite
    n, questions = len(pairs), {}
    if both:
        texts, images = len(heldout.matching.texts), len(heldout.matching.images)
        majority = heldout.matching.texts.majority if texts < n else 0
        questions["retrieval"] = retrieval_question(n, texts=texts, images=images, majority=majority)
        hardest = f"{hardest_of(heldout.matching.texts)} hardest unmatched texts of each image"
        questions["similarity"] = Question("similarity", n, gallery=texts, protocol=hardest)
        size = min(batch_size, n)
        batches = f"in batches of {size:,}"
        masked = f"{batches}, right answers no negatives" if masks else batches
        questions["loss"] = Question("loss", n, protocol=masked)
        questions["spectrum"] = Question("spectrum", n)
        questions["own_weight"] = Question("own_weight", n // size * size, protocol=batches)
        questions["gradient"] = Question("gradient", min(n // size, GRADIENT_BATCHES) * size, protocol=masked)
    if suite is not None and (n_classified := len(heldout.classified)):
        questions["zero_shot"] = zero_shot(n_classified, sparing(suite) if by == "captions" else suite, by=by)
    return questions


def of_reference(reference: NeighborReference, heldout: HeldOut, *, images: bool) -> Question:
    """Return the question about neighbors among the reference pairs, by class, attributes or words."""
    asking = asking_rows(heldout, images=images)
    drawn = "" if reference.drawn == reference.whole else f" of {reference.whole:,}, drawn"
    what = "" if images else ", by their captions"
    each = "pairs" if reference.stored == reference.drawn else "pictures" if images else "captions"
    protocol = f"{NEIGHBORS} nearest among {reference.stored:,}{drawn} training {each}{what}"
    return Question("knn", len(asking), protocol=protocol)
