"""All long jobs are listed in one place, can be canceled there, and report their end."""

import dataclasses
import html
import http.server
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer import theme
from explorer.export import Exporter
from explorer.model_client.client import ModelClient
from explorer.run_control.jobs import Jobs
from explorer.widgets import progress_row
from explorer.widgets.progress_row import JobSlot, ProgressRow
from explorer.window import job_hooks, job_list
from explorer.window.job_hooks import JobHookRunner, JobHooks, JobHooksSheet
from explorer.window.job_list import Job, JobList
from explorer.window.job_panel import JobPanel, JobRow
from tests.builders import served
from tests.explorer.widgets import add_widget
from trainer import config
from trainer.charts.point_placement import PointPlacement
from trainer.messages import Classify, CompareSwaps, EmbedTexts, Failure, Project, Saliency
from trainer.scheduling import queue
from trainer.store import RunLog, Workspace
from trainer.store.rows import WATCHED

UMAP = PointPlacement(method="umap")
SCRIPT = """
import json, sys, time
ANSWERS = {"embed_texts": {"array": ""}, "classify": {"runs": {}, "images": [], "unreadable": {}}}
ANSWERS["saliency"] = {"array": "", "image": "", "cosines": [], "steps": []}
ANSWERS["project"] = {"layout": "", "images": 1, "texts": 1, "method": "pca", "seconds": 0, "note": "", "fitted": 2}
def say(**line):
    sys.stdout.write(json.dumps(line) + "\\n"); sys.stdout.flush()
for raw in sys.stdin:
    q = json.loads(raw)
    text = (q.get("texts") or [q.get("snapshot") or q.get("caption", "")])[0]
    if text == "hang":
        say(id=q["id"], progress=0.25, note="covering cells")
        time.sleep(600)
    elif text == "fail":
        say(id=q["id"], error={"kind": "memory", "message": "It does not fit.", "next": ""})
    else:
        say(id=q["id"], answer=ANSWERS.get(q["ask"], {}))
"""
WRITES = "import sys,pathlib; a=sys.argv; pathlib.Path(a[a.index('--out')+1]).write_text('drawn')"
HANGS = """import time; print('{"id": 0, "progress": 0.5, "note": "drawing"}', flush=True); time.sleep(600)"""
HOUR_MS = 3_600_000
"""Longer than any machine takes to answer."""


@pytest.fixture
def client(qapp, tmp_path: Path) -> Iterator[ModelClient]:
    script = tmp_path / "answers.py"
    script.write_text(SCRIPT, encoding="utf-8")
    made = ModelClient(SimpleNamespace(folder=tmp_path), program=(sys.executable, str(script)))
    yield made
    made.close()


@pytest.fixture
def make_list(make_context, client: ModelClient, tmp_path: Path) -> Iterator[Callable[..., JobList]]:
    exporters: list[Exporter] = []
    owner = QWidget()

    def make(*program: str) -> JobList:
        exporters.append(Exporter(tmp_path, program=(sys.executable, "-c", *program) if program else ("none",)))
        context = make_context()
        made = JobList(context.jobs, client, exporters[-1], owner)
        made.exporter, made.workspace, made.runs = exporters[-1], context.workspace, context.jobs
        made.heard = []
        made.ended.connect(made.heard.append)
        return made

    yield make
    for exporter in exporters:
        exporter.close()
    owner.deleteLater()


def _ask(client: ModelClient, caption: str) -> list[Failure]:
    failures: list[Failure] = []
    client.ask(Saliency(runs=(1,), image="i", caption=caption), done=lambda _: None, failed=failures.append)
    return failures


def test_an_export_is_listed_and_its_folder_is_its_result(qtbot, make_list, tmp_path: Path) -> None:
    jobs = make_list(WRITES)
    jobs.exporter.start(["export", "curves"], tmp_path / "curves.svg")
    assert [(job.kind, job.title, job.state) for job in jobs.active] == [("Export", "curves.svg", "running")]
    qtbot.waitUntil(lambda: bool(jobs.heard))
    assert (jobs.past[0].state, jobs.past[0].show[0], jobs.active) == ("finished", "Open folder", [])


