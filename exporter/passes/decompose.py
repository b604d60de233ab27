"""Decomposes the operators that have no translation, each by itself on its own fake values."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext, described_error
from onnxplain.registry import OnnxRegistry, Translation, complex_dtype, qualified_name
from onnxplain.rules import CustomOperatorInlined, DecompositionFailed
from onnxplain.source import locations, stubs
from onnxplain.torch_internals import python_frames, shape_env, torch_frames
from onnxplain.torch_internals.decompositions import Decomposition, decomposition_of, traced
from onnxplain.torch_internals.fake_tensors import mode_of, without_data
from onnxplain.torch_internals.operators import OpOverload, schema
from onnxplain.torch_internals.python_kernels import WithoutData, python_kernel

from . import (
    antialiasing,
    backward,
    byte_images,
    composites,
    crops,
    double_functions,
    dynamic_products,
    ellipses,
    empty_inputs,
    empty_normalizations,
    empty_reductions,
    exact_products,
    fourier,
    integer_histograms,
    linear_algebra,
    losses,
    pooling,
    resizing,
    singular_values,
    strides,
    symmetric_factors,
    unbound,
)
from .graphs import arguments, inherit
from .inline import inline

_Wanted = Callable[[OpOverload], Decomposition | None]
"""The decomposition of an operator that has no translation. It replaces the operator wherever a decomposition calls it."""

_OURS: Mapping[OpOverload, Callable[..., Any]] = {
    **backward.DECOMPOSITIONS,
    **composites.DECOMPOSITIONS,
    **fourier.DECOMPOSITIONS,
    **linear_algebra.DECOMPOSITIONS,
    **losses.DECOMPOSITIONS,
    **pooling.DECOMPOSITIONS,
    **resizing.DECOMPOSITIONS,
    **dynamic_products.DECOMPOSITIONS,
    **singular_values.DECOMPOSITIONS,
    **symmetric_factors.DECOMPOSITIONS,
}
"""Our decompositions by operator. They take precedence over those of torch."""

_IN_PLACE_OF_TRANSLATIONS = (
    empty_inputs,
    empty_reductions,
    empty_normalizations,
    exact_products,
    antialiasing,
    byte_images,
    unbound,
    crops,
    strides,
    ellipses,
    integer_histograms,
)
"""Files with decompositions for nodes that the translation of their operator does not fit. `double_functions` is about all operators."""

_TAKING_APART = frozenset({torch.ops.aten.split.Tensor, torch.ops.aten.unsafe_split.Tensor, torch.ops.aten.unbind.int})
"""Operators whose number of results depends on a size."""

_WAY = "decomposed_from"
"""The key in a node's `meta` for the operators that it was decomposed from. Some operators decompose into each other."""


