"""Foreign pictures: where they lie, and their pixels or the reason why there are none. Imports no torch, no Qt."""

from trainer.pictures.decoding import FORMATS, SUFFIXES, UnreadableImage, open_image, read_image
from trainer.pictures.location import Cell, Location, Member, file_of, location

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "Cell",
    "Location",
    "Member",
    "UnreadableImage",
    "file_of",
    "location",
    "open_image",
    "read_image",
]
