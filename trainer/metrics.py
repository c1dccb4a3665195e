"""The catalog of what a run logs: how each number is called, read and drawn. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from trainer import config

HEADLINE: Final = "val/image_to_text_R@1"
"""The one number by which the table of runs judges a run that compares images with texts."""


def headline(run: config.Run) -> str:
    """The one number by which the table of runs judges `run`.

    Without both towers it is the accuracy of its neighbors: of the class where there surely is one, else the
    words shared with the nearest caption.
    """
    if run.objective.towers == "both":
        return HEADLINE
    return "val/knn_acc1" if run.objective.labeled or isinstance(run.data, config.Scenes) else "val/knn_words"


@dataclass(frozen=True)
class Metric:
    """How one logged number is shown.

    Attributes:
        name: As logged, with slashes.
        label: For people, without the unit.
        unit: Shown after a value; empty for a pure number.
        better: Which way is good; "none" where neither is.
        group: Heading under which a list of metrics shows it.
        shared_axis: False where runs of different objectives may not share an axis (their losses).
        digits: Decimals shown.
        percent: The number is a share, shown times 100.
    """

    name: str
    label: str
    unit: str = ""
    better: Literal["up", "down", "none"] = "none"
    group: str = "Other"
    shared_axis: bool = True
    digits: int = 3
    percent: bool = False

    def text(self, value: float | None) -> str:
        """The value as people read it, with its unit: `76.3 %`, `0.412`, `nan`; a dash when there is none."""
        if value is None:
            return "–"
        shown = value * 100 if self.percent else value
        number = f"{shown:,.{max(self.digits - 2, 0) if self.percent else self.digits}f}"
        unit = "%" if self.percent else self.unit
        return f"{number} {unit}" if unit else number


def metric(name: str) -> Metric:
    """What is known about a logged name; a neutral entry for a name that is not in the catalog."""
    known = METRICS.get(name) or _OLDER.get(name) or _TASKS.get(name.rpartition("/")[2])
    if known is not None:
        return replace(known, name=name)
    split, _, attribute = name.partition("/knn_")
    if attribute and split in ("val", "combinations"):
        words = attribute.replace("_", " ")
        model = METRICS[f"{split}/knn_acc1"]
        return replace(model, name=name, label=model.label.replace("class", words, 1))
    return Metric(name, name.rpartition("/")[2].replace("_", " ").capitalize() or name)


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


def _older() -> list[Metric]:
    """Names that earlier versions logged, and that no run logs any more: their rows stay as they are."""
    held = [
        Metric("val/unmatched_cosine", "Mean cosine, unmatched (older: 10 hardest)", group="Validation"),
        Metric("val/auc", "AUC, matched over unmatched (older: 10 hardest)", "", "up", "Validation", digits=4),
    ]
    return [*held, *_combinations(held)]


def _system() -> list[Metric]:
    system = "System"
    return [
        Metric("system/cpu_percent", "CPU load", "%", group=system, digits=0),
        Metric("system/memory_mib", "Memory of the trainer", "MiB", "down", system, digits=0),
        Metric("system/gpu_percent", "GPU load", "%", group=system, digits=0),
        Metric("system/gpu_memory_mib", "GPU memory", "MiB", "down", system, digits=0),
    ]


def _tasks() -> dict[str, Metric]:
    """Numbers of `trainer evaluate`, by their names without a prefix: a run does not log them."""
    tasks, shares = "Evaluation", {}
    shares["zero_shot_mean_per_class"] = ("Zero-shot, mean per class", "up")
    shares["zero_shot_ece"] = ("Calibration error", "down")
    shares["zero_shot_ece_fitted"] = ("Calibration error, tau fitted", "down")
    shares["image_to_text_mAP"] = ("Image to text mAP", "up")
    shares["text_to_image_mAP"] = ("Text to image mAP", "up")
    shares["linear_probe_acc1"] = ("Linear probe", "up")
    shares["linear_probe_acc5"] = ("Linear probe, top-5", "up")
    shares["linear_probe_mean_per_class"] = ("Linear probe, mean per class", "up")
    shares |= {f"few_shot_{k}_acc1": (f"Linear probe, {k} a class", "up") for k in (1, 2, 4, 8, 16)}
    for share in (1, 10):
        for key, words in (("fine_tune", "Fine-tuned"), ("fine_tune_linear", "Linear probe")):
            shares[f"{key}_{share}pct_acc1"] = (f"{words}, {share} % of labels", "up")
            shares[f"{key}_{share}pct_acc5"] = (f"{words}, {share} % of labels, top-5", "up")
    shares["robust_clean"] = ("Clean, as robustness measures", "up")
    for kind in ("noise", "blur", "contrast", "jpeg", "occlusion"):
        words = "JPEG" if kind == "jpeg" else kind
        shares[f"robust_{kind}"] = (f"Under {words}", "up")
    shares |= {"robust_mean": ("Under all corruptions", "up"), "robust_kept": ("Kept of the clean accuracy", "up")}
    shares |= {"shift": ("On the shifted data", "up"), "shift_drop": ("Fall on the shifted data", "down")}
    found = {name: Metric(name, words, "", way, tasks, percent=True) for name, (words, way) in shares.items()}
    found["zero_shot_inv_tau_fitted"] = Metric("zero_shot_inv_tau_fitted", "Fitted 1/tau", group=tasks, digits=2)
    return found


_TASKS: Final = _tasks()
_OLDER: Final = {m.name: m for m in _older()}

METRICS: Final[dict[str, Metric]] = {
    m.name: m for m in [*_training(), *_heldout(), *_combinations(_heldout()), *_system()]
}
"""Logged name -> what it means, in the order lists show them."""
