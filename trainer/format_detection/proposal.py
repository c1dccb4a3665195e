"""Detect what a path holds: images with captions, tables, class folders, tars; or a question for the user."""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from trainer.config import (
    TORCHVISION_FILES,
    TORCHVISION_LABELS,
    ClassFolder,
    ConfigError,
    Data,
    Folder,
    HubDataset,
    Named,
    Shards,
    Table,
)
from trainer.format_detection.class_lists import is_class_column, with_class_list
from trainer.format_detection.readme import default_configuration
from trainer.format_detection.split_files import with_lists
from trainer.format_detection.splits import KEYWORDS, Part, heldout_of, is_split, part_of, without_keyword
from trainer.format_detection.tables import (
    CAPTIONS,
    IMAGES,
    NUMBERED_CAPTION,
    OF_ENCODED,
    TABLES,
    caption_beside,
    column_of_classes,
    columns_of,
    columns_of_pictures,
    columns_of_words,
    first_images,
    form_of,
    image_root,
    is_encoded,
    is_numbered,
    native_names,
    omitted_ending,
    subfolders,
)
from trainer.format_detection.unread import TABLES as UNREAD_TABLES
from trainer.format_detection.unread import UNREAD, next_step, of_pixels, unread_among
from trainer.images import SUFFIXES
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.wandb_chart import OF_RUNS, is_table_of_runs
from trainer.untrusted.shell import quote
from trainer.untrusted.texts import ending_of, plain_name

TARS: Final = (".tar", ".tar.gz", ".tgz")
CAPTION_SUFFIXES: Final = (".txt", ".caption")
"""Of a text beside a picture, the likeliest first; kohya's sd-scripts look for `.caption` unless told otherwise."""

_LOOKED_AT: Final = 2_000
"""Files of a folder that are looked at; more would keep a person waiting."""
_WALKED: Final = 50
"""Folders in which pictures are looked for to know whether there are any."""
_FEW: Final = 8
"""Texts next to pictures that are read."""
_MOST_TABLES: Final = 60
"""Files that are tried as a table of captions."""
_DEEPEST: Final = 3
"""Folders within each other that are descended into where each is the only one."""
_MOST_SIBLINGS: Final = 10_000
"""Files beside a table among which those of its other parts are sought."""

