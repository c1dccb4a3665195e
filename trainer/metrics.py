"""The catalog of logged metrics: names, formats and drawing. Imports no torch."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from trainer import config

_REFERENCE: Final = "reference/"
"""How the names of numbers begin that a fine-tuning logs of its reference set."""
_HARDEST: Final = re.compile(r"(?:^|/)(auc|unmatched_cosine)_hard(\d+)$")
"""Numbers against fewer unmatched captions than 10, where a split has no more."""
NOISE_SHARES: Final = (10, 30, 50, 70, 90)
"""Noise levels at which decoders are measured, in percent of the steps of the schedule."""
RECALL_HEADING: Final = "R@1"
"""Heading of a column of values that are all recalls."""
HEADLINE: Final = "val/image_to_text_R@1"
"""The one number by which the table of runs judges a run that compares images with texts."""
_JUDGES: Final = (HEADLINE, "val/paired_image_to_text_R@1", "val/zero_shot_acc1", "val/loss", "train/loss", "loss")
"""What the table of runs judges a training of another program by: the first of them that it logs, else any loss."""
_LOSS: Final = re.compile(r"(?:^|[/_. -])loss(?:$|[/_. -])", re.IGNORECASE)
_HELD_OUT: Final = re.compile(r"(?:^|[/_. -])(?:val|valid|validation|eval|test|dev)(?:$|[/_. -])", re.IGNORECASE)


def headline(run: config.Run) -> str:
    """Return the main metric of `run` in the table of runs."""
    return run.objective.headline(has_classes=run.data.is_drawn)


def judge_of(names: Collection[str]) -> str:
    """Return the main metric of a training of another program, of those that it logs; empty for none of them."""
    judges = [name for name in names if name in _JUDGES or is_loss(name)]
    order = [*_JUDGES, *main_first(name for name in judges if name not in _JUDGES)]
    return min(judges, key=order.index, default="")


def is_loss(name: str) -> bool:
    """Return whether a metric calls itself a loss, in whatever way a program writes it: lower is better."""
    return _LOSS.search(name) is not None


def main_first(names: Iterable[str]) -> list[str]:
    """Return the names of a person's own metrics: losses first, and of these and of others the held-out ones."""
    return sorted(names, key=lambda name: (not is_loss(name), _HELD_OUT.search(name) is None, name))


def best_value(name: str, values: Iterable[float]) -> float:
    """Return the best value of a main metric; NaN where there is no number."""
    best = min if metric(name).better == "down" else max
    return best((value for value in values if not math.isnan(value)), default=math.nan)


@dataclass(frozen=True)
class Metric:
    """The display of one logged number."""

    name: str  # As logged, with slashes.
    label: str  # For people, without the unit.
    unit: str = ""  # Shown after a value; empty for a pure number.
    better: Literal["up", "down", "none"] = "none"  # Which way is good; "none" where neither is.
    group: str = "Other"  # Heading under which a list of metrics shows it.
    shared_axis: bool = True  # False where runs of different objectives may not share an axis (their losses).
    digits: int = 3  # Decimals shown.
    percent: bool = False  # The number is a share, shown times 100.

    def on(self, split: str | Iterable[str], n: int | Iterable[int | None] | None = None) -> str:
        """Return the label of a value: of a recall with what it was measured on, `Image to text R@1, val, n = 463`.

        Args:
            split: Name of the split, or of those of several runs; an empty one is left out.
            n: Pairs of the split, or those of several runs; None is left out.
        """
        return measured_name(self.label, split, n) if self.is_recall else self.label

    @property
    def is_recall(self) -> bool:
        """Whether it is a recall at k of one direction."""
        return "_R@" in self.name

    @property
    def short_label(self) -> str:
        """What it is in a word, for a narrow column: `R@1`, `loss`, `accuracy`, `R²`."""
        if self.is_recall:
            return RECALL_HEADING
        kinds = (("acc", "accuracy"), ("r2", "R²"))
        return "loss" if is_loss(self.name) else next((word for part, word in kinds if part in self.name), "value")

    def text(self, value: float | None) -> str:
        """Format the value with its unit: `76.3 %`, `0.412`, `nan`; a dash if there is none."""
        if value is None:
            return "–"
        scaled = value * 100 if self.percent else value
        number = f"{scaled:z,.{max(self.digits - 2, 0) if self.percent else self.digits}f}"
        unit = "%" if self.percent else self.unit
        return f"{number} {unit}" if unit else number


def measured_name(label: str, split: str | Iterable[str] = "", n: int | Iterable[int | None] | None = None) -> str:
    """Return the label of a measure with what it was measured on, as of `Metric.on`: `Modality gap, n = 1,024`."""
    splits = [split] if isinstance(split, str) else list(dict.fromkeys(split))
    sizes = [n] if n is None or isinstance(n, int) else list(dict.fromkeys(n))
    named = " / ".join(split_label(part) for part in splits if part)
    counts = " / ".join(f"{part:,}" for part in sizes if part is not None)
    return ", ".join(filter(None, (label, named, f"n = {counts}" if counts else "")))


