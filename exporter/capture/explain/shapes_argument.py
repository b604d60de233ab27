"""Compares `dynamic_shapes` with the inputs: where they differ, what would fit, and the code for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.export import Dim

from onnxplain.diagnostics import Confidence, Fix
from onnxplain.request import DynamicShapes, Kind, Request, inputs, shapes_source
from onnxplain.request.shapes_mirrored import part
from onnxplain.source import call_sites, locations, syntax
from onnxplain.torch_internals import pytree


def mismatch(shapes: DynamicShapes) -> tuple[str, str] | None:
    """The expected and the actual `dynamic_shapes` at the first place where they differ from the inputs; None if they fit."""
    given, bound = shapes.given, dict(shapes.parameters)
    if given is None or given is True:
        return None
    if isinstance(given, Mapping) and given and set(given) != set(bound):
        return _listed(bound), _listed(given)
    if isinstance(given, list | tuple) and len(given) != len(bound):
        return f"{len(bound)} entries: {_listed(bound)}", f"{len(given)} entries"
    for position, (parameter, value) in enumerate(bound.items()):
        for difference in _differences(parameter, value, part(given, parameter, position)):
            return difference
    return None


def contradiction(shapes: DynamicShapes) -> tuple[str, str] | None:
    """The size of a named dim, and the size in an example or another definition of the name that contradicts it; None if all agree."""
    ranges: dict[str, str] = {}
    for dim in shapes.dynamic:
        if dim.kind not in (Kind.DIM, Kind.DERIVED):
            continue
        promised = f"{dim.name} from {dim.given.min} to {dim.given.max}"
        if ranges.setdefault(dim.name, promised) != promised:
            return ranges[dim.name], promised
        if not dim.given.min <= dim.size <= dim.given.max:
            return promised, f"{dim.place} == {dim.size}"
    return None


def beyond_rank(shapes: DynamicShapes) -> tuple[str, str] | None:
    """As `mismatch`, but only for dims that no tensor has, which torch.export ignores."""
    if shapes.given is True:
        return None
    found = (
        difference
        for leaf in shapes.leaves
        if isinstance(leaf.value, torch.Tensor) and isinstance(spec := shapes.spec_of(leaf), Mapping)
        for difference in _tensor_differences(leaf.path, leaf.value, spec)
    )
    return next(found, None)


def fitting(shapes: DynamicShapes) -> dict[str, Any]:
    """`dynamic_shapes` by parameter name. Entries under a wrong name move to the parameters that have no entry."""
    bound = dict(shapes.parameters)
    given = dict(shapes.given) if isinstance(shapes.given, Mapping) else dict(zip(bound, shapes.given, strict=False))
    lost = [entry for name, entry in given.items() if name not in bound]
    fixed = {}
    for name, value in bound.items():
        entry = given[name] if name in given else (lost.pop(0) if lost and isinstance(value, torch.Tensor) else None)
        # NOTE: the inputs of `*xs` are one tuple, but the user may have written its parts as separate entries.
        entries = (entry, tuple(entry for _ in value)) if isinstance(value, tuple) else (entry,)
        fitted = (each for each in entries if next(_differences(name, value, each), None) is None)
        fixed[name] = next(fitted, _nothing_dynamic(value))
    return fixed


def fix(request: Request, description: str, confidence: Confidence, structure: Any) -> Fix:
    """The fix that changes `dynamic_shapes` to `structure`: an edit if it is known where they are written, or else code to paste.

    Parts that do not change keep the user's text, including names of dims and their definitions.
    """
    place = call_sites.argument(request, "dynamic_shapes", lambda node: isinstance(node, ast.Dict | ast.Tuple | ast.List))
    torch_name = None if place is None else syntax.name_of_torch(place.file)
    if place is None or torch_name is None or not locations.is_users(place.file):
        return Fix(description, confidence, snippet=shapes_source.code(structure))
    before = request.shapes.given
    known: dict[tuple[str, Any, Any], str] = {}
    _words(place.file, place.node, before, known)
    text = _rewritten(place.file, place.node, before, structure, known, torch_name)
    return Fix(description, confidence, edits=place.replaced(text))


def _words(file: str, node: ast.expr, value: Any, known: dict[tuple[str, Any, Any], str]) -> None:
    """Collects the user's text for each named dim of `value`, whose source is `node`."""
    if isinstance(value, Dim):
        known.setdefault((value.__name__, value.min, value.max), syntax.text(file, node))
    for key, inner in _parts(node).items():
        _words(file, inner, part(value, key, key if isinstance(key, int) else 0), known)


