"""Data for evaluation, a run's own or others: a test split, and a training split for probes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_type_hints

import numpy as np
from jaxtyping import Bool, Int, UInt8
from PIL import Image

from trainer import config
from trainer.analysis.class_prompts import PLAIN_TEMPLATE
from trainer.analysis.distinct import in_order, numbered
from trainer.analysis.progress import Progress, between
from trainer.charts.matching import units_of
from trainer.data.caption_choices import CaptionChoice, read_choices
from trainer.data.content import pixel_digests
from trainer.data.dataset_index import folder_name, listing
from trainer.data.pairs import BATCH, DataError, Source
from trainer.data.prepared import digests_of, prepare
from trainer.data.splits import fingerprint, parts_of
from trainer.evaluation.caption_choice import Negatives
from trainer.evaluation.learned_pairs import LearnedPairs
from trainer.format_detection import recognize
from trainer.images import Preprocessing, read_picture
from trainer.prompt_suites import PromptSuite, learned_suite, prompt_suites, published_suite, suite_in
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

if TYPE_CHECKING:
    from trainer.store import Snapshot


TRIED: Final = ("test", "val", "validation", "heldout", "renderings")
"""Splits that are tried where none is named, the first that there is."""
OTHERS: Final = "others of the split"
_PROBE_SHARE: Final = 0.3
_MOST_EDGE: Final = 8_000
"""Of a picture of which a part is meant: it is not made smaller."""


@dataclass(frozen=True)
class TaskBatch:
    """Decoded pairs of a split; row i of every member is pair i. Pictures of equal pixels are one picture."""

    images: UInt8[np.ndarray, "n s s 3"]
    captions: list[str]
    labels: list[str]
    paths: list[str]
    whole: int  # Pairs of the split they were drawn from.
    # Hash of images, captions and labels, the same as that of a snapshot of these pairs; "" if unknown.
    fingerprint: str = ""
    # Of each image a text that is equal exactly where the pixels are; none where `images` has the pixels.
    content: list[str] = field(default_factory=list)
    negatives: Negatives | None = None  # False captions that come with the data; None: there are none.

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def content_of_pictures(self) -> list[str]:
        """Of each pair a text that is equal exactly where the pixels are; "" where that is not known."""
        return self.content if len(self.content) == len(self) else pixel_digests(self.images)

    def pictures(self, rows: Bool[np.ndarray, " n"], *, without: TaskBatch | None = None) -> Int[np.ndarray, " k"]:
        """Return the first of these rows of each distinct picture, ascending; none of a picture of `without`."""
        content = self.content_of_pictures
        others = set() if without is None else {*without.content_of_pictures} - {""}
        chosen = [row for row in np.flatnonzero(rows).tolist() if content[row] not in others]
        return np.array(chosen, np.int64)[in_order(numbered([content[row] for row in chosen]))[1]]

    @property
    def whole_pictures(self) -> int:
        """How many distinct pictures the split has; of a split that was sampled, by the share in the sample."""
        distinct = len(self.pictures(np.ones(len(self), bool)))
        return round(self.whole * distinct / max(len(self), 1))


@dataclass(frozen=True)
class TaskData:
    """The data of an evaluation."""

    dataset: str  # Its name, fit for a folder.
    split: str  # Name of the split that is tried.
    tried: TaskBatch
    train: TaskBatch  # Pairs that probes and neighbors learn from, none of them tried.
    suite: PromptSuite | None  # Classes and templates; None where the pairs have no classes.
    trained_on: int = 0  # How many of the tried pairs the model was trained on.
    source: str = "training pairs"  # What the pairs are that probes learn from, in words.

    @property
    def of_one_split(self) -> bool:
        """Whether the pairs to learn from are others of the split that is tried, not a training split of its own."""
        return self.source.endswith(OTHERS)

    def numbers_of(self, labels: Sequence[str]) -> Int[np.ndarray, " n"]:
        """Return the index of each label among the classes; -1 if missing."""
        number_of: dict[str, int] = {}
        for number, name in enumerate(self.suite.classes if self.suite else ()):
            number_of.setdefault(name, number)
        return np.array([number_of.get(label, -1) for label in labels], dtype=np.int64)


@dataclass(frozen=True)
class Listed:
    """The pairs of a data set before decoding."""

    dataset: str
    splits: dict[str, list[Source]]
    suite: PromptSuite | None
    root: Path | None
    pointed: str | None = None  # The split that was pointed at by itself.
    chosen: bool = False  # Whether it is the choice of a run, with the split that the run holds out.


@dataclass(frozen=True)
class ChosenPairs:
    """The pairs that an evaluation tries and those that probes learn from, not yet decoded or sampled."""

    listed: Listed
    split: str  # Name of the split that is tried.
    tried: list[Source]
    train: list[Source]
    whole: int  # How many pairs it has.
    suite: PromptSuite | None

    def split_of(self, most: int | None) -> str:
        """Return the name of the split for results of at most `most` tried pairs."""
        return _name_of_sample(self.split, min(len(self.tried), most or len(self.tried)), self.whole)

    def source_of(self, learned: int) -> str:
        """Return in words where the pairs come from that probes learn from, of which `learned` were read."""
        drawn = f" of {len(self.train):,}" if learned < len(self.train) else ""
        beside = self.split not in ("train", "sample") and "train" in self.listed.splits
        return f"{drawn} {'training pairs' if beside else OTHERS}".strip()


def load_task_data(
    data: str | config.Data,
    *,
    image_size: int,
    workspace_folder: Path,
    split: str | None = None,
    suite: str | None = None,
    most: int | None = None,
    most_train: int | None = None,
    learn: bool = True,
    learned: LearnedPairs | None = None,
    of_run: bool = False,
    progress: Progress,
    preprocessing: Preprocessing | None = None,
) -> TaskData:
    """Return the test and training pairs, decoded at `image_size`.

    Samples are drawn by a hash of each pair's name: every run and every machine tries the same ones.

    Args:
        data: A folder, table or tar; a data set that torchvision knows; or the choice of a run.
        image_size: Side of the decoded images.
        workspace_folder: Where decoded images are kept.
        split: Which to try; None: what the run holds out; of other data test, val or heldout, else a third.
        suite: Name of a prompt suite that comes with the application, or a file of one; None: that of the data.
        most: Try at most so many pairs; None: all.
        most_train: Learn from at most so many.
        learn: Whether pairs to learn from are wanted; without, a training split beside the tried one is not opened.
        learned: The pairs that the model was trained on; None: it was trained on none of them.
        of_run: Whether the model was trained on the training split of these data. Of what they hold out, pictures that
            are copies of trained ones by their pixels are counted then, and not refused.
        preprocessing: Of the published model that the images are for; None for towers of our own.

    Raises:
        DataError: There is no such data, split or suite, or the split holds pairs that the model was trained on and was
            not asked for by its name.
    """
    pairs = choose_pairs(
        data, workspace_folder, split=split, suite=suite, learn=learn, progress=between(progress, 0.0, 0.2)
    )
    listed, name, tried, train = pairs.listed, pairs.split, pairs.tried, pairs.train
    learned = LearnedPairs() if learned is None else learned
    if split is None:
        refuse_learned(listed.dataset, listed.splits, name, sum(learned.seen(tried)), len(tried))
    parts, seen = [], 0
    prepared_as: dict[str, Any] = {"size": image_size, "cache": workspace_folder / "cache"}
    prepared_as["preprocessing"] = preprocessing
    for sources, total, limit, at in ((tried, pairs.whole, most, 0.2), (train, len(train), most_train, 0.6)):
        chosen_sources = sampled(sources, limit)
        part = between(progress, at, at + 0.4)
        prepared = prepare(chosen_sources, progress=part, **prepared_as)
        rows = [chosen_sources[row] for row in prepared.rows]
        if sources is tried:
            seen = learned.count(rows, digests_of(chosen_sources, **prepared_as), **prepared_as)
            if split is None:
                refuse_learned(listed.dataset, listed.splits, name, seen, len(rows))
                seen = _copies(listed, chosen_sources, prepared_as) if of_run else 0
        parts.append(
            TaskBatch(
                prepared.images,
                [source.caption for source in rows],
                [source.label for source in rows],
                [str(source.path) for source in rows],
                total,
                fingerprint(prepared.fingerprint, rows),
                [digest.hex() for digest in digests_of(chosen_sources, **prepared_as)],
            )
        )
    if not len(parts[0]):
        raise DataError(f"No image of {listed.dataset} {name} can be read. See trainer data show.")
    source = pairs.source_of(len(parts[1]))
    return TaskData(listed.dataset, pairs.split_of(most), parts[0], parts[1], pairs.suite, seen, source)


def choose_pairs(
    data: str | config.Data,
    workspace_folder: Path,
    *,
    split: str | None,
    suite: str | None,
    learn: bool,
    progress: Progress,
) -> ChosenPairs:
    """Return the pairs of an evaluation, before any is decoded; the arguments are those of `load_task_data`."""
    listed = listed_splits(data, workspace_folder, progress, learn=learn or split == "train", split=split)
    name, tried, train = _parts(listed, split, learn=learn)
    total = len(tried) if name == "sample" else len(listed.splits[name])
    chosen = _chosen_suite(suite, listed, [*tried, *train])
    return ChosenPairs(listed, name, tried, train if learn else [], total, chosen)


def load_choices(
    path: Path,
    *,
    image_size: int,
    workspace_folder: Path,
    most: int | None,
    progress: Progress,
    preprocessing: Preprocessing | None = None,
) -> TaskData:
    """Return pictures with their captions and hard negatives, of a file or folder of `trainer.data.caption_choices`.

    Raises:
        DataError: It is none, or no image of it can be read.
    """
    choices = read_choices(path)
    crops = workspace_folder / "cache" / "crops"
    sources = [
        Source(
            _cropped(choice, crops), f"{number}/{choice.pair or number}", choice.caption, metadata={"row": f"{number}"}
        )
        for number, choice in enumerate(choices)
    ]
    tried_sources = sampled(sources, most)
    how: dict[str, Any] = {"size": image_size, "cache": workspace_folder / "cache", "preprocessing": preprocessing}
    prepared = prepare(tried_sources, progress=progress, **how)
    rows = [tried_sources[row] for row in prepared.rows]
    if not rows:
        raise DataError(f"No image of {path} can be read. The pictures are sought next to the file and in images/.")
    chosen = [choices[int(source.metadata["row"])] for source in rows]
    offered = [(row, choice.kind, text) for row, choice in enumerate(chosen) for text in choice.negatives]
    row, kind, caption = zip(*offered, strict=True)
    tried = TaskBatch(
        prepared.images,
        [source.caption for source in rows],
        [""] * len(rows),
        [str(source.path) for source in rows],
        len(sources),
        negatives=Negatives(np.array(row, np.int64), kind, caption, tuple(choice.pair for choice in chosen)),
    )
    nothing = TaskBatch(np.zeros((0, 0, 0, 3), np.uint8), [], [], [], 0)
    return TaskData(folder_name(path.stem), _name_of_sample("test", len(rows), len(choices)), tried, nothing, None)


def _cropped(choice: CaptionChoice, folder: Path) -> Path:
    """Return the file of a picture, or of the part of it that is meant, which is kept."""
    if choice.box is None:
        return choice.image
    name = hashlib.blake2b(f"{choice.image.resolve()} {choice.box}".encode(), digest_size=12).hexdigest()
    file = folder / f"{name}.png"
    if not file.is_file():
        left, top, right, bottom = choice.box
        pixels = read_picture(str(choice.image), _MOST_EDGE)[max(top, 0) : bottom, max(left, 0) : right]
        if not pixels.size:
            raise DataError(f"{choice.image} has nothing within {choice.box}. Repair the file that names this box.")
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, "PNG")
        confined.write(confined.make_folder(folder.parent, folder.name), file.name, content.getvalue())
    return file


def load_every_pair(
    data: str,
    *,
    split: str,
    image_size: int,
    workspace_folder: Path,
    progress: Progress,
    preprocessing: Preprocessing | None = None,
) -> TaskData:
    """Return all pairs of a data set as one split, decoded at `image_size`, whatever splits it has.

    Raises:
        DataError: There are no such data, or no image of them can be read.
    """
    listed = listed_splits(data, workspace_folder, between(progress, 0.0, 0.2))
    sources = [source for part in listed.splits.values() for source in part]
    how: dict[str, Any] = {"size": image_size, "cache": workspace_folder / "cache", "preprocessing": preprocessing}
    prepared = prepare(sources, progress=between(progress, 0.2, 1.0), **how)
    rows = [sources[row] for row in prepared.rows]
    if not rows:
        raise DataError(f"No image of {listed.dataset} can be read. See trainer data show.")
    tried = TaskBatch(
        cast("np.ndarray", prepared.images),
        [source.caption for source in rows],
        [source.label for source in rows],
        [str(source.path) for source in rows],
        len(sources),
        fingerprint(prepared.fingerprint, rows),
        [digest.hex() for digest in digests_of(sources, **how)],
    )
    nothing = TaskBatch(np.zeros((0, 0, 0, 3), np.uint8), [], [], [], 0)
    return TaskData(listed.dataset, split, tried, nothing, _chosen_suite(None, listed, sources))


def _copies(listed: Listed, tried: Sequence[Source], prepared_as: dict[str, Any]) -> int:
    """Return how many tried pictures have the pixels of a training picture; 0 where they are not known any more."""
    train = set(digests_of(listed.splits.get("train", []), **prepared_as))
    return sum(digest in train for digest in digests_of(tried, **prepared_as)) if train else 0


def refuse_learned(dataset: str, splits: Iterable[str], split: str, seen: int, tried: int) -> None:
    """Raise DataError if the run was trained on some of the pairs of a split."""
    if seen:
        others = ", ".join(name for name in splits if name != split)
        raise DataError(
            f"The split {split} of {dataset} holds {seen:,} pairs that the run was trained on, "
            f"of {tried:,}, copies among them. "
            f"Choose other data{f' or another split ({others})' if others else ''}, or ask for it by name: "
            f"--split {split}."
        )


def names_data_of(data: str, run_data: config.Data) -> bool:
    """Return whether a path or name refers to a run's data: its training or held-out data, or the folder of both."""
    if isinstance(run_data, config.Named | config.HubDataset):
        named = _named(data)
        return data == run_data.name or (
            isinstance(run_data, config.Named) and named is not None and named.name == run_data.name
        )
    paths = _real_paths(run_data)
    real = os.path.realpath(Path(data).expanduser())
    if real in paths:
        return True
    if not any(Path(path).is_relative_to(real) for path in paths):
        return False
    # What lies in a folder may be a table, or a folder of it, that recognizing the folder leads to.
    with contextlib.suppress(config.ConfigError):
        recognized = recognize(real)
        return type(recognized) is type(run_data) and _real_paths(recognized)[:1] == paths[:1]
    return False


