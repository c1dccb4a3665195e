"""The questions of the window to a trainer process, each with its answer, and the JSON Lines they are sent as.

`{"id": 7, "ask": "classify", ...}` is answered by any number of `{"id": 7, "progress": 0.4, "note": "..."}` and
then one `{"id": 7, "answer": {...}}` or `{"id": 7, "error": {"kind", "message", "next"}}`.
`{"ask": "cancel", "target": 7}` ends one. Arrays travel as paths of `.npy` files. Nothing here imports torch.

A question is one class, which the window, the commands and the handlers share; its answer is the class that its base
names, `ModelRequest[...]`. One whose class says `long = True` is answered in a process of its own, which is ended to
cancel it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct

from trainer.charts.decode import NOISES, STEPS, MeasuredAttribute, NearPicture
from trainer.charts.point_placement import PointPlacement
from trainer.config.fields import option
from trainer.errors import BUG

AnswerT = TypeVar("AnswerT")


class MessageError(ValueError):
    """A line that is not a valid request: not JSON, an unknown ask, or a field missing or of another type."""


class ModelRequest(Generic[AnswerT]):
    """A question; `AnswerT` is the class of its answer."""

    ask: ClassVar[str]  # Its name in a line.
    long: ClassVar[bool] = False  # Whether it is slow and runs in its own process.
    answer_class: ClassVar[type]  # `AnswerT`.

    def __init_subclass__(cls) -> None:
        cls.answer_class = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]


class WarmUpAnswer(Struct, frozen=True, kw_only=True):
    """The runs whose models are open, why others are not, and where they compute."""

    runs: tuple[int, ...] = ()
    missing: Mapping[int, str] = msgspec.field(default_factory=dict)
    device: str = "cpu"


class WarmUp(ModelRequest[WarmUpAnswer], Struct, frozen=True, kw_only=True):
    """Load these runs' models, or with `projections` UMAP, so that the next request is fast."""

    ask: ClassVar[str] = "warm_up"
    runs: tuple[int, ...] = ()
    projections: bool = False


Shares = Literal["softmax", "sigmoid", "none"]
"""What shares of labels are: they sum to 1, each is for itself (SigLIP), or a single label has none."""


class RunPrediction(Struct, frozen=True, kw_only=True):
    """What one run says of the images."""

    step: int
    inv_tau: float  # Its inverse temperature, learned or fixed.
    bias: float | None  # Added to the logits by SigLIP; None elsewhere.
    shares: Shares  # What `probabilities` are.
    # A row an image, one a label; None where `shares` is "none": a single label has no softmax.
    probabilities: list[list[float]] | None
    cosines: list[list[float]]  # A row an image, one a label.


class ClassifyAnswer(Struct, frozen=True, kw_only=True):
    """The predictions of each run for the images that were read, in order; and why others were not."""

    runs: Mapping[int, RunPrediction]
    images: tuple[str, ...]
    unreadable: Mapping[str, str]


class Classify(ModelRequest[ClassifyAnswer], Struct, frozen=True, kw_only=True):
    """Predict which of `labels` fits each image, for each run; labels keep their order."""

    ask: ClassVar[str] = "classify"
    runs: tuple[int, ...]
    images: tuple[str, ...]
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    step: int | None = None


class CompareSwaps(Classify, frozen=True, kw_only=True):
    """The same of one image with its caption and the caption's swaps as labels."""


class EmbedAnswer(Struct, frozen=True, kw_only=True):
    """The file of the vectors, a row each of what could be read; of images also their files, and why others are not."""

    array: str
    images: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = msgspec.field(default_factory=dict)


class EmbedImages(ModelRequest[EmbedAnswer], Struct, frozen=True, kw_only=True):
    """Embed image files."""

    ask: ClassVar[str] = "embed_images"
    run: int
    images: tuple[str, ...]
    step: int | None = None


class EmbedTexts(ModelRequest[EmbedAnswer], Struct, frozen=True, kw_only=True):
    """Embed sentences."""

    ask: ClassVar[str] = "embed_texts"
    run: int
    texts: tuple[str, ...]
    step: int | None = None


