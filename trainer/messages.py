"""The JSON Lines protocol between the window and a trainer process: requests and responses.

`{"id": 7, "ask": "classify", ...}` is answered by any number of `{"id": 7, "progress": 0.4, "note": "..."}` and
then one `{"id": 7, "answer": {...}}` or `{"id": 7, "error": {"kind", "message", "next"}}`.
`{"ask": "cancel", "target": 7}` ends one. Arrays travel as paths of `.npy` files. Nothing here imports torch.

A question whose class says `long = True` is answered in a process of its own, which is ended to cancel it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, get_args


class MessageError(ValueError):
    """A line that is not a valid request: not JSON, an unknown ask, or a field missing or unknown."""


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Load these runs' models, or with `projections` UMAP, so that the next request is fast.

    Answer: `{"runs": [those that are open], "missing": {run: reason}, "device": "cpu"}`.
    """

    ask: ClassVar[str] = "warm_up"
    runs: tuple[int, ...] = ()
    projections: bool = False


Shares = Literal["softmax", "sigmoid", "none"]
"""What shares of labels are: they sum to 1, each is for itself (SigLIP), or a single label has none."""


@dataclass(frozen=True, kw_only=True)
class Classify:
    """Predict which of `labels` fits each image, for each run.

    Answer: `{"runs": {run: {"step", "milliseconds", "shares", "probabilities": [[...] per image], "cosines": [[...]]}},
    "images": [paths that were read, in order], "unreadable": {path: reason}}`; labels keep the order asked.
    `shares` says what the probabilities are; they are null where it is "none": a single label has no softmax.
    """

    ask: ClassVar[str] = "classify"
    runs: tuple[int, ...]
    images: tuple[str, ...]
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedImages:
    """Embed image files. Response: `{"array": path.npy, "images": [...], "unreadable": {path: reason}}`."""

    ask: ClassVar[str] = "embed_images"
    run: int
    images: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedTexts:
    """Embed sentences. Response: `{"array": path.npy}`."""

    ask: ClassVar[str] = "embed_texts"
    run: int
    texts: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class EmbedClasses:
    """Embed every label in every template; cached, so that a repeated request is fast.

    Answer: `{"file": path.npy, for trainer.charts.class_task.read_class_texts}`.
    """

    ask: ClassVar[str] = "embed_classes"
    run: int
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Project:
    """Project a snapshot to the plane; cached as a layout, so that a repeated request is fast.

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
class PlaceRows:
    """Place a run's vectors that no snapshot holds, such as those of words, by the methods of `Project` but `file`.

    `vectors` is a `.npy` (m x d). Answer: `{"array": path.npy (m x 2)}`.
    """

    ask: ClassVar[str] = "place_rows"
    run: int
    vectors: str
    method: str
    neighbors: int = 15
    min_dist: float = 0.1
    metric: str = "cosine"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Saliency:
    """Compute the parts of an image that make a caption fit it, for each run.

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
class Decode:
    """Decode the embedding of a picture or a sentence with one or two decoders, which must compare.

    The fields are those of `trainer.inference.decode.DecodeRequest`; `checkpoints` are the steps of the decoders, one
    each, None for the newest. Answer: `{"title", "how", "noises": [...], "original": path.npy (s x s x 3 uint8) or "",
    "runs": [{"run", "name", "of_name", "of_step", "step", "recovered", "recovered_of", "nearest_of",
    "measured": [{"name", "samples", "originals", "limit"}], "measured_of",
    "nearest": [{"path", "caption", "cosine"}], "pictures": path.npy ((1 + noises) x s x s x 3 uint8, the mean picture
    first), "spread": path.npy}]}`.
    """

    ask: ClassVar[str] = "decode"
    runs: tuple[int, ...]
    image: str = ""
    text: str = ""
    prior: str = "mlp"
    steps: int = 25
    guidance: float = 1.0
    other: str = ""
    share: float = 0.0
    before: str = ""
    after: str = ""
    strength: float = 0.0
    direction: int = 0
    distance: float | None = None
    close_gap: bool = False
    noises: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    checkpoints: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EmbedIndependent:
    """Add a snapshot of Scenes with independent attributes to each run, the same pairs for all.

    `steps` are those of the checkpoints, one a run, None for the newest; left out, the newest of all. Answer:
    `{"snapshots": [folder of each]}`; they are in the store by then.
    """

    ask: ClassVar[str] = "embed_independent"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    steps: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Evaluate runs at tasks on a data set, and store the results with the runs.

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
    """Read the contents of a folder, table or tar and its problems.

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


@dataclass(frozen=True, kw_only=True)
class MeasureRun:
    """Measure the cost of a run that does not exist yet by a few real steps, without saving anything.

    `config` is the run as TOML. Answer: the fields of `trainer.training.cost.RunCost`.
    """

    ask: ClassVar[str] = "measure_run"
    long: ClassVar[bool] = True
    config: str
    steps: int = 3


@dataclass(frozen=True, kw_only=True)
class CheckData:
    """Find mispairs, near-duplicates, leaks and outliers in the data of the first run, with one or two runs.

    `steps` are those of the checkpoints, one a run, None for the newest. Answer: `{"findings": how many}`; the report
    lies in the first run's folder by then (`trainer.store.quality_files`).
    """

    ask: ClassVar[str] = "check_data"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    steps: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReplayStep:
    """Make the update of a run that led to `step` again, verify it at the next checkpoint, and store it.

    Answer: `{"step", "began", "verified"}`; the replay lies in the run's folder by then (`trainer.store.replay_files`).
    """

    ask: ClassVar[str] = "replay_step"
    long: ClassVar[bool] = True
    run: int
    step: int


@dataclass(frozen=True, kw_only=True)
class WriteCleanedList:
    """Write the training pairs of a run without flagged ones, and the held-out pairs next to them, as tables.

    `file` ends in `.parquet` or `.csv`; empty: one in the workspace. Answer: `{"file": the training pairs, "heldout":
    the held-out pairs, "kept": pairs, "left_out": pairs, "captions_repeat": whether two kept pairs share a caption}`.
    """

    ask: ClassVar[str] = "write_cleaned_list"
    long: ClassVar[bool] = True
    run: int
    file: str = ""


@dataclass(frozen=True)
class Example:
    """One pair in the response to `ReadData`.

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
    """End the request `target`, whose response is an error of kind `cancelled`."""

    ask: ClassVar[str] = "cancel"
    target: int


