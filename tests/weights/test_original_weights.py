"""A model whose weights are those of the state dict: its graph computes the rearranged ones."""

from __future__ import annotations

import pathlib
from collections import Counter

import onnx
import onnxruntime
import torch

import onnxplain


class Parts(torch.nn.Module):
    """Three parts of one transposed weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(12, 4))
        self.shift = torch.nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, third = self.weight.t().chunk(3, 1)
        return (x @ first) * (x @ second) + x @ third + self.shift


def test_a_weight_that_others_are_computed_from_is_computed_once(tmp_path: pathlib.Path) -> None:
    # NOTE: the input has the name of a value that the graph will get.
    name = "weight.transpose.transpose"
    program = onnxplain.export(Parts(), (torch.randn(2, 4),), input_names=[name])
    before = Counter(node.op_type for node in program.model.graph)
    program.save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    assert Counter(node.op_type for node in program.model.graph) == before
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert Counter(node.op_type for node in graph.node) - before == Counter(Transpose=1, Slice=3)
    assert [each.name for each in graph.input] == [name, "weight", "shift"]
    assert all(node.name.startswith(f"{node.op_type}_") for node in graph.node)
    model, x = Parts(), torch.randn(2, 4)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    feeds = {name: x.numpy(), **{key: tensor.numpy() for key, tensor in model.state_dict().items()}}
    torch.testing.assert_close(torch.from_numpy(session.run(None, feeds)[0]), model(x).detach())


def test_initializers_are_constants_then_parameters_then_buffers(tmp_path: pathlib.Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.randn(1024))
            for name in ("first", "second", "third"):
                self.register_parameter(name, torch.nn.Parameter(torch.randn(1024)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.third + self.second * self.first * self.scale).reshape(2, 32, 32)

    program = onnxplain.export(Net(), (torch.randn(2, 1024),))
    program.save(tmp_path / "m.onnx", keep_initializers_as_inputs=True, external_data=True)
    constant, *weights = (each.name for each in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer)
    assert weights == ["first", "second", "third", "scale"]
    assert constant not in weights


def test_operators_of_one_weight_have_names_of_their_own(tmp_path: pathlib.Path) -> None:
    """A batch normalization that joined a convolution is computed by several operators, some of one type."""
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 2), torch.nn.BatchNorm1d(3)).eval()
    x = torch.randn(2, 2, 5)
    program = onnxplain.export(model, (x,))
    program.save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    loaded = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(loaded, full_check=True)
    outputs = [name for node in loaded.graph.node for name in node.output]
    assert len(outputs) == len(set(outputs)) > 1
    assert len({node.name for node in loaded.graph.node}) == len(loaded.graph.node)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    known = {each.name for each in session.get_inputs()}
    feeds = {key: tensor.numpy() for key, tensor in model.state_dict().items() if key in known}
    given = session.run(None, {next(iter(known - feeds.keys())): x.numpy(), **feeds})[0]
    torch.testing.assert_close(torch.from_numpy(given), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_a_model_without_rearranged_weights_stays_as_it_is(tmp_path: pathlib.Path) -> None:
    program = onnxplain.export(lambda x: x * 2 + 1, (torch.ones(2),))
    program.save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    assert [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node] == [node.op_type for node in program.model.graph]
