"""Settings survive damaged files, invalid values, locks, full or read-only disks."""

import json
import os
import random
import threading
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QLockFile

from explorer.state.settings import FILE, Settings


def test_values_and_states_come_back(qapp, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.set("a/number", 3)
    settings.set("a/list", ("x", 1.5, None))
    settings.set_state("a/state", QByteArray(b"\x00\xff"))
    settings.flush()
    del settings
    again = Settings(tmp_path)
    assert again.value("a/number") == 3
    assert again.value("a/list") == ["x", 1.5, None]
    assert again.state("a/state") == QByteArray(b"\x00\xff")
    assert again.value("nothing", "else") == "else"
    assert again.damaged is None


def test_nothing_is_lost_when_nobody_wrote_before_the_end(qapp, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.set("key", "value")
    assert Settings(tmp_path).value("key") == "value"
    del settings
    assert json.loads((tmp_path / FILE).read_text())["key"] == "value"


@pytest.mark.parametrize(
    "found", ["7", 7, 7.5, True, None, [], ["x"], {}, {"x": 1}, float("nan"), float("inf"), -1, "", 10**400]
)
def test_a_value_of_another_kind_is_as_good_as_none(qapp, tmp_path: Path, found: object) -> None:
    (tmp_path / FILE).write_text(json.dumps({"key": found}))
    settings = Settings(tmp_path)
    for default in (5, 2.5, False, "word", ["list"], {"a": 1}):
        value = settings.value("key", default)
        assert type(value) is type(default) or (isinstance(default, float) and isinstance(value, int))
    assert float(settings.value("key", 2.5)) - float(settings.value("key", 2.5)) == 0


DAMAGE = {
    "empty": b"",
    "cut": b'{"window/geometry": "AAAA", "selec',
    "binary": bytes(range(256)) * 20,
    "a list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "not utf-8": b'{"a": "\xff\xfe"}',
    "huge number": b'{"a": ' + b"9" * 6_000 + b"}",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_put_aside_and_named(qapp, tmp_path: Path, what: str) -> None:
    (tmp_path / FILE).write_bytes(DAMAGE[what])
    settings = Settings(tmp_path)
    assert settings.damaged is not None
    assert settings.damaged.read_bytes() == DAMAGE[what]
    settings.set("key", 1)
    assert settings.flush()
    assert json.loads((tmp_path / FILE).read_text()) == {"key": 1}


def test_random_damage_is_never_an_error(qapp, tmp_path: Path) -> None:
    rng, whole = random.Random(3), json.dumps({f"key/{i}": [i, "x" * i] for i in range(30)}).encode()
    for number in range(100):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / FILE).write_bytes(damaged)
        assert isinstance(Settings(folder).value("key/3", ["whole"]), list)


def test_a_lock_that_somebody_holds_stops_nobody(qapp, tmp_path: Path) -> None:
    lock = QLockFile(str(tmp_path / f"{FILE}.lock"))
    assert lock.tryLock(0)
    settings = Settings(tmp_path)
    settings.set("key", 1)
    assert settings.flush()


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_no_error(qapp, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.set("key", 1)
    tmp_path.chmod(0o500)
    assert not settings.flush()
    tmp_path.chmod(0o700)
    assert settings.flush()


def test_a_file_that_cannot_be_replaced_is_no_error(qapp, tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    settings = Settings(tmp_path)
    settings.set("key", 1)
    assert not settings.flush()
    assert settings.value("key") == 1


def test_a_slow_disk_holds_up_nobody_and_the_newest_stays(qtbot, tmp_path: Path, monkeypatch) -> None:
    replace, begun = os.replace, []

    def slowly(*files: Path) -> None:
        begun.append(threading.current_thread())
        if len(begun) == 1:
            time.sleep(0.4)
        replace(*files)

    monkeypatch.setattr(os, "replace", slowly)
    settings = Settings(tmp_path)
    settings.set("key", "old")
    qtbot.waitUntil(lambda: bool(begun), timeout=5_000)
    assert begun[0] is not threading.main_thread()
    settings.set("key", "new")
    assert settings.flush()
    begun[0].join()
    assert json.loads((tmp_path / FILE).read_text())["key"] == "new"


def test_what_is_older_does_not_overwrite_what_is_newer(qapp, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.set("key", "old")
    older = settings._stored._taken()  # of a thread that has not come to its turn yet
    settings.set("key", "new")
    assert settings.flush()
    assert settings._stored._put(*older)
    assert json.loads((tmp_path / FILE).read_text())["key"] == "new"


def test_a_reset_keeps_a_copy(qapp, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.set("key", 1)
    settings.flush()
    backup = settings.forget()
    assert backup is not None
    assert json.loads(backup.read_text()) == {"key": 1}
    assert settings.value("key") is None
    assert Settings(tmp_path).value("key") is None


def test_safe_mode_neither_reads_nor_writes(qapp, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"key": 1}')
    settings = Settings(tmp_path, remember=False)
    assert settings.value("key") is None
    settings.set("key", 2)
    assert settings.flush()
    assert (tmp_path / FILE).read_text() == '{"key": 1}'
