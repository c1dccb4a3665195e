"""Detect the contents of a path: layout, files, and questions for the user. Imports no torch."""

from trainer.format_detection.encodings import encoding_of, encoding_of_lines
from trainer.format_detection.proposal import (
    Proposal,
    answered,
    open_question,
    other_ways,
    propose,
    recognize,
)
from trainer.format_detection.split_files import names_in
from trainer.format_detection.tables import columns_of, form_of, image_root, parquet_files, separator_of, token_parts

__all__ = [
    "Proposal",
    "answered",
    "columns_of",
    "encoding_of",
    "encoding_of_lines",
    "form_of",
    "image_root",
    "names_in",
    "open_question",
    "other_ways",
    "parquet_files",
    "propose",
    "recognize",
    "separator_of",
    "token_parts",
]
