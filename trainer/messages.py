"""The questions the window asks a trainer process, and their answers: JSON lines, one object a line.

`{"id": 7, "ask": "classify", ...}` is answered by any number of `{"id": 7, "progress": 0.4, "note": "..."}` and
then one `{"id": 7, "answer": {...}}` or `{"id": 7, "error": {"kind", "message", "next"}}`.
`{"ask": "cancel", "target": 7}` ends one. Arrays travel as paths of `.npy` files. Nothing here imports torch.

A question whose class says `long = True` is answered in a process of its own, which is ended to cancel it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, get_args


class MessageError(ValueError):
    """A line that is no question: not JSON, an unknown ask, or a field missing or unknown."""


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Load these runs' models, or with `projections` UMAP, so that the next question is quick.

    Answer: `{"runs": [those that are open], "missing": {run: reason}, "device": "cpu"}`.
    """

    ask: ClassVar[str] = "warm_up"
    runs: tuple[int, ...] = ()
    projections: bool = False


@dataclass(frozen=True, kw_only=True)
class Classify:
    """Which of `labels` fits each image, according to each run.

    Answer: `{"runs": {run: {"step", "milliseconds", "probabilities": [[...] per image], "cosines": [[...]]}},
    "images": [paths that were read, in order], "unreadable": {path: reason}}`; labels keep the order asked.
    """

    ask: ClassVar[str] = "classify"
    runs: tuple[int, ...]
    images: tuple[str, ...]
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedImages:
    """Unit embeddings of image files. Answer: `{"array": path.npy, "images": [...], "unreadable": {path: reason}}`."""

    ask: ClassVar[str] = "embed_images"
    run: int
    images: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedTexts:
    """Unit embeddings of sentences. Answer: `{"array": path.npy}`."""

    ask: ClassVar[str] = "embed_texts"
    run: int
    texts: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedClasses:
    """Unit embeddings of every label in every template; cached, so asking twice is quick.

    Answer: `{"file": path.npy, for trainer.charts.class_task.read_class_texts}`.
    """

    ask: ClassVar[str] = "embed_classes"
    run: int
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Project:
    """A picture of a snapshot in the plane; cached as a layout, so asking twice is quick.

    `method` is `pca`, `umap`, `tsne`, `pacmap`, or `file` for the coordinates in `file`. `onto` is the folder of
    another snapshot whose layout this one is to face. With `series`, folders of earlier snapshots of the run in the
    order of their steps, layouts are made of them too, each facing the next later one. With `place`, a `.npy` of
    vectors (of images, unless `place_images` is false), the answer says where they stand in the layout.

    Answer: `{"layout": path.npy (m x 2 float32), "images": n_images, "texts": n_texts, "method": ..., "seconds": ...,
    "note": ..., "fitted": ..., "layouts": [path of each of `series`], "placed": [[x, y] of each of `place`]}`; rows are
    the image embeddings, then the text embeddings.
    """

    ask: ClassVar[str] = "project"
    snapshot: str
    method: str
    neighbors: int = 15
    min_dist: float = 0.1
    metric: str = "cosine"
    seed: int = 0
    file: str = ""
    onto: str = ""
    series: tuple[str, ...] = ()
    place: str = ""
    place_images: bool = True