def _rewritten(
    file: str, node: ast.expr | None, before: Any, after: Any, known: Mapping[tuple[str, Any, Any], str], torch_name: str
) -> str:
    if node is not None and type(after) is type(before) and after == before:
        return syntax.text(file, node)
    parts = {} if node is None else _parts(node)

    def text(key: Any, value: Any) -> str:
        inner = part(before, key, key if isinstance(key, int) else 0) if isinstance(before, Mapping | list | tuple) else None
        return _rewritten(file, parts.get(key), inner, value, known, torch_name)

    match after:
        case Mapping():
            keyed = isinstance(before, Mapping) and isinstance(node, ast.Dict)
            parts = parts if keyed else {}
            return "{" + ", ".join(f"{shapes_source.key(key)}: {text(key, each)}" for key, each in after.items()) + "}"
        case list():
            return "[" + ", ".join(text(index, each) for index, each in enumerate(after)) + "]"
        case tuple():
            return "(" + "".join(f"{text(index, each)}, " for index, each in enumerate(after)).removesuffix(" ") + ")"
        case Dim():
            return known.get((after.__name__, after.min, after.max)) or shapes_source.definition(after)
    return shapes_source.expression(after, {}).replace("torch.", f"{torch_name}.", 1)


def _parts(node: ast.expr) -> dict[Any, ast.expr]:
    """The parts of a literal by key or index; empty for other expressions."""
    if isinstance(node, ast.Dict):
        return {call_sites.literal(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}
    return dict(enumerate(node.elts)) if isinstance(node, ast.Tuple | ast.List) else {}


def _differences(path: str, value: Any, spec: Any) -> Iterator[tuple[str, str]]:
    parts = inputs.children(value)
    if isinstance(value, torch.Tensor):
        yield from _tensor_differences(path, value, spec)
        return
    if not parts:
        if spec is not None and not isinstance(value, int) and not inputs.is_empty(value):
            yield f"None for {path}, which is not a tensor", repr(spec)
        return
    if isinstance(spec, Mapping):
        keys, given = [inputs.key_of(entry) for entry, _ in parts], list(spec)
        if set(keys) != set(given):
            yield f"{path} with {_listed(keys)}", _listed(given)
            return
    elif not isinstance(spec, list | tuple | type(value)):
        yield f"one entry for each part of {path}", repr(spec)
        return
    elif isinstance(spec, list | tuple) and len(spec) != len(parts):
        yield f"{len(parts)} entries for {path}", f"{len(spec)} entries"
        return
    for position, (entry, child) in enumerate(parts):
        yield from _differences(path + pytree.keystr((entry,)), child, part(spec, inputs.key_of(entry), position))


def _tensor_differences(path: str, tensor: torch.Tensor, spec: Any) -> Iterator[tuple[str, str]]:
    rank = tensor.dim()
    if spec is None:
        return
    if isinstance(spec, Mapping):
        if wrong := [key for key in spec if not (isinstance(key, int) and -rank <= key < rank)]:
            yield f"dims 0 to {rank - 1} of {path}", f"dim {wrong[0]!r}"
    elif isinstance(spec, list | tuple):
        if len(spec) != rank:
            yield f"{rank} dims for {path}", f"{len(spec)} dims"
    else:
        yield f"a dict or tuple of dims for {path}", repr(spec)


def _nothing_dynamic(value: Any) -> Any:
    return pytree.tree_map(lambda leaf: {} if isinstance(leaf, torch.Tensor) else None, value)


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names) or "nothing"
