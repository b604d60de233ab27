"""Runs the model in eager PyTorch: as a whole, and node by node."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind

from onnxplain.passes import Prepared
from onnxplain.request import Request
from onnxplain.torch_internals import loop_gradients, pytree


def outputs(program: torch.export.ExportedProgram, request: Request) -> list[torch.Tensor]:
    """The outputs for the example inputs, flat, without None and strings."""
    model = program.module() if isinstance(request.model, torch.export.ExportedProgram) else request.model
    # NOTE: the inputs are copies, since a model may write to them. The grad mode is that of the capture: torch's fast paths for
    # inference, such as that of nn.TransformerEncoder, give other numbers where the input is padded.
    args, kwargs = copy.deepcopy((request.args, dict(request.kwargs)))
    with loop_gradients.left_out():
        results = model(*args, **kwargs)
    leaves = pytree.tree_leaves(results)
    return [leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf) for leaf in leaves if not isinstance(leaf, str | None)]


def intermediate_values(prepared: Prepared, inputs: Sequence[Any]) -> Mapping[torch.fx.Node, torch.Tensor]:
    """The tensor that each node of the graph computes.

    Args:
        prepared: The program.
        inputs: Its inputs, flat, without constants.
    """
    program = prepared.program
    tensors = {**program.state_dict, **program.constants}
    given = iter(inputs)
    flat: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            flat.append(tensors[spec.target or ""])
        elif isinstance(spec.arg, ConstantArgument):
            flat.append(spec.arg.value)
        else:
            flat.append(copy.deepcopy(next(given)))
    interpreter = _Recording(prepared.graph_module)
    with torch.no_grad():
        interpreter.run(*flat)
    return interpreter.values


class _Recording(torch.fx.Interpreter):
    """Keeps a copy of every tensor that a node computes: a later node may write to it."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[torch.fx.Node, torch.Tensor] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        """Runs one node."""
        result = super().run_node(n)
        if isinstance(result, torch.Tensor):
            self.values[n] = result.clone()
        return result
