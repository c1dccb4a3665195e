"""Data sets of the Hugging Face hub, through the `datasets` library, which is an optional extra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trainer import config
from trainer.data.kept import Picture, Unusable, kept
from trainer.data.pairs import DataError, Source

Progress = Callable[[float, str], None]
Problems = list[tuple[str, str]]


def hub_sources(
    data: config.HubDataset, workspace_folder: Path, progress: Progress
) -> tuple[dict[str, list[Source]], Problems]:
    """The pairs of each split, only "train" where no held-out split is named; and (row, reason) for the others.

    The pictures are kept in the workspace, byte for byte as they came. No code of a data set is ever run.

    Raises:
        DataError: The library is missing, or the data set, a split or a column.
    """
    splits = {"train": data.split} | ({"heldout": data.heldout_split} if data.heldout_split.strip() else {})
    found: dict[str, list[Source]] = {}
    problems: Problems = []
    for split, name in splits.items():
        rows = _rows(data, name, progress)
        folder = workspace_folder / "data" / "kept" / f"{config.data_name(data)}-{name}-{rows._fingerprint}"
        found[split], more = kept(folder, lambda rows=rows: _pictures(data, rows, progress))
        problems += more
    return found, problems


def _rows(data: config.HubDataset, split: str, progress: Progress) -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError(
            "Hugging Face data sets need the library `datasets`: install it with "
            "`uv sync --extra huggingface`, or `pip install datasets`."
        ) from None
    progress(0.0, f"Opening {data.name}")
    try:
        folder = Path(data.name).expanduser()
        if folder.is_dir():
            loaded = datasets.load_from_disk(str(folder))
            rows = loaded[split] if isinstance(loaded, datasets.DatasetDict) else loaded
        else:
            rows = datasets.load_dataset(data.name, data.subset or None, split=split)
    except Exception as error:  # the library raises its own, urllib's, pyarrow's and bare ones
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{data.name} could not be opened: {reason}. Check the name, the split {split!r}, and the network."
        ) from error
    _check_columns(data, rows)
    return rows.cast_column(data.image_column, datasets.Image(decode=False))


def _check_columns(data: config.HubDataset, rows: Any) -> None:
    for field in ("image_column", "caption_column"):
        column = getattr(data, field)
        if column not in rows.column_names:
            present = ", ".join(map(repr, rows.column_names[:20]))
            raise DataError(f"{data.name} has no column {column!r}; it has {present}. Set data.{field} to one of them.")


def _pictures(data: config.HubDataset, rows: Any, progress: Progress) -> Iterator[Picture | Unusable]:
    names = getattr(rows.features[data.caption_column], "names", None)
    for number, row in enumerate(rows):
        if number % 500 == 0:
            progress(number / len(rows), f"Keeping the pictures of {data.name}: {number:,} of {len(rows):,}")
        image, caption, label = row[data.image_column], row[data.caption_column], ""
        if names is not None and isinstance(caption, int):
            label = names[caption].replace("_", " ") if 0 <= caption < len(names) else ""
            caption = data.template.replace("{}", label) if label else ""
        if isinstance(caption, list):
            caption = next((text for text in caption if isinstance(text, str)), "")
        pixels = _bytes(image)
        if not pixels or not isinstance(caption, str) or not caption.strip():
            yield Unusable(f"row {number}", "It has no caption." if pixels else "It has no image.")
            continue
        yield Picture(f"{number:08}", pixels, " ".join(caption.split()), label)


def _bytes(image: dict[str, Any] | None) -> bytes:
    if not image:
        return b""
    if image.get("bytes"):
        return image["bytes"]
    path = image.get("path") or ""
    # A path inside a table of somebody else may point anywhere; only what the library itself fetched is read.
    return Path(path).read_bytes() if path and Path(path).is_file() else b""
