"""The versions that were tested together, without addresses: what `uv run` and `pip install -r` take.

    python packaging/pins.py           says how old they are; a warning after 60 days
    python packaging/pins.py renew     takes the newest that the ranges of pyproject.toml allow

They stand twice: in `[tool.uv] constraint-dependencies` of pyproject.toml, which `uv run` and `uv sync` honor, and
with hashes in requirements.lock, for `pip install --require-hashes -r requirements.lock`.
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK, PROJECT = ROOT / "requirements.lock", ROOT / "pyproject.toml"
OLD_DAYS = 60
HEAD = "# Versions that were tested together on {}. Renewed by: python packaging/pins.py renew\n"
OF_TORCH = re.compile(r"(nvidia-|cuda-|triton)")
"""What a build of torch brings: it names its own versions, which differ from machine to machine."""


def pinned(lock: str) -> list[str]:
    """The requirements of a lock file, each in a line, without their hashes."""
    lines = (line.removesuffix("\\").strip() for line in lock.splitlines() if re.match(r"[A-Za-z0-9]", line))
    return [line for line in lines if not OF_TORCH.match(line)]


def tested_on(lock: str) -> datetime.date:
    """The day in the first line."""
    return datetime.date.fromisoformat(re.search(r"\d{4}-\d{2}-\d{2}", lock.partition("\n")[0])[0])


def renew() -> None:
    """Resolves anew and writes both files."""
    words = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11", "--generate-hashes"]
    words += ["--extra", "train", "--no-header", "--no-annotate", "--upgrade", "--quiet", "--no-config"]
    found = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    LOCK.write_text(HEAD.format(datetime.date.today()) + found, encoding="utf-8")
    own = "".join(f'    "{line}",\n' for line in pinned(found))
    project = PROJECT.read_text(encoding="utf-8")
    block = f"constraint-dependencies = [\n{own}]\n"
    PROJECT.write_text(
        re.sub(r"constraint-dependencies = \[\n.*?\n\]\n", lambda _: block, project, flags=re.S), "utf-8"
    )


def main(words: list[str]) -> int:
    """Renews, or tells the age."""
    if words == ["renew"]:
        renew()
    day = tested_on(LOCK.read_text(encoding="utf-8"))
    days = (datetime.date.today() - day).days
    start = "Warning: the" if days > OLD_DAYS else "The"
    print(f"{start} pinned versions were tested together on {day}, {days} days ago.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
