"""The client with a scripted process: responses, truncated lines, crashes, cancel, close."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from explorer.model_client.client import ModelClient
from explorer.model_client.one_shot import AT_ONCE
from tests.nightly import few_plain
from trainer.charts.point_placement import PointPlacement
from trainer.messages import Classify, EmbedTexts, Failure, Project, Saliency

SCRIPT = """
import json, os, sys, time
out = sys.stdout.buffer
def answer(ask, text):
    pid = str(os.getpid())
    return {
        "embed_texts": {"array": text, "images": [pid]},
        "saliency": {"array": text, "image": pid, "cosines": [], "steps": []},
        "project": {"layout": text, "images": 1, "texts": 1, "method": "pca", "seconds": 0, "note": "", "fitted": 2},
        "classify": {"runs": {}, "images": [], "unreadable": {}},
    }.get(ask, {})
def say(**line):
    out.write(json.dumps(line).encode() + b"\\n"); out.flush()
for raw in sys.stdin.buffer:
    q = json.loads(raw)
    text = (q.get("texts") or [q.get("snapshot") or q.get("caption", "")])[0]
    if q["ask"] == "cancel":
        say(id=q["target"], error={"kind": "cancelled", "message": "Cancelled.", "next": ""})
    elif text == "die":
        sys.stderr.write("first line\\nno more coffee: grü"); sys.stderr.flush(); os._exit(3)
    elif text == "hang":
        say(id=q["id"], progress=0.25, note="thinking")
        time.sleep(600)
    elif text == "quiet":
        pass
    elif text == "cut":
        whole = json.dumps({"id": q["id"], "answer": {"array": "grüße 猫"}}, ensure_ascii=False).encode() + b"\\n"
        for i in range(len(whole)):
            out.write(whole[i:i+1]); out.flush(); time.sleep(0.0005)
    elif text == "noise":
        out.write(b"not json\\n[1]\\n\\xff\\xfe\\n"); say(id=q["id"], answer={"array": "after noise"})
    else:
        say(id=q["id"], progress=0.5, note="half")
        say(id=q["id"], answer=answer(q["ask"], text))
"""


class Ear:
    """Records what happens to one request."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.failure: Failure | None = None
        self.told: list[tuple[float, str]] = []

    @property
    def heard(self) -> bool:
        return self.answer is not None or self.failure is not None

    def note(self, share: float, note: str) -> None:
        self.told.append((share, note))

    def done(self, answer: Any) -> None:
        assert not self.heard
        self.answer = answer

    def failed(self, failure: Failure) -> None:
        assert not self.heard
        self.failure = failure


