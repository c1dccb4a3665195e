"""The data that a run learns from."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeVar

from trainer.config.fields import option
from trainer.untrusted import files as untrusted_files


def _heldout_share() -> float:
    return option(0.1, "Held-out share", "Share of the pairs kept for validation.", low=0.01, high=0.5)


def train_share_option() -> float:
    """Return the field `train_share`, which every kind of data has."""
    help = "Fraction of the training pairs; subsets are nested and the same for every seed."
    return option(1.0, "Training share", help, low=0.0001, high=1.0, advanced=True)


def _train_list() -> str:
    help = "A text file that names the images to train on, one per line; empty: all."
    return option("", "Training list", help, advanced=True)


def _heldout_list() -> str:
    help = "A text file that names the images to validate on, one per line; empty: a share."
    return option("", "Held-out list", help, advanced=True)


def _most_per_query() -> int:
    help = "At most so many training pairs for a query, as in CLIP's data; 0: all. Pairs without a query are left out."
    return option(0, "Pairs per query", help, low=0, high=10_000_000, advanced=True)


def _queries() -> str:
    help = "A text file with one query a line, for Pairs per query; empty: every word of the captions."
    return option("", "Queries", help, advanced=True)


def _split_from() -> Literal["stated", "share"]:
    help = "stated: as names of folders, files or shards or a column split say, else a share. share: always a share."
    return option("stated", "Split", help, advanced=True)


def _encoding(of: str = "captions") -> str:
    help = f"Encoding of the {of}: auto tries the usual ones; else a name such as utf-8, cp1252, shift_jis."
    return option("auto", "Encoding", help, advanced=True)


def _lines() -> Literal["joined", "first", "each"]:
    help = "Of a caption file with several: joined to one caption, the first alone, or each a caption of the image."
    return option("joined", "Lines", help, advanced=True)


class DataKind:
    """What is true of a kind of data."""

    kind: ClassVar[str]  # In configurations.
    label: ClassVar[str]  # For people.
    # Names of its held-out splits, first the one that runs are judged by; empty where only its files tell.
    heldout: ClassVar[tuple[str, ...]] = ()
    is_drawn: ClassVar[bool] = False  # It is made here, with a class of every pair.
    is_downloaded: ClassVar[bool] = False  # A library fetches it into folders of its own, and knows it by its name.
    unit: ClassVar[str] = "pair"  # What its splits consist of.
    holds: ClassVar[str] = ""  # What its folder holds; empty where `path` is no single folder.


@dataclass(frozen=True, kw_only=True)
class Scenes(DataKind):
    """The built-in pairs: two colored shapes in a spatial relation on a textured ground, generated from a seed."""

    kind: ClassVar[str] = "scenes"
    label: ClassVar[str] = "Scenes"
    heldout: ClassVar[tuple[str, ...]] = ("renderings", "combinations")
    is_drawn: ClassVar[bool] = True

    seed: int = option(0, "Drawing seed", "The same seed draws the same images.", low=0, advanced=True)
    train_pairs: int = option(
        12_288, "Training pairs", "How many pairs are drawn to learn from.", low=64, high=1_000_000
    )
    heldout_pairs: int = option(
        1_024, "Held-out pairs", "Size of each of the two held-out splits.", low=16, high=100_000
    )
    cooccurrence: float = option(
        0.0,
        "Co-occurrence",
        "0: shapes, colors and grounds are independent. 1: each shape keeps to its favorite colors and grounds.",
        low=0.0,
        high=1.0,
        advanced=True,
    )
    train_share: float = train_share_option()


@dataclass(frozen=True, kw_only=True)
class Folder(DataKind):
    """A folder of images, each with a `.txt` caption of the same name."""

    kind: ClassVar[str] = "folder"
    label: ClassVar[str] = "Folder of images and captions"
    holds: ClassVar[str] = "the images and their captions"
    heldout: ClassVar[tuple[str, ...]] = ("heldout",)

    path: str = option("", "Folder", "Images at any depth, each with its caption in a .txt next to it.")
    captions: Literal["txt", "names"] = option(
        "txt",
        "Captions",
        "txt: of the .txt or .caption next to each image. names: the names of the images, without numbers at their "
        "end.",
        advanced=True,
    )
    lines: Literal["joined", "first", "each"] = _lines()
    encoding: str = _encoding()
    split_from: Literal["stated", "share"] = _split_from()
    heldout_share: float = _heldout_share()
    heldout_path: str = option(
        "",
        "Held-out folder",
        "Another folder of the same form to validate on; empty: a share of the first.",
        advanced=True,
    )
    most_per_query: int = _most_per_query()
    queries: str = _queries()
    train_share: float = train_share_option()
    train_list: str = _train_list()
    heldout_list: str = _heldout_list()


@dataclass(frozen=True, kw_only=True)
class Table(DataKind):
    """A CSV, TSV, JSON, JSONL or Parquet table with a column of images and one of captions.

    Also the captions of COCO (`captions_train2017.json`) and of Flickr (`name.jpg#0`, a tab, a caption).
    """

    kind: ClassVar[str] = "table"
    label: ClassVar[str] = "Table of images and captions"
    heldout: ClassVar[tuple[str, ...]] = ("heldout",)

    path: str = option(
        "", "Table", "CSV, TSV, JSON, JSONL, a folder of Parquet or a pattern of it such as data/train-*.parquet."
    )
    image_column: str = option(
        "filepath", "Image column", "Column with the image paths; in Parquet it may hold the images themselves."
    )
    caption_column: str = option("title", "Caption column", "Column with the captions.")
    separator: str = option(
        "auto", "Separator", "Column separator of a CSV: auto, tab, or any single character.", advanced=True
    )
    image_folder: str = option(
        "",
        "Image folder",
        "Where relative image paths begin; empty: at the table's folder or one next to or below it.",
        advanced=True,
    )
    encoding: str = _encoding()
    split_from: Literal["stated", "share"] = _split_from()
    heldout_share: float = _heldout_share()
    heldout_path: str = option(
        "",
        "Held-out table",
        "Another table of the same form to validate on; empty: a share of the first.",
        advanced=True,
    )
    most_per_query: int = _most_per_query()
    queries: str = _queries()
    train_share: float = train_share_option()
    train_list: str = _train_list()
    heldout_list: str = _heldout_list()


@dataclass(frozen=True, kw_only=True)
class ClassFolder(DataKind):
    """A folder with one folder of images per class; captions are made from class names."""

    kind: ClassVar[str] = "classes"
    label: ClassVar[str] = "Folder per class"
    holds: ClassVar[str] = "a folder of images per class"

    path: str = option(
        "", "Folder", "One folder per class, its images at any depth; or folders train and test of those."
    )
    class_from: Literal["folders", "names", "list"] = option(
        "folders",
        "Class",
        "folders: an image's class is its folder. names: its name without the number at its end, as in Birman_12.jpg. "
        "list: what the class list says.",
        advanced=True,
    )
    class_list: str = option(
        "",
        "Class list",
        "A table or text file that names the class of images; those of other parts next to it are read, too. Besides "
        "folders: of images in none of a class.",
        advanced=True,
    )
    template: str = option(
        "a photo of a(n) {}.", "Caption", "{} is replaced by the name of the class, a(n) for a or an."
    )
    split_from: Literal["stated", "share"] = _split_from()
    heldout_share: float = _heldout_share()
    heldout_path: str = option(
        "",
        "Held-out folder",
        "Another folder of the same form to validate on; empty: its folder test or val, or a share of the first.",
        advanced=True,
    )
    train_share: float = train_share_option()
    train_list: str = _train_list()
    heldout_list: str = _heldout_list()


@dataclass(frozen=True, kw_only=True)
class Shards(DataKind):
    """Tar files in WebDataset format: members with the same name and different suffixes form a pair."""

    kind: ClassVar[str] = "webdataset"
    label: ClassVar[str] = "WebDataset tars"
    heldout: ClassVar[tuple[str, ...]] = ("heldout",)
    unit: ClassVar[str] = "tar"

    path: str = option(
        "", "Tars", "A folder of .tar files, or their names: shards/{000..150}.tar; parts are joined by ::."
    )
    template: str = option(
        "a photo of a(n) {}.", "Caption", "Of pairs with a class (.cls) and no text; {} is its name, a(n) its article."
    )
    lines: Literal["joined", "first", "each"] = _lines()
    encoding: str = _encoding("texts")
    split_from: Literal["stated", "share"] = _split_from()
    heldout_share: float = _heldout_share()
    heldout_path: str = option(
        "",
        "Held-out tars",
        "Other tars to validate on; empty: the folder test or val next to train, or a share of the first.",
        advanced=True,
    )
    most_per_query: int = _most_per_query()
    queries: str = _queries()
    train_share: float = train_share_option()


@dataclass(frozen=True, kw_only=True)
class Named(DataKind):
    """A torchvision data set, downloaded once."""

    kind: ClassVar[str] = "torchvision"
    label: ClassVar[str] = "Built-in data set"
    is_downloaded: ClassVar[bool] = True

    name: Literal[
        "CIFAR10",
        "CIFAR100",
        "MNIST",
        "FashionMNIST",
        "Flowers102",
        "GTSRB",
        "Country211",
        "StanfordCars",
        "STL10",
    ] = option("CIFAR10", "Data set", "Trained on its training split, validated on its test split.")
    root: str = option("", "Folder", "Where it is or is downloaded to; empty: in the workspace.", advanced=True)
    template: str = option("a photo of a {}.", "Caption", "{} is replaced by the name of the class.")
    train_share: float = train_share_option()


TORCHVISION_FILES: Final = {
    "CIFAR10": "cifar-10-batches-py/data_batch_1",
    "CIFAR100": "cifar-100-python/train",
    "MNIST": "MNIST/raw/train-images-idx3-ubyte",
    "FashionMNIST": "FashionMNIST/raw/train-images-idx3-ubyte",
    "STL10": "stl10_binary/train_X.bin",
}
"""A file by which the folder of a data set of torchvision is told, below its root; of those that are no pictures."""

TORCHVISION_LABELS: Final = {
    "Flowers102": "flowers-102/imagelabels.mat",
    "StanfordCars": "stanford_cars/devkit/cars_train_annos.mat",
}
"""The same of those whose pictures are files, and whose classes are in arrays of MATLAB."""


@dataclass(frozen=True, kw_only=True)
class HubDataset(DataKind):
    """A data set from the Hugging Face hub, or one that was saved to a folder."""

    kind: ClassVar[str] = "huggingface"
    label: ClassVar[str] = "Hugging Face data set"
    is_downloaded: ClassVar[bool] = True

    name: str = option("", "Data set", "owner/name on the hub, or a folder that save_to_disk wrote.")
    subset: str = option("", "Subset", "Its configuration, if it has several.", advanced=True)
    image_column: str = option("image", "Image column", "Column with the images.")
    caption_column: str = option(
        "text", "Caption column", "Column with the captions; of a list, each is a pair. A class column makes captions."
    )
    split: str = option("train", "Training split", "Its name on the hub.", advanced=True)
    heldout_split: str = option(
        "", "Held-out split", "Its name; empty: by a column split, else a share of the first.", advanced=True
    )
    heldout_share: float = _heldout_share()
    template: str = option(
        "a photo of a(n) {}.", "Caption", "Of classes; {} is the name, a(n) its article.", advanced=True
    )
    most_per_query: int = _most_per_query()
    queries: str = _queries()
    train_share: float = train_share_option()


def not_a_folder(kind: type[DataKind], folder: Path) -> str:
    """Return the sentence about a path that is no folder."""
    return f"{folder} is not a folder. Choose the folder that holds {kind.holds}."


Data = Scenes | Folder | ClassFolder | Table | Shards | Named | HubDataset


def is_pairs(data: Any) -> bool:
    """Return whether there are pairs to train on, not only what another program made of some."""
    return isinstance(data, Data)


def same_data(a: Any, b: Any) -> bool:
    """Return whether two choices are of the same pairs with the same ones held out, whatever share is trained on."""
    complete = [replace(each, train_share=1.0) if hasattr(each, "train_share") else each for each in (a, b)]
    return bool(complete[0] == complete[1])


PARTS: Final = ("train", "training", "test", "val", "validation")
"""Folders that are called so are parts of a data set; the folder above has its name."""


def dataset_name(folder: Path) -> str:
    """Return the name of the data set in a folder: the folder's, or its parent's if it is a split."""
    return (folder.parent.name if folder.name.lower() in PARTS else "") or folder.name


def data_name(data: Any) -> str:
    """Return the name of the data set, or of the folder, table, tars or vectors."""
    if called := getattr(data, "called", ""):
        return str(called)
    if data.is_drawn:
        return str(data.label)
    if data.is_downloaded:
        return data.name.strip("/").rpartition("/")[2] or data.label
    first = data.path.partition("::")[0]
    name = dataset_name(Path(first))
    if isinstance(data, Shards) and "{" in name:
        name = Path(first).parent.name
    if isinstance(data, Table | ClassFolder) and _says_nothing(name):
        above = [part for part in Path(first).parts[-2:0:-1] if not _says_nothing(part)]
        if above:
            return above[0]
    return (Path(name).stem.removesuffix(".token") if isinstance(data, Table | Shards) else name) or data.label


def named_after(data: Any, objective: str) -> str:
    """Return the name of a run on these data that nobody named: `clip-flowers`, of drawn ones that of their preset."""
    name = data_name(data).lower() if data.is_drawn else data_name(data)
    return re.sub(r"[/\\:\s]+", "-", f"{objective}-{name}")


_COMMON: Final = re.compile(
    r"metadata|captions?([_-].*)?|pairs|results|annotations?|images?|imgs?|data|(train|test|val|validation)([_-].*)?|.*\*.*",
    re.IGNORECASE,
)
"""Names of files and folders that many data sets have."""


def _says_nothing(name: str) -> bool:
    return bool(_COMMON.fullmatch(Path(name).stem))


_HELDOUT: Final = ("heldout_path", "heldout_list", "heldout_split")
"""Fields that name the held-out pairs."""


def unused_fields(data: Any) -> dict[str, str]:
    """Return the fields that have no effect because of others, each with the reason."""
    labels = {field.name: field.metadata.get("label", field.name) for field in fields(data)}
    idle = getattr(data, "queries", "").strip() and not data.most_per_query
    without = {"queries": "Not used: Pairs per query is 0."} if idle else {}
    naming = [labels[name] for name in _HELDOUT if getattr(data, name, "").strip()]
    if "heldout_share" not in labels or not naming:
        return without
    return without | {"heldout_share": f"Not used: {naming[0]} names the held-out pairs."}


AnyData = TypeVar("AnyData", bound=Any)

_PATHS: Final = (
    *("path", "heldout_path", "root", "train_list", "heldout_list", "queries"),
    *("image_vectors", "text_vectors", "items", "pictures"),
)


def absolute(data: AnyData) -> AnyData:
    """Return the data with absolute paths, because a detached or resumed trainer may work in another folder."""
    paths = {name: getattr(data, name, "") for name in _PATHS}
    return replace(data, **{name: _absolute(path) for name, path in paths.items() if path.strip()})


def missing_path(data: Any) -> tuple[str, str]:
    """Return the first field of the data whose path does not exist, and that path; empty texts if all exist.

    Patterns (`*`, `{000..150}`) are not followed.
    """
    for name in _PATHS:
        for part in getattr(data, name, "").split("::"):
            if part.strip() and not set(part) & set("*?[{") and not untrusted_files.expanded(part).exists():
                return f"data.{name}", part
    return "", ""


def _absolute(path: str) -> str:
    parts = [str(untrusted_files.expanded(part).absolute()) for part in path.split("::")]
    return "::".join(parts)