def decompose(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Replaces each operator without a translation by operators that it decomposes into, if torch knows a decomposition."""
    needing = _needing(module.graph.nodes, registry)
    if not needing:
        return

    @functools.cache
    def wanted(target: OpOverload) -> Decomposition | None:
        if schema(target).is_mutable or registry.translation(qualified_name(target), is_complex=False) is not None:
            return None
        return _known(target)

    known = set(module.graph.nodes)
    while needing:
        for node in needing:
            made = _decomposition(context, node, wanted) or _implementation(context, node, wanted) or _constant(context, node)
            if made is not None:
                inline(module, node, made, node.all_input_nodes, functools.partial(_mark, node))
                context.event(f"{qualified_name(node.target)} ({node.name}) was decomposed.", logging.DEBUG)
        # NOTE: an implementation in Python may call another operator that has no translation.
        needing = _needing([node for node in module.graph.nodes if node not in known], registry)
        known.update(module.graph.nodes)


def _needing(nodes: Iterable[torch.fx.Node], registry: OnnxRegistry) -> list[torch.fx.Node]:
    """The nodes that need a decomposition."""

    @functools.cache
    def translation(target: OpOverload, is_complex: bool) -> Translation | None:
        return registry.translation(qualified_name(target), is_complex=is_complex)

    return [node for node in nodes if _needs_decomposition(node, translation)]


def _needs_decomposition(node: torch.fx.Node, translation_of: Callable[[OpOverload, bool], Translation | None]) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload) or node.target in node.meta.get(_WAY, ()):
        return False
    # NOTE: an operator with a translation for real tensors only may decompose into operators that have one for complex tensors.
    translation = translation_of(node.target, complex_dtype(node) is not None)
    return translation is None or (translation.origin != "user" and _in_place_of_a_translation(node) is not None)


def _in_place_of_a_translation(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition for a node that the translation of its operator does not fit."""
    assert isinstance(node.target, OpOverload)
    found = (each(node) for each in (*_in_place_of(node.target), double_functions.decomposition))
    return next((each for each in found if each is not None), None)


@functools.cache
def _in_place_of(target: OpOverload) -> Sequence[Callable[[torch.fx.Node], Callable[..., Any] | None]]:
    """The functions that decide about nodes with this operator."""
    return [each.decomposition for each in _IN_PLACE_OF_TRANSLATIONS if target in each.OPERATORS]


def _decomposition(context: DiagnosticContext, node: torch.fx.Node, wanted: _Wanted) -> torch.fx.GraphModule | None:
    """The graph that the node's operator decomposes into; None if torch does not know it."""
    target = node.target
    assert isinstance(target, OpOverload)
    function = _in_place_of_a_translation(node) or _known(target)
    if function is None:
        return None
    try:
        return traced_call(node, function, wanted)
    except (Exception, SystemExit) as error:
        # NOTE: a decomposition is code of torch or of the user, and may raise anything. Behind a line that fixes a dim, it may only fail
        # because the dim is still dynamic.
        at = locations.at_node(node)
        if not context.is_blocked_at(at.location):
            rule = DecompositionFailed(operator=qualified_name(target), error=described_error(error))
            context.report(rule, at=at, cause=error, blocking=True)
        raise context.stop(error) from error


def _known(target: OpOverload) -> Decomposition | None:
    return _OURS.get(target) or decomposition_of(target)


def _implementation(context: DiagnosticContext, node: torch.fx.Node, wanted: _Wanted) -> torch.fx.GraphModule | None:
    """The graph of the operators that an operator's implementation in Python calls; None if there is none, or if it needs data."""
    target = node.target
    assert isinstance(target, OpOverload)
    kernel = python_kernel(target)
    if kernel is None:
        return None
    try:
        with WithoutData():
            made = traced_call(node, kernel.function, wanted)
    except (Exception, SystemExit) as error:  # noqa: BLE001  the implementation is the user's code, and may raise anything
        # NOTE: dispatch reports the operator as unsupported.
        context.event(f"{qualified_name(target)} has an implementation in Python, which cannot be exported: {described_error(error)}")
        return None
    if any(each.target is target for each in made.graph.nodes):
        return None
    is_custom = not locations.is_internal(kernel.file) or target.namespace not in ("aten", "prims")
    if is_custom and not context.is_blocked_at((at := locations.at_node(node)).location):
        context.report(CustomOperatorInlined(operator=qualified_name(target)), at=at, fixes=[stubs.skeleton(target)])
    return made


def _constant(context: DiagnosticContext, node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """The graph of one constant, for an operator of torch that only numbers decide, such as a window; None for other operators."""
    target = node.target
    assert isinstance(target, OpOverload)
    draws = torch.Tag.nondeterministic_seeded in target.tags
    if draws or node.all_input_nodes or target.namespace != "aten" or not isinstance(node.meta.get("val"), torch.Tensor):
        return None
    # NOTE: where the constant would be kept is nothing to the exported model.
    options = {name: value for name, value in node.kwargs.items() if name not in ("device", "pin_memory")}
    try:
        value = target(*node.args, **options)
    except Exception as error:  # noqa: BLE001  an operator may raise anything
        # NOTE: dispatch reports the operator as unsupported.
        context.event(f"{qualified_name(target)} cannot be computed as a constant: {described_error(error)}")
        return None
    holder, graph = torch.nn.Module(), torch.fx.Graph()
    holder.value = value
    graph.output(graph.get_attr("value"))
    return torch.fx.GraphModule(holder, graph)


def traced_call(node: torch.fx.Node, function: Callable[..., Any], wanted: _Wanted = lambda _: None) -> torch.fx.GraphModule:
    """The graph of `function`, called as the node calls its operator, with one placeholder for each FX node among the arguments."""
    values = tuple(each.meta["val"] for each in node.all_input_nodes)

    def call(*inputs: Any) -> Any:
        given = dict(zip(node.all_input_nodes, inputs, strict=True))
        args, kwargs = _plain(torch.fx.map_arg((node.args, node.kwargs), lambda each: given[each]))
        result = function(*args, **kwargs)
        # NOTE: a named tuple, such as that of aminmax, would become a call that makes one.
        return tuple(result) if isinstance(result, tuple) else result

    mode = _fake_mode(node)
    # NOTE: kernels for fake tensors ask whether sizes are 1 in the example. Remembered, the answer would fix the dims behind these sizes.
    with without_data(mode), shape_env.without_guards(mode.shape_env), _without_decisions():
        made = traced(call, values, wanted)
        if any(isinstance(each.target, OpOverload) and schema(each.target).is_mutable for each in made.graph.nodes):
            # NOTE: decompositions in C++ write to tensors where `functionalize` does not see it; in the graph it does (read in torch 2.13).
            made = traced(made, values, wanted)
    _check_sizes(node, made)
    _check_parts(made)
    return made


@contextlib.contextmanager
def _without_decisions() -> Iterator[None]:
    """Raises a ValueError at the end if a dynamic size became a number, or if the user's code decided by one."""
    decisions: list[str] = []

    def observe(environment: object, purpose: str, relation: object, *_: object) -> None:
        del environment, purpose
        if locations.python_asks(python_frames.outward(python_frames.current())):
            decisions.append(str(relation))

    def observe_number(size: object, number: float) -> None:
        # NOTE: the kernels for fake tensors only compute their sizes, and make no nodes.
        if not torch_frames.computes_fake_values(python_frames.outward(python_frames.current())):
            decisions.append(f"{size} == {number}")

    # NOTE: torch's decompositions ask for sizes of fake tensors as well, for example about strides, and the graph keeps the sizes dynamic.
    with shape_env.observed(shape_env.GUARD_MADE, observe), shape_env.fixed(observe_number):
        yield
    if decisions:
        raise ValueError(f"it is right only where {decisions[0]}")


def _check_sizes(node: torch.fx.Node, made: torch.fx.GraphModule) -> None:
    """Raises a ValueError if a decomposition fixes a dynamic size of a result: the model would be silently wrong at other sizes."""
    (results,) = made.graph.output_node().args
    wanted = node.meta.get("val")
    for result, value in zip(*(each if isinstance(each, list | tuple) else [each] for each in (results, wanted)), strict=False):
        got = result.meta.get("val") if isinstance(result, torch.fx.Node) else None
        if isinstance(got, torch.Tensor) and isinstance(value, torch.Tensor):
            for size, dynamic in zip(got.shape, value.shape, strict=False):
                if isinstance(dynamic, torch.SymInt) and not isinstance(size, torch.SymInt):
                    raise ValueError(f"PyTorch's decomposition is right only where a dynamic size is {size}")


def _check_parts(made: torch.fx.GraphModule) -> None:
    """Raises a ValueError if a decomposition takes a dynamic dim apart into its elements: their number would be that of the example.

    What larger parts assume of a size, such as those of `chunk`, is told elsewhere.
    """
    for each in made.graph.nodes:
        if each.target not in _TAKING_APART:
            continue
        given = arguments(each)
        is_dynamic = isinstance(given["self"].meta["val"].shape[given["dim"]], torch.SymInt)
        if is_dynamic and given.get("split_size", 1) == 1:
            raise ValueError(f"it is right only where {qualified_name(each.target)} gives {len(each.meta['val'])} parts")


def _plain(argument: Any) -> Any:
    """An argument with plain lists and dicts in place of FX's, which decompositions cannot change."""
    if isinstance(argument, dict):
        return {key: _plain(each) for key, each in argument.items()}
    if isinstance(argument, list | tuple):
        return (tuple if isinstance(argument, tuple) else list)(map(_plain, argument))
    return argument


def _fake_mode(node: torch.fx.Node) -> Any:
    """The fake mode of the capture, in which symbolic sizes keep their meaning."""
    for each in (node, *node.all_input_nodes):
        values = each.meta.get("val")
        for value in values if isinstance(values, list | tuple) else (values,):
            if (mode := mode_of(value)) is not None:
                return mode
    raise ValueError(f"{node.name} has no fake value to decompose it on")


def _mark(node: torch.fx.Node, made: torch.fx.Node) -> None:
    """Marks `made` as a part of `node`, from which it was decomposed."""
    inherit(node, made)
    made.meta[_WAY] = (*node.meta.get(_WAY, ()), node.target)
