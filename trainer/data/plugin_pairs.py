"""Pairs of a data set that a plug-in lists."""

from __future__ import annotations

from pathlib import Path

from trainer.config.extension import PluginDataset, PluginPair
from trainer.data.pairs import DataError, Source


def plugin_sources(data: PluginDataset) -> tuple[dict[str, list[Source]], list[tuple[str, str]]]:
    """Return the pairs of each split, and (pair, reason) of what is none.

    Raises:
        DataError: The plug-in fails while it lists them.
    """
    splits: dict[str, list[Source]] = {"train": []}
    problems: list[tuple[str, str]] = []
    try:
        for number, pair in enumerate(data.pairs()):
            if not isinstance(pair, PluginPair) or not str(pair.caption).strip() or pair.split not in _SPLITS:
                problems.append((f"pair {number}", "it is not a PluginPair with a caption and a split"))
                continue
            path = Path(pair.image)
            source = Source(path, path.as_posix().lstrip("/"), str(pair.caption), str(pair.label))
            splits.setdefault(pair.split, []).append(source)
    except Exception as error:  # whatever the code of another package raises
        raise DataError(f"{data.label} could not list its pairs: {error}. Correct the plug-in.") from error
    return splits, problems


_SPLITS = ("train", "heldout")
