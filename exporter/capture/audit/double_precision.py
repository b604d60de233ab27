"""Computations in float64, which cost twice the memory and more time, and often come from one tensor."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.export.graph_signature import InputKind

from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Evidence
from onnxplain.rules import DoublePrecision
from onnxplain.source import call_sites, locations
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.operators import OpOverload

from .finished import Finished

_KINDS = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
_DOUBLE = (torch.float64, torch.complex128)


def findings(finished: Finished) -> Iterator[Finding]:
    """One finding, at what brings float64 into the computations on the inputs. What an installed package computes in it does not count."""
    # NOTE: what depends on no input becomes a constant, mostly a table that the model rounds to float32.
    computed = [node for node in _depending_on_inputs(finished) if isinstance(node.target, OpOverload) and _is_double(node)]
    kinds = {spec.arg.name: spec.kind for spec in finished.program.graph_signature.input_specs}
    # NOTE: by the first operator for each source. Of a model in float64, the parameters are its cause, and not its inputs.
    sources: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in computed:
        for source in _sources(node):
            sources.setdefault(source, node)
    known = [source for source in sources if source.op == "placeholder" or _is_users(source)]
    known.sort(key=lambda source: kinds.get(source.name) is not InputKind.PARAMETER)
    if known:
        yield _finding(finished, known[0], sources[known[0]], len(computed))


def _finding(finished: Finished, source: torch.fx.Node, first: torch.fx.Node, operators: int) -> Finding:
    program = finished.program
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    tensors = {id(each): each for each in (*program.state_dict.values(), *program.constants.values()) if isinstance(each, torch.Tensor)}
    # NOTE: float32 takes half of the bytes.
    more = sum(each.numel() * each.itemsize // 2 for each in tensors.values() if each.dtype in _DOUBLE)
    spec = specs.get(source.name) if source.op == "placeholder" else None
    if spec is None:
        source = first if source.op == "placeholder" else source
        name = str(source.target).removesuffix(".default")
        return Finding(DoublePrecision(kind="operator", name=name, operators=operators, more=more), locations.at_node(source))
    at = locations.at_node(first)
    if spec.kind is InputKind.USER_INPUT:
        at = _of_input(finished, at)
    return Finding(
        DoublePrecision(kind=_KINDS.get(spec.kind, "constant"), name=spec.target or source.name, operators=operators, more=more), at
    )


def _of_input(finished: Finished, use: Evidence) -> Evidence:
    """The place of the example inputs; that of the first use if the call is not known."""
    written = call_sites.argument(finished.request, "args")
    return use if written is None else call_sites.at(written, finished.request)


def _depending_on_inputs(finished: Finished) -> Iterator[torch.fx.Node]:
    """The nodes whose values depend on inputs of the model."""
    inputs = {spec.arg.name for spec in finished.program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT}
    root, found = finished.program.graph, set()
    for node in finished.nodes:
        # NOTE: the graphs of control flow operators get what the outer graph passes on.
        given = node.op == "placeholder" and (node.graph is not root or node.name in inputs)
        if given or any(each in found for each in node.all_input_nodes):
            found.add(node)
            yield node


def _is_double(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    values = (value,) if isinstance(value, torch.Tensor) else pytree.tree_leaves(value) if isinstance(value, list | tuple) else ()
    # NOTE: numbers are float64 in Python as well, and cost nothing.
    return any(isinstance(each, torch.Tensor) and each.ndim > 0 and each.dtype in _DOUBLE for each in values)


def _sources(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """What brings float64 into `node`: its inputs that are placeholders, or else the node itself if no input is float64."""
    before = [each for each in node.all_input_nodes if _is_double(each)]
    yield from (each for each in before if each.op == "placeholder")
    if not before:
        yield node


def _is_users(node: torch.fx.Node) -> bool:
    """Whether the innermost frame outside torch is the user's."""
    frames = [frame for frame in locations.stack_of(node) if not locations.is_internal(frame.file)]
    return bool(frames) and locations.is_users(frames[-1].file)
