"""A folder of images per class, with captions made from class names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from trainer import config
from trainer.analysis.progress import Progress
from trainer.config.data import not_a_folder
from trainer.data import videos
from trainer.data.class_lists import listed_classes
from trainer.data.class_names import BACKGROUND, class_names, repeated_names
from trainer.data.folder import NO_NAME, images_below
from trainer.data.pairs import DataError, ImportLog, Source, captioned
from trainer.data.split_lists import Problems, not_in_use, stated_sentence
from trainer.format_detection.proposal import NAMED, NO_CLASS
from trainer.format_detection.splits import StatedSplit, heldout_of, is_split, part_of, stated_split
from trainer.images import NOT_READ, SUFFIXES, not_read
from trainer.untrusted import files as untrusted_files

_NO_CLASS: Final = {
    "folders": "It is next to the folders of the classes, not in one of them.",
    "names": "Its name is not a class and a number, such as Birman_12.",
    "list": "The list of classes does not name it.",
}

_OF_DEVKIT: Final = (
    "Pictures called ILSVRC2012_val_ have their classes in ImageNet's devkit. Write a list of them next to the folder, "
    "which is read: python -c \"from scipy.io import loadmat; d = 'ILSVRC2012_devkit_t12/data/'; "
    "w = {m[0]: m[1] for m in loadmat(d + 'meta.mat', squeeze_me=True)['synsets']}; "
    "[print(f'ILSVRC2012_val_{i:08}', w[int(c)]) for i, c in "
    "enumerate(open(d + 'ILSVRC2012_validation_ground_truth.txt'), 1)]\" > val_labels.txt"
)
_NO_PART: Final = "It lies in no part of the split that the folders state."

_BACKGROUND: Final = "Its folder holds pictures of no class, the background of Caltech's sets."

_OTHER_CLASS: Final = "Its class has no picture in the part to train on."


def class_sources(
    data: config.ClassFolder, workspace_folder: Path, progress: Progress, log: ImportLog | None = None
) -> tuple[dict[str, list[Source]], list[tuple[str, str]]]:
    """Return the pairs of each split, only "train" if there are no others; and (path, reason) for unclassified images.

    Of a film, the middle frame, kept in the workspace, is the image. `log` receives a sentence about an odd split.

    Raises:
        DataError: There is no such folder, or no folder with images in it.
    """
    log = ImportLog() if log is None else log
    root = untrusted_files.expanded(data.path)
    pairs, problems = _of_folder(root, data, workspace_folder, progress, log)
    if data.heldout_path.strip():
        heldout = untrusted_files.expanded(data.heldout_path)
        log.split = f"data.heldout_path names what is held out: {heldout.name}."
        (sources, _), more = _of_folder(heldout, data, workspace_folder, progress, log)
        return {"train": pairs[0], "heldout": sources}, problems + more
    sources, stated = pairs
    lists = data.train_list.strip() or data.heldout_list.strip()
    if stated is None or lists or data.split_from == "share":
        return {"train": sources}, problems
    return _shared_out(sources, stated, problems, log)


def _shared_out(
    sources: list[Source], stated: StatedSplit, problems: Problems, log: ImportLog
) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of each split that names state, in classes to train on; as they are if none can be held out."""
    part_of = {source.relative: stated.parts.get(source.relative) for source in sources}
    train = [source for source in sources if part_of[source.relative] == "train"]
    classes = {source.label for source in train}
    usable = {part_of[source.relative] for source in sources if source.label in classes} - {"train", None}
    if not usable:
        return {"train": sources}, problems
    held = heldout_of(part for part in usable if part)
    log.split = stated_sentence(stated, held)
    heldout = [source for source in sources if part_of[source.relative] == held and source.label in classes]
    more = [
        (source.relative, _OTHER_CLASS)
        for source in sources
        if part_of[source.relative] == held and source.label not in classes
    ]
    more += not_in_use(stated, (source.relative for source in sources), log, held)
    return {"train": train, "heldout": heldout}, problems + more