class EmbedClassesAnswer(Struct, frozen=True, kw_only=True):
    """The file for `trainer.charts.class_task.read_class_texts`."""

    file: str


class EmbedClasses(ModelRequest[EmbedClassesAnswer], Struct, frozen=True, kw_only=True):
    """Embed every label in every template; cached, so that a repeated request is fast."""

    ask: ClassVar[str] = "embed_classes"
    run: int
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    step: int | None = None


class ProjectAnswer(Struct, frozen=True, kw_only=True):
    """A layout; its rows are the image embeddings, then the text embeddings."""

    layout: str  # A `.npy` of m x 2 float32.
    images: int  # How many of the rows are images.
    texts: int  # How many are texts.
    method: str  # How they were placed.
    seconds: float  # What that took when it was computed.
    note: str  # About the layout, as sentences.
    fitted: int  # How many rows the method was fitted on.
    layouts: tuple[str, ...] = ()  # A file for each of `series`.
    placed: tuple[tuple[float, float], ...] = ()  # The points of the vectors in `place`.


class Project(ModelRequest[ProjectAnswer], Struct, frozen=True, kw_only=True):
    """Project a snapshot to the plane; cached as a layout, so that a repeated request is fast.

    `onto` is the folder of another snapshot whose layout this one is to face. With `series`, folders of earlier
    snapshots of the run in the order of their steps, layouts are made of them too, each facing the next later one. With
    `place`, a `.npy` of vectors (of images, unless `place_images` is false), the answer says where they stand. With
    `sketch`, the points on the way are written to that `.npy` again and again, where the method has any.
    """

    ask: ClassVar[str] = "project"
    snapshot: str
    placement: PointPlacement
    onto: str = ""
    sketch: str = ""
    series: tuple[str, ...] = ()
    place: str = ""
    place_images: bool = True


class PlaceRowsAnswer(Struct, frozen=True, kw_only=True):
    """The file of the points, m x 2."""

    array: str


class PlaceRows(ModelRequest[PlaceRowsAnswer], Struct, frozen=True, kw_only=True):
    """Place a run's vectors that no snapshot holds, such as those of words; `vectors` is a `.npy` (m x d)."""

    ask: ClassVar[str] = "place_rows"
    run: int
    vectors: str
    placement: PointPlacement


class SaliencyAnswer(Struct, frozen=True, kw_only=True):
    """Maps of the runs."""

    array: str  # A `.npy` of runs x grid x grid, float32, in cosine.
    image: str  # A `.npy` of s x s x 3 uint8, as the first run sees it.
    cosines: tuple[float, ...]  # Of the whole image with the caption, one a run.
    steps: tuple[int, ...]  # Of each run's checkpoint.


@dataclass(frozen=True, kw_only=True)
class Saliency(ModelRequest[SaliencyAnswer]):
    """Compute the parts of an image that make a caption fit it, for each run.

    `steps` are those of the checkpoints, one a run, None for the newest; left out, the newest of all.
    """

    ask: ClassVar[str] = "saliency"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    image: str
    caption: str
    method: Literal["occlusion", "gradient"] = option("occlusion", "Method", "how")
    grid: int = option(12, "Grid", "cells a side", low=2, high=64)
    steps: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunDecoded:
    """What one decoder makes of the embedding; `trainer.charts.decode.DecodedRun` says what the fields are."""

    run: int
    name: str
    of_name: str
    of_step: int
    step: int
    recovered: float | None  # None where it was not measured.
    recovered_of: int
    measured: tuple[MeasuredAttribute, ...]
    measured_of: int
    nearest: tuple[NearPicture, ...]
    nearest_of: int
    pictures: str  # A `.npy` of (1 + noises) x s x s x 3 uint8, the mean picture first.
    spread: str  # A `.npy` of s x s.
    levels: tuple[int, ...] = ()  # Of the way from noise; none where it was not asked for.
    reverse: str = ""  # A `.npy` of 2 x levels x s x s x 3 uint8: noisy pictures, and what is foreseen in them.


class DecodeAnswer(Struct, frozen=True, kw_only=True):
    """What the decoders make of the embedding; `original` is a `.npy` of s x s x 3 uint8, empty for a sentence."""

    title: str
    how: str
    noises: tuple[int, ...]
    original: str
    runs: tuple[RunDecoded, ...]


