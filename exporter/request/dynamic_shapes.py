"""Which dims of the inputs are dynamic: every form that a user can write, as one frozen value."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim

from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals import dim_entries, keyword_inputs
from onnxplain.torch_internals.python_values import is_a

from . import inputs
from .binding import signature_of
from .inputs import Leaf, Path
from .shapes_mirrored import mirrored, one_for_each, part
from .shapes_source import code, definition


class Kind(enum.Enum):
    """How the user specifies a dim."""

    STATIC = "static"
    """It has the size of the example: no entry, None or a number."""
    NAMED = "named"
    """It stays dynamic and has a name: a string."""
    DIM = "Dim"
    """It stays dynamic within a range: a `torch.export.Dim`."""
    DERIVED = "derived Dim"
    """It is computed from another dim, such as `2 * batch`."""
    DYNAMIC = "DYNAMIC"
    """It stays dynamic: `Dim.DYNAMIC`."""
    AUTO = "AUTO"
    """It is dynamic unless the model fixes it: `Dim.AUTO`."""
    OPEN = "open"
    """It is dynamic unless the model fixes it, as all dims are with `dynamic_shapes=True`."""


_MUST_STAY = frozenset({Kind.NAMED, Kind.DIM, Kind.DERIVED, Kind.DYNAMIC})
_MAY_STAY = frozenset({Kind.AUTO, Kind.OPEN})
_WITHOUT_NAME = frozenset({Kind.DYNAMIC, Kind.AUTO, Kind.OPEN})


@dataclasses.dataclass(frozen=True)
class InputDim:
    """A dim of an input. Two values are equal if they mean the same dim, however it is specified.

    Attributes:
        flat_index: Position of its tensor among the flattened inputs.
        axis: The axis in its tensor.
        way: How its tensor is reached.
        place: How code in `forward` reads it, such as `batch['tokens'].shape[0]`.
        size: Its size in the example.
        kind: How the user specifies it.
        given: The user's entry: a string, a `Dim`, a hint, a number or None.
        label: Its name in the exported model; empty for a static dim.
        least: The least size that it may have.
        most: The largest size that it may have.
    """

    flat_index: int
    axis: int
    way: Path = dataclasses.field(compare=False)
    place: str = dataclasses.field(compare=False)
    size: int = dataclasses.field(compare=False)
    kind: Kind = dataclasses.field(compare=False)
    given: Any = dataclasses.field(compare=False)
    label: str = dataclasses.field(compare=False)
    least: int = dataclasses.field(default=0, compare=False)
    most: int = dataclasses.field(default=sys.maxsize, compare=False)

    @property
    def name(self) -> str:
        """The user's name for it; its place if it has none."""
        return self.place if self.is_nameless or not self.label else self.label

    @property
    def is_nameless(self) -> bool:
        """Whether it is dynamic and the user gave it no name."""
        return self.kind in _WITHOUT_NAME

    @property
    def stays(self) -> bool:
        """Whether it must stay dynamic."""
        return self.kind in _MUST_STAY

    @property
    def may_stay(self) -> bool:
        """Whether it is dynamic unless the model fixes it."""
        return self.kind in _MAY_STAY

    @property
    def root(self) -> tuple[str, int | None]:
        """The dim that it is computed from, as `n` for `2*n`, with its size in the example; None if no size of it gives the dim's size."""
        if self.kind is not Kind.DERIVED:
            return self.name, self.size
        # NOTE: a dim that is computed from another dim is a linear function of it (torch 2.11 to 2.15, export/dynamic_shapes.py).
        function, root = dim_entries.from_root(self.given), dim_entries.root(self.given)
        first, second = function(1), function(2)
        size, rest = divmod(self.size - first, second - first)
        return self.name if root is None else root.__name__, None if rest else size + 1

    def allows(self, size: int) -> bool:
        """Whether the user's specification allows this size."""
        return self.least <= size <= self.most