@dataclass(frozen=True, kw_only=True)
class Saliency:
    """Which parts of an image make a caption fit it, according to each run.

    `method` is `occlusion` or `gradient`, `grid` cells a side. Answer: `{"array": path.npy (runs x grid x grid float32,
    in cosine), "image": path.npy (s x s x 3 uint8, as the first run sees it), "cosines": [one a run], "steps": [...]}`.
    `steps` are those of the checkpoints, one a run, None for the newest; left out, `step` of all.
    """

    ask: ClassVar[str] = "saliency"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    image: str
    caption: str
    method: str = "occlusion"
    grid: int = 12
    step: int | None = None
    steps: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EmbedIndependent:
    """One more snapshot of each run: of Scenes whose attributes are independent, the same pairs for all.

    `steps` are those of the checkpoints, one a run, None for the newest; left out, the newest of all. Answer:
    `{"snapshots": [folder of each]}`; they are in the store by then.
    """

    ask: ClassVar[str] = "embed_independent"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    steps: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Measure runs at tasks on a data set, and store what was found as evaluations of the runs.

    `data` is a folder, table, tar or name of a data set (empty: what each run was trained on); `tasks` are names of
    `trainer.evaluation.benchmark.TASKS` (empty: the cheap ones); `most` bounds the pairs that are tried (0: all);
    with `features` probes and neighbors read features before the projection. `steps` are those of the checkpoints,
    one a run, None for the newest; left out, `step` of all.
    Answer: `{"done": [{"run", "step", "dataset", "split", "task"}], "left_out": {"run: task": why}}`.
    """

    ask: ClassVar[str] = "evaluate"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    data: str = ""
    tasks: tuple[str, ...] = ()
    split: str = ""
    suite: str = ""
    most: int = 0
    shift: str = ""
    step: int | None = None
    features: bool = False
    steps: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadData:
    """What a folder, table or tar holds and what is wrong with it.

    `data` are the kind and the options of a data set, as in `config.toml`; if it is empty, what lies at `path` is
    recognized. Pairs are listed; with `opened` every picture is prepared at `image_size`, as a run would do it.
    Answer: what `trainer data show --json` prints, with `not_used` and `odd` (counts) and `report` (a file of JSON
    lines `[item, what, reason]`) in place of the report's lines, and `pictures` (files to classify, captions or not).
    """

    ask: ClassVar[str] = "read_data"
    long: ClassVar[bool] = True
    path: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    image_size: int = 64
    opened: bool = False


@dataclass(frozen=True)
class Example:
    """One pair of the answer to `ReadData`.

    Attributes:
        path: Where its image lies, as text: a file, a member of a tar, a row of a table.
        item: Its name in the data set.
        caption: A plain text.
        label: Its class, or empty.
        split: Which it belongs to.
    """

    path: str
    item: str
    caption: str
    label: str
    split: str


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """End the question `target`; it is answered with an error of kind `cancelled`."""

    ask: ClassVar[str] = "cancel"
    target: int


Question = (
    WarmUp
    | Classify
    | EmbedImages
    | EmbedTexts
    | EmbedClasses
    | Project
    | Saliency
    | Evaluate
    | EmbedIndependent
    | ReadData
    | Cancel
)

QUESTIONS: Final[dict[str, type]] = {question.ask: question for question in get_args(Question)}


def is_long(question: Question) -> bool:
    """Whether the question is answered in a process of its own: it takes long, and cancelling it means ending that."""
    return getattr(question, "long", False)


@dataclass(frozen=True)
class Failure:
    """Why a question has no answer, in words for the window.

    Attributes:
        kind: One of `cancelled`, `bad_question`, `unknown_run`, `no_checkpoint`, `unreadable`, `memory`, `bug`.
        message: The cause, a sentence.
        next: What the person can do, a sentence; may be empty.
    """

    kind: str
    message: str
    next: str = ""


def encode(number: int, question: Question) -> str:
    """The line (without its end) that asks `question` under the id `number`."""
    return json.dumps({"id": number, "ask": question.ask, **dataclasses.asdict(question)}, ensure_ascii=True)


def decode(line: str) -> tuple[int, Question]:
    """The id and the question of a line.

    Raises:
        MessageError: The line is no question.
    """
    try:
        document = json.loads(line)
    except ValueError as error:
        raise MessageError(f"not a line of JSON: {error}") from error
    if not isinstance(document, dict):
        raise MessageError("a question is a JSON object")
    number, ask = document.pop("id", 0), document.pop("ask", None)
    if ask not in QUESTIONS:
        raise MessageError(f"unknown question {ask!r}; known are {', '.join(QUESTIONS)}")
    known = {f.name for f in dataclasses.fields(QUESTIONS[ask])}
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items() if k in known}
    try:
        return int(number), QUESTIONS[ask](**values)
    except TypeError as error:
        raise MessageError(f"{ask}: {error}") from error


def progress_line(number: int, share: float, note: str = "") -> str:
    """The line that tells how far question `number` is, `share` in [0, 1]."""
    return json.dumps({"id": number, "progress": share, "note": note})


def answer_line(number: int, answer: dict[str, Any]) -> str:
    """The line that answers question `number`."""
    return json.dumps({"id": number, "answer": answer})


def error_line(number: int, failure: Failure) -> str:
    """The line that says why question `number` has no answer."""
    return json.dumps({"id": number, "error": dataclasses.asdict(failure)})