@dataclass(frozen=True, kw_only=True)
class Decode(ModelRequest[DecodeAnswer]):
    """Decode the embedding of a picture or a sentence with decoders, which must compare."""

    ask: ClassVar[str] = "decode"
    runs: tuple[int, ...]
    image: str = ""  # File of a picture; empty where a text is decoded.
    text: str = ""  # A sentence; empty where a picture is decoded.
    other: str = ""  # A second picture, and `share` of the way to it.
    direction: int = 0  # Principal direction of the training images, counted from 1; 0 for none.
    distance: float | None = None  # How far to move along it; None drops it.
    noises: tuple[int, ...] = tuple(range(NOISES))  # Seeds of the noises, the same for all decoders.
    # The steps of the decoders, one each, None for the newest; left out, the newest of all.
    checkpoints: tuple[int | None, ...] = ()
    prior: Literal["mlp", "diffusion", "text", "gap", "ridge"] = option(
        "mlp", "Prior", "from a sentence's to a picture's embedding: two that were trained, three baselines"
    )
    steps: int = option(STEPS, "Steps", "DDIM steps", low=1, high=999)
    guidance: float = option(1.0, "Guidance", "1 samples what was learned", low=0.0, high=10.0)
    share: float = option(0.0, "Share", "share of the way to the second picture, 0 to 1", low=0.0, high=1.0)
    before: str = option("", "Before", "with --after: the difference of two texts is added")
    after: str = option("", "After", "see --before")
    strength: float = option(1.0, "Strength", "how often it is added")
    close_gap: bool = option(False, "Close the gap", "move the mean text onto the mean image first")
    reverse: bool = option(False, "Way from noise", "draw the first noise on its way to the picture, too")


class EmbedIndependentAnswer(Struct, frozen=True, kw_only=True):
    """The folder of each snapshot; they are in the store by then."""

    snapshots: tuple[str, ...]


class EmbedIndependent(ModelRequest[EmbedIndependentAnswer], Struct, frozen=True, kw_only=True):
    """Add a snapshot of Scenes with independent attributes to each run, the same pairs for all.

    `steps` are those of the checkpoints, one a run, None for the newest; left out, the newest of all.
    """

    ask: ClassVar[str] = "embed_independent"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    steps: tuple[int | None, ...] = ()


class EvaluatedTask(Struct, frozen=True, kw_only=True):
    """A task that was measured of a run and stored."""

    run: int
    step: int
    dataset: str
    split: str
    task: str


class EvaluateAnswer(Struct, frozen=True, kw_only=True):
    """What was measured, and for `"run: task"` why something was not."""

    done: tuple[EvaluatedTask, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Evaluate(ModelRequest[EvaluateAnswer]):
    """Evaluate runs at tasks on a data set, and store the results with the runs."""

    ask: ClassVar[str] = "evaluate"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]  # All are tried on the same pairs.
    # Of the checkpoints, one a run, None for the newest; left out, the newest of all.
    steps: tuple[int | None, ...] = ()
    tasks: tuple[str, ...] = ()  # Names of `trainer.evaluation.benchmark.TASKS`; empty: the cheap ones.
    data: str = option("", "Data", "folder, table, tars, scenes, or cifar10; empty: the run's own data")
    data_of: str = option("", "Data of run", "number or name of another run: the data it was trained on")
    snapshot: bool = option(False, "Snapshot", "measure stored embeddings instead of embedding again")
    # One that the run was trained on has to be named.
    split: str = option("", "Split", "split to evaluate; empty: the held-out one")
    suite: str = option("", "Suite", "class names and templates, by name or a JSON file; empty: those of the data")
    # A sample is stored as a split of its own, `val-200-of-536`.
    most: int = option(0, "Max samples", "evaluate at most N pairs of whole pictures, a separate split; 0: all", low=0)
    most_train: int = option(5_000, "Max training samples", "most samples to train probes on", low=1)
    # Those of a snapshot are read wherever they were kept.
    features: bool = option(False, "Features", "probes and neighbors read features before the projection")
    shift: str = option("", "Shift", "a second data set; its drop in accuracy is part of robustness")
    explain: bool = option(
        False, "Explain", "say what each deviation from the published protocol costs zero_shot and retrieval"
    )