@pytest.fixture(autouse=True)
def warm_models(cold_models: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients warm up their processes, as the program does."""
    monkeypatch.setattr(ModelClient, "warm_up", cold_models)


@pytest.fixture
def make_client(qapp: QObject, tmp_path: Path) -> Iterator[Callable[..., ModelClient]]:
    script = tmp_path / "answers.py"
    script.write_text(SCRIPT, encoding="utf-8")
    made: list[ModelClient] = []

    def make(*program: str) -> ModelClient:
        made.append(ModelClient(SimpleNamespace(folder=tmp_path), program=program or (sys.executable, str(script))))
        return made[-1]

    yield make
    for client in made:
        if shiboken6.isValid(client):
            client.close()


@pytest.fixture
def client(make_client: Callable[..., ModelClient]) -> ModelClient:
    return make_client()


def ask(client: ModelClient, text: str, **more: object) -> tuple[Ear, int]:
    ear = Ear()
    number = client.ask(
        EmbedTexts(run=1, texts=(text,)),
        done=ear.done,
        failed=ear.failed,
        progress=lambda share, note: ear.told.append((share, note)),
        **more,
    )
    return ear, number


def test_an_answer_comes_with_its_progress_and_the_states(
    qtbot: QtBot, make_client: Callable[..., ModelClient]
) -> None:
    client, states = make_client(), []
    client.state_changed.connect(lambda kind, state: states.append((kind, state)))
    assert client.state("models") == "cold"
    ear, _ = ask(client, "hello")
    assert not ear.heard
    qtbot.waitUntil(lambda: ear.heard and client.state("models") == "warm")
    assert ear.answer is not None
    assert ear.answer.array == "hello"
    assert ear.told == [(0.5, "half")]
    assert states == [("models", "warming"), ("models", "busy"), ("models", "warm")]
    assert client.state("projections") == "cold"


@few_plain(1, ("text", "answer"), [("cut", "grüße 猫"), ("noise", "after noise")])
def test_cut_lines_and_noise_do_no_harm(qtbot: QtBot, client: ModelClient, text: str, answer: str) -> None:
    ear, _ = ask(client, text)
    qtbot.waitUntil(lambda: ear.heard)
    assert ear.answer.array == answer


def test_a_dead_process_fails_its_questions_in_its_own_words_and_comes_back(qtbot: QtBot, client: ModelClient) -> None:
    dying, _ = ask(client, "die")
    behind, _ = ask(client, "hello")
    qtbot.waitUntil(lambda: dying.heard and behind.heard)
    for ear in (dying, behind):
        assert ear.failure is not None
        assert "no more coffee: grü" in ear.failure.message
        assert ear.failure.next
    again, _ = ask(client, "hello")
    qtbot.waitUntil(lambda: again.heard)
    assert again.answer is not None


def test_a_program_that_cannot_start_is_given_up_after_some_tries(
    qtbot: QtBot, make_client: Callable[..., ModelClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.model_client.worker_process.FIRST_PAUSE_MS", 1)
    client = make_client("/nowhere/at/all")
    ear, _ = ask(client, "hello")
    qtbot.waitUntil(lambda: ear.heard and client.state("models") == "gone")
    assert ear.failure is not None
    assert client.last_words("models")


def test_cancelling_a_quick_question_keeps_the_process(qtbot: QtBot, client: ModelClient) -> None:
    first, _ = ask(client, "hello")
    qtbot.waitUntil(lambda: first.heard)
    ear, number = ask(client, "quiet")
    client.cancel(number)
    qtbot.waitUntil(lambda: ear.heard)
    assert ear.failure == Failure("cancelled", "Cancelled.")
    second, _ = ask(client, "hello")
    qtbot.waitUntil(lambda: second.heard)
    assert first.answer is not None
    assert second.answer is not None
    assert first.answer.images == second.answer.images


def test_a_process_deaf_to_cancelling_is_ended_and_the_next_question_answered(
    qtbot: QtBot, make_client: Callable[..., ModelClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.model_client.worker_process.CANCEL_GRACE_MS", 50)
    client = make_client()
    ear, number = ask(client, "hang")
    qtbot.waitUntil(lambda: bool(ear.told))
    behind, _ = ask(client, "hello")
    client.cancel(number)
    qtbot.waitUntil(lambda: ear.heard and behind.heard)
    assert ear.failure is not None
    assert ear.failure.kind == "cancelled"
    assert behind.answer is not None


def test_cancelling_a_projection_ends_its_process_and_keeps_the_others_waiting(
    qtbot: QtBot, client: ModelClient
) -> None:
    hanging, waiting = Ear(), Ear()
    number = client.ask(
        Project(snapshot="hang", placement=PointPlacement(method="umap")),
        done=hanging.done,
        failed=hanging.failed,
        progress=lambda share, note: hanging.told.append((share, note)),
    )
    client.ask(Project(snapshot="quick", placement=PointPlacement()), done=waiting.done, failed=waiting.failed)
    qtbot.waitUntil(lambda: bool(hanging.told))
    client.cancel(number)
    qtbot.waitUntil(lambda: hanging.heard and waiting.heard)
    assert hanging.failure is not None
    assert hanging.failure.kind == "cancelled"
    assert waiting.answer is not None
    assert client.state("models") == "cold"


def test_a_deleted_owner_is_not_called(qtbot: QtBot, make_client: Callable[..., ModelClient]) -> None:
    client, owner = make_client(), QObject()
    orphan, _ = ask(client, "hello", owner=owner)
    owner.deleteLater()
    other, _ = ask(client, "cut")
    qtbot.waitUntil(lambda: other.heard)
    assert not orphan.heard


def test_closing_ends_a_busy_process_without_a_call_or_a_warning(
    qtbot: QtBot, client: ModelClient, capfd: pytest.CaptureFixture[str]
) -> None:
    first, _ = ask(client, "hello")
    qtbot.waitUntil(lambda: first.heard)
    ear, _ = ask(client, "hang")
    qtbot.waitUntil(lambda: bool(ear.told))
    client.close()
    client.deleteLater()
    qtbot.wait(50)
    assert first.answer is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(first.answer.images[0]), 0)
    assert not ear.heard
    assert "QProcess" not in capfd.readouterr().err


def test_a_first_projection_is_answered_before_the_kernels_of_umap_are_compiled(
    qtbot: QtBot, make_client: Callable[..., ModelClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.model_client.client.WARM_UP_AFTER_MS", 200)
    client, states, seen, hangs = make_client(), [], [], Ear()
    client.state_changed.connect(lambda: seen.append(client.state("projections")))

    def project(snapshot: str, ear: Ear) -> int:
        def done(answer: object) -> None:
            states.append(client.state("projections"))
            ear.done(answer)

        question = Project(snapshot=snapshot, placement=PointPlacement())
        return client.ask(question, done=done, failed=ear.failed, progress=ear.note)

    project("first", Ear())
    qtbot.waitUntil(lambda: len(states) == 1)
    assert "warming" not in seen, "the map of B, which follows, does not wait for the kernels either"
    qtbot.waitUntil(lambda: "warming" in seen and client.state("projections") == "warm")
    number = project("hang", hangs)
    qtbot.waitUntil(lambda: bool(hangs.told))
    project("after a restart", Ear())
    client.cancel(number)
    qtbot.waitUntil(lambda: len(states) == 2 and client.state("projections") == "warm")
    assert states == ["warm", "warming"]


def test_opening_other_models_shows_as_warming(qtbot: QtBot, client: ModelClient) -> None:
    client.warm_up([1])
    qtbot.waitUntil(lambda: client.state("models") == "warm")
    client.warm_up([1])
    assert client.state("models") == "warm"
    client.warm_up([2, 3])
    assert client.state("models") == "warming"
    ear = Ear()
    client.ask(Classify(runs=(2,), images=(), labels=("a",), templates=("{}",)), done=ear.done, failed=ear.failed)
    qtbot.waitUntil(lambda: ear.heard)
    assert client.state("models") == "warm"


def test_a_long_question_has_a_process_of_its_own_and_the_quick_ones_do_not_wait(
    qtbot: QtBot, client: ModelClient
) -> None:
    slow, quick = Ear(), Ear()
    client.ask(saliency("hello"), done=slow.done, failed=slow.failed, progress=slow.note)
    qtbot.waitUntil(lambda: slow.heard)
    client.ask(saliency("hello"), done=quick.done, failed=quick.failed)
    qtbot.waitUntil(lambda: quick.heard)
    assert slow.told == [(0.5, "half")]
    assert slow.answer.image != quick.answer.image
    assert client.state("models") == "cold"
    qtbot.waitUntil(lambda: gone(int(slow.answer.image)))


def test_cancelling_a_long_question_ends_its_process_and_lets_the_next_one_start(
    qtbot: QtBot, client: ModelClient
) -> None:
    hanging = [Ear() for _ in range(AT_ONCE)]
    numbers = [client.ask(saliency("hang"), done=e.done, failed=e.failed, progress=e.note) for e in hanging]
    waiting, never = Ear(), Ear()
    client.ask(saliency("hello"), done=waiting.done, failed=waiting.failed, progress=waiting.note)
    unasked = client.ask(saliency("hello"), done=never.done, failed=never.failed, progress=never.note)
    assert not waiting.told, "whoever asks does not know the number yet"
    qtbot.waitUntil(lambda: all(ear.told for ear in hanging))
    assert not waiting.heard
    while_two = "waiting for its turn while a saliency map is computed and a saliency map is computed"
    assert waiting.told[-1] == (0.0, while_two)
    assert never.told[-1] == (0.0, f"{while_two}, 1 before it")
    client.cancel(unasked)
    client.cancel(numbers[0])
    qtbot.waitUntil(lambda: hanging[0].heard and waiting.heard and never.heard)
    assert hanging[0].failure == never.failure == Failure("cancelled", "Cancelled.")
    assert waiting.answer is not None
    assert (0.0, "starting") in waiting.told
    assert not hanging[1].heard
    client.cancel(numbers[0])  # A question that is over already
    client.close()


def test_a_long_question_whose_process_dies_fails_in_its_words_and_stays_dead(
    qtbot: QtBot, make_client: Callable[..., ModelClient]
) -> None:
    client, ear = make_client(), Ear()
    client.ask(saliency("die"), done=ear.done, failed=ear.failed)
    qtbot.waitUntil(lambda: ear.heard)
    assert ear.failure is not None
    assert "no more coffee: grü" in ear.failure.message
    assert ear.failure.next == "Ask again."


def saliency(caption: str) -> Saliency:
    return Saliency(runs=(1,), image="a.png", caption=caption)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


ABRUPT = """
import sys
from pathlib import Path
from types import SimpleNamespace
from PySide6.QtCore import QCoreApplication, QObject, QTimer
from explorer.model_client.client import ModelClient
from trainer.messages import EmbedTexts, Project

app, window = QCoreApplication([]), QObject()
client = ModelClient(SimpleNamespace(folder=Path(sys.argv[1]).parent), window, program=(sys.executable, sys.argv[1]))
def nothing(*_): pass
def leave(*_):
    if sys.argv[2] == "delete":
        window.deleteLater()
        QTimer.singleShot(300, app.quit)
    else:
        app.quit()
client.ask(EmbedTexts(run=1, texts=("hang",)), done=nothing, failed=nothing, progress=leave)
app.exec()
"""


@few_plain(1, "how", ["delete", "quit"])
def test_a_window_that_goes_without_closing_goes_in_silence(make_client, tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", ABRUPT, str(tmp_path / "answers.py"), how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    # Qt says that it ends a program; an exception, or a crash, would be ours.
    assert [line for line in ended.stderr.splitlines() if "Destroyed while process" not in line] == []
