"""Makes PyTorch's type promotion explicit: the operands of an ONNX operator must have equal dtypes."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.fx.node import map_aggregate

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry
from onnxplain.torch_internals.operators import TO_COPY, OpOverload, schema

aten = torch.ops.aten

_COMPUTE_IN_RESULT_DTYPE = frozenset(
    {
        *("aten::cat", "aten::stack", "aten::hstack", "aten::vstack", "aten::where"),
        # NOTE: PyTorch multiplies where there is nothing to sum.
        *("aten::einsum", "aten::outer", "aten::ger", "aten::kron", "aten::cross", "aten::linalg_cross", "aten::linalg_vecdot"),
        *("aten::sum", "aten::prod", "aten::cumsum", "aten::cumprod", "aten::mean"),
        # NOTE: torch does not tag its other names of pointwise operators.
        *("aten::divide", "aten::multiply", "aten::subtract", "aten::rsub"),
        *("aten::floor_divide", "aten::logsumexp", "aten::__and__", "aten::__or__", "aten::__xor__"),
        *("aten::__lshift__", "aten::__rshift__"),
        *("aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "aten::huber_loss", "aten::soft_margin_loss"),
        *("prims::add", "prims::sub", "prims::mul", "prims::div"),
    }
)
"""Operators that compute in the dtype of their result although torch does not tag them as pointwise."""
_EXEMPT = frozenset(
    {
        *("aten::_to_copy", "aten::to", "aten::copy", "aten::type_as"),
        *("aten::dequantize", "aten::isin", "aten::complex", "aten::polar"),
    }
)
"""Operators whose operands may have different dtypes although torch tags them as pointwise."""
_COMPARES = frozenset(
    {
        *("aten::greater", "aten::greater_equal", "aten::isclose", "aten::less", "aten::less_equal"),
        *("aten::bucketize", "aten::searchsorted"),
    }
)
"""Operators that compare their operands although their result is not bool."""
_BECOMES_COMPLEX = frozenset(
    {
        *("aten::_to_copy", "aten::to", "aten::type_as", "aten::stft"),
        *("aten::zeros_like", "aten::ones_like", "aten::empty_like", "aten::full_like"),
    }
)
"""Operators that make a complex tensor from a real one. The real one is cast before, so that a translation for complex tensors never
gets a real one."""
_INDEXED = frozenset({"aten::index", "aten::_unsafe_index", "aten::index_put", "aten::_unsafe_index_put"})
"""Operators with several indices, of which some may be INT32 and others INT64."""
_WRAP = frozenset({"aten::div", "aten::divide", "aten::floor_divide"})
"""Operators that convert a Python number to the integer dtype of their result, and drop the bits that do not fit."""
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
_SYMBOLIC = {torch.SymInt: torch.int64, torch.SymFloat: torch.float32, torch.SymBool: torch.bool}
"""The dtypes of numbers that are computed from sizes, in ONNX."""
_LIKE = {torch.SymInt: 0, torch.SymFloat: 0.0, torch.SymBool: False}
"""Python numbers of the types of such numbers."""
_MASKS = frozenset({"condition", "mask"})
"""The names of arguments that stay bool."""


def promote_dtypes(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Inserts a cast before each operand that does not have the dtype in which the operator computes (torch's type promotion)."""
    del context, registry
    for node in list(module.graph.nodes):
        target = node.target
        if not isinstance(target, OpOverload):
            continue
        if schema(target).name in _INDEXED:
            _widen_indices(module.graph, node)
        if not (_promotes(target) or _makes_complex(node)):
            continue
        dtype = _compute_dtype(node)
        if target is aten.stft.default and dtype is not None:
            _set_onesided(node)
            dtype = dtype.to_complex()
        if dtype is not None:
            _cast_operands(module.graph, node, dtype)


@functools.cache
def _promotes(target: OpOverload) -> bool:
    name = schema(target).name
    return name in _COMPUTE_IN_RESULT_DTYPE or name in _COMPARES or (torch.Tag.pointwise in target.tags and name not in _EXEMPT)


def _set_onesided(node: torch.fx.Node) -> None:
    """Sets the argument whose default depends on whether signal and window are real, before a cast makes them complex."""
    given = dict(_arguments(node))
    node.args = (given.pop("self"),)
    values = (_value(each) for each in (node.args[0], given.get("window")))
    is_real = not any(isinstance(each, torch.Tensor) and each.is_complex() for each in values)
    node.kwargs = {**given, "onesided": is_real if given.get("onesided") is None else given["onesided"]}


