"""American spelling of stored names: sections and fields of configurations, metrics of Scenes.

The files of the run folders that are read again get the same names; of a run that trains they stay as they are. Files
cannot be rolled back, but to name them anew twice is to name them anew once.
"""

import json
from pathlib import Path, PurePath

from alembic import op

from trainer.store import earlier_names
from trainer.store.process_lock import is_held
from trainer.untrusted import confined
from trainer.untrusted.files import check_ordinary

revision = "0005"
down_revision = "0004"

_SCENES = "run IN (SELECT id FROM run WHERE lower(data) = 'scenes')"


def upgrade() -> None:
    """Upgrade from schema 0004 without changing tables."""
    connection = op.get_bind()
    runs = connection.exec_driver_sql("SELECT id, folder, config, data FROM run").all()
    for number, _, text, _ in runs:
        new = earlier_names.config_text(text)
        if new != text:
            connection.exec_driver_sql("UPDATE run SET config = ? WHERE id = ?", (new, number))
    for old, new in earlier_names.COLUMNS.items():
        words = f"UPDATE OR IGNORE scalar SET name = replace(name, ?, ?) WHERE name LIKE ? AND {_SCENES}"  # noqa: S608
        connection.exec_driver_sql(words, (f"/knn_{old}", f"/knn_{new}", f"%/knn_{old}"))
    words = f"SELECT id, metrics FROM evaluation WHERE metrics LIKE '%colour%' AND {_SCENES}"  # noqa: S608
    for number, text in connection.exec_driver_sql(words).all():
        try:
            metrics = {earlier_names.metric(name): value for name, value in json.loads(text).items()}
        except (ValueError, AttributeError, RecursionError):
            continue  # it is told when it is read
        connection.exec_driver_sql("UPDATE evaluation SET metrics = ? WHERE id = ?", (json.dumps(metrics), number))
    file = connection.exec_driver_sql("PRAGMA database_list").first()
    if file is not None and file[2]:
        _rewrite_files(Path(file[2]).parent, {folder: data for _, folder, _, data in runs})


def _rewrite_files(workspace: Path, data: dict[str, str]) -> None:
    for name, of in data.items():
        place = PurePath("runs", name)
        folder = workspace / place
        if confined.is_inside(workspace, place) and folder.is_dir() and not _is_trained(folder):
            earlier_names.rewrite_files(folder, data=of)


def _is_trained(folder: Path) -> bool:
    try:
        check_ordinary(folder / "alive.lock")
    except OSError:
        return False
    return is_held(folder / "alive.lock")
