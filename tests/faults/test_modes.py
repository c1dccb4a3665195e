"""The contents of a workspace are private to its owner for any umask; exports follow the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer import config
from trainer.store import RunLog, Workspace, database_file, write_atomically
from trainer.store.files import make_folder, write_text

pytestmark = [pytest.mark.faults, pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")]


@pytest.fixture(params=[0o022, 0o000], ids=["022", "000"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _open_to_others(folder: Path) -> list[str]:
    found = [path for path in (folder, *folder.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    return [path.relative_to(folder.parent).as_posix() for path in found]


def test_all_of_a_new_workspace_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    workspace = Workspace(tmp_path / "space")
    workspace.runs.create(config.Run(name="one"))
    with RunLog.claim(workspace, 1) as log:
        log.take_reserve()
        assert {"explorer.db", "explorer.db-wal", "explorer.db-shm"} <= {
            path.name for path in workspace.folder.iterdir()
        }
        others = _open_to_others(workspace.folder)
    make_folder(workspace.folder / "cache")
    write_text(workspace.folder / "cache" / "a.json", "{}")
    assert workspace.back_up_daily() is not None
    assert (others, _open_to_others(workspace.folder)) == ([], [])
    workspace.close()


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    workspace = Workspace(folder)
    workspace.runs.create(config.Run(name="one"))
    workspace.close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert _open_to_others(folder) == ["shared"]


def test_an_export_is_as_the_system_has_it(tmp_path: Path, umask: int) -> None:
    write_atomically(tmp_path / "a.svg", lambda draft: draft.write_text("x") and None)
    assert stat.S_IMODE((tmp_path / "a.svg").stat().st_mode) == 0o666 & ~umask
    assert os.umask(umask) == umask


def test_a_copy_of_the_database_goes_through_no_link(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "space")
    workspace.runs.create(config.Run(name="one"))
    thesis, target = tmp_path / "thesis.db", workspace.folder / "copy.db"
    thesis.touch()
    target.with_name(f".tmp-{target.name}").symlink_to(thesis)
    with pytest.raises(OSError, match="is a link"):
        database_file.copy_verified(workspace.database_file, target)
    assert thesis.read_bytes() == b""
    workspace.close()
