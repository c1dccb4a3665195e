"""The question behind a stored number; numbers are comparable only if their questions are equal."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from trainer.analysis.chance import chance_text
from trainer.metrics import asked_by_direction, measured_on, noted_majority, noted_pairs
from trainer.untrusted.documents import convert, parse

_PICTURES: Final = re.compile(r"([\d,]+) distinct pictures")
_ONCE: Final = ", each question once"
"""Ends the protocol where captions or pictures repeat."""
_FIRST_K: Final = re.compile(r"(?:_R@|zero_shot_acc)(\d+)$|zero_shot_mean_per_class$")
"""Names of numbers that count how often the right answer is among the first k."""
_DRAWN: Final = ", questions drawn at random"
"""Ends the protocol where not every question was asked: `n` of each direction were."""
UNKNOWN: Final = "question unknown"
"""Said of numbers whose question was not stored with them."""
_TASKS: Final = {
    "zero_shot": "zero_shot",
    "image_to_text": "retrieval",
    "text_to_image": "retrieval",
    "linear_probe": "linear_probe",
    "few_shot": "few_shot",
    "fine_tune": "fine_tune",
    "knn": "knn",
    "robust": "robustness",
    "shift": "robustness",
    "matched_cosine": "similarity",
    "unmatched_cosine": "similarity",
    "auc": "similarity",
    "modality_gap": "similarity",
    "effective_rank": "spectrum",
    "own_image_weight": "own_weight",
    "text_gradient": "gradient",
    "loss": "loss",
    "caption_choice": "caption_choice",
    "protocol_zero_shot": "zero_shot_protocol",
    "protocol": "retrieval_protocol",
    "mean_picture": "decoder",
    "denoising": "decoder",
    "velocity_error": "decoder",
    "prior": "decoder",
    "text_cosine": "decoder",
}
"""How the names of a task's numbers begin -> the task."""


@dataclass(frozen=True)
class Question:
    """A question; data set and split are stored next to it in the key of a number."""

    # `zero_shot`, `retrieval`, `similarity`, `linear_probe`, `few_shot`, `fine_tune`, `knn`, `robustness`,
    # `spectrum`, `own_weight`, `gradient`, `decoder`, `loss`, `caption_choice`, `zero_shot_protocol` or
    # `retrieval_protocol`.
    task: str
    # Samples that were tried; of a retrieval the pairs, or the questions of each direction where they were drawn.
    n: int
    classes: int = 0  # Among how many classes an answer was chosen; 0 where it is no class.
    templates: int = 0  # Sentences a class.
    gallery: int = 0  # Among how many texts an answer was sought; 0 where it is no text.
    protocol: str = ""  # How, where the task's name does not say it: what probes learned from, what a batch was.
    names: str = ""  # Hash of the names of the classes; empty where there are none.
    sentences: str = ""  # Hash of the templates; empty where there are none.
    # Of retrieval, the pictures that the most frequent caption is right for; 0 where that is not known.
    majority: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        """The question as stored: JSON, the same for equal questions."""
        values = {name: value for name, value in asdict(self).items() if name != "majority" or value}
        return json.dumps(values, ensure_ascii=False, sort_keys=True)

    def independent(self, name: str) -> int:
        """Return the number of independent questions behind the number `name`, that of its interval.

        Several captions of one picture are found or missed together: they are no more than the pictures are.
        """
        questions = self.asked(name)
        return min(questions, self.pictures) if self.pictures else questions

    def asked(self, name: str) -> int:
        """Return the number of distinct questions behind the number `name`: its n.

        In retrieval captions that repeat ask once, and so do pictures: their answers are equal.
        """
        if self.drawn:
            return self.n
        if self.task == "retrieval" and name.startswith("text_to_image"):
            return self.gallery or self.n
        return self.pictures or self.n

    @property
    def drawn(self) -> bool:
        """Whether the questions are a random sample, each among all answers."""
        return self.protocol.endswith(_DRAWN)

    @property
    def noted_counts(self) -> dict[str, int]:
        """Of retrieval, the distinct questions of each direction, as a run notes them, and the majority where known."""
        counts = {direction: self.asked(direction) for direction in ("image_to_text", "text_to_image")}
        return counts | ({"majority": self.majority} if self.majority else {})

    @property
    def pictures(self) -> int:
        """Of retrieval, how many distinct pictures ask and are ranked; 0 elsewhere, or where it is not known."""
        match = _PICTURES.match(self.protocol) if self.task == "retrieval" else None
        return int(match[1].replace(",", "")) if match else 0

    def answers(self, name: str) -> int:
        """Return among how many answers `name` looks for the right one; 0 where that is not known."""
        if self.task == "retrieval":
            return (self.pictures or self.n) if name.startswith("text_to_image") else self.gallery
        return self.classes if self.task == "zero_shot" else 0

    def drawing(self, name: str) -> tuple[int, int, float] | None:
        """Return k of the share `name`, its candidates and the right ones of a question; None where unknown."""
        k, answers = _FIRST_K.search(name), self.answers(name)
        if k is None or not answers:
            return None
        # Every pair makes one answer right, of its own question.
        right = self.n / self.asked(name) if self.task == "retrieval" and not self.drawn else 1.0
        return int(k[1] or 1), answers, right

    def is_certain(self, name: str) -> bool:
        """Return whether every answer is among the first k, so that the share `name` is 1 for any model."""
        drawing = self.drawing(name)
        return drawing is not None and drawing[1] <= drawing[0]

    def chance(self, name: str) -> str:
        """Return the chance level of the share `name`, and whether its k says little; empty where it is not known."""
        drawing = self.drawing(name)
        of_pictures = self.task == "retrieval" and not name.startswith("text_to_image")
        majority = self.majority / self.asked(name) if of_pictures else 0.0
        return chance_text(*drawing, majority) if drawing is not None else ""

    @property
    def digest(self) -> str:
        """Eight letters for file names, different for different questions."""
        return hashlib.blake2b(self.key.encode(), digest_size=4).hexdigest()

    def words(self) -> str:
        """Return a description without the task: `n = 960, 102 classes × 2 templates`."""
        if self.task == "retrieval" and self.protocol.endswith(_ONCE):
            pictures = _counted(self.pictures, "distinct picture", "distinct pictures")
            return f"{pictures} and {_counted(self.gallery, 'distinct text', 'distinct texts')} of {self.n:,} pairs"
        parts = [f"n = {self.n:,}"]
        if self.classes:
            parts.append(_counted(self.classes, "class", "classes"))
            parts[-1] += f" × {_counted(self.templates, 'template', 'templates')}" if self.templates else ""
        if self.gallery:
            parts.append(f"among {_counted(self.gallery, 'text', 'texts')}")
        return ", ".join([*parts, self.protocol] if self.protocol else parts)