def test_an_export_is_cancelled_from_the_panel(qtbot, make_list, tmp_path: Path, dressed) -> None:
    jobs, window = make_list(HANGS), QWidget()
    qtbot.addWidget(window)
    window.resize(900, 600)
    panel = JobPanel(window)
    panel.show_jobs(jobs)
    window.show()
    panel.toggle()
    assert not panel.rows
    jobs.exporter.start(["export", "curves"], tmp_path / "curves.svg")
    (row,) = panel.rows.values()
    qtbot.waitUntil(lambda: row.note.text() == "drawing")
    assert row.button.accessibleName() == "Cancel: Export, curves.svg"
    where, high = row.mapToGlobal(QPoint()), panel.height()
    enter = QEnterEvent(QPointF(9, 9), QPointF(9, 9), QPointF(9, 9))
    QApplication.sendEvent(panel, enter)
    jobs.exporter.start(["export", "curves"], tmp_path / "second.svg")
    assert (len(panel.rows), row.mapToGlobal(QPoint()), panel.height()) == (2, where, high)
    QApplication.sendEvent(panel, QEvent(QEvent.Type.Leave))
    assert panel.height() > high
    jobs.exporter.cancel(jobs.exporter.running[1])
    jobs.clear()
    qtbot.mouseClick(row.button, Qt.MouseButton.LeftButton)
    assert jobs.past[0].state == "cancelled"
    assert jobs.exporter.running == ()
    row.refresh()
    assert row.note.text() == "Cancelled"
    assert list(panel.rows.values()) == [row], "an ended job keeps its place"
    qtbot.mouseClick(panel.clear, Qt.MouseButton.LeftButton)
    assert not panel.rows
    qtbot.keyClick(panel, Qt.Key.Key_Escape)
    assert panel.isHidden()


def test_a_question_is_a_job_once_it_takes_longer_than_a_moment(
    qtbot, make_list, client: ModelClient, monkeypatch
) -> None:
    jobs = make_list()
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", 50)
    with qtbot.waitSignal(jobs.changed):
        failures = _ask(client, "hang")
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", HOUR_MS)
    assert jobs.active == []
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", 0)
    assert len(jobs.active) == 1
    (job,) = jobs.active
    qtbot.waitUntil(lambda: job.share == 0.25)
    assert (job.kind, job.title, job.view, job.note) == ("Saliency map", "“hang”", "inspect", "covering cells")
    assert job.expected_s is None, "one report of progress is no pace"
    job.cancel()
    qtbot.waitUntil(lambda: bool(failures))
    assert failures[0].kind == "cancelled"
    assert jobs.past[0].state == "cancelled"


def test_a_job_is_counted_also_where_the_timer_was_early(qtbot, make_list, client: ModelClient, monkeypatch) -> None:
    jobs, clock, start = make_list(), time.monotonic, time.monotonic()
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", 200)
    monkeypatch.setattr(job_list, "time", SimpleNamespace(monotonic=lambda: start + 0.9 * (clock() - start)))
    seen: list[int] = []
    jobs.changed.connect(lambda: seen.append(len(jobs.active)))
    _ask(client, "hang")
    qtbot.waitUntil(lambda: 1 in seen)
    jobs.active[0].cancel()


def test_the_time_left_is_told_from_the_pace_since_progress_began(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress_row.time, "monotonic", lambda: now[0])
    left = progress_row.TimeLeft()
    for now[0], share, expected in (
        (90.0, 0.0, None),  # it has only started
        (100.0, 0.3, None),
        (101.0, 0.31, None),
        (110.0, 0.5, 25.0),  # a fifth in 10 s, half is left
        (120.0, 0.1, None),  # it counts anew
        (130.0, 0.55, 10.0),
    ):
        found = left.estimate(share)
        assert found == (None if expected is None else pytest.approx(expected)), share


def test_a_projection_is_listed_by_the_name_of_its_run(qtbot, make_list, client: ModelClient, monkeypatch) -> None:
    jobs = make_list()
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", 0)
    row = SimpleNamespace(short_name="CLIP · s0", folder=Path("/w/runs/clip"))
    monkeypatch.setattr(type(jobs._runs), "runs", [row], raising=False)
    client.ask(
        Project(snapshot="/w/runs/clip/snapshots/a", placement=UMAP),
        done=lambda _: None,
        failed=lambda _: None,
    )
    assert [job.title for job in jobs.active] == ["UMAP, CLIP · s0"]


@pytest.mark.parametrize(("pictures", "titles"), [(2, ["2 pictures"]), (0, [])])
def test_a_classification_is_a_job_if_it_has_pictures(
    qtbot, make_list, client: ModelClient, monkeypatch, pictures: int, titles: list[str]
) -> None:
    jobs, answers = make_list(), []
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", 0)
    question = Classify(runs=(1,), images=("a.png", "b.png")[:pictures], labels=("red",), templates=("{}",))
    client.ask(question, done=answers.append, failed=answers.append)
    assert [job.title for job in jobs.active] == titles
    qtbot.waitUntil(lambda: bool(answers))
    assert len(jobs.heard) == len(titles), "labels alone are not told"