def _of_folder(
    root: Path, data: config.ClassFolder, workspace_folder: Path, progress: Progress, log: ImportLog
) -> tuple[tuple[list[Source], StatedSplit | None], Problems]:
    """Return the pairs of a folder, the split that its names state, and (path, reason) of what is no pair."""
    if not root.is_dir():
        raise DataError(not_a_folder(config.ClassFolder, root))
    sources: list[Source] = []
    problems: Problems = []
    closed: Problems = []
    endings = SUFFIXES | NOT_READ.keys() | videos.SUFFIXES
    files = images_below(root, endings, progress=progress, problems=closed)
    films = [file for file in files if file.suffix.lower() in videos.SUFFIXES]
    frames: dict[str, Source] = {}
    if films:
        frames, problems = videos.middle_frames(films, root, workspace_folder / "data" / "kept", progress)
    unread = {name for name, _ in problems}
    relatives = [file.relative_to(root).as_posix() for file in files]
    problems += closed
    stated = _outermost(stated_split(relatives))
    listed: dict[str, str] = {}
    if data.class_list.strip():
        listed, by_lists = listed_classes(Path(data.class_list), root, relatives, problems)
        stated = (by_lists if data.class_from == "list" else None) or stated
    if stated and data.class_from == "folders" and not _is_of_classes(relatives, stated):
        stated = None
    kinds = _kinds(root, relatives, data, stated, listed, log)
    # Icons next to folders of parts, as in the folder Meta of GTSRB, are of no class.
    in_parts = stated.parts.keys() if stated and stated.level == "folders" and "train" in stated.sources else relatives
    for file, relative in zip(files, relatives, strict=True):
        if not untrusted_files.is_text(relative):
            problems.append((untrusted_files.spelled(relative), NO_NAME))
        elif reason := not_read(relative):
            problems.append((relative, reason))
        elif not BACKGROUND.isdisjoint(relative.split("/")[:-1]) and data.class_from == "folders":
            problems.append((relative, _BACKGROUND))
        elif relative not in in_parts and data.class_from == "folders":
            problems.append((relative, _NO_PART))
        elif relative not in kinds:
            problems.append((relative, _NO_CLASS[data.class_from]))
        elif relative not in unread:
            image_path = frames[relative].path if relative in frames else file
            name = kinds[relative]
            sources.append(Source(image_path, relative, captioned(data.template, name), name))
    if any("/ILSVRC2012_val_" in relative for relative, reason in problems if reason == _NO_CLASS["folders"]):
        log.notes.append(_OF_DEVKIT)
    if not sources:
        raise DataError(
            f"{root} has no folder with images. Each class needs a folder of its name with its images.", problems
        )
    return (sources, stated), problems


def _kinds(
    root: Path,
    relatives: Sequence[str],
    data: config.ClassFolder,
    stated: StatedSplit | None,
    listed: Mapping[str, str],
    log: ImportLog,
) -> dict[str, str]:
    """Return image -> class name, for images with a class."""
    not_classes: set[str] = set()
    if data.class_from == "list":
        folders = dict(listed)
        log.notes.append(f"The classes of images are those that {Path(data.class_list).name} names.")
        classes = set(folders.values())
    elif data.class_from == "names":
        stems = {relative: Path(relative).stem for relative in relatives}
        folders = {relative: match["name"] for relative, stem in stems.items() if (match := NAMED.fullmatch(stem))}
        classes = set(folders.values())
    else:
        below = _below_parts(relatives, stated)
        folders = {relative: inner.split("/")[0] for relative, inner in below.items() if "/" in inner}
        if inner_folders := _below_letters(below, folders):
            folders = inner_folders
        elif inner_names := _ignored(below, folders):
            named = ", ".join(map(repr, map(untrusted_files.spelled, inner_names[:3])))
            log.notes.append(f"Folders inside those of classes are of no class: {len(inner_names):,}, first {named}.")
        folders = {relative: name for relative, name in folders.items() if name not in BACKGROUND}
        if stated:
            # Tiny ImageNet keeps the pictures to validate on in val/images, and their classes in a list.
            trained = {name for relative, name in folders.items() if stated.parts.get(relative) == "train"}
            not_classes = {name for name in {*folders.values()} - trained if name.lower() in NO_CLASS}
            if "train" in stated.sources and stated.level == "folders":
                folders = {relative: name for relative, name in folders.items() if relative in stated.parts}
            if trained and trained.isdisjoint(name for r, name in folders.items() if stated.parts.get(r) != "train"):
                folders = {relative: name for relative, name in folders.items() if name not in not_classes}
            numbered = {_number(name): name for name in trained}
            others = {relative: _number(name) for relative, name in listed.items() if relative not in folders}
            others = {relative: numbered[name] for relative, name in others.items() if name in numbered}
            folders |= others
            if others:
                log.notes.append(
                    f"{Path(data.class_list).name} names the classes of {len(others):,} images in no folder."
                )
        # An empty folder is a class, too: it may decide what a list of numbers is.
        inside = () if stated else root.iterdir()
        empty = (part.name for part in inside if part.is_dir() and not untrusted_files.is_hidden(part.name))
        classes = {*folders.values(), *empty} - BACKGROUND - not_classes
    names = class_names(sorted(classes), config.dataset_name(root))
    if classes and all(map(str.isdecimal, names.values())):
        log.notes.append(f"The classes have numbers for names, such as {min(classes)!r}, and so have the captions.")
    if same := repeated_names(sorted(classes), config.dataset_name(root)):
        more = f" and {len(same) - 1:,} more names" if len(same) > 1 else ""
        log.notes.append(f"Several folders would be the class {same[0]!r}{more}; each is a class by its whole name.")
    return {relative: names.get(folder, folder) for relative, folder in folders.items()}