def data_named(data: str) -> str | config.Data:
    """Return the choice that a word for data made here stands for, `scenes`; else the text itself."""
    is_scenes = data.lower() == config.Scenes.kind and not Path(data).expanduser().exists()
    return config.Scenes() if is_scenes else data


def _real_paths(data: config.Data) -> list[str]:
    """Return the paths of the pairs to train on and of those that are held out, as far as there are some."""
    paths = (getattr(data, name, "").strip() for name in ("path", "heldout_path"))
    return [os.path.realpath(Path(path).expanduser()) for path in paths if path]


def _in_memory(splits: Mapping[str, Sequence[Source]]) -> dict[str, list[Source]]:
    return {split: [*sources] for split, sources in splits.items()}


def listed_splits(
    data: str | config.Data, workspace_folder: Path, progress: Progress, *, learn: bool = True, split: str | None = None
) -> Listed:
    """Return the pairs of each split; for a run's data `train` and the held-out split or share.

    In a folder of folders of tars each folder is a split, as in CLIP_benchmark.

    Without `learn` the folder `train` is left out where there are others: listing large compressed tars takes long. Of
    Scenes only the pictures of `split` are drawn then; None: of the split that runs are judged by.

    Raises:
        DataError: There is no such data.
    """
    if not isinstance(data, str):
        needed = {} if learn else {"drawn": (split,) if split in data.heldout else data.heldout[:1]}
        listed = listing(data, workspace_folder, progress, **needed)
        return Listed(listed.name, _in_memory(parts_of(data, listed)), listed.suite, _root_of(data), chosen=True)
    path = Path(data).expanduser().absolute()
    if not path.exists() and (named := _named(data)) is not None:
        listed = listing(named, workspace_folder, progress)
        return Listed(listed.name, _in_memory(listed.splits), listed.suite, None)
    folders, pointed = _split_folders(path), None
    if not folders and path.is_dir() and _has_tars(path) and (path.parent / "classnames.txt").is_file():
        # One split of a data set, pointed at by itself: its siblings are still those that probes learn from.
        siblings = _split_folders(path.parent)
        folders = {path.name: path} | {name: at for name, at in siblings.items() if name == "train"}
        path, pointed = path.parent, path.name
    if not folders:
        try:
            listed = listing(recognize(str(path)), workspace_folder, progress)
        except config.ConfigError as error:
            raise DataError(str(error)) from error
        root = path if path.is_dir() else path.parent
        return Listed(listed.name, _in_memory(listed.splits), listed.suite, root)
    if not learn and len(folders) > 1:
        folders = {name: folder for name, folder in folders.items() if name != "train" or name == pointed}
    splits: dict[str, list[Source]] = {}
    for name, folder in folders.items():
        splits[name] = [*listing(config.Shards(path=str(folder)), workspace_folder, progress).splits["train"]]
    return Listed(folder_name(path.name), splits, None, path, pointed)


