"""Data sets of the Hugging Face hub, read with the optional `datasets` library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.analysis.progress import Progress
from trainer.data.pairs import DataError, Source, captioned
from trainer.data.stored_pairs import StoredPair, Unusable, kept
from trainer.data.table_formats import OF_ANSWERS, PICTURE
from trainer.format_detection.splits import SPLIT
from trainer.format_detection.tables import answers_in, turns_in
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.files import refusal_of_downloads

_MOST_PICTURE: Final = 256 << 20
"""Bytes of the file of a picture."""

Problems = list[tuple[str, str]]


def hub_sources(
    data: config.HubDataset, workspace_folder: Path, progress: Progress
) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of each split, only "train" without a held-out split; and (row, reason) for the others.

    The pictures are kept in the workspace, byte for byte as they came. No code of a data set is ever run.

    Raises:
        DataError: The library is missing, or the data set, a split or a column.
    """
    splits = {"train": data.split} | ({"heldout": data.heldout_split} if data.heldout_split.strip() else {})
    sources: dict[str, list[Source]] = {}
    problems: Problems = []
    for split, name in splits.items():
        rows = _rows(data, name, progress)
        folder = workspace_folder / "data" / "kept" / f"{config.data_name(data)}-{name}-{rows._fingerprint}"
        sources[split], more = kept(folder, lambda rows=rows: _pictures(data, rows, progress))
        problems += more
    return sources, problems


def _rows(data: config.HubDataset, split: str, progress: Progress) -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError(
            "Hugging Face data sets need the library `datasets`: install it with "
            "`uv sync --extra huggingface`, or `pip install datasets`."
        ) from None
    if (refusal := refusal_of_downloads()) and not Path(data.name).expanduser().is_dir():
        raise DataError(refusal)
    progress(0.0, f"Opening {data.name}")
    bars = _Bars(progress, data.name)
    try:
        folder = Path(data.name).expanduser()
        if folder.is_dir():
            loaded = datasets.load_from_disk(str(folder))
            if isinstance(loaded, datasets.DatasetDict) and split not in loaded:
                names = ", ".join(map(repr, loaded))
                raise DataError(f"{data.name} has no split {split!r}; it has {names}. Set data.split to one of them.")
            rows = loaded[split] if isinstance(loaded, datasets.DatasetDict) else loaded
        else:
            with bars.shown():
                rows = datasets.load_dataset(data.name, data.subset or None, split=split)
    except DataError:
        raise
    except Exception as error:  # the library raises its own, urllib's, pyarrow's and bare ones
        if bars.ended is not None:
            raise bars.ended from None
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{data.name} could not be opened: {reason}. Check the name, the split {split!r}, and the network."
        ) from error
    _check_columns(data, rows)
    feature, undecoded = rows.features[data.image_column], datasets.Image(decode=False)
    is_list = isinstance(feature, datasets.List | datasets.LargeList)
    return rows.cast_column(data.image_column, datasets.List(undecoded) if is_list else undecoded)


class _Bars:
    """Forwards the library's download and extraction progress bars to the user.

    Attributes:
        ended: What the person's side raised to cancel; the library may make something else of it.
    """

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress, self._name = progress, name
        self.ended: BaseException | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Report every tqdm bar of this process; exceptions from the callback propagate to the worker."""
        from tqdm.std import tqdm

        before = tqdm.update
        done: dict[int, float] = {}

        def update(bar: Any, count: float | None = 1) -> bool | None:
            # A bar that is not drawn does not count.
            done[id(bar)] = done.get(id(bar), 0.0) + (count or 0)
            total = getattr(bar, "total", None)
            share = min(1.0, done[id(bar)] / total) if total else 0.0
            doing = str(getattr(bar, "desc", "") or "Downloading").strip(": ")
            self._report(share, f"{self._name}: {doing}")
            return before(bar, count)

        tqdm.update = update
        try:
            yield
        finally:
            tqdm.update = before

    def _report(self, share: float, note: str) -> None:
        try:
            self._progress(share, note)
        except BaseException as error:
            self.ended = error
            raise


def _check_columns(data: config.HubDataset, rows: Any) -> None:
    for field in ("image_column", "caption_column"):
        column = getattr(data, field)
        if column not in rows.column_names:
            present = ", ".join(map(repr, rows.column_names[:20]))
            raise DataError(f"{data.name} has no column {column!r}; it has {present}. Set data.{field} to one of them.")


def _pictures(data: config.HubDataset, rows: Any, progress: Progress) -> Iterator[StoredPair | Unusable]:
    names = getattr(rows.features[data.caption_column], "names", None)
    with_split = getattr(rows.features.get(SPLIT), "dtype", "") == "string"
    for number, row in enumerate(rows):
        if number % 500 == 0:
            progress(number / len(rows), f"Caching the images of {data.name}: {number:,} of {len(rows):,}")
        image, caption, label = row[data.image_column], row[data.caption_column], ""
        if names is not None and isinstance(caption, int):
            label = names[caption].replace("_", " ") if 0 <= caption < len(names) else ""
            caption = captioned(data.template, label) if label else ""
        if isinstance(image, list) and len(image) > 1:
            yield Unusable(f"row {number}", f"It names {len(image):,} images; a pair has one.")
            continue
        pixels = _bytes(image[0] if isinstance(image, list) and image else image or None)
        texts = caption if isinstance(caption, list) else [caption]
        if turns := turns_in(caption):
            texts = [text.replace(PICTURE, " ") for text in answers_in(turns) if isinstance(text, str)]
            if len(texts) != 1:
                yield Unusable(f"row {number}", OF_ANSWERS.format(len(texts)))
                continue
        captions = tuple(" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip())
        if not pixels or not captions:
            yield Unusable(f"row {number}", "It has no caption." if pixels else "It has no image.")
            continue
        yield StoredPair(f"{number:08}", pixels, captions, label, str(row.get(SPLIT) or "") if with_split else "")


def _bytes(image: dict[str, Any] | None) -> bytes:
    if not image:
        return b""
    if image.get("bytes"):
        return image["bytes"]
    path = image.get("path") or ""
    # A path inside a table of somebody else may point anywhere; only what the library itself fetched is read.
    return untrusted_files.read_bytes(Path(path), _MOST_PICTURE) if path and Path(path).is_file() else b""