@dataclasses.dataclass(frozen=True)
class DynamicShapes:
    """The user's specification of the inputs' dims.

    Attributes:
        argument: The argument that the user passed: `dynamic_shapes` or `dynamic_axes`.
        given: The user's structure, with names of dims as strings; True for all dims.
        parameters: The inputs by parameter of `forward`, in the order of its signature; empty if they do not fit the signature.
        leaves: The leaves of the inputs, in torch's order.
        dims: Every dim of every tensor among the leaves.
    """

    argument: str
    given: Any
    parameters: tuple[tuple[str, Any], ...]
    leaves: tuple[Leaf, ...]
    dims: tuple[InputDim, ...]
    _raw: Any = None

    @classmethod
    def parse(
        cls,
        given: Any,
        model: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        argument: str = "dynamic_shapes",
    ) -> DynamicShapes:
        """Reads the argument `dynamic_shapes` in any of its forms.

        Args:
            given: A dict or sequence of the entries that torch.export takes for each input, with names of dims as strings; one of torch's
                collections of shapes or of further examples; True; or None.
            model: The model.
            args: Positional example inputs.
            kwargs: Keyword example inputs.
            argument: The name of the argument.
        """
        raw = given
        if hasattr(given, "dynamic_shapes"):
            # NOTE: torch's collections of shapes, and of further examples, have this method.
            try:
                given = given.dynamic_shapes(model, tuple(args), dict(kwargs))
            except ValueError as error:
                raise InvalidArgument(
                    f"{argument}: expected a collection about these inputs, got one that torch refuses: {error}"
                ) from error
        by_parameter = inputs.bound(model, args, kwargs)
        signature = signature_of(model)
        variadic = "" if signature is None else keyword_inputs.variadic_keywords(signature)
        named = by_parameter if signature is None else signature.parameters
        leaves = tuple(
            leaf
            for name in inputs.in_torch_order(by_parameter, kwargs)
            for leaf in inputs.leaves(name, by_parameter[name], "" if name in named else variadic)
        )
        structure = mirrored(one_for_each(given, by_parameter, signature), by_parameter, variadic)
        empty = cls(argument, structure, tuple(by_parameter.items()), leaves, ())
        return dataclasses.replace(empty.reread(structure), _raw=raw if structure is given else None)

    @property
    def dynamic(self) -> tuple[InputDim, ...]:
        """The dims that must stay dynamic."""
        return tuple(dim for dim in self.dims if dim.stays)

    @property
    def open(self) -> tuple[InputDim, ...]:
        """The dims that are dynamic unless the model fixes them."""
        return tuple(dim for dim in self.dims if dim.may_stay)

    def spec_of(self, leaf: Leaf) -> Any:
        """The entry for a leaf in the user's structure; None if there is none, as in True."""
        parameter, *keys = leaf.way
        spec = part(self.given, parameter, next(index for index, (name, _) in enumerate(self.parameters) if name == parameter))
        for entry, position in zip(keys, leaf.positions, strict=True):
            spec = part(spec, inputs.key_of(entry), position)
        return spec

    def names(self) -> dict[InputDim, str]:
        """The dims that must stay dynamic, with their names."""
        return {dim: dim.name for dim in self.dynamic}

    def same_name(self, dim: InputDim) -> list[InputDim]:
        """The dims that must stay dynamic and have the same name as `dim`."""
        return [each for each in self.dynamic if each.name == dim.name]

    def by_parameter(self, specs: Mapping[InputDim, Any] | None = None) -> dict[str, Any]:
        """The specification as a dict by parameter, and by axis for each tensor.

        Args:
            specs: Other entries for some dims; None leaves a dim out.
        """
        said = {dim: dim.given for dim in self.dims} | dict(specs or {})
        by_leaf: dict[int, dict[int, Any]] = {}
        for dim, spec in said.items():
            if spec is not None:
                by_leaf.setdefault(dim.flat_index, {})[dim.axis] = spec
        entries = {
            leaf.way: by_leaf.get(index, {}) if is_a(leaf.value, torch.Tensor) else self._of_number(leaf)
            for index, leaf in enumerate(self.leaves)
        }
        return {parameter: inputs.mapped(value, entries, (parameter,)) for parameter, value in self.parameters}

    def _of_number(self, leaf: Leaf) -> Any:
        """The entry for a leaf that is no tensor."""
        return self.spec_of(leaf) if type(leaf.value) is int else None

    def replaced(self, specs: Mapping[InputDim, Any]) -> DynamicShapes:
        """A copy with other entries for some dims; None makes a dim static."""
        dims = [_said(dim, specs[dim], self.argument) if dim in specs else dim for dim in self.dims]
        changed = dataclasses.replace(self, dims=tuple(_at_distinct_labels(dims)), _raw=None)
        return dataclasses.replace(changed, given=changed.by_parameter())

    def reread(self, given: Any) -> DynamicShapes:
        """A copy with the same inputs and another structure of entries."""
        other = dataclasses.replace(self, given=given, _raw=None)
        dims = [dim for index, leaf in enumerate(self.leaves) for dim in _dims(other, leaf, index)]
        return dataclasses.replace(other, dims=tuple(_at_distinct_labels(dims)))

    def for_torch(self) -> Any:
        """The value for the argument `dynamic_shapes` of `torch.export.export`."""
        if self.given is True or (self._raw is None and self.given is not None):
            return _for_torch(self.by_parameter()) or None
        return _for_torch(self._raw)

    def as_source(self, specs: Mapping[InputDim, Any] | None = None) -> str:
        """The specification as Python to paste. `specs` as for `by_parameter`."""
        return code(self.by_parameter(specs) if specs is not None or self.given is True else self.given)


