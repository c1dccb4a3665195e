"""Untrusted images: their locations, and their pixels or an error message. Imports no torch, no Qt."""

from trainer.images.decoder import Decoded, Decoder, HelperError, borrowed, read_picture, read_pictures, scratch_file
from trainer.images.decoding import (
    FORMATS,
    NOT_READ,
    SUFFIXES,
    UnreadableImage,
    not_read,
    open_image,
    pixels_of,
    read_image,
)
from trainer.images.location import Cell, Location, Member, file_of, location, size_of
from trainer.images.preprocessing import Preprocessing

__all__ = [
    "FORMATS",
    "NOT_READ",
    "SUFFIXES",
    "Cell",
    "Decoded",
    "Decoder",
    "HelperError",
    "Location",
    "Member",
    "Preprocessing",
    "UnreadableImage",
    "borrowed",
    "file_of",
    "location",
    "not_read",
    "open_image",
    "pixels_of",
    "read_image",
    "read_picture",
    "read_pictures",
    "scratch_file",
    "size_of",
]