def metric(name: str) -> Metric:
    """Return the metric of a logged name; a neutral entry if it is not in the catalog."""
    if name.startswith(_REFERENCE):
        base = metric(f"val/{name.removeprefix(_REFERENCE)}")
        return replace(base, name=name, label=f"{base.label}, reference set", group="Reference set")
    entry = METRICS.get(name) or _PAIRED.get(name) or _TASKS.get(name.rpartition("/")[2])
    if entry is not None:
        return replace(entry, name=name)
    if match := _HARDEST.search(name):
        split = "combinations" if name.startswith("combinations/") else "val"
        model = METRICS[f"{split}/{match[1]}_hard10"]
        return replace(model, name=name, label=model.label.replace("10 ", f"{match[2]} "))
    _, choice, kind = name.partition("caption_choice_")
    if choice:
        return replace(_TASKS["caption_choice"], name=name, label=f"Caption choice, {kind.replace('_', ' ')}")
    split, _, attribute = name.partition("/knn_")
    if attribute and split in ("val", "combinations"):
        attribute_label = attribute.replace("_", " ")
        model = METRICS[f"{split}/knn_acc1"]
        return replace(model, name=name, label=model.label.replace("class", attribute_label, 1))
    # A name of the person's own: its last part alone may be that of another metric.
    return Metric(name, name, better="down" if is_loss(name) else "none", shared_axis=not is_loss(name))


def recall_name(
    direction: Literal["image_to_text", "text_to_image", "both"],
    k: int = 1,
    *,
    split: str | Iterable[str] = "",
    n: int | Iterable[int | None] | None = None,
) -> str:
    """Return the one way to name a recall: `Image to text R@1, renderings, n = 1,024`; see `Metric.on`."""
    name = f"val/{direction}_R@{k}"
    recall = metric(name) if direction != "both" else Metric(name, f"R@{k} both ways")
    return recall.on(split, n)


HELD_OUT: Final = ("heldout_pairs", "heldout_questions")
"""Facts of a run that split and n of its main metric come from."""
MOST_SIZES: Final = 3
"""Different n that are written out after the name of a metric of several runs."""
SPLIT_LABELS: Final = {
    "val": "held-out",
    "heldout": "held-out",
    "renderings": "unseen renderings",
    "combinations": "unseen combinations",
    "train": "training",
    "batch": "training batch",
}
"""A split, or how the names of its logged numbers begin -> its name for people, the same everywhere."""


def split_label(split: str) -> str:
    """Return the name of a split for people, with the size of a sample."""
    base, of, total = split.rpartition("-of-")
    base, _, drawn = base.rpartition("-")
    if of and base and drawn.isdecimal() and total.isdecimal():
        return f"{split_label(base)}, {int(drawn):,} of {int(total):,}"
    return SPLIT_LABELS.get(split, split)


def dataset_label(name: str) -> str:
    """Return the name of a data set for people: that of the drawn scenes has a capital, others are as their folder."""
    return "Scenes" if name == "scenes" else name


def data_label(about: Any) -> str:
    """Return the `dataset` and the `split` of a value for people: `Scenes, unseen renderings`."""
    return f"{dataset_label(about.dataset)}, {split_label(about.split)}"


def logged_name(name: str, n: int | None = None) -> str:
    """Return the label of a logged metric for people, of a recall with split and n."""
    logged = metric(name)
    # The label of the catalog names unseen combinations already.
    plain = metric(name.replace("combinations/", "val/", 1)) if logged.is_recall else logged
    return plain.on(SPLIT_LABELS.get(name.partition("/")[0], ""), n)


def headline_name(metric_name: str, *facts: Mapping[str, Any]) -> str:
    """Return the label of a logged metric of one run or several, of a recall with split and n.

    Args:
        metric_name: As logged.
        facts: What the trainer noted about each run; of more than `MOST_SIZES` different n none is named.
    """
    unseen = metric_name.startswith("combinations/")
    splits: dict[str, None] = {}
    sizes: dict[int | None, None] = {}
    for run_facts in facts:
        split, n = measured_on(metric_name, run_facts)
        splits[SPLIT_LABELS["combinations"] if unseen else split or SPLIT_LABELS["val"]] = None
        sizes[n] = None
    # The label of the catalog names unseen combinations already.
    headline = metric(metric_name.replace("combinations/", "val/", 1) if "_R@" in metric_name else metric_name)
    return headline.on(splits, sizes if len(sizes) <= MOST_SIZES else None)