Question = (
    WarmUp
    | Classify
    | Decode
    | EmbedImages
    | EmbedTexts
    | EmbedClasses
    | Project
    | PlaceRows
    | Saliency
    | Evaluate
    | EmbedIndependent
    | ReadData
    | MeasureRun
    | CheckData
    | ReplayStep
    | WriteCleanedList
    | Cancel
)

QUESTIONS: Final[dict[str, type]] = {question.ask: question for question in get_args(Question)}


def is_long(question: Question) -> bool:
    """Return whether the request is slow and runs in its own process, which is ended to cancel it."""
    return getattr(question, "long", False)


@dataclass(frozen=True)
class Failure:
    """Why a request failed, in words for the window.

    Attributes:
        kind: One of `cancelled`, `bad_question`, `unknown_run`, `no_checkpoint`, `unreadable`, `memory`, `bug`.
        message: The cause, a sentence.
        next: What the person can do, a sentence; may be empty.
    """

    kind: str
    message: str
    next: str = ""


def encode(number: int, question: Question) -> str:
    """Return the line (without line end) that sends `question` under the id `number`."""
    return json.dumps({"id": number, "ask": question.ask, **dataclasses.asdict(question)}, ensure_ascii=True)


def decode(line: str) -> tuple[int, Question]:
    """Return the id and the request of a line.

    Raises:
        MessageError: The line is no question.
    """
    try:
        document = json.loads(line)
    except ValueError as error:
        raise MessageError(f"not a line of JSON: {error}") from error
    if not isinstance(document, dict):
        raise MessageError("a request is a JSON object")
    number, ask = document.pop("id", 0), document.pop("ask", None)
    if ask not in QUESTIONS:
        raise MessageError(f"unknown request {ask!r}; known are {', '.join(QUESTIONS)}")
    names = {f.name for f in dataclasses.fields(QUESTIONS[ask])}
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items() if k in names}
    try:
        return int(number), QUESTIONS[ask](**values)
    except TypeError as error:
        raise MessageError(f"{ask}: {error}") from error


def progress_line(number: int, share: float, note: str = "") -> str:
    """Return the line that reports the progress of request `number`, with `share` in [0, 1]."""
    return json.dumps({"id": number, "progress": share, "note": note})


def answer_line(number: int, answer: dict[str, Any]) -> str:
    """Return the line with the response to request `number`."""
    return json.dumps({"id": number, "answer": answer})


def error_line(number: int, failure: Failure) -> str:
    """Return the line with the error of request `number`."""
    return json.dumps({"id": number, "error": dataclasses.asdict(failure)})
