"""The example inputs, leaf by leaf, each with what `dynamic_shapes` says of it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import sympy
import torch
from torch.export import Dim
from torch.export.graph_signature import InputKind

from onnxplain.request.request import Request
from onnxplain.torch_internals import pytree


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One input that cannot be taken apart further.

    Attributes:
        path: How the parameters of `forward` reach it, such as `batch['tokens']`.
        value: The example.
        spec: Its part of `dynamic_shapes`.
        names: Its part of `dim_names`.
    """

    path: str
    value: Any
    spec: Any
    names: Any


@dataclasses.dataclass(frozen=True)
class DynamicDim:
    """A dim that `dynamic_shapes` asks to keep dynamic. `Dim.AUTO` only allows it.

    Attributes:
        place: Where it is, such as `batch['tokens'].shape[0]`.
        name: The user's name for it; its place where it has none.
        size: Its size in the example.
        flat_index: Position of its tensor among the flattened inputs.
        axis: Its axis there.
    """

    place: str
    name: str
    size: int
    flat_index: int
    axis: int


def distinct(request: Request) -> Request:
    """`request` with a tensor of its own for each input: torch.export takes one that is passed twice for one input (seen in 2.13)."""
    seen: set[int] = set()

    def own(tensor: torch.Tensor) -> torch.Tensor:
        known = id(tensor) in seen
        seen.add(id(tensor))
        return tensor.clone() if known else tensor

    args, kwargs = pytree.tree_map_only(torch.Tensor, own, (tuple(request.args), dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)


def bound(request: Request) -> dict[str, Any]:
    """The inputs by parameter of `forward`; empty if they do not fit its signature."""
    model: Any = request.model
    try:
        signature = inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
        return dict(signature.bind(*request.args, **request.kwargs).arguments)
    except (TypeError, ValueError):
        return {}


def leaves(request: Request, shapes: Any = None) -> Iterator[Leaf]:
    """Every leaf of the inputs in torch.export's order, with its part of `shapes`, which is `dynamic_shapes` by default."""
    shapes = shapes_of(request) if shapes is None else shapes
    positions = {parameter: position for position, parameter in enumerate(bound(request))}
    for parameter, value in _parameters(request):
        position = positions[parameter]
        yield from _leaves(parameter, value, part(shapes, parameter, position), part(request.dim_names, parameter, position))


def dynamic_dims(request: Request) -> Iterator[DynamicDim]:
    """Every dim that must stay dynamic."""
    return _dims(request, _must_stay_dynamic)


def open_dims(request: Request) -> Iterator[DynamicDim]:
    """Every dim that may be dynamic, as far as the model leaves it open."""
    return _dims(request, lambda spec: isinstance(spec, type(Dim.AUTO)) and bool(spec.type == Dim.AUTO.type))


def _dims(request: Request, wanted: Callable[[Any], bool]) -> Iterator[DynamicDim]:
    for flat_index, leaf in enumerate(leaves(request)):
        if not isinstance(leaf.value, torch.Tensor):
            continue
        for axis in range(leaf.value.dim()):
            spec = part(leaf.spec, axis, axis)
            if wanted(spec):
                place = f"{leaf.path}.shape[{axis}]"
                given = part(leaf.names, axis, axis)
                name = given if isinstance(given, str) else getattr(spec, "__name__", place)
                yield DynamicDim(place, name, leaf.value.shape[axis], flat_index, axis)


def constant_dims(request: Request, program: torch.export.ExportedProgram) -> dict[DynamicDim, int]:
    """The dims that must stay dynamic and have only one size in `program`."""
    return {dim: size for dim, size in sizes_in(program, dynamic_dims(request)).items() if isinstance(size, int)}


def sizes_in(program: torch.export.ExportedProgram, dims: Iterable[DynamicDim]) -> dict[DynamicDim, int | sympy.Expr]:
    """The size that each of `dims` has in `program`: a number if it has only one, or else an expression of torch's symbols."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = [getattr(each.arg, "name", "") for each in program.graph_signature.input_specs if each.kind is InputKind.USER_INPUT]
    found: dict[DynamicDim, int | sympy.Expr] = {}
    for dim in dims:
        tensor = values.get(names[dim.flat_index]) if dim.flat_index < len(names) else None
        size = tensor.shape[dim.axis] if isinstance(tensor, torch.Tensor) else None
        if isinstance(size, torch.SymInt):
            sizes = program.range_constraints.get(size.node.expr)
            size = int(sizes.lower) if sizes is not None and sizes.lower == sizes.upper else size.node.expr
        if size is not None:
            found[dim] = size
    return found


def dim_spec(request: Request, shapes: Any, dim: DynamicDim) -> Any:
    """What `shapes`, a structure like `dynamic_shapes`, says of `dim`."""
    return next(part(leaf.spec, dim.axis, dim.axis) for index, leaf in enumerate(leaves(request, shapes)) if index == dim.flat_index)


def with_dims(request: Request, shapes: Any, specs: Mapping[DynamicDim, Any]) -> dict[str, Any]:
    """`shapes`, a structure like `dynamic_shapes`, by parameter, with other specs for some dims; None leaves a dim out."""
    renewed = {(dim.flat_index, dim.axis): spec for dim, spec in specs.items()}

    def dims(index: int, leaf: Leaf) -> Any:
        if not isinstance(leaf.value, torch.Tensor):
            return leaf.spec
        all_specs = {axis: renewed.get((index, axis), part(leaf.spec, axis, axis)) for axis in range(leaf.value.dim())}
        return {axis: spec for axis, spec in all_specs.items() if spec is not None}

    remaining = iter([dims(index, leaf) for index, leaf in enumerate(leaves(request, shapes))])
    return {parameter: pytree.tree_map(lambda _: next(remaining), value) for parameter, value in _parameters(request)}


def children(value: Any) -> list[tuple[Any, Any]]:
    """The parts of a container, each with its key in torch's terms; empty for a leaf."""
    try:
        parts, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda each: each is not value)
        return [(path[0], child) for path, child in parts if path]
    except ValueError:
        # NOTE: a class may be registered without names for its parts.
        flat, _ = pytree.tree_flatten(value, is_leaf=lambda each: each is not value)
        return [(pytree.SequenceKey(number), child) for number, child in enumerate(flat)]


