"""Results in the JSON format of CLIP_benchmark (https://github.com/LAION-AI/CLIP_benchmark).

Its keys were read off its `cli.py` and `metrics/`: `dataset`, `model`, `pretrained`, `task`, `metrics`, `language`,
and in `metrics` `acc1`, `acc5`, `mean_per_class_recall`; `image_retrieval_recall@K`, `text_retrieval_recall@K`, by its
definition, in which equal captions of different pictures are different items (`image_to_text_R@K` is ours);
`lp_acc1`, `lp_acc5`, `lp_mean_per_class_recall`, `weight_decay`, `epochs`, `seed`, `fewshot_k`, `normalized`. Ours
besides are further metrics, and `split`, `n`, `whole`, the number of `classes` and how many pairs were `trained_on`,
and the whole `question`, beside the task. Numbers that there are not (top-5 of fewer than five classes, epochs of
L-BFGS) are null; CLIP_benchmark writes the former as NaN, which is no JSON.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trainer.evaluation.run_tasks import Evaluated

NAMES: Final = {
    "zero_shot": "zeroshot_classification",
    "retrieval": "zeroshot_retrieval",
    "linear_probe": "linear_probe",
    "few_shot": "linear_probe",
}
"""Task -> its name there; tasks that it does not have keep their own."""


def clip_benchmark(done: Evaluated) -> list[dict[str, Any]]:
    """Return the task as CLIP_benchmark writes it: one entry, or one per number of labels for few-shot probes."""
    task = done.record.task
    make = {"zero_shot": _zero_shot, "retrieval": _retrieval, "linear_probe": _linear_probe, "few_shot": _few_shot}
    several = make[task](done) if task in make else [done.record.metrics]
    return [_entry(done, NAMES.get(task, task), metrics) for metrics in several]


def _entry(done: Evaluated, task: str, metrics: dict[str, Any]) -> dict[str, Any]:
    question = done.record.question
    return {
        "dataset": done.dataset,
        "model": done.name,
        "pretrained": f"step {done.step}",
        "task": task,
        "metrics": {name: _number(value) for name, value in metrics.items()},
        "language": "en",
        "split": done.split,
        "n": done.record.n,
        "whole": done.record.whole,
        "classes": question.classes if question else _count(done.record.details.get("classes", ())),
        "trained_on": done.record.details.get("trained_on", 0),
        "question": asdict(question) if question else None,
    }


def _count(classes: Any) -> int:
    """Return the number of classes, stored as a number by few-shot probes and as names by other tasks."""
    return classes if isinstance(classes, int) else len(classes)


def _zero_shot(done: Evaluated) -> list[dict[str, Any]]:
    metrics = {name.removeprefix("zero_shot_"): value for name, value in done.record.metrics.items()}
    top5 = metrics.pop("acc5") if len(done.record.details["classes"]) >= 5 else math.nan
    first = {"acc1": metrics.pop("acc1"), "acc5": top5, "mean_per_class_recall": metrics.pop("mean_per_class")}
    return [first | {name: value for name, value in metrics.items() if name != "acc5"}]


def _retrieval(done: Evaluated) -> list[dict[str, Any]]:
    """Return recalls by its definition and names, and our own, which are over distinct captions and pictures."""
    return [done.record.details.get("clip_benchmark", {}) | done.record.metrics]


def _linear_probe(done: Evaluated) -> list[dict[str, Any]]:
    metrics, details = done.record.metrics, done.record.details
    names = ("linear_probe_acc1", "linear_probe_acc5", "linear_probe_mean_per_class")
    return [_probe(details, -1, details["decay"], len(details["classes"]), *(metrics.get(name) for name in names))]


def _few_shot(done: Evaluated) -> list[dict[str, Any]]:
    """Return means over draws with seeds 0 to `draws` - 1, without a single weight decay."""
    details, classes = done.record.details, done.record.details["classes"]
    beside = {row[0]: row[1:] for row in details.get("top5_and_mean_per_class", ())}
    return [
        _probe(details, shots, None, classes, acc1, *beside.get(shots, (None, None))) | {"draws": details["draws"]}
        for shots, acc1, _ in details["curve"]
    ]


def _probe(
    details: dict[str, Any], k: int, decay: float | None, classes: int, acc1: Any, acc5: Any, balanced: Any
) -> dict[str, Any]:
    scores = {"lp_acc1": acc1, "lp_acc5": acc5 if classes >= 5 else None, "lp_mean_per_class_recall": balanced}
    how = {"weight_decay": decay, "epochs": None, "seed": 0, "fewshot_k": k}
    return scores | how | {"normalized": details.get("of") != "features"}


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
