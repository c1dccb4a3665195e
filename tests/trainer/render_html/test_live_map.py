"""Maps for a browser: what the page carries equals the chart, hostile captions stay text, and a browser draws them."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.nightly import few_plain
from trainer.charts.colored_points import ColoredPoints
from trainer.charts.map import MapChart
from trainer.charts.marks import FEW_LIT
from trainer.errors import UserError
from trainer.render_html import live_map
from trainer.render_html.live_map import LiveMapInput

N = 60
HOSTILE = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>'


def chart(n: int = N, **changes: object) -> MapChart:
    rng = np.random.default_rng(3)
    values = {
        "run": 1,
        "name": HOSTILE,
        "objective": "clip",
        "step": 24,
        "dataset": "scenes",
        "split": "renderings",
        "n": n,
        "sampled": False,
        "method": "pca",
        "parameters": "",
        "images": rng.normal(size=(n, 2)),
        "texts": rng.normal(size=(n, 2)) + 3,
        "captions": (HOSTILE, *(f"caption {i}" for i in range(1, n))),
        "paths": tuple(f"{i}.png" for i in range(n)),
        "colors": ColoredPoints("label", ("red", "blue"), np.arange(n) % 2),
    }
    return MapChart(**{**values, **changes})  # type: ignore[arg-type]


def inputs(n: int = N) -> list[LiveMapInput]:
    cosines = np.linspace(
        -0.0277, 0.9252, n, dtype=np.float32
    )  # as the store keeps them: ends of -.02800000086 and .92599999905
    return [LiveMapInput(chart(n), cosines), LiveMapInput(chart(n, name="B"), cosines[::-1])]


def squares(paths: object, side: int) -> list[np.ndarray | None]:
    return [None if place % 2 else np.full((side, side, 3), 200, np.uint8) for place, _ in enumerate(paths)]


def test_places_colors_and_cosines_come_back_from_the_page():
    maps = inputs()
    section = live_map.section(live_map.live_map(maps, squares))
    (packed,) = re.findall(r'id="live-data">([^<]*)<', section)
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    one, source = data["maps"][0], maps[0]
    x, y = (np.frombuffer(base64.b64decode(one[axis]), "<u2").astype(np.float64) for axis in "xy")
    points = np.concatenate([source.chart.images, source.chart.texts])
    side = (points.max(axis=0) - points.min(axis=0)).max()
    for i in range(2 * N):  # distances on the page are those of the map, but for the rounding
        wanted = np.hypot(*(points[i] - points[0])) / side * 0.94 * 65_535
        assert np.hypot(x[i] - x[0], y[i] - y[0]) == pytest.approx(wanted, abs=2)
    assert (y[0] - y[1]) * (points[0, 1] - points[1, 1]) < 0  # a page counts downward
    cosines = np.frombuffer(base64.b64decode(one["cosines"]), "<i2") / 32_767
    assert np.abs(cosines - source.cosines).max() <= 0.5 / 32_767 + 1e-12
    colors = np.frombuffer(base64.b64decode(one["colors"]), "<u4")
    shown = ["#" + "".join(f"{int(c) >> shift & 255:02x}" for shift in (0, 8, 16)) for c in colors]
    legend = dict(data["legend"])
    assert all(shown[i] == legend[("red", "blue")[i % 2]].lower() for i in range(N))
    assert [bool(one) for one in data["pictures"]] == [place % 2 == 0 for place in range(N)]
    assert "n = 60 pairs" in one["question"]
    assert HOSTILE not in section


def test_more_pairs_than_a_page_draws_are_sampled_and_said(monkeypatch):
    monkeypatch.setattr(live_map, "MOST_POINTS", 80)
    data = live_map.live_map(inputs(), lambda paths, side: [None] * len(paths))
    assert len(data["captions"]) == data["maps"][0]["pairs"] == 20
    assert "20 of 60 pairs, drawn at random" in data["note"]
    twice = [inputs()[0], LiveMapInput(chart(step=48), None)]
    names = [one["name"] for one in live_map.live_map(twice, lambda paths, side: [None] * len(paths))["maps"]]
    assert names == [f"{HOSTILE}, step 24", f"{HOSTILE}, step 48"]


def test_maps_of_different_pairs_are_refused():
    with pytest.raises(UserError, match="the same pairs"):
        live_map.live_map([*inputs(), LiveMapInput(chart(40), None)], squares)


def page(folder: Path, n: int) -> Path:
    data = live_map.live_map(inputs(n), squares)
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; {live_map.policy()}"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><title>fine</title>'
    text = f"<!doctype html><html><head>{head}<style>{live_map.style()}</style></head><body>"
    (folder / "page.html").write_text(f"{text}{live_map.section(data)}</body></html>", encoding="utf-8")
    return folder / "page.html"


@pytest.mark.slow
@few_plain(1, "n", [N, 50_000])
def test_a_browser_draws_zooms_filters_and_shows_pictures(tmp_path: Path, n: int):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        view = opened.new_page(viewport={"width": 1100, "height": 900})
        said: list[str] = []
        view.on("pageerror", lambda error: said.append(str(error)))
        view.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        view.goto(page(tmp_path, n).as_uri())
        view.wait_for_function("window.liveMaps && liveMaps.maps[0].canvas.width > 100")
        map_canvas = view.locator(".live-map canvas").first
        inked = (
            "() => { const c = liveMaps.maps[0].canvas, d = new Uint32Array("
            "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);"
            "let k = 0; for (const v of d) k += v !== 0; return k; }"
        )
        view.wait_for_function(f"({inked})() > 50")
        told = "document.querySelector('.live-controls > output').textContent"
        assert view.evaluate(told) == f"{n:,} of {n:,} pairs"
        box = map_canvas.bounding_box()
        place = view.evaluate("() => { const m = liveMaps.maps[0]; return m.place(0, 1, 1); }")
        view.mouse.move(box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"])
        view.wait_for_function("liveMaps.pair >= 0 && !liveMaps.card.hidden")
        shown = view.evaluate("liveMaps.pair")
        assert view.locator(".live-card").inner_text().startswith(HOSTILE if shown == 0 else "caption")
        assert "cosine" in view.locator(".live-card").inner_text()
        if shown % 2 == 0 and n == N:
            assert view.locator(".live-card img").count() == 1
        # The theme of JupyterLab is in its variables, and need not be that of the system.
        view.evaluate("document.body.style.cssText = '--jp-content-font-color1: #fff; --jp-layout-color1: #111'")
        colors = "(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(liveMaps.card))"
        assert view.evaluate(colors) == ["rgb(255, 255, 255)", "rgb(17, 17, 17)"]
        view.mouse.wheel(0, -600)
        view.wait_for_function("liveMaps.maps[0].scale > 1.5")
        map_canvas.focus()
        view.keyboard.press("0")
        view.wait_for_function("liveMaps.maps[0].scale === 1")
        view.get_by_label("Captions with").fill("caption 1")
        few = sum("caption 1" in one for one in inputs(n)[0].chart.captions)
        view.wait_for_function(f"{told}.startsWith('{few:,} of')")
        count_gray = inked.replace("v !== 0", "v === 0xffdcd7d3")
        # As in the window: beside few pairs the others keep their hue.
        view.wait_for_function(f"(({count_gray})() > 0) === {str(few > FEW_LIT).lower()}")
        view.get_by_role("button", name="Show all").click()
        assert view.evaluate(told) == f"{n:,} of {n:,} pairs"
        view.evaluate("() => { liveMaps.low.value = 500; liveMaps.low.dispatchEvent(new Event('input')); }")
        cosines = np.round(inputs(n)[0].cosines * 32_767) / 32_767
        kept = int(((cosines >= 0.5 - 1e-9) & (cosines[::-1] >= 0.5 - 1e-9)).sum())
        view.wait_for_function(f"{told}.startsWith('{kept:,} of')")
        assert view.title() == "fine"
        assert said == []
        opened.close()


def test_long_names_of_classes_are_cut():
    data = live_map.live_map(
        [LiveMapInput(chart(N, colors=ColoredPoints("label", ("r" * 5_000, "blue"), np.arange(N) % 2)), None)], squares
    )
    assert {len(name) for name, _ in data["legend"]} == {len(name) for name in data["classes"]} == {160, 4}


def test_the_script_of_page_and_notebook_makes_no_markup_of_words():
    """Captions reach the page as text alone: what turns words into markup, code or addresses is not in the script."""
    sinks = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|createContextualFragment|srcdoc"
    sinks += r"|\.href|javascript:|[{,]\s*on[a-z]+\s*:|setTimeout\(\s*[\"'`]"
    script = live_map.widget_module()
    assert re.findall(sinks, script) == []
    assert script.count("setAttribute(") == 1, "of the names that `element` is given in braces"
    addresses = [line for line in script.splitlines() if re.search(r"\b(src|href)\b", line)]
    assert all("data:image/jpeg;base64," in line for line in addresses), addresses