def is_empty(value: Any) -> bool:
    """Whether `value` is a container without anything in it."""
    return not pytree.tree_leaves(value)


def key_of(entry: Any) -> Any:
    """The key, index or attribute name in one of torch's keys."""
    return next((getattr(entry, name) for name in ("key", "idx", "name") if hasattr(entry, name)), None)


def shapes_of(request: Request) -> Any:
    """`dynamic_shapes` as a structure, also where it was collected or shown by further examples."""
    shapes = request.dynamic_shapes
    if hasattr(shapes, "dynamic_shapes"):
        return shapes.dynamic_shapes(request.model, request.args, dict(request.kwargs))
    return shapes


def written_shapes(request: Request) -> Any:
    """`dynamic_shapes` as the user wrote it: names of dims are strings still."""
    return request.dim_names if isinstance(request.dim_names, Mapping | list | tuple) else shapes_of(request)


def part(spec: Any, key: Any, position: int) -> Any:
    """What a dict, sequence or registered class says of a part; None where it says nothing."""
    if isinstance(spec, Mapping):
        return spec.get(key)
    parts = spec if isinstance(spec, list | tuple) else [child for _, child in children(spec)]
    return parts[position] if position < len(parts) else None


def is_supported(value: Any) -> bool:
    """Whether torch.export takes `value` as a leaf: a tensor, a Python constant, or something of torch's own."""
    return (
        value is None
        or isinstance(value, torch.Tensor | torch.nn.Module | bool | int | float | complex | str)
        or type(value).__module__.partition(".")[0] == "torch"
    )


def _parameters(request: Request) -> list[tuple[str, Any]]:
    """The inputs by parameter, in the order in which torch.export flattens them: `args`, then `kwargs` as they were given."""
    by_keyword = list(request.kwargs)
    return sorted(bound(request).items(), key=lambda each: by_keyword.index(each[0]) if each[0] in by_keyword else -1)


def _leaves(path: str, value: Any, spec: Any, names: Any) -> Iterator[Leaf]:
    parts = children(value)
    if not parts and not is_empty(value):
        yield Leaf(path, value, spec, names)
    for position, (entry, child) in enumerate(parts):
        key = key_of(entry)
        yield from _leaves(path + pytree.keystr((entry,)), child, part(spec, key, position), part(names, key, position))


def _must_stay_dynamic(spec: Any) -> bool:
    if isinstance(spec, type(Dim.DYNAMIC)):
        return bool(spec.type == Dim.DYNAMIC.type)
    return isinstance(spec, Dim)