def _split_folders(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {part.name: part for part in sorted(folder.iterdir()) if part.is_dir() and _has_tars(part)}


def _has_tars(folder: Path) -> bool:
    return any(file.name.endswith((".tar", ".tar.gz", ".tgz")) for file in folder.iterdir())


def _named(name: str) -> config.Named | None:
    standard_names = {candidate.lower(): candidate for candidate in get_args(get_type_hints(config.Named)["name"])}
    standard_name = standard_names.get(name.lower().replace("-", ""))
    return replace(config.Named(), name=standard_name) if standard_name else None


def _root_of(data: config.Data) -> Path | None:
    path = getattr(data, "path", "").partition("::")[0]
    return Path(path).expanduser() if path else None


def _parts(listed: Listed, split: str | None, *, learn: bool) -> tuple[str, list[Source], list[Source]]:
    """Return the test split's name, its pairs, and the training pairs."""
    splits = listed.splits
    split = split or listed.pointed or _default_split(listed)
    if split not in (None, "sample") and split not in splits:
        raise DataError(f"{listed.dataset} has no split {split}; choose one of {', '.join(splits)}.")
    if split not in (None, "sample", "train") and "train" in splits:
        return split, splits[split], splits["train"]
    if split not in (None, "sample") and not learn:
        return split, splits[split], []
    rows = splits[next(iter(splits)) if split in (None, "sample") else split]
    held = [source for source in rows if _place(source) < _PROBE_SHARE]
    if not held or len(held) == len(rows):
        held = rows[::3]
    chosen = {id(source) for source in held}
    others = [source for source in rows if id(source) not in chosen]
    return split or "sample", held, others


def _default_split(listed: Listed) -> str | None:
    """Return the first held-out split of a run's data, or the usual test split of other data."""
    others = [name for name in listed.splits if name != "train"]
    if listed.chosen and others:
        return others[0]
    split = next((name for name in TRIED if name in listed.splits), None)
    return others[0] if split is None and len(listed.splits) > 1 else split


def sampled(sources: list[Source], most: int | None) -> list[Source]:
    """Return the pairs of the pictures with the smallest hashes, in original order, `most` pairs at most.

    A picture has all of its captions among them or none: each of its pairs has the hash of its path.
    """
    if most is None or len(sources) <= most:
        return sources
    hashes = [_place(source) for source in sources]
    ordered = sorted(hashes)
    last, following = ordered[most - 1], ordered[most]
    whole_groups = [s for s, hashed in zip(sources, hashes, strict=True) if hashed < last or hashed == last < following]
    # Empty where one picture has more captions than pairs are wanted.
    return whole_groups or [source for source, hashed in zip(sources, hashes, strict=True) if hashed == last][:most]


def _name_of_sample(split: str, n_chosen: int, total: int) -> str:
    """Return a separate split name for a sample, so that results of the whole split are not overwritten."""
    return split if total <= n_chosen else f"{split}-{n_chosen}-of-{total}"


def _place(source: Source) -> float:
    digest = hashlib.blake2b(f"evaluate {source.relative}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def _chosen_suite(name: str | None, listed: Listed, sources: Sequence[Source]) -> PromptSuite | None:
    """Return classes and templates: the requested suite, else files next to the data, else published, else its own."""
    labels = {source.label for source in sources} - {""}
    suites = prompt_suites()
    if name is not None:
        path = untrusted_files.expanded(name)
        if name not in suites and not path.is_file():
            raise DataError(f"There is no prompt suite or file {name!r}; choose one of {', '.join(suites)}.")
        suite = suites[name] if name in suites else suite_in(path)
        if labels and not labels & set(suite.classes):
            raise DataError(f"No class of {listed.dataset} is in the prompt suite {name}. Choose another suite.")
        return suite
    if listed.chosen and listed.suite is not None:
        # The question that training asks, so that both numbers are of one question.
        return listed.suite
    if len(labels) < 2:
        return None
    classes = _lines(listed.root, "classnames.txt")
    templates = tuple(
        line.replace("{c}", "{}") for line in _lines(listed.root, "zeroshot_classification_templates.txt")
    )
    published = published_suite(listed.dataset)
    listed_suite = listed.suite or learned_suite(
        listed.dataset, [source.caption for source in sources], [source.label for source in sources]
    )
    if labels <= set(classes):
        templates = templates or (published.templates if published else ())
        worded: dict[str, Any] = {"templates": templates} if templates else {}
        if not templates and listed_suite is not None:
            worded = {"templates": listed_suite.templates, "worded": listed_suite.worded}
        made = PromptSuite(listed.dataset, classes, (PLAIN_TEMPLATE,), f"classnames.txt of {listed.dataset}", "")
        return replace(made, **worded)
    if published is not None and labels <= set(published.classes):
        return published
    return listed_suite


def _lines(root: Path | None, name: str) -> tuple[str, ...]:
    for folder in (root, root.parent) if root is not None else ():
        try:
            text = untrusted_files.read_text(folder / name)
        except (OSError, UnicodeDecodeError):
            continue
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    return ()


def snapshot_data(
    snapshot: Snapshot, *, suite: str | None = None, run_suite: PromptSuite | None = None
) -> tuple[TaskData, TaskData, Int[np.ndarray, " a"], Int[np.ndarray, " b"]]:
    """Return a snapshot's pairs, a test part with the rest for training, and the rows of both.

    Args:
        suite: Name of a prompt suite that comes with the application; None: `run_suite`.
        run_suite: Classes and templates of the whole data set; without, the classes are those that the snapshot has.

    Raises:
        DataError: There is no such suite.
    """
    items = snapshot.items
    rows = [
        Source(Path(path), path, caption, label)
        for path, caption, label in zip(items.path, items.caption, items.label, strict=True)
    ]
    run_suite = run_suite or learned_suite(snapshot.dataset, items.caption, items.label)
    chosen = _chosen_suite(suite, Listed(snapshot.dataset, {}, run_suite, None, chosen=True), rows)
    units = units_of(snapshot)
    images = units.picture
    # A picture is tried or learned from, whatever the names of its rows.
    held = np.array([_place(row) < _PROBE_SHARE for row in rows], bool)[units.rows("picture")][images]
    tried, train = np.flatnonzero(held), np.flatnonzero(~held)

    def part(selected: np.ndarray) -> TaskBatch:
        columns = ([column[row] for row in selected.tolist()] for column in (items.caption, items.label, items.path))
        captions, labels, paths = columns
        content = [f"{images[row]}" for row in selected.tolist()]
        return TaskBatch(
            np.zeros((0, 0, 0, 3), np.uint8), captions, labels, paths, whole=len(selected), content=content
        )

    nothing = part(tried[:0])
    every = part(np.arange(len(rows)))
    every = every if snapshot.sampled else replace(every, fingerprint=snapshot.fingerprint)
    seen = len(rows) if snapshot.split == BATCH else 0
    every_pair = TaskData(snapshot.dataset, snapshot.split, every, nothing, chosen, seen)
    seen = len(tried) if seen else 0
    parts = TaskData(snapshot.dataset, snapshot.split, part(tried), part(train), chosen, seen, OTHERS)
    return every_pair, parts, tried, train