def _dims(shapes: DynamicShapes, leaf: Leaf, flat_index: int) -> Iterator[InputDim]:
    """The dims of a leaf; none if it is not a tensor that ONNX has."""
    if not is_a(leaf.value, torch.Tensor) or not inputs.is_dense(leaf.value):
        return
    spec = shapes.spec_of(leaf)
    for axis, size in enumerate(leaf.value.shape):
        dim = InputDim(flat_index, axis, leaf.way, f"{leaf.path}.shape[{axis}]", size, Kind.STATIC, None, "")
        if shapes.given is True:
            yield dataclasses.replace(dim, kind=Kind.OPEN, given=Dim.AUTO, label=_own_label(dim))
        else:
            # NOTE: torch.export also takes axes that count from the end.
            negative = axis - leaf.value.dim()
            if isinstance(spec, Mapping) and axis in spec and negative in spec:
                raise InvalidArgument(f"{shapes.argument}: expected one entry for each axis of {leaf.path!r}, got {axis} and {negative}")
            from_the_end = spec.get(negative) if isinstance(spec, Mapping) else None
            yield _said(dim, part(spec, axis, axis) or from_the_end, shapes.argument)


def _said(dim: InputDim, given: Any, argument: str) -> InputDim:
    """`dim` with the user's entry for it."""
    kind, label, least, most = Kind.STATIC, "", 0, sys.maxsize
    if isinstance(given, str):
        kind, label = Kind.NAMED, _label(given, argument)
    elif isinstance(given, Dim):
        kind = Kind.DIM if (root := dim_entries.root(given)) is None else Kind.DERIVED
        if root is not None:
            _check_range(given, root)
        label, least = str(given.__name__), int(given.min)
        # NOTE: torch's infinity is not an int.
        most = given.max if isinstance(given.max, int) else sys.maxsize
    elif isinstance(given, dim_entries.Hint):
        kinds = ((Dim.AUTO, Kind.AUTO), (Dim.DYNAMIC, Kind.DYNAMIC))
        kind = next((kind for hint, kind in kinds if dim_entries.is_like(given, hint)), Kind.STATIC)
        least, most = (other if bound is None else bound for bound, other in zip(dim_entries.limits(given), (least, most), strict=True))
        label = _own_label(dim) if kind in _WITHOUT_NAME else ""
    return dataclasses.replace(dim, kind=kind, given=given, label=label, least=least, most=most)


def _label(name: str, argument: str) -> str:
    """The name of a dim in the exported model. Sizes are expressions of these names there, so it must not be one, as `past + new` is."""
    if not name.strip():
        raise InvalidArgument(f"{argument}: expected a name of a dim, got {name!r}")
    if name.isidentifier():
        return name
    likely = re.sub(r"\W+", "_", name).strip("_")
    return likely if likely.isidentifier() else f"dim_{likely}".rstrip("_")


def _at_distinct_labels(dims: Sequence[InputDim]) -> Iterator[InputDim]:
    """`dims` in which different names, such as `past + new` and `past - new`, have different labels."""
    named = [dim for dim in dims if dim.kind is Kind.NAMED]
    labels = {str(dim.given): dim.label for dim in named if dim.given == dim.label}
    for dim in named:
        if str(dim.given) not in labels:
            numbered = (f"{dim.label}_{number}" for number in itertools.count(2))
            labels[str(dim.given)] = next(
                each for each in (dim.label, *itertools.islice(numbered, len(dims))) if each not in labels.values()
            )
    for dim in dims:
        yield dataclasses.replace(dim, label=labels[str(dim.given)]) if dim.kind is Kind.NAMED else dim


def _check_range(given: Dim, root: Dim) -> None:
    """Refuses a dim such as `length - 1` where `length` may be 0: torch raises an AssertionError for its range."""
    try:
        _ = given.min, given.max
    except AssertionError:
        # NOTE: a dim that is computed from another dim is a linear function of it (torch 2.11 to 2.15, export/dynamic_shapes.py).
        function = dim_entries.from_root(given)
        offset, factor = int(function(0)), int(function(1) - function(0))
        enough = definition(Dim(root.__name__, min=max(root.min, -((offset - 1) // factor))))
        message = f"dynamic_shapes: expected bounds of {root.__name__!r} that make {given.__name__!r} a size, such as {enough}"
        raise InvalidArgument(f"{message}, got {definition(root)}") from None


def _for_torch(spec: Any) -> Any:
    """`spec` with each name (string) replaced by a dim that torch has to keep dynamic."""
    if isinstance(spec, str):
        return Dim.DYNAMIC
    if isinstance(spec, Mapping):
        return {key: _for_torch(each) for key, each in spec.items()}
    if isinstance(spec, list | tuple):
        parts = [_for_torch(each) for each in spec]
        # NOTE: a named tuple takes its parts one by one.
        return type(spec)(*parts) if hasattr(spec, "_fields") else type(spec)(parts)
    return spec


def _own_label(dim: InputDim) -> str:
    """The name in the exported model of a dim without one."""
    tensor = re.sub(r"\W+", "_", dim.place.removesuffix(f".shape[{dim.axis}]")).strip("_")
    return f"{tensor}_dim_{dim.axis}"
