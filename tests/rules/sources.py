"""Syntax trees of source texts, read once for all rules: every rule looks through the whole tree of files."""

import ast
import functools
import gc


@functools.cache
def tree(source: str) -> ast.Module:
    """Return the syntax tree of a source text; nobody changes it."""
    # Millions of objects that stay: looking through them for garbage takes longer than parsing.
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source text's tree, as `ast.walk` does."""
    return walked(tree(source))


@functools.cache
def walked(root: ast.AST) -> tuple[ast.AST, ...]:
    """Return a node and all below it."""
    return tuple(ast.walk(root))


def called(call: ast.Call) -> str:
    """Return the dotted name that is called; what is no name is `…`. `ast.unparse` takes five seconds for all calls."""
    names: list[str] = []
    part = call.func
    while isinstance(part, ast.Attribute):
        names.append(part.attr)
        part = part.value
    return ".".join((part.id if isinstance(part, ast.Name) else "…", *reversed(names)))