def measured_on(metric_name: str, facts: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return the split and n of a metric that a run logged, as its trainer noted them; `""` and None where it did not.

    Numbers of two runs with another split or n cannot be compared.
    """
    held = facts.get("heldout_pairs")
    first = next((name for name in held if name != "combinations"), "") if isinstance(held, dict) else ""
    named = metric_name.partition("/")[0]
    split = named if named in ("combinations", "reference") else first
    return split, noted_n(metric_name, split, facts)


def noted_n(name: str, split: str, facts: Mapping[str, Any]) -> int | None:
    """Return n of a number logged of a split, as the trainer noted it: a recall's distinct questions, else pairs."""
    direction = name.rpartition("/")[2].partition("_R@")[0]
    return asked_by_direction(split, facts).get(direction) or noted_pairs(split, facts)


def asked_by_direction(split: str, facts: Mapping[str, Any]) -> dict[str, int]:
    """Return the distinct questions of each direction of a run's split, as the trainer noted them."""
    noted = _inner(_inner(facts, "heldout_questions"), split).items()
    return {direction: n for direction, n in noted if isinstance(n, int) and direction != "majority"}


def noted_majority(split: str, facts: Mapping[str, Any]) -> int:
    """Return how many pictures of a run's split have its most frequent caption; 0 where the trainer noted none."""
    n = _inner(_inner(facts, "heldout_questions"), split).get("majority")
    return n if isinstance(n, int) else 0


def once_note(name: str, facts: Mapping[str, Any]) -> str:
    """Return why fewer ask than there are pairs, `of 61 pairs, each caption once`; empty where all pairs ask."""
    split, n = measured_on(name, facts)
    pairs, questions = noted_pairs(split, facts), asked_by_direction(split, facts)
    if n is None or pairs is None or n >= pairs or not questions:
        return ""
    # Equal numbers below that of the pairs may be of questions drawn at random.
    drawn = len(questions) > 1 and len({*questions.values()}) == 1
    once = "" if drawn else f", each {'caption' if 'text_to_image' in name else 'picture'} once"
    return f"of {pairs:,} pairs{once}"


def noted_pairs(split: str, facts: Mapping[str, Any]) -> int | None:
    """Return how many pairs a run's split had, as the trainer noted it."""
    n = _inner(facts, "heldout_pairs").get(split)
    return n if isinstance(n, int) else None


def _inner(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = values.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _training() -> list[Metric]:
    train = "Training"
    return [
        Metric("train/loss", "Training loss", "", "down", train, shared_axis=False),
        Metric("train/learning_rate", "Learning rate", group=train, digits=6),
        Metric("train/inv_tau", "1/tau", group=train, digits=2),
        Metric("train/gradient_norm", "Gradient norm", group=train),
        Metric("train/pairs_per_s", "Speed", "pairs/s", "up", train, digits=0),
        Metric("train/data_wait", "Waiting for data", "", "down", train, percent=True),
    ]


def _heldout() -> list[Metric]:
    held = "Validation"
    directions = {"image_to_text": "Image to text", "text_to_image": "Text to image"}
    recalls = [
        Metric(f"val/{key}_R@{k}", f"{label} R@{k}", "", "up", held, percent=True)
        for key, label in directions.items()
        for k in (1, 5, 10)
    ]
    ranks = [
        Metric(f"val/{key}_median_rank", f"{label} median rank", "", "down", held, digits=1)
        for key, label in directions.items()
    ]
    return [
        Metric("val/loss", "Validation loss", "", "down", held, shared_axis=False),
        *recalls,
        *ranks,
        Metric("val/zero_shot_acc1", "Zero-shot accuracy", "", "up", held, percent=True),
        Metric("val/zero_shot_acc5", "Zero-shot top-5 accuracy", "", "up", held, percent=True),
        Metric("val/knn_acc1", "kNN accuracy of class", "", "up", held, percent=True),
        Metric("val/knn_words", "Words shared with the nearest", "", "up", held),
        Metric("val/matched_cosine", "Mean cosine, matched", group=held),
        Metric("val/unmatched_cosine_hard10", "Mean cosine, 10 most similar unmatched", group=held),
        Metric("val/auc_hard10", "AUC, matched over 10 most similar unmatched", "", "up", held, digits=4),
        Metric("val/modality_gap", "Modality gap", group=held),
        Metric("val/effective_rank_image", "Effective rank, images", group=held, digits=1),
        Metric("val/effective_rank_text", "Effective rank, captions", group=held, digits=1),
        *_decoder(held),
        Metric("val/own_image_weight", "Own image in a caption's retrieval", group=held, percent=True),
        Metric("val/text_gradient_main3", "Caption gradient in 3 main image directions", group=held, percent=True),
    ]


def _paired() -> list[Metric]:
    """Return the retrieval of other programs, where of equal captions the one of the pair alone is right."""
    return [
        replace(m, name=m.name.replace("val/", "val/paired_"), label=f"{m.label}, own caption only")
        for m in _heldout()
        if m.is_recall or m.name.endswith("_median_rank")
    ]


def _decoder(held: str) -> list[Metric]:
    """Return the metrics of decoders of other runs."""
    return [
        Metric("val/mean_picture_r2", "Pixel variance explained by the mean picture", "", "up", held, percent=True),
        Metric("val/mean_picture_mse", "Squared error of the mean picture", "", "down", held, digits=4),
        Metric("val/denoising_loss", "Denoising loss with embedding", "", "down", held, digits=4),
        Metric("val/denoising_loss_dropped", "Denoising loss without embedding", "", "down", held, digits=4),
        *(
            Metric(f"val/velocity_error_{share}pct", f"Velocity error, {share} % of the noise steps", "", "down", held)
            for share in NOISE_SHARES
        ),
        Metric("val/prior_cosine", "Cosine of the prior (MLP) with the image", "", "up", held),
        Metric("val/text_cosine", "Cosine of the text with the image", "", "up", held),
    ]


def _combinations(heldout: list[Metric]) -> list[Metric]:
    return [
        replace(
            m,
            name=m.name.replace("val/", "combinations/", 1),
            label=f"{m.label}, unseen combinations",
            group="Unseen combinations",
        )
        for m in heldout
    ]


def _system() -> list[Metric]:
    system = "System"
    return [
        Metric("system/cpu_percent", "CPU load", "%", group=system, digits=0),
        Metric("system/memory_mib", "Memory of the trainer", "MiB", "down", system, digits=0),
        Metric("system/gpu_percent", "GPU load", "%", group=system, digits=0),
        Metric("system/gpu_memory_mib", "GPU memory", "MiB", "down", system, digits=0),
        Metric("system/energy_wh", "Energy of the GPUs", "Wh", "down", system, digits=2),
    ]


def _tasks() -> dict[str, Metric]:
    """Return the metrics of `trainer evaluate` by name without prefix; runs do not log them."""
    tasks, shares = "Evaluation", {}
    shares["zero_shot_mean_per_class"] = ("Zero-shot, mean per class", "up")
    shares["zero_shot_ece"] = ("Calibration error", "down")
    shares["zero_shot_ece_fitted"] = ("Calibration error, temperature fitted", "down")
    shares["image_to_text_mAP"] = ("Image to text mAP", "up")
    shares["text_to_image_mAP"] = ("Text to image mAP", "up")
    shares["linear_probe_acc1"] = ("Linear probe", "up")
    shares["linear_probe_acc5"] = ("Linear probe, top-5", "up")
    shares["linear_probe_mean_per_class"] = ("Linear probe, mean per class", "up")
    shares |= {f"few_shot_{k}_acc1": (f"Linear probe, {k} a class", "up") for k in (1, 2, 4, 8, 16)}
    for share in (1, 10):
        for key, label in (("fine_tune", "Fine-tuned"), ("fine_tune_linear", "Linear probe")):
            shares[f"{key}_{share}pct_acc1"] = (f"{label}, {share} % of labels", "up")
            shares[f"{key}_{share}pct_acc5"] = (f"{label}, {share} % of labels, top-5", "up")
    shares["robust_clean"] = ("Clean, on the robustness sample", "up")
    for kind in ("noise", "blur", "contrast", "jpeg", "occlusion"):
        label = "JPEG" if kind == "jpeg" else kind
        shares[f"robust_{kind}"] = (f"Under {label}", "up")
    shares |= {"robust_mean": ("Under all corruptions", "up"), "robust_kept": ("Share of the clean accuracy", "up")}
    shares["caption_choice"] = ("Caption choice", "up")
    shares["protocol_zero_shot"] = ("Zero-shot by the published protocol", "up")
    shares["protocol_zero_shot_changed"] = ("Zero-shot with every deviation", "up")
    shares["protocol_image_to_text_R@1"] = ("Image to text R@1 by the published protocol", "up")
    shares["protocol_text_to_image_R@1"] = ("Text to image R@1 by the published protocol", "up")
    shares |= {"shift": ("On the shifted data", "up"), "shift_drop": ("Drop on the shifted data", "down")}
    metrics = {name: Metric(name, label, "", better, tasks, percent=True) for name, (label, better) in shares.items()}
    fitted = "zero_shot_inv_tau_fitted"
    return metrics | {fitted: Metric(fitted, "Fitted inverse temperature", group=tasks, digits=2)}


_TASKS: Final = _tasks()
_PAIRED: Final = {m.name: m for m in _paired()}
"""Logged by other programs alone."""

METRICS: Final[dict[str, Metric]] = {
    m.name: m for m in [*_training(), *_heldout(), *_combinations(_heldout()), *_system()]
}
"""Logged name -> what it means, in the order lists show them."""
