"""Compares `dynamic_shapes` with the inputs: where they differ, what would fit, and the code for it."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim

from onnxplain.diagnostics import Confidence, Edit, Fix
from onnxplain.request import DynamicShapes, InputDim, Kind, Request, inputs, part, shapes_source
from onnxplain.source import call_sites, given_arguments, locations, syntax
from onnxplain.source.call_sites import SourceExpression
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.dim_entries import Hint


@dataclasses.dataclass(frozen=True)
class Difference:
    """A place where `dynamic_shapes` differ from the inputs.

    Attributes:
        expected: What would fit there.
        actual: What is there.
        way: The keys and indices that lead there.
        is_entry: Whether the structure fits there, and only the entry of a dim is wrong.
    """

    expected: str
    actual: str
    way: tuple[Any, ...] = ()
    is_entry: bool = False


@dataclasses.dataclass(frozen=True)
class Contradiction:
    """Sizes of named dims that exclude each other.

    Attributes:
        promised: The sizes that the name promises.
        actual: The size in the example, or the other promise.
        dim: The dim.
        first: Another dim of the same name with another size; None if a range excludes the example or another range.
    """

    promised: str
    actual: str
    dim: InputDim
    first: InputDim | None = None


def mismatch(shapes: DynamicShapes) -> Difference | None:
    """The first place where `dynamic_shapes` differ from the inputs; None if they fit."""
    given, bound = shapes.given, dict(shapes.parameters)
    if given is None or given is True:
        return None
    if isinstance(given, Mapping) and given and set(given) != set(bound):
        return Difference(_listed(bound), _listed(given), _wrong_key(given, bound))
    if isinstance(given, list | tuple) and len(given) != len(bound):
        return Difference(f"{len(bound)} entries: {_listed(bound)}", f"{len(given)} entries")
    for position, (parameter, value) in enumerate(bound.items()):
        key = parameter if isinstance(given, Mapping) else position
        for difference in _differences(parameter, value, part(given, parameter, position), (key,)):
            return difference
    return None


def _wrong_key(given: Mapping[Any, Any], expected: Container[Any]) -> tuple[Any, ...]:
    return tuple(key for key in given if key not in expected)[:1]


def contradiction(shapes: DynamicShapes) -> Contradiction | None:
    """The first dim whose size in the example, or whose range, contradicts the sizes that its name promises; None if all agree."""
    ranges: dict[str, str] = {}
    seen: dict[str, InputDim] = {}
    for dim in shapes.dynamic:
        if dim.kind in (Kind.DIM, Kind.DERIVED):
            promised = _range(dim)
            if ranges.setdefault(dim.name, promised) != promised:
                return Contradiction(ranges[dim.name], promised, dim)
            if not dim.given.min <= dim.size <= dim.given.max:
                return Contradiction(promised, f"{dim.place} == {dim.size}", dim)
        first = seen.setdefault(dim.name, dim)
        if first.size != dim.size:
            return Contradiction(f"{first.place} == {dim.place}, because both are '{dim.name}'", f"{first.size} and {dim.size}", dim, first)
    return _contradicted_formula(shapes)


def _range(dim: InputDim) -> str:
    given = dim.given
    return f"{dim.name} from {given.min} to {given.max}" if given.max < sys.maxsize - 1 else f"{dim.name} >= {given.min}"


def _contradicted_formula(shapes: DynamicShapes) -> Contradiction | None:
    """The first dim computed from another one, such as `2*n`, whose size in the example no `n` gives, or not the `n` of an earlier dim."""
    sizes: dict[str, InputDim] = {}
    for dim in sorted((dim for dim in shapes.dynamic if dim.kind in (Kind.DIM, Kind.DERIVED)), key=lambda dim: dim.kind is Kind.DERIVED):
        root, size = dim.root
        actual = f"{dim.place} == {dim.size}"
        if size is None:
            return Contradiction(f"{dim.name} for a whole number {root}", actual, dim)
        earlier = sizes.setdefault(root, dim)
        if earlier.root[1] != size:
            return Contradiction(f"{dim.name} for {root} == {earlier.root[1]}, because {earlier.place} == {earlier.size}", actual, dim)
    return None


def beyond_rank(shapes: DynamicShapes) -> Difference | None:
    """As `mismatch`, but only for dims that no tensor has, which torch.export ignores."""
    if shapes.given is True:
        return None
    found = (
        difference
        for leaf in shapes.leaves
        if isinstance(leaf.value, torch.Tensor) and isinstance(spec := shapes.spec_of(leaf), Mapping)
        for difference in _tensor_differences(leaf.path, leaf.value, spec, (leaf.way[0], *map(inputs.key_of, leaf.way[1:])))
    )
    return next(found, None)


def fitting(shapes: DynamicShapes) -> dict[str, Any]:
    """`dynamic_shapes` by parameter name. Entries under a wrong name move to the parameters that have no entry."""
    bound = dict(shapes.parameters)
    given = dict(shapes.given) if isinstance(shapes.given, Mapping) else dict(zip(bound, shapes.given, strict=False))
    return _fitting("", bound, given)


def _fitting(path: str, values: Mapping[Any, Any], given: Mapping[Any, Any]) -> dict[Any, Any]:
    lost = [entry for key, entry in given.items() if key not in values]
    fixed = {}
    for key, value in values.items():
        holds = isinstance(value, torch.Tensor) or bool(inputs.children(value))
        entry = given[key] if key in given else (lost.pop(0) if lost and holds else None)
        # NOTE: the inputs of `*xs` are one tuple, but the user may have written its parts as separate entries.
        entries = (entry, tuple(entry for _ in value)) if isinstance(value, tuple) else (entry,)
        if isinstance(value, torch.Tensor) and isinstance(entry, Mapping | list | tuple):
            entries = (*entries, _with_entries(value, entry))
        fitted = (each for each in entries if next(_differences(f"{path}{key}", value, each), None) is None)
        otherwise = (
            _fitting(f"{path}{key}.", value, entry) if type(value) is dict and isinstance(entry, Mapping) else _nothing_dynamic(value)
        )
        fixed[key] = next(fitted, otherwise)
    return fixed


def _with_entries(tensor: torch.Tensor, spec: Mapping[Any, Any] | Sequence[Any]) -> Any:
    """`spec` without dims that the tensor lacks, and with `Dim.DYNAMIC` in place of entries that say nothing about a dim."""
    if isinstance(spec, Mapping):
        known = {axis: each for axis, each in spec.items() if isinstance(axis, int) and -tensor.dim() <= axis < tensor.dim()}
        return {axis: each if _is_entry(each, tensor, axis) else Dim.DYNAMIC for axis, each in known.items()}
    return [each if _is_entry(each, tensor, axis) else Dim.DYNAMIC for axis, each in enumerate(spec)]


def fix(request: Request, description: str, confidence: Confidence, structure: Any) -> Fix:
    """The fix that changes `dynamic_shapes` to `structure`: an edit if it is known where they are written, or else code to paste.

    Parts that do not change keep the user's text, including names of dims and their definitions.
    """
    written = _literal(request)
    torch_name = None if written is None else syntax.name_of_torch(written.file)
    if written is None or torch_name is None or not locations.is_users(written.file):
        return Fix(description, confidence, snippet=shapes_source.code(structure))
    before = request.shapes.given
    if (renamed := _renamed(written, before, structure)) is not None:
        return Fix(description, confidence, edits=renamed)
    known: dict[tuple[str, Any, Any], str] = {}
    _words(written.file, written.node, before, known)
    text = _rewritten(written.file, written.node, before, structure, known, torch_name)
    return Fix(description, confidence, edits=written.replaced(text))


def _renamed(written: SourceExpression, before: Any, after: Any) -> tuple[Edit, ...] | None:
    """The edits that replace keys of a dict, if all entries stay as they are; None otherwise."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping) and isinstance(written.node, ast.Dict)):
        return None
    if list(before.values()) != list(after.values()) or list(before) != [call_sites.literal(key) for key in written.node.keys if key]:
        return None
    keys = zip(written.node.keys, before, after, strict=True)
    return tuple(
        Edit(written.file, syntax.region(written.file, key), shapes_source.key(new)) for key, old, new in keys if key and old != new
    )


