"""A run keeps one look: its hue is the arm, its tone the seed, and charts of many runs draw it in both."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.trainer.experiments.conftest import end
from trainer import config
from trainer.__main__ import main
from trainer.analysis import palette
from trainer.charts import curves
from trainer.charts.marks import (
    NumberRow,
    NumberTable,
    Panel,
    Series,
    XYPlot,
    axis_over,
    dash_of,
    hue_of,
    letter_index,
    own_tone,
    run_tone,
)
from trainer.charts.run_tones import in_run_colors, with_sides
from trainer.charts.snapshot_label import told_apart
from trainer.charts.spec import Request, targets_of
from trainer.config.objectives.image_text import InfoLoobPair
from trainer.experiments.experiment import Arm, Experiment
from trainer.experiments.run_style import RunStyle, arm_hues, run_style, side_styles, styles_of
from trainer.render_mpl.xy_plot import draw_plot, tone_color
from trainer.store import RunLog, Workspace


@pytest.fixture
def six(workspace: Workspace, stored: Experiment) -> list[int]:
    """Three seeds of two arms, and a run of no experiment between them."""
    made = []
    for seed in range(3):
        for arm in stored.arms:
            run = workspace.runs.create(stored.run_of(arm, seed), status="queued", experiment="duel", arm=arm.name)
            end(workspace, run, {"image_to_text_R@1": 0.5 + 0.01 * seed})
            made.append(run)
        if seed == 0:
            workspace.runs.create(config.Run(name="lone", objective=config.Cloob()), status="queued")
    return made


def test_hue_is_the_arm_tone_the_seed_and_the_second_arm_is_dashed(workspace: Workspace, six: list[int]):
    styles = run_style(workspace.runs.all())
    assert [styles[run] for run in six] == [RunStyle(hue, tone) for tone in range(3) for hue in range(2)]
    assert styles[3] == RunStyle(2, 0), "a run of no experiment takes the next hue"
    assert [bool(dash_of(run_tone(styles[run].hue))) for run in six] == [False, True] * 3
    for name in ("other rate", "third"):
        workspace.runs.create(config.Run(name=name), status="queued")
    hues = [style.hue for run, style in sorted(run_style(workspace.runs.all()).items()) if run not in six]
    assert hues == [2, 3, 4], "each other training is another hue"
    sides = side_styles(styles_of(workspace), (six[1], six[3], six[1]))
    assert sides == (RunStyle(1, 0), RunStyle(1, 1), RunStyle(1, 2)), "one run at two steps, and none like another run"
    swapped = side_styles(styles_of(workspace), (six[1], six[0]))
    assert [bool(dash_of(own_tone(run_tone(place), swapped))) for place in (0, 1)] == [True, False]


def test_a_run_keeps_its_look_when_others_come_or_go(workspace: Workspace, stored: Experiment, six: list[int]):
    before = run_style(workspace.runs.all())
    workspace.runs.change(six[2], deleted_at=1.0)
    left = run_style(workspace.runs.all())
    assert six[2] not in left
    assert {run: before[run] for run in left} == left
    workspace.runs.create(stored.run_of(stored.control, 3), status="queued", experiment="duel", arm="CLIP")
    assert run_style(workspace.runs.all()).items() >= left.items()


def test_an_objective_keeps_its_hue_and_experiments_that_follow_each_other_share_no_color(workspace, stored, six):
    before = styles_of(workspace)
    made = {"duel": [before[run] for run in six]}
    for name in ("second", "third"):
        assert arm_hues(workspace, name, stored.arms) == (0, 1), "before its first run, too"
        for seed in range(3):
            for arm in stored.arms:
                workspace.runs.create(stored.run_of(arm, seed), status="queued", experiment=name, arm=arm.name)
        made[name] = [styles_of(workspace)[row.id] for row in workspace.runs.of_experiment(name)]
        assert [style.hue for style in made[name]] == [0, 1] * 3
        assert {style.symbol for style in made[name]} == {len(made) - 1}, "which tells the third from the first"
    for first, second in (("duel", "second"), ("second", "third")):
        shades = {palette.run_shade(*style[:2]) for name in (first, second) for style in made[name]}
        assert len(shades) == 12, "no two runs of both have one color"
    assert styles_of(workspace).items() >= before.items()
    runs = [workspace.runs.of_experiment(name)[0].id for name in ("duel", "second", "third")]
    drawn = in_run_colors(panel_of(3), workspace, Request(targets_of(runs))).mark("p")
    axes = Figure().subplots()
    draw_plot(axes, drawn)
    assert [line.get_marker() for line in axes.lines] == ["", "s", "^"], "in a file, too"
    run = runs[1]
    assert len({*side_styles(styles_of(workspace), (run, run))}) == 2, "at two steps, whatever its tone"


def test_of_two_arms_of_one_objective_the_first_has_its_hue_and_a_new_objective_the_next(workspace, stored, six):
    clip, cloob = stored.arms
    infoloob = Arm("InfoLOOB", replace(clip.run, objective=InfoLoobPair()))
    slow = Arm("slow CLIP", clip.run)
    arms = (infoloob, cloob, slow, clip)
    hues = arm_hues(workspace, "four", arms)
    assert hues == (3, 1, 0, 4), "2 is that of the lone run"
    for arm in arms:
        workspace.runs.create(stored.run_of(arm, 0), status="queued", experiment="four", arm=arm.name)
    assert arm_hues(workspace, "four", arms) == hues
    assert arm_hues(workspace, "five", (clip, infoloob)) == (0, 3)


def test_arms_of_one_experiment_never_share_a_color_of_the_cycle(workspace: Workspace, stored: Experiment):
    control, colors = stored.control, len(palette.ON_LIGHT)
    for at in range(colors):
        workspace.runs.create(config.Run(name=f"lone {at}"), status="queued")
    hues = arm_hues(workspace, "many", [Arm(f"arm {at}", control.run) for at in range(colors)])
    assert len({hue % colors for hue in hues}) == colors


def test_runs_of_no_experiment_keep_their_look_too(workspace: Workspace, stored: Experiment):
    lone = [workspace.runs.create(config.Run(name=name), status="queued") for name in ("one", "two", "three")]
    before = styles_of(workspace)
    assert [before[run] for run in lone] == [RunStyle(0, 0), RunStyle(1, 0), RunStyle(2, 0)]
    arms = [
        workspace.runs.create(stored.run_of(arm, 0), status="queued", experiment="duel", arm=arm.name)
        for arm in stored.arms
    ]
    assert styles_of(workspace).items() >= before.items(), "an experiment begins"
    assert [styles_of(workspace)[run].hue for run in arms] == [3, 4], "its arms are not mistaken for runs before it"
    workspace.runs.change(lone[0], deleted_at=1.0)
    later = workspace.runs.create(config.Run(name="later"), status="queued")
    assert styles_of(workspace).items() >= before.items(), "a run is deleted, another is made"
    assert styles_of(workspace)[later] == RunStyle(5, 0)


def lab(color: str) -> tuple[float, float, float]:
    """Return CIELAB of an sRGB color, of the white D65."""
    srgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(to_xyz) @ linear / (0.95047, 1, 1.08883)
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(first: tuple[float, float, float], second: tuple[float, float, float]) -> float:
    """Return the difference of two colors of CIELAB (Sharma, Wu and Dalal, 2005)."""
    lightness, a, b = np.array([first, second]).T
    seventh = np.hypot(a, b).mean() ** 7
    a = a * (1.5 - 0.5 * np.sqrt(seventh / (seventh + 25**7)))
    chroma, hue = np.hypot(a, b), np.degrees(np.arctan2(b, a)) % 360
    turn = (hue[1] - hue[0] + 180) % 360 - 180
    mean_l, mean_c, mean_h = lightness.mean(), chroma.mean(), hue[0] + turn / 2
    t = 1 - 0.17 * cosine(mean_h - 30) + 0.24 * cosine(2 * mean_h)
    t += 0.32 * cosine(3 * mean_h + 6) - 0.2 * cosine(4 * mean_h - 63)
    by_l = np.ptp(lightness) / (1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2))
    by_c = (chroma[1] - chroma[0]) / (1 + 0.045 * mean_c)
    by_h = 2 * np.sqrt(chroma.prod()) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * mean_c * t)
    rotation = np.sin(np.radians(60 * np.exp(-((((mean_h % 360) - 275) / 25) ** 2))))
    twist = -2 * np.sqrt(mean_c**7 / (mean_c**7 + 25**7)) * rotation
    return float(np.sqrt(by_l**2 + by_c**2 + by_h**2 + twist * by_c * by_h))


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def test_differences_of_colors_are_those_that_are_published():
    blue = (50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485)
    assert ciede2000(*blue) == pytest.approx(2.0425, abs=1e-4)
    assert ciede2000((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387)) == pytest.approx(1.2644, abs=1e-4)


@pytest.mark.parametrize("dark", [False, True])
def test_every_tone_of_a_hue_is_seen_and_is_another(dark: bool):
    grounds = palette.DARK_GROUNDS if dark else palette.LIGHT_GROUNDS
    for hue in range(len(palette.ON_LIGHT)):
        shades = [palette.run_shade(hue, tone, dark) for tone in range(palette.TONES)]
        assert shades[0] == (palette.ON_DARK if dark else palette.ON_LIGHT)[hue]
        assert min(palette.contrast(shade, ground) for shade in shades for ground in grounds) >= 3
        assert palette.run_shade(hue, palette.TONES, dark) == shades[0]
        lightness, a, b = np.transpose([*map(lab, shades[1:])])
        assert lightness.min() >= 27.5, "beyond, a thin line looks black"
        assert lightness.max() <= 85, "or white"
        chroma = np.hypot(*lab(shades[0])[1:])
        assert np.hypot(a, b).min() >= 0.74 * chroma, "a brown or a gray is not its hue"
        others = [palette.run_shade(other, tone, dark) for other in range(hue) for tone in range(2)]
        assert all(ciede2000(lab(mine), lab(other)) >= 9 for mine in shades[:2] for other in others), hue
        for seeds, least in ((2, 18), (3, 10), (palette.TONES, 3)):
            apart = min(ciede2000(*map(lab, pair)) for pair in combinations(shades[:seeds], 2))
            assert apart >= least, (hue, shades[:seeds])


def panel_of(count: int) -> Panel:
    x = np.arange(2.0)
    lines = tuple(Series(f"run {at}", run_tone(at), x, x) for at in range(count))
    table = NumberTable("t", "T", tuple("abcdef"[:count]), (NumberRow("n", "", (1.0,) * count),))
    return Panel(title="P", rows=((XYPlot("p", "P", axis_over("x", [x]), axis_over("y", [x]), lines), table),))


def test_charts_of_many_runs_draw_each_in_its_own_color(workspace: Workspace, six: list[int]):
    styles = run_style(workspace.runs.all())
    drawn = in_run_colors(panel_of(6), workspace, Request(targets_of(six)))
    tones = [line.tone for line in drawn.mark("p").curves]
    assert [tone_color(tone).lower() for tone in tones] == [
        palette.run_shade(s.hue, s.tone) for s in map(styles.get, six)
    ]
    assert [bool(dash_of(tone)) for tone in tones] == [False, True] * 3
    assert drawn.mark("t").tones == tuple(tones)
    assert len({hue_of(tone) for tone in tones}) == 6
    ten = with_sides(panel_of(10), [(at % 2, at // 2) for at in range(10)]).mark("p").curves
    assert len({tone_color(curve.tone) for curve in ten}) == 10
    two = panel_of(2)
    both = in_run_colors(two, workspace, Request(targets_of([six[1], six[0]])))
    assert both.mark("t").tones == ("run_a=run_b:0", "run_b=run_a:0"), "letter, hue and lightness"
    assert [letter_index(tone) for tone in both.mark("t").tones] == [0, 1]
    seeds = in_run_colors(two, workspace, Request(targets_of([six[0], six[2]]))).mark("p").curves
    assert [bool(dash_of(curve.tone)) for curve in seeds] == [False, True], "of one hue the letters are told by dashes"


def test_what_is_no_run_keeps_its_color_among_many_runs(workspace: Workspace, six: list[int]):
    x = np.arange(2.0)
    of_run = XYPlot(
        "p", "P", axis_over("x", [x]), axis_over("y", [x]), (Series("images", "first", x, x),), tone=run_tone(2)
    )
    drawn = in_run_colors(Panel(title="P", rows=((of_run,),)), workspace, Request(targets_of(six))).mark("p")
    style = run_style(workspace.runs.all())[six[2]]
    assert tone_color(drawn.tone).lower() == palette.run_shade(style.hue, style.tone)
    assert drawn.curves == of_run.curves


def test_files_of_many_runs_have_their_short_names_and_json_has_both(workspace, six, tmp_path: Path, capsys):
    for run in six[:3]:
        workspace.runs.change(run, status="running")
        with RunLog.claim(workspace, run) as log:
            for step in (1, 2):
                log.scalars(step, {"train/loss": 1.0 / step})
            log.status("finished")
    rows = [workspace.runs.get(run) for run in six[:3]]
    assert all(row.short_name != row.name for row in rows)
    names = [*map(str, six[:3])]
    where = ["--workspace", str(workspace.folder)]
    files = [str(tmp_path / "c.svg"), str(tmp_path / "c.csv")]
    assert (
        main(["export", curves.CHART.name, "--runs", *names, "--metrics", "train/loss", "--out", *files, *where]) == 0
    )
    for file in map(Path, files):
        text = file.read_text()
        assert all(row.short_name in text and row.name not in text for row in rows), file
    capsys.readouterr()
    assert main(["compare", *names, "--json", *where]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(run["name"], run["label"]) for run in runs] == [(row.name, row.short_name) for row in rows]
    assert main(["runs", "list", *where]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["ID", "LABEL", "NAME"]
    assert "CLIP · s0" in first or "CLOOB · s" in first


def test_a_step_is_added_only_where_one_run_is_shown_at_two():
    assert told_apart(["CLIP · s0", "CLOOB · s0"], [10, 20]) == ["CLIP · s0", "CLOOB · s0"]
    assert told_apart(["CLIP · s0", "CLIP · s0", "B"], [10, 20, 5]) == ["CLIP · s0, step 10", "CLIP · s0, step 20", "B"]
