"""Tiny wheels that are called as those of the part that trains."""

import zipfile
from pathlib import Path
from typing import Final

WHEELS: Final = {
    "torch": "2.15.0",
    "torchvision": "0.29.2",
    "open_clip_torch": "3.3.0",
    "tokenizers": "0.23.3",
    "umap_learn": "0.5.12",
}


def tiny_wheels(folder: Path, *, only: tuple[str, ...] = tuple(WHEELS)) -> Path:
    """Make a folder of wheels that hold one empty package each."""
    folder.mkdir()
    for name in only:
        stem = f"{name}-{WHEELS[name]}"
        members = {
            f"{name}/__init__.py": "",
            f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {WHEELS[name]}\n",
            f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = f"{stem}.dist-info/RECORD"
        members[record] = "".join(f"{file},,\n" for file in (*members, record))
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            for file, content in members.items():
                wheel.writestr(file, content)
    return folder
