"""Analyses of embeddings in pure numpy: no files, no database, no torch, no GUI.

Rows are unit embeddings; row i of `image` and row i of `text` are pair i. Everything that compares all rows with
all rows goes block by block (`tiles`), so 100,000 pairs never form a matrix of 100,000 x 100,000.
"""