def retrieval_question(n: int, *, texts: int, images: int, drawn: int = 0, majority: int = 0) -> Question:
    """Return the question of a retrieval among the distinct texts and pictures of n pairs.

    Args:
        n: Pairs.
        texts: Distinct ones.
        images: Distinct ones.
        drawn: Questions of each direction where not all were asked; 0: all were.
        majority: Distinct pictures that the most frequent caption is right for; 0: not known.
    """
    if drawn:
        return Question("retrieval", drawn, gallery=texts, protocol=f"{images:,} distinct pictures{_DRAWN}")
    once = "" if n == texts == images else _ONCE
    return Question("retrieval", n, gallery=texts, protocol=f"{images:,} distinct pictures{once}", majority=majority)


def noted_chance(metric_name: str, facts: Mapping[str, Any]) -> str:
    """Return the chance level of a recall that a run logged, by what its trainer noted; empty where it is not known."""
    split, n = measured_on(metric_name, facts)
    questions, pairs = asked_by_direction(split, facts), noted_pairs(split, facts)
    name = metric_name.rpartition("/")[2]
    images, texts = (questions.get(direction) for direction in ("image_to_text", "text_to_image"))
    # Equal numbers below that of the pairs may be of questions drawn at random, among more answers.
    if n is None or pairs is None or images is None or texts is None or images == texts < pairs:
        return ""
    majority = noted_majority(split, facts)
    return retrieval_question(pairs, texts=texts, images=images, majority=majority).chance(name)


def question_text(question: Question | None, *, task: bool = False) -> str:
    """Describe a question, even an unknown one, optionally prefixed with its task."""
    if question is None:
        return UNKNOWN
    return f"{question.task.replace('_', ' ')}, {question.words()}" if task else question.words()


def hash_of(texts: Sequence[str]) -> str:
    """Return a hash of class names or templates, in order; empty for none."""
    return hashlib.blake2b(json.dumps(list(texts)).encode(), digest_size=6).hexdigest() if texts else ""


def question_from_key(key: str) -> Question | None:
    """Return the question stored as `key`; None if missing or invalid."""
    try:
        return parse(key, Question) if key else None
    except ValueError:
        return None


def question_from(values: Any) -> Question | None:
    """Return the question of these plain values; None if they are invalid."""
    try:
        return convert(values, Question)
    except ValueError:
        return None


def task_of(name: str) -> str:
    """Return the task of an evaluation metric by name; empty if unknown."""
    plain = name.rpartition("/")[2]
    return next((task for begin, task in _TASKS.items() if plain.startswith(begin)), "")


def by_question(
    metrics: Mapping[str, float], questions: Mapping[str, Question]
) -> dict[Question | None, dict[str, float]]:
    """Return the numbers by question; None for those without a known question.

    Args:
        metrics: Of one split at one step.
        questions: Task -> what was asked.
    """
    numbers: dict[Question | None, dict[str, float]] = {}
    for name, value in metrics.items():
        numbers.setdefault(questions.get(task_of(name)), {})[name] = value
    return numbers


def _counted(number: int, singular: str, several: str) -> str:
    return f"{number:,} {singular if number == 1 else several}"