@dataclass(frozen=True)
class Example:
    """One pair of a data set that was read."""

    path: str  # Where its image lies, as text: a file, a member of a tar, a row of a table.
    item: str
    caption: str  # A plain text.
    label: str  # Its class, or empty.
    split: str


@dataclass(frozen=True, kw_only=True)
class ReadDataAnswer:
    """A data set as a run would read it; `trainer.data.survey.Survey` says what its fields are."""

    recognized: dict[str, Any]  # Kind and options of the data, as in `config.toml`, with its `label`.
    others: tuple[dict[str, Any], ...] = ()  # Other ways to read it, the likeliest first, in the same form.
    question: str = ""  # What the person must decide before anything is trained on it; empty if nothing is open.
    name: str
    opened: bool
    found: int  # How many pairs there are.
    used: int
    not_used: int  # How many of them are not used.
    odd: int  # How many were put right.
    pairs: Mapping[str, int]
    examples: tuple[Example, ...]
    columns: tuple[str, ...]
    passed_over: Mapping[str, int]
    classes: int
    captions: int = 0
    captions_repeat: bool
    pictures: tuple[str, ...]  # Image files to classify, with captions or without.
    bytes_needed: int
    bytes_free: int
    image_size: int
    report: str  # A file of JSON lines `[item, what, reason]`.
    trouble: str
    notes: tuple[str, ...] = ()
    split: str = ""


class ReadData(ModelRequest[ReadDataAnswer], Struct, frozen=True, kw_only=True):
    """Read the contents of a folder, table or tar and its problems.

    `data` are the kind and the options of a data set, as in `config.toml`; if it is empty, what lies at `path` is
    recognized. Pairs are listed; with `opened` every picture is prepared at `image_size`, as a run would do it.
    """

    ask: ClassVar[str] = "read_data"
    long: ClassVar[bool] = True
    path: str = ""
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    image_size: int = 64
    opened: bool = False


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The measured cost of a run."""

    steps: int  # Of the whole run.
    pairs: int  # To train on.
    step_s: float  # Seconds of one step, the median of those made.
    train_s: float  # Seconds of all steps; evaluations are not in it.
    memory_mib: float  # That the trainer takes.
    gpu_mib: float | None  # Of it on a GPU; None without one.
    disk_mib: float  # Of checkpoints and snapshots at the end.
    device: str
    # That a graphics card must have free, predicted; None where it is not known.
    predicted_gpu_mib: float | None = None


class MeasureRun(ModelRequest[RunCost], Struct, frozen=True, kw_only=True):
    """Measure the cost of a run that does not exist yet by a few real steps, without saving anything.

    `config` is the run as TOML.
    """

    ask: ClassVar[str] = "measure_run"
    long: ClassVar[bool] = True
    config: str
    steps: int = 3


class RankDifference(Struct, frozen=True, kw_only=True):
    """How far updates of several processes are from those of one."""

    equal: bool  # Whether they are the same to the bit.
    text: str  # The same in a sentence.


class CheckRanks(ModelRequest[RankDifference], Struct, frozen=True, kw_only=True):
    """Make 20 updates of a run that does not exist yet by several processes and by one, without saving anything.

    `config` is the run as TOML; `ranks` are 2 or more.
    """

    ask: ClassVar[str] = "check_ranks"
    long: ClassVar[bool] = True
    config: str
    ranks: int


class CheckDataAnswer(Struct, frozen=True, kw_only=True):
    """How many findings the report has, which lies in the first run's folder by then."""

    findings: int


class CheckData(ModelRequest[CheckDataAnswer], Struct, frozen=True, kw_only=True):
    """Find mispairs, near-duplicates, leaks and outliers in the data of the first run, with one or two runs.

    `steps` are those of the checkpoints, one a run, None for the newest.
    """

    ask: ClassVar[str] = "check_data"
    long: ClassVar[bool] = True
    runs: tuple[int, ...]
    steps: tuple[int | None, ...] = ()


class ReplayStepAnswer(Struct, frozen=True, kw_only=True):
    """The step, that of the checkpoint it began at, and that at which it was verified; it is stored by then."""

    step: int
    began: int
    verified: int


