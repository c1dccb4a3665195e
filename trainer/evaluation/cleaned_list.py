"""Write the training pairs of a run without flagged ones, as a list to train on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from trainer.analysis.progress import Progress, silent
from trainer.data import DataError, load
from trainer.data.duplicates import PAIR, heldout_rows, rows_of
from trainer.messages import CleanedList
from trainer.models import preprocessing_of
from trainer.pretrained import read_architecture
from trainer.render_mpl.import_report import write_table
from trainer.store import Workspace
from trainer.store.reviews import pair_keys
from trainer.untrusted import confined
from trainer.untrusted.escaping import cell
from trainer.untrusted.files import spelled

_FOLDER: Final = "lists"


def write_cleaned_list(
    workspace: Workspace, run: int | str, file: Path | None = None, progress: Progress = silent
) -> CleanedList:
    """Write both tables, captions and labels exactly as they are.

    Args:
        run: Whose data are cleaned.
        file: `.parquet` or `.csv`; None: one with the time in its name, in the workspace.

    Raises:
        DataError: Nothing is flagged or would be left, pictures lie inside other files, or a CSV would change a text.
        UserError: Another ending, or a place that cannot be written.
    """
    # First, since the data are prepared in the workspace.
    workspace.check_mine()
    row = workspace.runs.get(run)
    run_config = workspace.runs.config_of(row.id)
    size = read_architecture(run_config.model, row.folder)
    splits = load(
        run_config.data,
        image_size=size.image_size,
        workspace_folder=workspace.folder,
        progress=progress,
        preprocessing=preprocessing_of(size),
    )
    heldout = heldout_rows(splits)
    keys = pair_keys(splits.train.paths, splits.train.captions, workspace.folder)
    flagged = {review.pair for review in workspace.reviews.all(splits.train.name) if review.state == "flagged"}
    clean = [line for key, line in zip(keys, rows_of(splits.train), strict=True) if key not in flagged]
    if not clean or len(clean) == len(keys):
        what = "No training pair would be left. Flag fewer" if not clean else "No training pair is flagged. Flag some"
        raise DataError(f"{what}: in the Data quality view, or trainer data review.")
    if file is None:
        folder = confined.make_folder(workspace.folder, _FOLDER)
        file = folder / f"{splits.train.name}-cleaned-{time.strftime('%Y%m%d-%H%M%S')}.parquet"
    files = file, file.with_name(f"{file.stem}-heldout{file.suffix}")
    for each, lines in zip(files, (clean, heldout), strict=True):
        if each.suffix.lower() == ".csv" and any(cell(text) != text for line in lines for text in line):
            name = spelled(file.with_suffix(".parquet").name)
            raise DataError(f"A CSV would change texts that spreadsheets run as formulas. Write {name} instead.")
        write_table(each, PAIR, lines)
    captions = [line[1] for line in clean]
    written, other = (str(each.absolute()) for each in files)
    return CleanedList(
        file=written,
        heldout=other,
        kept=len(clean),
        left_out=len(keys) - len(clean),
        captions_repeat=len({*captions}) < len(captions),
    )
