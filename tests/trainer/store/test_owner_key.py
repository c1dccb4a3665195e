"""The key of one's own workspaces: random, of the user alone, made once, and refused where others could know it."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests import forked_code
from trainer.config import default_paths
from trainer.store import LookOnly, Workspace, manifests, owner_key, ownership
from trainer.store.owner_key import LENGTH, NAME, NoKey

pytestmark = pytest.mark.slow

unix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no numbers of users")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test an empty configuration and return its folder, which is not there yet."""
    folder = tmp_path / "configuration" / "app"
    monkeypatch.setattr(default_paths, "user_folder", lambda: folder)
    monkeypatch.setattr(owner_key, "_READ", {})
    return folder


@unix
def test_the_key_is_random_private_and_drawn_once(folder, monkeypatch):
    assert owner_key.existing_key() is None
    assert not folder.exists()
    key = owner_key.owner_key()
    assert (len(key), stat.S_IMODE((folder / NAME).stat().st_mode)) == (LENGTH, 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == [NAME]
    monkeypatch.setattr(owner_key, "_READ", {})
    assert owner_key.owner_key() == key
    (folder / NAME).unlink()
    monkeypatch.setattr(owner_key, "_READ", {})
    assert owner_key.owner_key() != key


def test_processes_that_draw_it_at_once_have_one_key(folder):
    words = (
        "import sys; from pathlib import Path; from trainer.config import default_paths; "
        "from trainer.store import owner_key; "
        f"default_paths.user_folder = lambda: Path({str(folder)!r}); sys.stdin.readline(); "
        "print(owner_key.owner_key().hex())"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(forked_code.command(words), **pipes) for _ in range(3)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert {process.communicate()[0].strip() for process in processes} == {owner_key.owner_key().hex()}


@unix
@pytest.mark.parametrize("fault", ["readable", "of another", "folder of another", "short", "a link", "a folder"])
def test_a_key_that_is_no_secret_is_refused_in_words_and_nothing_is_mine(folder, fault, monkeypatch, tmp_path):
    workspace = Workspace(tmp_path / "space")
    assert workspace.runs.all() == []
    workspace.close()
    file = folder / NAME
    if fault == "readable":
        file.chmod(0o640)
    elif fault in ("of another", "folder of another"):
        other = file if fault == "of another" else folder
        ino = other.stat().st_ino
        monkeypatch.setattr(owner_key, "is_of_another", lambda found: found.st_ino == ino)
    elif fault == "short":
        file.write_bytes(b"x")
    else:
        key = file.read_bytes()
        file.unlink()
        (tmp_path / "elsewhere").write_bytes(key)
        file.symlink_to(tmp_path / "elsewhere") if fault == "a link" else file.mkdir()
    monkeypatch.setattr(owner_key, "_READ", {})
    with pytest.raises(NoKey, match=r"key .* (remove|Remove it|allow writing|let XDG_CONFIG_HOME)"):
        owner_key.owner_key()
    again = Workspace(workspace.folder)
    assert "your own key cannot be used" in again.look_only
    assert owner_key.trouble() in again.refusal
    with pytest.raises(NoKey):
        again.adopt()
    assert not ownership.is_seal("0" * 64, "words")


def test_a_folder_that_others_may_write_is_closed_to_them(folder):
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no numbers of users")
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    owner_key.owner_key()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_where_the_configuration_cannot_be_written_the_sentence_says_what_follows(folder, tmp_path):
    folder.parent.write_text("a file in its place")
    space = tmp_path / "space"
    with pytest.raises(LookOnly, match=r"own key cannot be used.*none can be made.*XDG_CONFIG_HOME"):
        Workspace(space).check_mine()
    assert Workspace(space).runs.all() == []
    assert not space.exists()
    # What is written without a key is read as a stranger's is.
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "a").write_text("a")
    manifests.write_manifest(draft, {}, sealed=True)
    assert not manifests.is_sealed(manifests.verified(draft))


def test_a_seal_is_of_its_words_and_key(folder, monkeypatch):
    code = ownership.seal("words")
    assert ownership.is_seal(code, "words")
    assert not ownership.is_seal(code, "other words")
    assert not any(ownership.is_seal(one, "words") for one in (None, 1, "", "é", code[:-1], "0" * 64))
    monkeypatch.setattr(owner_key, "_READ", {owner_key.path(): bytes(LENGTH)})
    assert not ownership.is_seal(code, "words")
