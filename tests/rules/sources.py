"""Syntax trees of source texts, read once for all rules: every rule looks through the whole tree of files."""

from __future__ import annotations

import ast
import functools
import gc


@functools.cache
def tree(source: str) -> ast.Module:
    """Return the syntax tree of a source text; nobody changes it."""
    # Millions of objects that stay: looking through them for garbage meanwhile takes longer than parsing.
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if collects:
            gc.enable()


@functools.cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source text's tree, as `ast.walk` does."""
    return tuple(ast.walk(tree(source)))
