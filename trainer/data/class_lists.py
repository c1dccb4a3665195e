"""Read files that name the class of each picture, and its part where they state one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trainer.data.csv_lines import numbered, read_lines
from trainer.data.pairs import DataError
from trainer.data.split_lists import Problems
from trainer.data.table_formats import encoding_for
from trainer.format_detection import names_in
from trainer.format_detection.class_lists import ClassRow, ListForm, form_of_list, lists_with
from trainer.format_detection.splits import Part, StatedSplit, is_split, part_of, part_of_value
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import open_text


def listed_classes(
    path: Path, root: Path, relatives: Sequence[str], problems: Problems
) -> tuple[dict[str, str], StatedSplit | None]:
    """Return picture -> class of a list and of those of other parts next to it, and the split that they state.

    Lists state it by their names, or one by its column.

    Args:
        path: Of the list.
        root: Folder of the pictures.
        relatives: Their paths below it.
        problems: Receives the lines that name no picture, or the class of one in another way than a line before.

    Raises:
        DataError: It cannot be read, or names no classes.
    """
    pictures = _Pictures(root, relatives)
    classes: dict[str, str] = {}
    parts: dict[str, Part] = {}
    sources: dict[Part, str] = {}
    try:
        if (form := form_of_list(path, root)) is None:
            raise DataError(
                f"{path.name} names no classes of the pictures in {root}: a table with a column such as class or label "
                "is one, or lines of a picture and its class. Choose another list of classes."
            )
        lists = lists_with(path, form)
        for part in sorted(lists, key=["test", "train", "validation", None].index):
            file = lists[part]
            for where, row in _rows(file, form):
                picture = pictures.named(row.name, file, part) if isinstance(row, ClassRow) else ""
                if not picture or not isinstance(row, ClassRow):
                    why = (
                        f"It names no image: {untrusted_files.spelled(row.name[:100])}"
                        if isinstance(row, ClassRow)
                        else row
                    )
                    problems.append((f"{file.name}, {where}", why))
                elif classes.setdefault(picture, row.label) != row.label:
                    other = untrusted_files.spelled(f"{row.label[:60]!r}, which is {classes[picture][:60]!r} elsewhere")
                    problems.append((f"{file.name}, {where}", f"It names {picture} as {other}."))
                elif stated := part or part_of_value(row.split):
                    parts.setdefault(picture, stated)
                    sources.setdefault(stated, file.name if part else row.split)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose another list of classes.") from error
    return classes, StatedSplit(parts, "lists", sources) if is_split(sources) else None


def _rows(file: Path, form: ListForm) -> Iterator[tuple[str, ClassRow | str]]:
    """Yield the line, and what it says of a picture or why it says nothing."""
    for where, cells in _lines(file, form):
        row = form.row(cells) if not isinstance(cells, str) else None
        yield where, cells if isinstance(cells, str) else row or "It does not name a picture and one class."


def _lines(file: Path, form: ListForm) -> Iterator[tuple[str, Sequence[str] | str]]:
    if form.header:
        lines = read_lines(file, form.separator, encoding_for(file, "auto"))
        next(lines, None)
        yield from ((f"line {line.number}", line.reason or line.cells) for line in lines)
        return
    with open_text(file) as opened:
        for number, raw in numbered(opened):
            text = raw if isinstance(raw, str) else raw.decode("utf-8-sig", "replace")
            if text.strip():
                yield f"line {number}", text if isinstance(raw, str) else form.cells(text)


class _Pictures:
    """Finds the picture that a line names: by its path, without its ending, or by its name where one has it."""

    def __init__(self, root: Path, relatives: Iterable[str]) -> None:
        self._root = root
        self._named: dict[str, list[str]] = {}
        for relative in relatives:
            path = Path(relative)
            for key in {relative, path.with_suffix("").as_posix(), path.name, path.stem}:
                self._named.setdefault(key, []).append(relative)

    def named(self, name: str, file: Path, part: Part | None) -> str:
        """Return the picture; of several of one name that in the folder of the list's part, else none."""
        above = file.parent.relative_to(self._root).as_posix() if file.is_relative_to(self._root) else ""
        texts = [f"{above}/{name}", *names_in(name)] if above not in ("", ".") else names_in(name)
        for text in texts:
            some = self._named.get(text, [])
            if len(some) > 1:
                some = [relative for relative in some if _part(relative) == (part or "train")]
            if len(some) == 1:
                return some[0]
        return ""


def _part(relative: str) -> Part | None:
    return next((part for name in relative.split("/")[:-1] if (part := part_of(name))), None)
