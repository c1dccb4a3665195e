"""Parse the specification of a model that a user types or drops."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from trainer import config
from trainer.distribution.model_folders import CONFIG, SETTINGS, WEIGHTS, is_model_folder
from trainer.pretrained.errors import PretrainedError
from trainer.untrusted.bounded.torch_archive import is_complete_archive, numbers_inside

_EPOCH: Final = re.compile(r"epoch_(\d+)\.pt")


def model_of(specification: str) -> config.OpenClip:
    """Return the model of a specification; paths become absolute.

    Args:
        specification: `open_clip:NAME/TAG`, `open_clip:NAME`, `hf-hub:OWNER/NAME`, `local-dir:FOLDER`, a folder of
            open_clip, transformers or `trainer runs export`, the folder of an open_clip run, or a file of weights.

    Raises:
        PretrainedError: It is none of these.
    """
    text = specification.strip()
    kind, colon, rest = text.partition(":")
    if colon and kind == "open_clip":
        name, _, tag = rest.partition("/")
        return config.OpenClip(name=name, pretrained=tag)
    if colon and kind == "hf-hub":
        return config.OpenClip(name=text)
    path = Path(rest if colon and kind == "local-dir" else text).expanduser().absolute()
    if path.is_dir() and is_model_folder(path):
        return config.OpenClip(name=f"local-dir:{path}")
    if path.is_dir():
        newest_epoch(path)
        return config.OpenClip(name=str(path))
    if path.is_file() and path.suffix.lower() in WEIGHTS:
        return config.OpenClip(name=str(path))
    raise PretrainedError(
        f"{text!r} is not a known model: write open_clip:NAME/TAG, hf-hub:OWNER/NAME, local-dir:FOLDER, or "
        f"the path of a folder with {SETTINGS} or config.json, of an open_clip run, or of a file "
        f"({', '.join(WEIGHTS)})."
    )


def newest_epoch(folder: Path) -> Path:
    """Return the newest checkpoint of an open_clip run by its epoch; an incomplete one only if there is no other.

    Raises:
        PretrainedError: There is none.
    """
    inside = folder / "checkpoints" if (folder / "checkpoints").is_dir() else folder
    epochs = {int(match[1]): file for file in inside.glob("epoch_*.pt") if (match := _EPOCH.fullmatch(file.name))}
    complete = {epoch: file for epoch, file in epochs.items() if is_complete_archive(file)}
    latest = inside / "epoch_latest.pt"
    numbered = complete or ({} if is_complete_archive(latest) else epochs)
    if numbered and numbers_inside(latest, "epoch").get("epoch", -1) <= max(numbered):
        return numbered[max(numbered)]
    if latest.is_file():
        return latest
    if next(folder.glob("*.onnx"), None) is not None:
        raise PretrainedError(
            f"{folder} holds graphs of ONNX, which tell no towers. Export the run as open_clip, hf or safetensors."
        )
    raise PretrainedError(
        f"{folder} holds no model: neither {SETTINGS}, nor a {CONFIG} of CLIP or SigLIP of transformers, nor "
        "checkpoints/epoch_N.pt of an open_clip run is there. Choose the folder that has one of them, or the file of "
        "weights itself."
    )