NO_CLASS: Final = frozenset(
    (
        *("images", "image", "imgs", "img", "jpg", "jpgs", "jpeg", "png", "pngs"),
        *("data", "dataset", "train", "training", "test", "val", "valid", "validation", "dev"),
        *("photos", "pictures", "pics", "raw", "sprites", "thumbnails", "thumbs", "annotations", "annotation"),
        *("labels", "masks", "hires", "files", "all"),
    )
)
"""Names of folders that describe how images are stored, not what they show."""
_FOLD: Final = re.compile(
    r"(.*[ _-])?(fold|split|part|batch|chunk)[ _-]?\d+|(images?|imgs?|data|train|test|val)[ _-]?\d+", re.IGNORECASE
)
_COPY: Final = re.compile(r"[ _-]?\d+$")
_OF_SOMEONE: Final = re.compile(
    r"(?!n\d{8}$)[a-z]{0,8}[_-]?[1-9]\d{5,}|(patient|subject|person|case)[_-]?\d+", re.IGNORECASE
)
"""Names of folders of a patient, a person or a recording; WordNet's numbers are of classes."""
_TEXTS: Final = frozenset(
    (
        *(".txt", ".md", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xml", ".html"),
        *(".pdf", ".mat", ".npy", ".npz", ".pkl", ".py", ".ipynb", ".log", ".zip", ".gz"),
        *(".toml", ".yaml", ".yml", ".token", ".docx", ".db", ".meta", ".bin", ".dat"),
    )
)
"""Endings of what is no picture and no film."""
_LIKELY: Final = (
    r"metadata\.(jsonl|csv|parquet)",
    r"captions_train.*\.json",
    r"captions.*\.json",
    r"captions?\.(txt|csv|tsv|jsonl|json)",
    r"results\.csv",
    r"(?!.*lemma).*(\.token\.txt|\.token|captions?\.txt)|flickr\d+k(?!.*lemma).*\.txt",
    rf"[^.].*({'|'.join(map(re.escape, TABLES))})",
)
"""Files of captions, the likeliest first."""
_OF_TEXTS: Final = re.compile("text|caption", re.IGNORECASE)
_FIFTYONE: Final = "data"
_OF_FIFTYONE: Final = (
    "labels.json next to a folder data is how FiftyOne exports labels, which are not read, and data names no class. "
    "Export the data set as ImageClassificationDirectoryTree, which is read."
)
_OF_BOXES: Final = (
    "The texts next to the images hold a class and coordinates a line, as YOLO writes objects, and no captions."
)
_BOX: Final = re.compile(r"\d+(\s+-?\d*\.?\d+(e-?\d+)?){4,}")
CLASSES_BY: Final = {"folders": "folders", "names": "file names", "list": "class list"}
NAMED: Final = re.compile(r"(?P<name>.*[^\W\d_].*?)[_\- .]+\d+")
"""A file name of a class and a number."""
_ID: Final = re.compile(r"(^|_)(id|key|uid)$|Id$", re.IGNORECASE)


@dataclass(frozen=True)
class Proposal:
    """The suggested way to read a path."""

    data: Data
    # Why the person must decide before anything is trained on it; a sentence, empty if nothing is open.
    question: str = ""
    others: tuple[Data, ...] = ()  # Other ways, the likeliest first.


def propose(path: str | Path) -> Proposal:
    """Suggest how to read a folder, table or tar by names and layout, without opening images.

    Raises:
        ConfigError: It is not there, or of no known kind.
    """
    absolute = untrusted_files.expanded(str(path)).absolute()
    try:
        proposal = _with_classes(absolute, _at(absolute, str(path)))
        return replace(proposal, data=with_lists(absolute, proposal.data))
    except OSError as error:
        raise ConfigError(
            f"{absolute} could not be examined: {error.strerror or error}. Check its permissions, or choose another."
        ) from error


def recognize(path: str | Path) -> Data:
    """Return only the most likely way.

    Raises:
        ConfigError: As `propose`.
    """
    return propose(path).data


def answered(path: str | Path, changes: Sequence[str]) -> Data:
    """Return the data at a path for a command.

    Raises:
        ConfigError: As `propose`, or a question is open.
    """
    proposal = propose(path)
    if question := open_question(proposal, changes):
        raise ConfigError(question)
    return proposal.data


def open_question(proposal: Proposal, changes: Sequence[str]) -> str:
    """Return the question for the user and its command-line answers; empty if `--set data=KIND` answers it."""
    if not proposal.question or any(change.partition("=")[0].strip() == "data" for change in changes):
        return ""
    first = {Folder: "the texts next to them", Table: _captions_of(proposal.data)}
    ways = [*_ways(proposal), (first.get(type(proposal.data), "these folders as classes"), proposal.data)]
    return f"{proposal.question} Choose {_by_command(proposal, ways)}."


def other_ways(proposal: Proposal) -> str:
    """Return a sentence with other ways to read it; empty if there are none."""
    ways = list(_ways(proposal))
    return f"Or choose {_by_command(proposal, ways)}." if ways else ""


def _by_command(proposal: Proposal, ways: Sequence[tuple[str, Data]]) -> str:
    return ", or ".join(f"{label} by {_command(proposal.data, other)}" for label, other in ways)


def _ways(proposal: Proposal) -> Iterator[tuple[str, Data]]:
    """Yield the choices of the user, with descriptions."""
    for other in proposal.others:
        if isinstance(other, Named):
            yield other.name, other
        elif isinstance(other, Folder):
            yield "file names as captions", other
        elif isinstance(other, ClassFolder):
            yield f"classes by {CLASSES_BY[other.class_from]}", other
        else:
            yield _captions_of(other), other


def _captions_of(table: Data) -> str:
    file = Path(getattr(table, "path", ""))
    return f"the captions of {file.parent.name if file.suffix == '.parquet' else file.name}"


def _command(first: Data, other: Data) -> str:
    """Return the arguments to add to a command to read it this way."""
    if isinstance(other, Table):
        parts = other.path.endswith(".parquet") and other.heldout_path
        return f"--data {Path(other.path).parent if parts else other.path}"
    fields = {name: value for name, value in vars(other).items() if value != getattr(type(other)(), name)}
    options = [f"--set data.{name}={value}" for name, value in fields.items() if value != getattr(first, name, None)]
    return " ".join([f"--set data={other.kind}", *options])


def _at(path: Path, spec: str) -> Proposal:
    if path.is_dir():
        return _folder(path)
    if path.name.lower().endswith(TARS):
        return Proposal(Shards(path=str(path)))
    if "*" in path.name and path.suffix.lower() == ".parquet":
        return Proposal(_table(path))
    if "{" in path.name or "::" in spec:
        return Proposal(Shards(path=spec))
    if not os.path.exists(path):
        raise ConfigError(f"{path} does not exist. Choose a folder, a table or a tar.")
    if path.suffix.lower() == ".npz":
        return Proposal(Table(path=str(path), image_column="images", caption_column="labels"))
    if ending_of(path) in TABLES or is_table(path):
        return Proposal(_table(path))
    if (listed := with_class_list(path, ClassFolder(path=str(path.parent)), is_open=True)) is not None:
        return Proposal(listed)
    if step := next_step(path.name):
        raise ConfigError(f"{untrusted_files.spelled(path.name)} is not read. {step}")
    raise ConfigError(
        f"{path.name} is not a recognized data set: choose a folder of images, a CSV, TSV, JSON, JSONL or Parquet "
        "table, a tar in the WebDataset layout, or a .npz of MedMNIST."
    )


def is_table(file: Path) -> bool:
    """Return whether a file with another suffix is a table by its first line."""
    if file.suffix.lower() not in (".txt", ".token", ".psv", ".dat"):
        return False
    return form_of(file) == "tokens" or set(_chosen(columns_of(file))) != {""}


def _with_classes(chosen: Path, proposal: Proposal) -> Proposal:
    """Return the proposal with the list that names the class of its pictures, where folders do not."""
    data = proposal.data
    if isinstance(data, Table):
        # Captions tell more than classes.
        file, columns = Path(data.path), columns_of(Path(data.path))
        is_named = data.caption_column in columns and not is_class_column(data.caption_column)
        if data.heldout_path or (
            is_named and (not chosen.is_file() or any(" " in text for text in _captions_in(file)))
        ):
            return proposal
    elif not isinstance(data, ClassFolder) and not _is_flat(proposal):
        return proposal
    elif proposal.question and (sets := _of_torchvision(chosen, TORCHVISION_LABELS)):
        return Proposal(sets[0])
    is_open = bool(proposal.question) or not isinstance(data, ClassFolder)
    listed = with_class_list(chosen, data, is_open=is_open)
    if listed is None:
        return proposal
    if listed.class_from != "list":
        return replace(proposal, data=listed)
    others = tuple(other for other in (data, *proposal.others) if not (is_open and isinstance(other, ClassFolder)))
    return Proposal(listed, others=others)


def _captions_in(file: Path) -> list[str]:
    """Return the first captions of a file of lines without names of columns; of a table one that is none."""
    is_of_lines = file.suffix.lower() == ".txt" and form_of(file) == "tokens" and not is_numbered(file)
    return first_images(file, "caption") if is_of_lines else [" "]


# -- folders -------------------------------------------------------------------------------------------------------


class _Look(Struct, frozen=True):
    """The contents of a folder, according to its first files."""

    beside: int  # Pictures and films in the folder itself.
    inside: int  # The same in folders of it.
    texts: int  # Files .txt beside a picture of their name, at any depth.
    first_texts: tuple[Path, ...]
    folders: tuple[str, ...]  # Names of its folders that have pictures or films at any depth.

    @property
    def captioned(self) -> bool:
        """Whether there are captions next to the images."""
        return self.texts > 0 and 2 * self.texts >= self.beside + self.inside

    @property
    def per_class(self) -> bool:
        """Whether the folders are classes, ignoring a license or stray images."""
        return self.beside <= self.inside / 10 and 2 * self.texts < self.inside


def _folder(root: Path, depth: int = 0) -> Proposal:
    entries = {entry.name: entry for entry in root.iterdir()}
    if "dataset_dict.json" in entries or {"dataset_info.json", "state.json"} <= entries.keys():
        return Proposal(_saved(root))
    if _has_tars(root, entries):
        return Proposal(Shards(path=str(root)))
    look = _look(root, entries)
    shards = _parquet_folder(root, entries)
    # Of the files that img2dataset wrote, its table has the ids alone, and pictures of each part lie in another folder.
    if shards and not (look.captioned and first_images(Path(shards.path), shards.image_column)):
        return Proposal(shards)
    if configurations := _configurations(root):
        return configurations
    if not look.beside + look.inside and (sets := _of_torchvision(root)):
        return Proposal(sets[0], others=tuple(sets[1:]))
    if not look.beside + look.inside:
        for addresses in filter(_is_of_addresses, _tables_near(root, entries)):
            return Proposal(_table(addresses))
        if unread := _unread(root, entries):
            raise ConfigError(f"{root} holds no pictures that could be read: {unread}")
        for file in _tables_near(root, entries):
            columns = columns_of(file)
            if step := OF_ENCODED if any(map(is_encoded, columns)) else of_pixels(columns):
                raise ConfigError(f"{root} holds a table of pictures, {untrusted_files.spelled(file.name)!r}. {step}")
        if depth < _DEEPEST and len(folders := subfolders(root)) == 1:
            return _folder(folders[0], depth + 1)
    if not look.captioned:
        pictures = _without_captions(root, entries, look)
        if text_tree(root):
            by_folders = (pictures.data,) if isinstance(pictures.data, ClassFolder) else ()
            return Proposal(Folder(path=str(root), lines="each"), others=by_folders)
        if table := _table_beside(root, entries):
            is_class = isinstance(pictures.data, ClassFolder) and table.caption_column.lower() == "label"
            is_guess = isinstance(pictures.data, ClassFolder) and _chosen(columns_of(Path(table.path)))[1] == ""
            if is_guess and not pictures.question:
                return replace(pictures, others=(table, *pictures.others))
            if not is_class:
                return Proposal(table, others=(pictures.data,))
        if look.beside == 0 and len(look.folders) == 1 and depth < _DEEPEST:
            inner = _folder(entries[look.folders[0]], depth + 1)
            if not _is_flat(inner):
                return _with_unclear_table(inner, root, entries) if inner.question else inner
        if "labels.json" in entries and _FIFTYONE in look.folders:
            return replace(pictures, question=_OF_FIFTYONE)
        return _with_unclear_table(pictures, root, entries)
    if _are_boxes(look.first_texts):
        pictures = _without_captions(root, entries, look)
        by_folders = (pictures.data,) if isinstance(pictures.data, ClassFolder) else ()
        return Proposal(Folder(path=str(root)), _OF_BOXES, (*by_folders, *pictures.others))
    return Proposal(ClassFolder(path=str(root)) if look.per_class else Folder(path=str(root)))


def text_tree(root: Path) -> tuple[Path, Path] | None:
    """Return a folder of pictures and one with texts of the same paths, as of Reed's captions of CUB; None without."""
    folders = subfolders(root)
    for texts in (folder for folder in folders if _OF_TEXTS.search(folder.name)):
        others = [folder for folder in folders if folder != texts]
        for pictures in (*others, *(inner for folder in others for inner in subfolders(folder))):
            walked = itertools.islice(untrusted_files.walk(pictures), _WALKED)
            files = (Path(at, name) for at, _, names in walked for name in names if _is_shown(name))
            few = (texts / file.relative_to(pictures).with_suffix(".txt") for file in itertools.islice(files, _FEW))
            if any(file.is_file() for file in few):
                return pictures, texts
    return None


def _of_torchvision(root: Path, files: Mapping[str, str] = TORCHVISION_FILES) -> list[Named]:
    """Return the data sets of torchvision whose files lie in a folder, or of which it is a part."""
    return [
        Named(name=name, root=str(above))  # type: ignore[arg-type]  # a name of the mapping
        for name, file in files.items()
        for above in (root, *list(root.parents)[:2])
        if (above / file).is_file() and (above / file).is_relative_to(root)
    ]


def _are_boxes(files: Sequence[Path]) -> bool:
    """Return whether texts next to pictures hold objects as YOLO writes them: lines of a class and coordinates."""
    lines: list[str] = []
    for file in files:
        with untrusted_files.open_ordinary(file) as opened:
            lines += opened.read(1 << 12).decode("utf-8", "replace").split("\n")[:_FEW]
    objects = [line for line in map(str.strip, lines) if line]
    return bool(objects) and all(map(_BOX.fullmatch, objects))


def _saved(folder: Path) -> HubDataset:
    """Return what `save_to_disk` of `datasets` wrote, with its parts and columns as its files name them."""
    listed = _json_of(folder / "dataset_dict.json").get("splits")
    listed = listed if isinstance(listed, list) else []
    names = [name for name in listed if isinstance(name, str) and name == Path(name).name]
    data = HubDataset(name=str(folder))
    parts = {part: name for name in reversed(names) if (part := part_of(name))}
    if is_split(parts):
        data = replace(data, split=parts["train"], heldout_split=parts[heldout_of(parts)])
    elif names and data.split not in names:
        data = replace(data, split=names[0])
    features = _json_of((folder / data.split if names else folder) / "dataset_info.json").get("features")
    types = {
        str(name): str(feature.get("_type")) if isinstance(feature, dict) else "List"
        for name, feature in (features.items() if isinstance(features, dict) else ())
    }
    image, caption = _chosen(list(types))
    of_lists = (name for name, feature in features.items() if "Image" in json.dumps(feature)) if features else ()
    image = next((name for name, kind in types.items() if kind == "Image"), next(iter(of_lists), image))
    caption = caption or next((name for name, kind in types.items() if kind == "ClassLabel"), "")
    return replace(data, image_column=image or data.image_column, caption_column=caption or data.caption_column)


def _json_of(file: Path) -> dict[str, Any]:
    """Return an object of a file; empty if there is none."""
    try:
        content = json.loads(untrusted_files.read_text(file))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_flat(proposal: Proposal) -> bool:
    """Return whether it is a flat folder of images without captions, not worth descending into."""
    return isinstance(proposal.data, Folder) and bool(proposal.others)


def _has_tars(root: Path, entries: Mapping[str, Path]) -> bool:
    """Return whether the folder or its splits contain tars, other than archives already unpacked there."""
    parts = [entry for name, entry in entries.items() if part_of(name) and entry.is_dir()]
    names = [*entries, *(file.name for folder in parts for file in folder.iterdir())]
    tars = [name for name in names if name.lower().endswith(TARS)]
    if not tars:
        return bool(tar_folders(root))
    return any(not (root / re.sub(r"\.(tar(\.gz)?|tgz)$", "", name, flags=re.IGNORECASE)).is_dir() for name in tars)


def tar_folders(root: Path) -> list[Path]:
    """Return the folders in a folder that hold tars, such as `00/` and `01/`; none where pictures lie in any."""
    listed = {folder: [name.lower() for name in os.listdir(folder)] for folder in subfolders(root)}
    with_tars = [folder for folder, names in listed.items() if any(name.endswith(TARS) for name in names)]
    has_pictures = any(
        name.lower().endswith(tuple(SUFFIXES)) for names in (os.listdir(root), *listed.values()) for name in names
    )
    return [] if has_pictures else with_tars


def _look(root: Path, entries: Mapping[str, Path]) -> _Look:
    beside = inside = texts = 0
    first_texts: list[Path] = []
    for number, (folder, _, files) in enumerate(untrusted_files.walk(root)):
        names = [name for name in files if not name.startswith(".")]
        stems = [stem for stem, _ in map(os.path.splitext, filter(_is_shown, names))]
        count, distinct = len(stems), {*stems, *filter(_is_shown, names)}
        captions = [name for name in names if os.path.splitext(name)[1].lower() in CAPTION_SUFFIXES]
        captions = [name for name in captions if os.path.splitext(name)[0] in distinct]
        texts += len({os.path.splitext(name)[0] for name in captions})
        first_texts += (Path(folder, name) for name in captions[: _FEW - len(first_texts)])
        if Path(folder) == root:
            beside += count
        else:
            inside += count
        if texts + inside + beside > _LOOKED_AT or number > _LOOKED_AT:
            break
    names = sorted(name for name, entry in entries.items() if not untrusted_files.is_hidden(name) and entry.is_dir())
    with_pictures = tuple(name for name in names if _has_shown(entries[name]))
    return _Look(beside, inside, texts, tuple(first_texts), with_pictures)


def _is_shown(name: str) -> bool:
    """Return whether a file may be an image or a video."""
    ending = os.path.splitext(name)[1].lower()
    return bool(ending) and ending not in _TEXTS and not next_step(name)


def _has_shown(folder: Path) -> bool:
    walked = (files for _, _, files in itertools.islice(untrusted_files.walk(folder), _WALKED))
    return any(_is_shown(name) for files in walked for name in files if not name.startswith("."))


def _without_captions(root: Path, entries: Mapping[str, Path], look: _Look) -> Proposal:
    """Suggest how to read images without captions: by classes, by names, or with a question."""
    if pets := _pets(root, entries):
        return Proposal(pets)
    if not look.per_class:
        by_names = _by_names(root, [name for name in entries if _is_shown(name)])
        return Proposal(Folder(path=str(root)), others=by_names)
    classes, where = look.folders, root
    if is_split({part_of(name) for name in look.folders}):
        where = root / next(name for name in look.folders if part_of(name) == "train")
        if (where / where.name).is_dir() and len(subfolders(where)) == 1:
            where /= where.name  # seg_train/seg_train, as Kaggle packs folders
        classes = tuple(folder.name for folder in subfolders(where))
        if not classes:
            return Proposal(Folder(path=str(root)), others=_by_names(root, list(filter(_is_shown, os.listdir(where)))))
    question = _about(root, where, classes)
    data = ClassFolder(path=str(root))
    if not question:
        return Proposal(data)
    few = (name for folder in classes[:3] for name in sorted(os.listdir(where / folder))[:_LOOKED_AT])
    return Proposal(data, question, _by_names(root, list(few)))


def _about(root: Path, inner: Path, classes: Sequence[str]) -> str:
    """Return a remark on the folders in one as classes; empty if there is none."""
    name = untrusted_files.spelled(root.name)
    names = [repr(untrusted_files.spelled(folder)) for folder in classes]
    if len(classes) == 1:
        return (
            f"All images of {name} lie in one folder, {names[0]}: a single class, so there is nothing to distinguish."
        )
    reason = _why_no_classes(inner, classes, names) if classes else ""
    return reason and f"The folders of {name} would be its classes, and {reason}"


def _why_no_classes(root: Path, classes: Sequence[str], names: Sequence[str]) -> str:
    """Return why folders are no classes, as the end of a sentence; empty if they may be."""
    if all(map(_OF_SOMEONE.fullmatch, classes)):
        return f"numbers such as {names[0]} rather say of whom pictures are than what they show."
    stems = {_COPY.sub("", folder) for folder in classes}
    are_copies = len(stems) == 1 and stems <= {*classes}  # VG_100K and VG_100K_2
    is_odd = [are_copies or folder.lower() in NO_CLASS or bool(_FOLD.fullmatch(folder)) for folder in classes]
    if 2 * sum(is_odd) >= len(classes):
        odd = ", ".join(list(itertools.compress(names, is_odd))[:4])
        return f"{odd} describe how images are stored, not what they show."
    first = root / classes[0]
    chosen = f"One of them is read by --data {quote(str(first))}."
    # Domains, as of Office-Home and PACS.
    inner = [{folder.name for folder in subfolders(root / name)} for name in classes[:_FEW]]
    shared = sorted(set.intersection(*inner))
    if len(shared) > 1 and 2 * len(shared) >= max(map(len, inner)) and not any(map(part_of, shared)):
        named = ", ".join(repr(untrusted_files.spelled(name)) for name in shared[:3])
        return f"all of them hold the folders {named}, which rather are. {chosen}"
    table = _table_beside(first, {entry.name: entry for entry in first.iterdir()})
    if table is None or is_class_column(table.caption_column):
        return ""
    # ROCO has captions in each of its two folders.
    return f"{untrusted_files.spelled(Path(table.path).name)!r} in {names[0]} holds captions. {chosen}"


def _by_names(root: Path, files: Sequence[str]) -> tuple[Data, ...]:
    """Return data with captions from image names, or classes if they are a name and a number."""
    stems = [stem for stem, ending in map(os.path.splitext, files) if ending.lower() in SUFFIXES]
    named = [match["name"].lower() for stem in stems if (match := NAMED.fullmatch(stem))]
    names = Folder(path=str(root), captions="names")
    if len(named) == len(stems) and 2 <= len(set(named)) <= len(named) / 2:
        return ClassFolder(path=str(root), class_from="names"), names
    return (names,)


def _pets(root: Path, entries: Mapping[str, Path]) -> ClassFolder | None:
    """Return the Oxford pets layout: `images/Breed_name_12.jpg`, with lists in `annotations/`."""
    images, lists = entries.get("images"), entries.get("annotations")
    if images is None or lists is None or not images.is_dir() or not (lists / "trainval.txt").is_file():
        return None
    few = sorted(itertools.islice((name for name in os.listdir(images) if _is_shown(name)), _LOOKED_AT))
    if not few or sum(bool(NAMED.fullmatch(Path(name).stem)) for name in few) < 0.9 * len(few):
        return None
    return ClassFolder(path=str(images), class_from="names")


# -- tables --------------------------------------------------------------------------------------------------------


def _chosen(columns: Sequence[str]) -> tuple[str, str]:
    """Return the image and the caption column by name; empty if there is none."""
    lowered = {name.lower(): name for name in reversed(columns)}
    image = next((lowered[name] for name in IMAGES if name in lowered), "")
    caption = next((lowered[name] for name in CAPTIONS if name in lowered and lowered[name] != image), "")
    # Of caption_0 to caption_4, which are read together, the first.
    caption = caption or next((name for name in sorted(columns) if NUMBERED_CAPTION.fullmatch(name)), "")
    return image, caption or _other(columns, image)


def _other(columns: Sequence[str], image: str) -> str:
    """Return the column besides that of images where there are two; empty where there are not."""
    return next((name for name in columns if name != image), "") if image and len(columns) == 2 else ""


def _table(file: Path) -> Table:
    if step := of_pixels(columns_of(file)):
        raise ConfigError(f"{file.name} is a table of pictures. {step}")
    image, caption = _columns_for(file)
    if not image and is_table_of_runs(columns_of(file)):
        raise ConfigError(OF_RUNS.format(file.name))
    return Table(
        path=str(file), image_column=image or Table.image_column, caption_column=caption or Table.caption_column
    )


def _columns_for(file: Path) -> tuple[str, str]:
    """Return the image and the caption column by name, else by their values; empty if there is none."""
    columns = columns_of(file)
    image, caption = _chosen(columns)
    names = first_images(file, image) if image else []
    if not image or (names and not any(os.path.splitext(name)[1] for name in names)):
        # Of Karpathy's lists, `filepath` is a folder and `filename` the picture.
        image = next(iter(columns_of_pictures(file, SUFFIXES)), image)
    names = first_images(file, image) if image else []
    if not image or (names and not _exist(file, names)):
        # Names of pictures without their ending, which are sought: `10020.jpg` of the id 10020.
        ids = sorted(filter(_ID.search, columns), key=lambda name: "im" not in name.lower())[:1]
        image = next((name for name in ids if _exist(file, first_images(file, name))), image)
        caption = caption or _other(columns, image)
    return image, caption or ((caption_beside(file, image) or column_of_classes(file)) if image else "")


def _parquet_folder(root: Path, entries: Mapping[str, Path]) -> Table | None:
    """Return Parquet files in the folder, its `data` folder or its only one, with splits by name or folder."""
    for folder in _nested(root):
        names = sorted(n for n in os.listdir(folder) if n.lower().endswith(".parquet") and not n.startswith("."))
        if names and not any(_is_shown(name) for name in os.listdir(folder) if (folder / name).is_file()):
            table = _in_parts(folder / names[0], folder if len(names) > 1 else folder / names[0])
        elif train := [at for at in sorted(folder.iterdir()) if part_of(at.name) == "train" and _has_parquet(at)]:
            table = _in_parts(train[0], train[0])
        else:
            continue
        # Pictures beside a list of addresses, as img2dataset writes both, are what there is to read.
        return table if _has_images(table) or not any(map(_has_shown, filter(Path.is_dir, entries.values()))) else None
    return None


def _configurations(root: Path) -> Proposal | None:
    """Return the default of several configurations, each a folder of Parquet as on the hub; None if there are none."""
    folders = {folder.name: folder for folder in subfolders(root)}
    if len(folders) < 2 or any(map(part_of, folders)) or any(map(_has_shown, folders.values())):
        return None
    tables = {name: table for name, folder in folders.items() if (table := _parquet_folder(folder, {}))}
    if len(tables) < 2:
        return None
    stated = next((name for name in (default_configuration(root), "default") if name in tables), "")
    names = ", ".join(map(repr, map(untrusted_files.spelled, tables)))
    name = untrusted_files.spelled(root.name)
    question = f"{name} holds Parquet in {len(tables)} folders, each of which is a data set of its own: {names}."
    data = tables.pop(stated or next(iter(tables)))
    return Proposal(data, "" if stated else question, tuple(tables.values()))


def _nested(folder: Path) -> Iterator[Path]:
    """Yield the folder, and within each other its `data` folder or the only one, such as the hub's `default`."""
    for _ in range(_DEEPEST + 1):
        yield folder
        folders = subfolders(folder)
        inner = [entry for entry in folders if entry.name == "data"] or folders
        if len(inner) != 1:
            return
        folder = inner[0]


def _has_parquet(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("*.parquet"))


def _has_images(table: Table) -> bool:
    """Return whether a table holds its images, or names some that are there."""
    file = Path(table.path)
    image = table.image_column
    if image not in columns_of(file):
        return False
    names = first_images(file, image)
    return not names or _exist(file, names)


def _exist(file: Path, names: Sequence[str]) -> bool:
    names = native_names(file, [name for name in names if "://" not in name])
    ending = omitted_ending(file, names, SUFFIXES)
    names = [name + ending for name in names if "\0" not in name and len(name) < 1_000]
    root = image_root(file, names)
    return any((root / name).is_file() for name in names)


def _in_parts(file: Path, every: Path) -> Table:
    """Return the table of the part to train on, with the part to validate on; `every` where no name states a split."""
    parts = table_parts(file)
    if not is_split(parts):
        return _table(every)
    return replace(_table(parts["train"]), heldout_path=str(parts[heldout_of(parts)]))


def table_parts(path: Path) -> dict[Part, Path]:
    """Return the tables next to one that its name, or the name of its folder, states to be parts of one data set.

    Shards of one part are a pattern. The table itself is among them; empty if its name states no part.

    Args:
        path: Of a table, a pattern or a folder of Parquet.
    """
    if path.is_dir() or not part_of(path.name):
        if not part_of(path.name if path.is_dir() else path.parent.name):
            return _stated_above(path)
        folder, inner = (path, "") if path.is_dir() else (path.parent, path.name)
        beside = ((part_of(at.name), at / inner) for at in sorted(folder.parent.iterdir()))
        # The first folder of a part: two would be two data sets.
        return dict(reversed([(part, at) for part, at in beside if part and at.exists()]))
    ending, stem = path.suffix.lower(), without_keyword(path.name)
    names = sorted(itertools.islice(os.listdir(path.parent), _MOST_SIBLINGS))
    names = [name for name in names if name.lower().endswith(ending) and not name.startswith(".")]
    if ending != ".parquet":
        beside = ((part_of(name), path.parent / name) for name in names if without_keyword(name) == stem)
        return {part: at for part, at in beside if part}
    shards: dict[Part, list[str]] = {}
    for name in names:
        if part := part_of(name):
            shards.setdefault(part, []).append(name)
    return {part: path.parent / _pattern(path.parent, names) for part, names in shards.items()}


def _stated_above(file: Path) -> dict[Part, Path]:
    """Return tables whose paths differ by the part alone: `train/radiology/traindata.csv` and `test/…/testdata.csv`."""
    above = next((folder for folder in file.parents if part_of(folder.name) == "train"), None)
    if above is None:
        return {}
    inner = file.relative_to(above.parent).as_posix()
    parts: dict[Part, Path] = {"train": file}
    for part, keywords in KEYWORDS.items():
        others = [above.parent / inner.replace(above.name, keyword) for keyword in keywords]
        if part != "train" and (tables := [other for other in others if other.is_file()]):
            parts[part] = tables[0]
    return parts if is_split(parts) else {}


def tables_alike(path: Path) -> list[str]:
    """Return the names of tables next to one that have its ending and its columns; of Parquet, of its other parts."""
    if path.suffix.lower() == ".parquet" or path.is_dir():
        return sorted(file.name for file in table_parts(path).values() if not fnmatch.fnmatch(path.name, file.name))
    names = sorted(itertools.islice(os.listdir(path.parent), _MOST_SIBLINGS))
    beside = [name for name in names if name.lower().endswith(path.suffix.lower()) and name != path.name]
    columns = columns_of(path)
    return [name for name in beside[:_MOST_TABLES] if columns_of(path.parent / name) == columns]


def _pattern(folder: Path, names: Sequence[str]) -> str:
    """Return the name of a file, or the pattern that stands for exactly these, which are sorted."""
    if len(names) == 1:
        return names[0]
    alike = itertools.takewhile(lambda two: two[0] == two[1], zip(names[0], names[-1]))
    common = "".join(first for first, _ in alike)
    # Up to the numbers of the shards: `train-00000-of-00002.parquet` is `train-*.parquet`.
    for start in (common.rstrip("0123456789"), common):
        pattern = f"{start}*.parquet"
        if sorted(file.name for file in folder.glob(pattern)) == sorted(names):
            return pattern
    return names[0]


def _tables_near(root: Path, entries: Mapping[str, Path]) -> Iterator[Path]:
    """Yield possible caption tables in the folder, its train folder or a text folder, the likeliest first."""
    texts = [name for name in sorted(entries) if re.search(r"annot|text|caption|meta|split", name, re.IGNORECASE)]
    train = [name for name in sorted(entries) if part_of(name) == "train"]
    inner = [entries[name] for name in dict.fromkeys((*train, *texts)) if entries[name].is_dir()]
    inner += [folders[0] for folder in inner if len(folders := subfolders(folder)) == 1]
    files = [(file.name, file) for folder in (root, *inner) for file in sorted(folder.iterdir()) if file.is_file()]
    ranks = [(_rank(name), part_of(name) not in ("train", None), number) for number, (name, _) in enumerate(files)]
    yield from (
        files[number][1] for _, _, number in sorted(rank for rank in ranks if rank[0] is not None)[:_MOST_TABLES]
    )


def _table_beside(root: Path, entries: Mapping[str, Path]) -> Table | None:
    """Return a caption table near the folder's pictures if its images exist."""
    for file in _tables_near(root, entries):
        table = _table_with_pictures(file)
        if table is not None:
            return _with_counterpart(table)
    return None


def _with_unclear_table(proposal: Proposal, root: Path, entries: Mapping[str, Path]) -> Proposal:
    """Return the proposal with a table of unclear columns, which may hold captions, as the first other way."""
    if not proposal.question and not _is_flat(proposal):
        return proposal
    if unread := _unread(root, entries, UNREAD_TABLES):
        proposal = replace(proposal, question=f"{proposal.question} {unread}".strip())
    tables = (_table(file) for file in _tables_near(root, entries) if _might_be_pairs(file))
    return replace(proposal, others=(*itertools.islice(tables, 1), *proposal.others))


def _unread(root: Path, entries: Mapping[str, Path], kinds: Mapping[tuple[str, ...], str] = UNREAD) -> str:
    """Return a sentence on the first file in a folder, or in those in it, that is known and not read; else nothing."""
    folders = [root, *itertools.islice(filter(Path.is_dir, entries.values()), _FEW)]
    sentences = (unread_among(folder, os.listdir(folder), kinds) for folder in folders)
    return untrusted_files.spelled(next(filter(None, sentences), ""))


def _might_be_pairs(file: Path) -> bool:
    """Return whether the columns that a table would be read by are there, and only which they are is unclear."""
    table, columns = _table(file), columns_of(file)
    if {table.image_column, table.caption_column} <= set(columns) or not {*IMAGES, *CAPTIONS} & set(columns):
        return True
    return table.image_column in columns and len(columns_of_words(file, table.image_column)) > 1


def _rank(name: str) -> int | None:
    plain = plain_name(name.lower())
    if re.match("sample_?submission", plain):  # of Kaggle, with the same label everywhere
        return None
    return next((rank for rank, likely in enumerate(_LIKELY) if re.fullmatch(likely, plain)), None)


def _table_with_pictures(file: Path) -> Table | None:
    image, caption = _columns_for(file)
    if not image or not caption:
        return None
    # A list of addresses says nothing of its pictures.
    addresses = any("://" in text for text in first_images(file, caption)[:1])
    exist = not addresses and _exist(file, first_images(file, image))
    return Table(path=str(file), image_column=image, caption_column=caption) if exist else None


def _is_of_addresses(file: Path) -> bool:
    return any("://" in name for name in first_images(file, _columns_for(file)[0])[:1])


def _with_counterpart(table: Table) -> Table:
    """Return the table to train on with the one to validate on, if names state them: val.csv, test/metadata.jsonl."""
    needed = {table.image_column, table.caption_column}
    parts = {
        part: file
        for part, file in table_parts(Path(table.path)).items()
        if needed <= set(columns_of(file)) and _has_images(replace(table, path=str(file)))
    }
    if not is_split(parts):
        return table
    return replace(table, path=str(parts["train"]), heldout_path=str(parts[heldout_of(parts)]))
