"""What a stored number answers. Two numbers may be compared only where their questions are equal."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

_PICTURES: Final = re.compile(r"([\d,]+) distinct pictures")
UNKNOWN: Final = "from an older version, question unknown"
"""Said of numbers that were stored before their question was stored with them."""
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
    "loss": "loss",
}
"""How the names of a task's numbers begin -> the task."""


@dataclass(frozen=True)
class Question:
    """What was asked; data set and split stand beside it in the key of a stored number.

    Attributes:
        task: `zero_shot`, `retrieval`, `similarity`, `linear_probe`, `few_shot`, `fine_tune`, `knn`, `robustness`
            or `loss`.
        n: Samples that were tried.
        classes: Among how many classes an answer was chosen; 0 where it is no class.
        templates: Sentences a class.
        gallery: Among how many texts an answer was sought; 0 where it is no text.
        protocol: How, where the task's name does not say it: what probes learned from, what a batch was.
        names: Hash of the names of the classes; empty where there are none.
        sentences: Hash of the templates; empty where there are none.
    """

    task: str
    n: int
    classes: int = 0
    templates: int = 0
    gallery: int = 0
    protocol: str = ""
    names: str = ""
    sentences: str = ""

    @property
    def key(self) -> str:
        """The question as it is stored: JSON, the same for equal questions."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    def asked(self, name: str) -> int:
        """How many independent answers the share `name` is of: the n of its interval.

        In retrieval captions that repeat ask once, and so do pictures: their answers are equal, not independent.
        """
        if self.task == "retrieval" and name.startswith("text_to_image"):
            return self.gallery or self.n
        if self.task == "retrieval" and (found := _PICTURES.match(self.protocol)):
            return int(found[1].replace(",", ""))
        return self.n

    @property
    def digest(self) -> str:
        """Eight letters, fit for the name of a file; of another question they are others."""
        return hashlib.blake2b(self.key.encode(), digest_size=4).hexdigest()

    def words(self) -> str:
        """`n = 960, 102 classes × 2 templates`, for people; the task is not named."""
        told = [f"n = {self.n:,}"]
        if self.classes:
            told.append(_counted(self.classes, "class", "classes"))
            told[-1] += f" × {_counted(self.templates, 'template', 'templates')}" if self.templates else ""
        if self.gallery:
            told.append(f"among {_counted(self.gallery, 'text', 'texts')}")
        return ", ".join([*told, *filter(None, [self.protocol])])


def told(question: Question | None, *, task: bool = False) -> str:
    """The words of a question, also of one that is not known; with its task before them where that is wanted."""
    if question is None:
        return UNKNOWN
    return f"{question.task.replace('_', ' ')}, {question.words()}" if task else question.words()


def hash_of(words: Sequence[str]) -> str:
    """Hash of class names or of templates, in their order; empty for none."""
    return hashlib.blake2b(json.dumps(list(words)).encode(), digest_size=6).hexdigest() if words else ""


def question_from_key(key: str) -> Question | None:
    """The question that was stored as `key`; None where there is none, or it cannot be understood."""
    try:
        found = json.loads(key) if key else None
    except (ValueError, RecursionError):
        return None
    return question_from(found)


def question_from(values: Any) -> Question | None:
    """The question of these plain values; None where they are no question's."""
    if not isinstance(values, Mapping):
        return None
    kinds: dict[str, type] = {"n": int, "classes": int, "templates": int, "gallery": int}
    known = {one.name: values[one.name] for one in fields(Question) if one.name in values}
    if not {"task", "n"} <= known.keys() or any(type(v) is not kinds.get(name, str) for name, v in known.items()):
        return None
    return Question(**known)


def task_of(name: str) -> str:
    """The task that a number of an evaluation belongs to, by its name; empty for one that is not known."""
    plain = name.rpartition("/")[2]
    return next((task for begin, task in _TASKS.items() if plain.startswith(begin)), "")


def by_question(
    metrics: Mapping[str, float], questions: Mapping[str, Question]
) -> dict[Question | None, dict[str, float]]:
    """The numbers by their questions; None: those of which no question is known.

    Args:
        metrics: Of one split at one step.
        questions: Task -> what was asked.
    """
    found: dict[Question | None, dict[str, float]] = {}
    for name, value in metrics.items():
        found.setdefault(questions.get(task_of(name)), {})[name] = value
    return found


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