def test_swapped_words_of_inspect_are_no_classification(
    qtbot, make_list, client: ModelClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.window.job_list.LISTED_AFTER_MS", 0)
    jobs = make_list()
    labels = ("a red cube", "a blue cube")
    question = CompareSwaps(runs=(1,), images=("a.png",), labels=labels, templates=("{}",))
    client.ask(question, done=lambda _: None, failed=lambda _: None)
    qtbot.waitUntil(lambda: bool(jobs.active or jobs.past))
    (job,) = (*jobs.active, *jobs.past)
    assert (job.kind, job.title, job.view) == ("Comparison of swapped words", "“a red cube”", "inspect")


def test_what_is_answered_at_once_is_never_listed(qtbot, make_list, client: ModelClient, monkeypatch) -> None:
    jobs, answers = make_list(), []
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", HOUR_MS)
    client.ask(Project(snapshot="quick", placement=UMAP), done=answers.append, failed=answers.append)
    client.ask(EmbedTexts(run=1, texts=("quick",)), done=answers.append, failed=answers.append)
    qtbot.waitUntil(lambda: len(answers) == 2)
    assert (jobs.active, jobs.past, jobs.heard) == ([], [], [])


def test_a_question_goes_on_when_its_owner_is_gone_and_tells_its_end(
    qtbot, make_list, client: ModelClient, monkeypatch
) -> None:
    jobs, owner = make_list(), QWidget()
    monkeypatch.setattr(job_list, "LISTED_AFTER_MS", 0)
    client.ask(Saliency(runs=(1,), image="i", caption="fail"), done=lambda _: None, failed=lambda _: None, owner=owner)
    owner.deleteLater()
    qtbot.waitUntil(lambda: bool(jobs.heard))
    assert (jobs.heard[0].state, jobs.heard[0].note) == ("failed", "It does not fit.")


def test_what_a_view_computes_is_listed_and_cancelled(qtbot, make_list) -> None:
    jobs, slot = make_list(), JobSlot()
    view = QWidget()
    view.job_slot, view.title = slot, "Changes"
    qtbot.addWidget(view)
    working = ProgressRow("changes-working", view)
    jobs.watch("changes", view)
    ticket = working.start()
    ticket(0.5, "comparing")
    qtbot.waitUntil(lambda: len(jobs.active) == 1)
    qtbot.waitUntil(lambda: jobs.active[0].note == "comparing")
    assert (jobs.active[0].kind, jobs.active[0].title, jobs.active[0].view) == ("Chart", "Changes", "changes")
    jobs.active[0].cancel()
    assert ticket.cancelled
    qtbot.waitUntil(lambda: not jobs.active)
    assert jobs.heard == []
    working.start()(0.5, "comparing")
    qtbot.waitUntil(lambda: len(jobs.active) == 1)
    working.end()
    qtbot.waitUntil(lambda: not jobs.active)
    assert jobs.past == [], "a chart that is drawn shows itself"


def test_a_watch_is_a_job_that_says_what_it_does_and_is_stopped(qtbot, make_list) -> None:
    jobs = make_list()
    workspace: Workspace = jobs.workspace
    data = config.NoData(called="val", source="/logs/theirs")
    number = workspace.runs.create(config.run_elsewhere("theirs", data))
    workspace.runs.add_facts(number, {WATCHED: data.source})
    with RunLog.claim(workspace, number) as log:
        log.progress(step=30, total_steps=120, phase="embedding epoch_3.pt")
        jobs.runs.watch()
        qtbot.waitUntil(lambda: len(jobs.active) == 1)
        (job,) = jobs.active
        assert (job.kind, job.note, job.share) == ("Watch", "embedding epoch_3.pt", 0.25)
        job.cancel()
        qtbot.waitUntil(lambda: workspace.runs.asked(number) == "stop")
        log.status("stopped")
    qtbot.waitUntil(lambda: not jobs.active)
    assert [job.state for job in jobs.past] == ["cancelled"]


def test_trainings_and_the_queue_are_jobs(qtbot, make_list) -> None:
    jobs = make_list()
    workspace: Workspace = jobs.workspace
    queue.choose_slots(workspace, held=True)
    waits = workspace.runs.create(config.Run(name="waits"), status="queued")
    next_one = workspace.runs.create(config.Run(name="next"), status="queued")
    queue.move(workspace, [next_one], 0)
    trains = workspace.runs.create(config.Run(name="trains"))
    with RunLog.claim(workspace, trains) as log:
        log.progress(step=30, total_steps=120, eta_s=90.0)
        runs: Jobs = jobs.runs
        runs.watch()
        qtbot.waitUntil(lambda: len(jobs.active) == 3)
        first, before, second = jobs.active
        assert (before.title, before.note, second.note) == (
            "CLIP · next",
            "Number 1 in the queue",
            "Number 2 in the queue",
        )
        before.cancel()
        qtbot.waitUntil(lambda: len(jobs.active) == 2 and second.note == "Number 1 in the queue")
        assert (first.title, first.state, first.share, first.expected_s) == ("CLIP · trains", "running", 0.25, 90.0)
        assert (second.title, second.state) == ("CLIP · waits", "waiting")
        queued_at = second.began = second.began - 100
        started = {"status": "running", "started_at": time.time()}
        jobs._take_runs([dataclasses.replace(row, **started if row.id == waits else {}) for row in runs.runs])
        assert second.state == "running"
        assert second.began > queued_at, "what it waited is not what it took"
        second.cancel()
        qtbot.waitUntil(lambda: len(jobs.active) == 1)
        assert workspace.runs.get(waits).status == "stopped"
        log.status("finished")
    qtbot.waitUntil(lambda: not jobs.active)
    assert [(job.title, job.state) for job in jobs.past] == [
        ("CLIP · trains", "finished"),
        ("CLIP · waits", "cancelled"),
        ("CLIP · next", "cancelled"),
    ]


class DesktopDouble:
    """Records desktop notifications."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, bool]] = []

    def show_message(self, title: str, text: str, *, warns: bool = True) -> bool:
        self.told.append((title, text, warns))
        return True


def _ended(state: str = "finished", **more) -> Job:
    return Job(1, "Training", "clip; rm -rf ~\n\0$(x)", state=state, took_s=65.0, **more)


@pytest.fixture
def make_runner(qtbot, tmp_path: Path) -> Callable[..., JobHookRunner]:
    owner = add_widget(qtbot, QWidget())

    def make(*, runs: bool = True) -> JobHookRunner:
        desktop = DesktopDouble()
        made = JobHookRunner(desktop, tmp_path / "workspace", tmp_path / "user", owner, runs=runs)
        made.desktop = desktop
        return made

    return make


def test_the_desktop_is_told_of_what_ended_and_not_of_what_the_person_cancelled(make_runner) -> None:
    runner = make_runner()
    runner.job_ended(_ended())
    runner.job_ended(_ended("failed", note="The disk is full."))
    runner.job_ended(_ended("cancelled"))
    runner.job_ended(Job(2, "Projection", "UMAP", state="finished", took_s=2.0))
    titles = [(title.partition(":")[0], text, warns) for title, text, warns in runner.desktop.told]
    assert titles == [
        ("Training finished", "It took 1 min 05 s.", False),
        ("Training failed", "The disk is full.", True),
    ]
    runner.choose(JobHooks(desktop=False))
    runner.job_ended(_ended())
    assert len(runner.desktop.told) == 2


def test_a_command_gets_facts_as_variables_and_no_shell_reads_them(qtbot, make_runner, tmp_path: Path) -> None:
    out, runner = tmp_path / "out file", make_runner()
    program = tmp_path / "note.py"
    program.write_text(
        "import json,os,sys; f={k:v for k,v in os.environ.items() if k.startswith('CONTRASTIVE_JOB')};"
        "open(sys.argv[1]+'.part','w').write(json.dumps(f)); os.replace(sys.argv[1]+'.part', sys.argv[1])"
    )
    runner.choose(JobHooks(command=f"{sys.executable} {program} '{out}'"))
    runner.job_ended(_ended())
    qtbot.waitUntil(out.exists)
    facts = json.loads(out.read_text())
    assert facts["CONTRASTIVE_JOB_TITLE"] == "clip; rm -rf ~$(x)"
    assert (facts["CONTRASTIVE_JOB_STATE"], facts["CONTRASTIVE_JOB_SECONDS"]) == ("finished", "65.0")
    assert job_hooks.read(tmp_path / "user") == runner.hooks


def test_hooks_are_never_read_from_the_workspace_and_not_run_in_safe_mode(make_runner, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    job_hooks.write(tmp_path / "workspace", JobHooks(command="touch owned"))
    assert make_runner().hooks == JobHooks()
    job_hooks.write(tmp_path / "user", JobHooks(command=f"{sys.executable} -c 'open(1/0)'", webhook="http://x.invalid"))
    safe, heard = make_runner(runs=False), []
    safe.failed.connect(heard.append)
    safe.job_ended(_ended())
    assert heard == []
    assert len(safe.desktop.told) == 1


@pytest.mark.parametrize("content", [b"[1]", b"{", b'{"command": 3, "desktop": "yes"}', b"[" * 100_000])
def test_a_damaged_file_of_hooks_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / job_hooks.FILE).write_bytes(content)
    assert job_hooks.read(tmp_path) == JobHooks()


@pytest.fixture
def listener() -> Iterator[tuple[str, list[dict]]]:
    heard: list[dict] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response({"/ok": 204, "/endless": 200}.get(self.path, 500))
            self.end_headers()
            try:
                for _ in range(10_000 if self.path == "/endless" else 0):
                    self.wfile.write(b"x" * 100_000)
            except OSError:
                heard.append("cut")

        def log_message(self, *_args) -> None:
            pass

    with served(Handler) as address:
        yield address, heard


def test_a_webhook_gets_json_and_its_failure_is_told(qtbot, make_runner, listener) -> None:
    address, heard = listener
    runner = make_runner()
    runner.choose(JobHooks(webhook=f"{address}/ok"))
    runner.job_ended(_ended())
    qtbot.waitUntil(lambda: bool(heard))
    assert (heard[0]["kind"], heard[0]["state"], heard[0]["seconds"]) == ("Training", "finished", 65.0)
    runner.choose(JobHooks(webhook=f"{address}/wrong"))
    with qtbot.waitSignal(runner.failed) as told:
        runner.job_ended(_ended())
    assert "webhook" in told.args[0]


def test_a_title_calls_nobody_and_makes_no_link_in_a_chat() -> None:
    text = "@everyone <!channel> <http://evil.example|click> [a](http://evil.example) a & b"
    body = job_hooks.message(text)
    assert body["allowed_mentions"] == {"parse": []}
    assert "&lt;!channel&gt;" in body["text"]
    assert "a &amp; b" in body["text"]
    for shown in (body["text"], body["content"]):
        assert not re.search(r"@everyone|<|http://|(?<!\\)\]\(", shown.replace("\\<", ""))
        assert re.sub(r"[\\\u200b]", "", html.unescape(shown)) == text


def test_an_answer_without_an_end_is_not_read(qtbot, make_runner, listener, monkeypatch) -> None:
    monkeypatch.setattr(job_hooks, "TIMEOUT_MS", 90_000)  # a busy machine may take longer than a webhook may
    address, heard = listener
    runner, failures = make_runner(), []
    runner.failed.connect(failures.append)
    runner.choose(JobHooks(webhook=f"{address}/endless"))
    runner.job_ended(_ended())
    qtbot.waitUntil(lambda: "cut" in heard or bool(failures), timeout=20_000)
    assert failures == []  # it was accepted
    assert "cut" in heard


def test_the_sheet_refuses_what_cannot_run(qtbot, dressed) -> None:
    sheet, chosen = JobHooksSheet(JobHooks()), []
    sheet.chosen.connect(chosen.append)
    qtbot.addWidget(sheet)
    sheet.show()
    sheet.command.setText("no-such-program-at-all now")
    assert not sheet.confirm.isEnabled()
    assert "no-such-program-at-all" in sheet.message.text()
    sheet.command.setText("'unclosed")
    assert "quotes" in sheet.message.text()
    sheet.command.setText("")
    sheet.webhook.setText("file:///etc/passwd")
    assert not sheet.confirm.isEnabled()
    sheet.webhook.setText("https://example.org/hook")
    qtbot.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    assert chosen == [JobHooks(True, "", "https://example.org/hook")]


def test_a_job_that_says_nothing_yet_says_that_it_starts(qtbot, dressed) -> None:
    row = add_widget(qtbot, JobRow(Job(1, "Evaluation", "clip"), lambda job: None))
    assert row.note.text() == "Starting…"
    assert row.bar.maximum() == 0
    row.job.share, row.job.note = 0.5, "half of it"
    row.refresh()
    assert row.note.text() == "half of it"
    assert (row.bar.value(), row.bar.maximum()) == (500, 1000)
    theme.theme().reduced_motion = True
    try:
        row.job.share = 0.0
        row.refresh()
        assert row.bar.maximum() == 1000
    finally:
        theme.theme().reduced_motion = False