def multiple(name: str, factor: int, least: int, most: int) -> Any:
    """A multiple of `factor` from `least` to `most` for the dim `name`; None if torch allows it for static dims only: it has one size."""
    first, last = -(-least // factor), most // factor
    bounds = {"min": first} if first > 1 else {}
    return factor * Dim(f"_{name}", **bounds, **({"max": last} if most < sys.maxsize else {})) if first < last else None


def place(request: Request, way: Sequence[Any] = ()) -> SourceExpression | None:
    """Where the user wrote `dynamic_shapes`, or the part of them that `way` leads to; None if the source does not tell."""
    written = _literal(request) or call_sites.argument(request, "dynamic_shapes")
    for key in way:
        if written is None:
            return None
        literal = given_arguments.definition(written.file, written.node)
        if (inner := _parts(literal).get(key)) is None:
            return written
        named = _keys(literal).get(key)
        # NOTE: the key and its entry are on one line, mostly; the key comes first.
        written = SourceExpression(written.file, named if key == way[-1] and named is not None else inner)
    return written


def way_to(dim: InputDim) -> tuple[Any, ...]:
    """The keys that lead to the entry of `dim` in a dict by parameter."""
    return (dim.way[0], *map(inputs.key_of, dim.way[1:]), dim.axis)


def renamed(dim: InputDim) -> Dim | str:
    """An entry with the range of `dim` and a name of its tensor."""
    tensor = re.sub(r"\W+", "_", dim.place.partition(".shape")[0]).strip("_")
    name = f"{dim.name}_{tensor}"
    return name if dim.kind is Kind.NAMED else Dim(name, min=dim.given.min, max=dim.given.max)


def _literal(request: Request) -> SourceExpression | None:
    if request.shapes.argument != "dynamic_shapes":
        return None
    return call_sites.argument(request, "dynamic_shapes", lambda node: isinstance(node, ast.Dict | ast.Tuple | ast.List))


def _keys(node: ast.expr) -> dict[Any, ast.expr]:
    return {call_sites.literal(key): key for key in node.keys if key is not None} if isinstance(node, ast.Dict) else {}


def _words(file: str, node: ast.expr, value: Any, known: dict[tuple[str, Any, Any], str]) -> None:
    """Collects the user's text for each named dim of `value`, whose source is `node`."""
    if isinstance(value, Dim):
        known.setdefault((value.__name__, value.min, value.max), syntax.text(file, node))
    if isinstance(value, Mapping) and not isinstance(node, ast.Dict):
        value = list(value.values())
    for key, inner in _parts(node).items():
        # NOTE: an object of a registered class has its entries in the order of the class, whatever the order of a dict that the user wrote.
        if isinstance(value, Mapping) or isinstance(key, int):
            _words(file, inner, part(value, key, key), known)


def _rewritten(
    file: str, node: ast.expr | None, before: Any, after: Any, known: Mapping[tuple[str, Any, Any], str], torch_name: str
) -> str:
    # NOTE: None and an empty dict both say that no dim varies.
    if node is not None and ((type(after) is type(before) and after == before) or not (before or after)):
        return syntax.text(file, node)
    parts = {} if node is None else _parts(node)
    alike = isinstance(before, Mapping) if isinstance(after, Mapping) else isinstance(before, list | tuple)

    def text(key: Any, value: Any) -> str:
        inner = part(before, key, key) if alike else None
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


def _differences(path: str, value: Any, spec: Any, way: tuple[Any, ...] = ()) -> Iterator[Difference]:
    parts = inputs.children(value)
    if isinstance(value, torch.Tensor):
        yield from _tensor_differences(path, value, spec, way)
        return
    if not parts:
        if spec is not None and not isinstance(value, int) and not inputs.is_empty(value):
            yield Difference(f"None for {path}, which is not a tensor", repr(spec), way)
        return
    if isinstance(spec, Mapping):
        keys, given = [inputs.key_of(entry) for entry, _ in parts], list(spec)
        if set(keys) != set(given):
            yield Difference(f"{path} with {_listed(keys)}", _listed(given), (*way, *_wrong_key(spec, keys)))
            return
    elif not isinstance(spec, list | tuple | type(value)):
        yield Difference(f"one entry for each part of {path}", repr(spec), way)
        return
    elif isinstance(spec, list | tuple) and len(spec) != len(parts):
        yield Difference(f"{len(parts)} entries for {path}", f"{len(spec)} entries", way)
        return
    for position, (entry, child) in enumerate(parts):
        key = inputs.key_of(entry) if isinstance(spec, Mapping) else position
        yield from _differences(path + pytree.keystr((entry,)), child, part(spec, inputs.key_of(entry), position), (*way, key))


def _tensor_differences(path: str, tensor: torch.Tensor, spec: Any, way: tuple[Any, ...]) -> Iterator[Difference]:
    rank = tensor.dim()
    if spec is None:
        return
    if isinstance(spec, Mapping):
        if wrong := [key for key in spec if not (isinstance(key, int) and -rank <= key < rank)]:
            yield Difference(f"dims 0 to {rank - 1} of {path}", f"dim {wrong[0]!r}", (*way, wrong[0]))
            return
    elif isinstance(spec, list | tuple):
        if len(spec) != rank:
            yield Difference(f"{rank} dims for {path}", f"{len(spec)} dims", way)
            return
    else:
        yield Difference(f"a dict or tuple of dims for {path}", repr(spec), way)
        return
    for axis, entry in spec.items() if isinstance(spec, Mapping) else enumerate(spec):
        if not _is_entry(entry, tensor, axis):
            expected = f"a name, a Dim, Dim.DYNAMIC, Dim.AUTO or None for {path}.shape[{axis}], which is {tensor.shape[axis]}"
            yield Difference(expected, repr(entry), (*way, axis), is_entry=True)


def _is_entry(entry: object, tensor: torch.Tensor, axis: object) -> bool:
    """Whether torch.export takes `entry` for a dim. A number states the size that the dim keeps."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        return isinstance(axis, int) and -tensor.dim() <= axis < tensor.dim() and entry == tensor.shape[axis]
    return entry is None or isinstance(entry, str | Dim | Hint)


def _nothing_dynamic(value: Any) -> Any:
    return pytree.tree_map(lambda leaf: {} if isinstance(leaf, torch.Tensor) else None, value)


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names) or "nothing"