def _makes_complex(node: torch.fx.Node) -> bool:
    assert isinstance(node.target, OpOverload)
    result = node.meta.get("val")
    # NOTE: without `return_complex`, the result of stft is real, and looks as ONNX's complex numbers do.
    is_complex = isinstance(result, torch.Tensor) and (result.is_complex() or node.target is aten.stft.default)
    return schema(node.target).name in _BECOMES_COMPLEX and is_complex


def _compute_dtype(node: torch.fx.Node) -> torch.dtype | None:
    """The dtype in which the operator computes: that of the result, or for a comparison that of its promoted operands."""
    assert isinstance(node.target, OpOverload)
    result = node.meta.get("val")
    if not isinstance(result, torch.Tensor):
        return None
    if result.dtype is not torch.bool and schema(node.target).name not in _COMPARES:
        return result.dtype
    names = _operands(node.target)
    operands = [_value(argument) for name, argument in _arguments(node) if name in names]
    # NOTE: the type of a number counts, not its value.
    numbers = [_LIKE.get(type(value), value) for value in operands]
    known = [value for value in numbers if isinstance(value, torch.Tensor | int | float | complex)]
    tensors = [value for value in known if isinstance(value, torch.Tensor)]
    if len(known) != 2 or not tensors:
        return None
    return torch.result_type(*known)  # type: ignore[arg-type]  # the overloads know no unpacked list


def _arguments(node: torch.fx.Node) -> list[tuple[str, Any]]:
    assert isinstance(node.target, OpOverload)
    names = [argument.name for argument in schema(node.target).arguments]
    return [*zip(names, node.args, strict=False), *node.kwargs.items()]


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _insert(
    graph: torch.fx.Graph, node: torch.fx.Node, target: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], value: torch.Tensor
) -> torch.fx.Node:
    """A new node before `node`, with its origin."""
    with graph.inserting_before(node):
        made = graph.call_function(target, args, kwargs)
    made.meta.update({key: entry for key, entry in node.meta.items() if key not in ("val", "tensor_meta")})
    made.meta["val"] = value
    return made


def _widen_indices(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    def widened(index: Any) -> Any:
        value = _value(index)
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.int32:
            return index
        return _insert(graph, node, TO_COPY, (index,), {"dtype": torch.int64}, value.to(torch.int64))

    indices = node.args[1]
    if isinstance(indices, list | tuple) and sum(each is not None for each in indices) > 1:
        node.update_arg(1, [widened(each) for each in indices])


def _cast_operands(graph: torch.fx.Graph, node: torch.fx.Node, dtype: torch.dtype) -> None:
    assert isinstance(node.target, OpOverload)
    wraps = schema(node.target).name in _WRAP and dtype in _INTEGERS

    def cast(argument: Any) -> Any:
        value = _value(argument)
        if wraps and type(argument) is int:
            return int(torch.tensor(argument).to(dtype))
        if isinstance(argument, torch.fx.Node) and (known := _SYMBOLIC.get(type(value))):
            # NOTE: sizes, and numbers computed from them, are scalar tensors in ONNX.
            value = node.meta["val"].new_empty((), dtype=known)
        if not isinstance(argument, torch.fx.Node) or not isinstance(value, torch.Tensor):
            return argument
        if value.dtype == dtype or (value.is_complex() and not dtype.is_complex):
            return argument
        if value.is_complex() or not dtype.is_complex:
            return insert(TO_COPY, (argument,), {"dtype": dtype}, value.to(dtype))
        real = value.to(dtype.to_real())
        argument = insert(TO_COPY, (argument,), {"dtype": real.dtype}, real)
        imaginary = insert(aten.zeros_like.default, (argument,), {}, real)
        return insert(aten.complex.default, (argument, imaginary), {}, value.to(dtype))

    insert = functools.partial(_insert, graph, node)
    operands = _operands(node.target)
    args = tuple(
        map_aggregate(argument, cast) if expected.name in operands else argument
        for expected, argument in zip(schema(node.target).arguments, node.args, strict=False)
    )
    kwargs = {name: map_aggregate(argument, cast) if name in operands else argument for name, argument in node.kwargs.items()}
    # NOTE: most operands fit, and an assignment takes longer than the comparison.
    if args != node.args:
        node.args = args
    if kwargs != node.kwargs:
        node.kwargs = kwargs


@functools.cache
def _operands(target: OpOverload) -> frozenset[str]:
    """The names of the arguments that are tensors or numbers to compute with."""
    # NOTE: the type of a Scalar is "number" here.
    return frozenset(
        argument.name
        for argument in schema(target).arguments
        if argument.name not in _MASKS and any(kind in str(argument.type) for kind in ("Tensor", "number"))
    )
