"""The Decode view: what an embedding keeps of a picture, decoded by a decoder of each run."""

from explorer.views.decode.view import DecodeView

__all__ = ["DecodeView"]
