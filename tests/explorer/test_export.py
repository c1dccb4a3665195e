import shlex
import sys
from pathlib import Path

import pytest

from explorer.export import Exporter, file_stem, shell_command

WRITES = "import sys,pathlib; a=sys.argv; pathlib.Path(a[a.index('--out')+1]).write_text(' '.join(a[1:]))"
FAILS = """import sys; from trainer.messages import progress_line
print('trainer export: Run 9 has no snapshot. Train it first.'); print(progress_line(0, 0.9, 'Drawing'))
sys.exit(2)"""


@pytest.fixture
def exporter(qapp, tmp_path: Path):
    made: list[Exporter] = []

    def make(*program: str) -> Exporter:
        made.append(Exporter(tmp_path / "a workspace", program=program))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_an_export_is_the_views_command_with_a_file(qtbot, exporter, tmp_path: Path) -> None:
    file = tmp_path / "höhe 1.svg"
    one = exporter(sys.executable, "-c", WRITES)
    with qtbot.waitSignal(one.done, timeout=10_000) as done:
        one.start(["export", "curves", "--runs", "1"], file)
        assert len(one.running) == 1
    assert done.args[0].file == file
    assert file.read_text() == f"export curves --runs 1 --workspace {tmp_path / 'a workspace'} --out {file}"
    assert one.running == ()


def test_the_commands_own_sentence_says_why_an_export_failed(qtbot, exporter, tmp_path: Path) -> None:
    one = exporter(sys.executable, "-c", FAILS)
    with qtbot.waitSignal(one.failed, timeout=10_000) as failed:
        one.start(["export", "map"], tmp_path / "a.svg")
    assert failed.args[1] == "trainer export: Run 9 has no snapshot. Train it first."


def test_a_command_that_writes_nothing_has_failed(qtbot, exporter, tmp_path: Path) -> None:
    one = exporter(sys.executable, "-c", "pass")
    with qtbot.waitSignal(one.failed, timeout=10_000) as failed:
        one.start(["export", "map"], tmp_path / "a.svg")
    assert "wrote nothing" in failed.args[1]


def test_a_program_that_is_not_there_is_named(qtbot, exporter, tmp_path: Path) -> None:
    one = exporter(str(tmp_path / "no-such-program"))
    with qtbot.waitSignal(one.failed, timeout=10_000) as failed:
        one.start(["export", "map"], tmp_path / "a.svg")
    assert "could not start" in failed.args[1]
    assert one.running == ()


def test_a_real_trainer_explains_itself(qtbot, qapp, tmp_path: Path) -> None:
    one = Exporter(tmp_path)
    with qtbot.waitSignal(one.failed, timeout=60_000) as failed:
        one.start(["no-such-command"], tmp_path / "a.svg")
    assert "no-such-command" in failed.args[1]


def test_the_shell_reads_the_copied_command_as_it_was_meant() -> None:
    command = ["classify", "/tmp/it's a $HOME.png", "--labels", "a; rm -rf /", "ünï"]
    words = shlex.split(shell_command(command, Path("/data/my runs")))
    start = words.index("trainer")
    assert words[start + 1 :] == [*command, "--workspace", "/data/my runs"]
    assert words[:2] == ["uv", "run"]


@pytest.mark.slow
def test_a_copied_export_names_a_file() -> None:
    words = shlex.split(shell_command(["export", "curves", "--runs", "1", "2"], Path("/w")))
    assert words[words.index("--out") + 1] == "curves-1-2.svg"


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        (["export", "similarity", "--runs", "1", "2", "--k", "10"], "similarity-1-2"),
        (["export", "curves", "--runs", "CLIP demo/1"], "curves-CLIP_demo_1"),
        (["classify", "/tmp/a.png", "--runs", "3"], "classify-3"),
        (["export"], "export"),
    ],
)
def test_file_names_say_what_is_inside(command: list[str], stem: str) -> None:
    assert file_stem(command) == stem


def test_file_names_name_the_runs() -> None:
    names = {"1": "clip-emoji", "2": "CLOOB / half"}
    assert file_stem(["export", "similarity", "--runs", "1", "2"], names) == "similarity-clip-emoji-CLOOB_half"


def test_file_names_of_long_names_say_what_is_common_once() -> None:
    study = "CLOOB shares, emoji-pairs"
    names = {"1": f"{study}, CLIP, seed 0", "2": f"{study}, CLIP, seed 1", "3": f"{study}, share .25, seed 0"}
    names |= {"4": "clip", "5": "clip-2", "6": "clip", "7": "a" * 90 + "1", "8": "a" * 90 + "2"}

    def stem(*runs: str) -> str:
        return file_stem(["export", "map", "--runs", *runs], names)

    assert stem("1", "2") == "map-CLOOB_shares_emoji-pairs_CLIP_seed_0-1"
    assert stem("1", "3") == "map-CLOOB_shares_emoji-pairs_CLIP_seed_0-share_25_seed_0"
    assert stem("4", "5") == "map-clip-clip-2"
    assert stem("4", "6") == "map-clip-clip"
    assert len(stem("7", "8")) < 84
    assert stem("7", "8") != stem("8", "7")
    assert len({stem(a, b) for a in "123" for b in "123" if a != b}) == 6
