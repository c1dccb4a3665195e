"""Runs whose captions, labels, columns and names contain spreadsheet formulas or HTML."""

from pathlib import Path

import numpy as np
from PIL import Image

from trainer import config
from trainer.analysis.distinct import matching, numbered
from trainer.analysis.retrieval import ranks, recall_at
from trainer.store import Items, RunLog, Workspace, snapshot_name, write_snapshot

FORMULAS = (
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://127.0.0.1:9/?"&A1,"click")',
    "+1+1",
    "-1+1",
    "@SUM(A1:A9)",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "\uff1d1+1",
    "\uff0b1",
    "\ufeff=1+1",
    "=1+1\nsecond line",
    '"=1+1',
    "a\r=1+1",
)
MARKUP = (
    "<b>bold</b>",
    "<img src='file:///canary.png' width=4000 height=4000>",
    "<script>alert(1)</script>",
    "<a href='http://127.0.0.1:9/'>click</a>",
    "<table><tr><td>cell</table>",
    "</td></tr></table><h1>broken out</h1>",
    "<!-- <style>*{display:none}</style>",
    "&lt;b&gt; &amp; &#60;i&#62;",
    "![x](http://127.0.0.1:9/x.png) [y](javascript:x) `z` | w",
    "<?xml version='1.0'?><svg onload='x()'/>",
    r"$\frac{1}{0}$ \input{/etc/passwd} \write18{touch canary} 100 % {",
    "\u202egnp.exe \x1b]0;title\x07",
)
CAPTIONS = FORMULAS + MARKUP
N = 96
D = 16


def fill(workspace: Workspace, pictures: Path, names: tuple[str, str] = ("=1+1|a", "<b>b<b>")) -> tuple[int, int]:
    """Create two finished runs with snapshots of the same 96 pairs at two steps."""
    pictures.mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(8):
        files.append(pictures / f"=<b>{number}<b>.png")
        Image.new("RGB", (24, 24), (30 * number, 90, 200)).save(files[-1])
    captions = [f"{CAPTIONS[i % len(CAPTIONS)]}" + (f" {i}" if i >= len(CAPTIONS) else "") for i in range(N)]
    items = Items(
        np.array([f"=pair {i}" for i in range(N)]),
        [str(files[i % len(files)]) for i in range(N)],
        captions,
        [CAPTIONS[i % 4] for i in range(N)],
        ["renderings"] * N,
        {"=colour": [MARKUP[i % 3] for i in range(N)], "<i>n</i>": [FORMULAS[i % 3] for i in range(N)]},
    )
    return tuple(_run(workspace, name, items, noise) for name, noise in zip(names, (0.4, 1.5), strict=True))


def _run(workspace: Workspace, name: str, items: Items, noise: float) -> int:
    number = workspace.runs.create(config.Run(name=name))
    with RunLog.claim(workspace, number) as log:
        for step in (10, 20):
            rng = np.random.default_rng(step)
            image = rng.normal(size=(N, D)).astype(np.float32)
            text = image + noise * rng.normal(size=(N, D)).astype(np.float32)
            image, text = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (image, text))
            folder = log.folder / "snapshots" / snapshot_name(dataset="scenes", split="renderings", step=step)
            about = {"step": step, "dataset": "scenes", "split": "renderings"}
            write_snapshot(folder, image=image, text=text, items=items, model=name, **about)
            log.snapshot(step, "scenes", "renderings", folder, N, D)
            texts = matching(numbered(items.caption)).texts
            values = {f"image_to_text_R@{k}": recall_at(ranks(image, text, texts), k) for k in (1, 5)}
            log.scalars(step, {"train/loss": 1.0 / step} | {f"val/{key}": value for key, value in values.items()})
            log.evaluation(step, "scenes", "renderings", values)
        log.progress(step=20, total_steps=20, phase="done", eta_s=0)
        log.status("finished")
    return number