def _number(name: str) -> str:
    """Return a class without leading zeros: GTSRB's folders are `00007` where its list has 7."""
    return str(int(name)) if name.isdecimal() else name


def _below_letters(below: Mapping[str, str], folders: Mapping[str, str]) -> dict[str, str]:
    """Return image -> its folders below one of a first letter, as SUN397 and Places365 have; empty for others."""
    paths = {relative: below[relative].split("/")[1:-1] for relative in folders}
    if not all(inner and inner[0][:1].lower() == folders[relative].lower() for relative, inner in paths.items()):
        return {}
    return {relative: " ".join(inner) for relative, inner in paths.items()}


def _ignored(below: Mapping[str, str], folders: Mapping[str, str]) -> list[str]:
    """Return the names of folders inside those of the classes, where most classes have several of them."""
    inner: dict[str, dict[str, None]] = {}
    for relative, name in folders.items():
        inner.setdefault(name, {}).update(dict.fromkeys(below[relative].split("/")[1:-1][:1]))
    names = [sub for every in inner.values() if len(every) > 1 for sub in every if part_of(sub) is None]
    return names if 2 * sum(len(every) > 1 for every in inner.values()) > len(inner) else []


def _is_of_classes(relatives: Sequence[str], stated: StatedSplit) -> bool:
    """Return whether a split holds out pictures of classes to train on; a folder `test tube` next to others does not.

    Where folders state both parts, that is so.
    """
    if "train" in stated.sources:
        return True
    classes: dict[bool, set[str]] = {True: set(), False: set()}
    for relative, inner in _below_parts(relatives, stated).items():
        if "/" in inner:
            classes[stated.parts.get(relative) == "train"].add(inner.split("/")[0])
    return not classes[True].isdisjoint(classes[False])


def _outermost(stated: StatedSplit | None) -> StatedSplit | None:
    """Return the split of the outermost folders of parts, where others lie deeper and these are a split alone.

    Kaggle's chest X-rays lie in `chest_xray/train` and, once more, in `chest_xray/chest_xray/train`.
    """
    if stated is None or stated.level != "folders" or "train" not in stated.sources:
        return stated
    depths = {relative: len(folder) for relative, folder in _part_folders(stated).items()}
    top = {relative: part for relative, part in stated.parts.items() if depths.get(relative) == min(depths.values())}
    return replace(stated, parts=top) if is_split({*top.values()}) else stated


def _part_folders(stated: StatedSplit) -> dict[str, tuple[str, ...]]:
    """Return image -> the folders down to that of its part, outermost first."""
    parts: dict[str, tuple[str, ...]] = {}
    for relative, part in stated.parts.items():
        above = relative.split("/")[:-1]
        # The rest, which is trained on where only a folder to validate on is stated, lies in no part's folder.
        if end := next((n for n, name in enumerate(above, 1) if part_of(name) == part), 0):
            parts[relative] = tuple(above[:end])
    return parts


def _below_parts(relatives: Sequence[str], stated: StatedSplit | None) -> dict[str, str]:
    """Return image -> its path below the folder of its part, where all parts lie in one folder; else below the root."""
    below = {relative: relative for relative in relatives}
    if stated is None or stated.level != "folders":
        return below
    parts = _part_folders(stated)
    if len({part[:-1] for part in parts.values()}) > 1:
        return below
    inner = {relative: relative.split("/", len(part))[-1] for relative, part in parts.items()}
    if all(inner[relative].startswith(f"{part[-1]}/") for relative, part in parts.items()):
        inner = {relative: path.partition("/")[2] for relative, path in inner.items()}  # seg_train/seg_train
    return below | inner