class ReplayStep(ModelRequest[ReplayStepAnswer], Struct, frozen=True, kw_only=True):
    """Make the update of a run that led to `step` again, verify it at the next checkpoint, and store it."""

    ask: ClassVar[str] = "replay_step"
    long: ClassVar[bool] = True
    run: int
    step: int


@dataclass(frozen=True, kw_only=True)
class CleanedList:
    """The lists that were written."""

    file: str  # Of the remaining training pairs.
    heldout: str  # Of all held-out pairs, the same as before.
    kept: int  # Training pairs written.
    left_out: int  # Training pairs that are flagged.
    captions_repeat: bool  # Whether two remaining pairs share a caption.


class WriteCleanedList(ModelRequest[CleanedList], Struct, frozen=True, kw_only=True):
    """Write the training pairs of a run without flagged ones, and the held-out pairs next to them, as tables.

    `file` ends in `.parquet` or `.csv`; empty: one in the workspace.
    """

    ask: ClassVar[str] = "write_cleaned_list"
    long: ClassVar[bool] = True
    run: int
    file: str = ""


class Cancel(ModelRequest[None], Struct, frozen=True, kw_only=True):
    """End the request `target`, whose response is an error of kind `cancelled`; it has no answer of its own."""

    ask: ClassVar[str] = "cancel"
    target: int


Question: TypeAlias = ModelRequest[Any]

QUESTIONS: Final[dict[str, type[Question]]] = {question.ask: question for question in ModelRequest.__subclasses__()}


@dataclass(frozen=True)
class Failure:
    """Why a request failed, in words for the window."""

    # One of `cancelled`, `bad_question`, `unknown_run`, `no_checkpoint`, `unreadable`, `memory`, `ended`, which
    # is the process, `bug`.
    kind: str
    message: str  # The cause, a sentence.
    next: str = ""  # What the person can do, a sentence; may be empty.

    @property
    def sentences(self) -> tuple[str, str]:
        """Cause and next step for a person; the text of a bug, which nobody wrote for them, is in the details alone."""
        return (BUG, "") if self.kind == "bug" else (self.message, self.next)

    @property
    def words(self) -> str:
        """Both sentences as one text."""
        return " ".join(self.sentences).strip()


def encode(number: int, question: Question) -> str:
    """Return the line (without line end) that sends `question` under the id `number`."""
    return json.dumps({"id": number, "ask": question.ask, **msgspec.to_builtins(question)})


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
    try:
        return int(number), msgspec.convert(document, QUESTIONS[ask])
    except (TypeError, msgspec.ValidationError) as error:
        raise MessageError(f"{ask}: {error}") from error


def decode_answer(question: ModelRequest[AnswerT], document: Any) -> AnswerT:
    """Return the answer to the question, of a line's `answer`.

    Raises:
        MessageError: It is no answer to this question.
    """
    try:
        return msgspec.convert(document, question.answer_class, str_keys=True)
    except msgspec.ValidationError as error:
        raise MessageError(f"{question.ask}: {error}") from error


PROGRESS_VARIABLE: Final = "CONTRASTIVE_EXPLORER_PROGRESS"
"""Environment variable of a command: with `json`, it tells its progress by lines of `progress_line`."""


def progress_line(number: int, share: float, note: str = "") -> str:
    """Return the line that reports the progress of request `number`, with `share` in [0, 1]."""
    return json.dumps({"id": number, "progress": share, "note": note})


def decode_progress(line: str) -> tuple[float, str] | None:
    """Return the share and the note of a line of `progress_line`; None for any other line."""
    try:
        document = json.loads(line)
        return float(document["progress"]), str(document["note"])
    except (ValueError, KeyError, TypeError):
        return None


def answer_line(number: int, answer: object) -> str:
    """Return the line with the response to request `number`: an answer of its question's class."""
    return json.dumps({"id": number, "answer": msgspec.to_builtins(answer, str_keys=True)})


def error_line(number: int, failure: Failure) -> str:
    """Return the line with the error of request `number`."""
    return json.dumps({"id": number, "error": msgspec.to_builtins(failure)})
