"""The code examples of PyTorch's documentation of its TorchDynamo-based exporter, with only the name of the package changed.

Sources: docs.pytorch.org `onnx_dynamo` of torch 2.1 to 2.8, the docstrings of torch 2.1 to 2.5 it shows, and the tutorials
`export_simple_model_to_onnx_tutorial` and `onnx_registry_tutorial`.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
from collections.abc import Callable
from types import ModuleType

import onnx
import pytest

import onnxplain
from onnxplain.registry import OnnxRegistry

ROOT = pathlib.Path(__file__).parents[2]

MLP = """
import torch
import torch.nn as nn

class MLPModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc0 = nn.Linear(8, 8, bias=True)
        self.fc1 = nn.Linear(8, 4, bias=True)
        self.fc2 = nn.Linear(4, 2, bias=True)
        self.fc3 = nn.Linear(2, 2, bias=True)

    def forward(self, tensor_x: torch.Tensor):
        tensor_x = self.fc0(tensor_x)
        tensor_x = torch.sigmoid(tensor_x)
        tensor_x = self.fc1(tensor_x)
        tensor_x = torch.sigmoid(tensor_x)
        tensor_x = self.fc2(tensor_x)
        tensor_x = torch.sigmoid(tensor_x)
        output = self.fc3(tensor_x)
        return output

model = MLPModel()
tensor_x = torch.rand((97, 8), dtype=torch.float32)
"""

COMBINED = """
import torch
import torch.nn as nn

class MLPModel(nn.Module):
  def __init__(self):
      super().__init__()
      self.fc0 = nn.Linear(8, 8, bias=True)
      self.fc1 = nn.Linear(8, 4, bias=True)
      self.fc2 = nn.Linear(4, 2, bias=True)
      self.fc3 = nn.Linear(2, 2, bias=True)
      self.fc_combined = nn.Linear(8 + 8 + 8, 8, bias=True)  # Combine all inputs

  def forward(self, tensor_x: torch.Tensor, input_dict: dict, input_list: list):
      dict_tensor = input_dict['tensor_x']
      list_tensor = input_list[0]
      combined_tensor = torch.cat([tensor_x, dict_tensor, list_tensor], dim=1)
      combined_tensor = self.fc_combined(combined_tensor)
      combined_tensor = torch.sigmoid(combined_tensor)
      combined_tensor = self.fc0(combined_tensor)
      combined_tensor = torch.sigmoid(combined_tensor)
      combined_tensor = self.fc1(combined_tensor)
      combined_tensor = torch.sigmoid(combined_tensor)
      combined_tensor = self.fc2(combined_tensor)
      combined_tensor = torch.sigmoid(combined_tensor)
      output = self.fc3(combined_tensor)
      return output

model = MLPModel()

tensor_input = torch.rand((97, 8), dtype=torch.float32)
dict_input = {'tensor_x': torch.rand((97, 8), dtype=torch.float32)}
list_input = [torch.rand((97, 8), dtype=torch.float32)]

input_names = ['tensor_input', 'tensor_x', 'list_input_index_0']
output_names = ['output']
"""

LINEAR = """
import torch

class MyModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
    def forward(self, x, bias=None):
        out = self.linear(x)
        out = out + bias
        return out
model = MyModel()
kwargs = {"bias": 3.}
args = (torch.randn(2, 2, 2),)
"""

CLASSIFIER = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import onnx
import onnxruntime


class MyModel(nn.Module):

    def __init__(self):
        super(MyModel, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return x

torch_model = MyModel()
torch_input = torch.randn(1, 1, 32, 32)
export_output = torch.onnx.dynamo_export(torch_model, torch_input)

export_output.save("my_image_classifier.onnx")
onnx_model = onnx.load("my_image_classifier.onnx")
onnx.checker.check_model(onnx_model)

onnx_input = export_output.adapt_torch_inputs_to_onnx(torch_input)
ort_session = onnxruntime.InferenceSession("./my_image_classifier.onnx", providers=['CPUExecutionProvider'])

def to_numpy(tensor):
    return tensor.detach().cpu().numpy() if tensor.requires_grad else tensor.cpu().numpy()

onnxruntime_input = {k.name: to_numpy(v) for k, v in zip(ort_session.get_inputs(), onnx_input)}
onnxruntime_outputs = ort_session.run(None, onnxruntime_input)

torch_outputs = torch_model(torch_input)
torch_outputs = export_output.adapt_torch_outputs_to_onnx(torch_outputs)

assert len(torch_outputs) == len(onnxruntime_outputs)
for torch_output, onnxruntime_output in zip(torch_outputs, onnxruntime_outputs):
    torch.testing.assert_close(torch_output, torch.tensor(onnxruntime_output), rtol=1e-4, atol=1e-5)
"""

REGISTRY = """
import torch
import onnxscript
from onnxscript import opset18

onnx_registry = torch.onnx.OnnxRegistry()
assert onnx_registry.is_registered_op(namespace='aten', op_name='add', overload='Tensor')

class Model(torch.nn.Module):
    def forward(self, input_x, input_y):
        # specifically call out aten::add
        return torch.ops.aten.add(input_x, input_y)

input_add_x = torch.randn(3, 4)
input_add_y = torch.randn(3, 4)
aten_add_model = Model()

custom_aten = onnxscript.values.Opset(domain="custom.aten", version=1)

@onnxscript.script(custom_aten)
def custom_aten_add(input_x, input_y, alpha: float = 1.0):
    alpha = opset18.CastLike(alpha, input_y)
    input_y = opset18.Mul(input_y, alpha)
    return opset18.Add(input_x, input_y)

onnx_registry.register_op(
    namespace="aten", op_name="add", overload="Tensor", function=custom_aten_add
    )
export_options = torch.onnx.ExportOptions(onnx_registry=onnx_registry)
export_output = torch.onnx.dynamo_export(
    aten_add_model, input_add_x, input_add_y, export_options=export_options
    )
torch.testing.assert_close(export_output(input_add_x, input_add_y)[0], aten_add_model(input_add_x, input_add_y))

class CustomGelu(torch.nn.Module):
    def forward(self, input_x):
        return torch.ops.aten.gelu(input_x)

custom_ort = onnxscript.values.Opset(domain="com.microsoft", version=1)

@onnxscript.script(custom_ort)
def custom_aten_gelu(input_x, approximate: str = "none"):
    # We know com.microsoft::Gelu is supported by ONNX Runtime
    # It's only not supported by ONNX
    return custom_ort.Gelu(input_x)

onnx_registry = torch.onnx.OnnxRegistry()
onnx_registry.register_op(
    namespace="aten", op_name="gelu", overload="default", function=custom_aten_gelu)
export_options = torch.onnx.ExportOptions(onnx_registry=onnx_registry)

aten_gelu_model = CustomGelu()
input_gelu_x = torch.randn(3, 3)

export_output = torch.onnx.dynamo_export(
    aten_gelu_model, input_gelu_x, export_options=export_options
    )
assert export_output.model_proto.graph.node[0].domain == "com.microsoft"
assert export_output.model_proto.graph.node[0].op_type == "Gelu"
torch.testing.assert_close(export_output(input_gelu_x)[0], aten_gelu_model(input_gelu_x))
"""

TABLE = """
import torch
import onnxscript
from onnxscript import opset18 as op

class Model(torch.nn.Module):
    def forward(self, input_x, input_y):
        return torch.ops.aten.add.Tensor(input_x, input_y)

def custom_aten_add(self, other, alpha: float = 1.0):
    if alpha != 1.0:
        alpha = op.CastLike(alpha, other)
        other = op.Mul(other, alpha)
    # To distinguish the custom implementation from the builtin one, we switch the order of the inputs
    return op.Add(other, self)

x = torch.tensor([1.0])
y = torch.tensor([2.0])

onnx_program = torch.onnx.export(
    Model().eval(),
    (x, y),
    dynamo=True,
    custom_translation_table={
        torch.ops.aten.add.Tensor: custom_aten_add,
    },
)
# Optimize the ONNX graph to remove redundant nodes
onnx_program.optimize()
assert [each.name for each in onnx_program.model.graph[0].inputs] == ["input_y", "input_x"]
result = onnx_program(x, y)[0]
torch.testing.assert_close(result, torch.tensor([3.0]))

class GeluModel(torch.nn.Module):
    def forward(self, input_x):
        return torch.ops.aten.gelu(input_x)

microsoft_op = onnxscript.values.Opset(domain="com.microsoft", version=1)
from onnxscript import FLOAT

@onnxscript.script(microsoft_op)
def custom_aten_gelu(self: FLOAT, approximate: str = "none") -> FLOAT:
    return microsoft_op.Gelu(self)

onnx_program = torch.onnx.export(
    GeluModel().eval(),
    (x,),
    dynamo=True,
    custom_translation_table={
        torch.ops.aten.gelu.default: custom_aten_gelu,
    },
)
onnx_program.optimize()
assert (onnx_program.model.graph[0].domain, onnx_program.model.graph[0].op_type) == ("com.microsoft", "Gelu")
result = onnx_program(x)[0]
torch.testing.assert_close(result, torch.ops.aten.gelu(x))

@torch.library.custom_op("mylibrary::add_and_round_op", mutates_args=())
def add_and_round_op(input: torch.Tensor) -> torch.Tensor:
    return torch.round(input + input)

@add_and_round_op.register_fake
def _add_and_round_op_fake(tensor_x):
    return torch.empty_like(tensor_x)

class AddAndRoundModel(torch.nn.Module):
    def forward(self, input):
        return add_and_round_op(input)

def onnx_add_and_round(input):
    return op.Round(op.Add(input, input))

onnx_program = torch.onnx.export(
    AddAndRoundModel().eval(),
    (x,),
    dynamo=True,
    custom_translation_table={
        torch.ops.mylibrary.add_and_round_op.default: onnx_add_and_round,
    },
)
onnx_program.optimize()
result = onnx_program(x)[0]
torch.testing.assert_close(result, add_and_round_op(x))
"""

FAKE = """
>>> import torch
>>> import torch.onnx
>>> class MyModel(torch.nn.Module):  # Dummy model
...     def __init__(self) -> None:
...         super().__init__()
...         self.linear = torch.nn.Linear(2, 2)
...     def forward(self, x):
...         out = self.linear(x)
...         return out
>>> with torch.onnx.enable_fake_mode() as fake_context:
...     my_nn_module = MyModel()
...     arg1 = torch.randn(2, 2, 2)  # positional input 1
>>> export_options = torch.onnx.ExportOptions(fake_context=fake_context)
>>> export_output = torch.onnx.dynamo_export(
...     my_nn_module,
...     arg1,
...     export_options=export_options
... )
"""

EXAMPLES = {
    "mlp of 2.1": MLP
    + """
export_output = torch.onnx.dynamo_export(model, tensor_x)
export_output.save("mlp.onnx")
""",
    "mlp of 2.5": MLP
    + """
onnx_program = torch.onnx.export(model, (tensor_x,), dynamo=True)
onnx_program.save("mlp.onnx")
""",
    "mlp of 2.6, dynamic": MLP
    + """
onnx_program = torch.onnx.export(model, (tensor_x,), dynamic_shapes=({0: "batch_size"},), dynamo=True)
assert onnx_program.model.graph.inputs[0].shape == ("batch_size", 8)
""",
    "mlp of 2.7": COMBINED
    + """
onnx_program = torch.onnx.export(model,(tensor_input, dict_input, list_input), dynamic_shapes=({0: "batch_size"},{"tensor_x": {0: "batch_size"}},[{0: "batch_size"}]), input_names=input_names, output_names=output_names, dynamo=True,)

# Check the exported ONNX model is dynamic
assert onnx_program.model.graph.inputs[0].shape == ("batch_size", 8)
assert onnx_program.model.graph.inputs[1].shape == ("batch_size", 8)
assert onnx_program.model.graph.inputs[2].shape == ("batch_size", 8)
onnx_program.save("mlp.onnx")
""",  # noqa: E501  wide as the document shows it
    "mlp of 2.7, dynamic axes": COMBINED
    + """
torch.onnx.export(model,(tensor_input, dict_input, list_input), "mlp.onnx", dynamic_axes={"tensor_input":{0: "batch_size"}, "tensor_x": {0: "batch_size"}, "list_input_index_0": {0: "batch_size"}}, input_names=input_names, output_names=output_names)
""",  # noqa: E501  wide as the document shows it
    "a report": MLP
    + """
onnx_program = torch.onnx.export(model, (tensor_x,), "mlp.onnx", dynamo=True, report=True)
""",
    "keywords": LINEAR
    + """
onnx_program = torch.onnx.dynamo_export(
    model,
    *args,
    **kwargs).save("my_simple_model.onnx")
""",
    "dynamic shapes": LINEAR
    + """
export_options = torch.onnx.ExportOptions(dynamic_shapes=True)
onnx_program = torch.onnx.dynamo_export(
    model,
    *args,
    **kwargs,
    export_options=export_options)
onnx_program.save("my_dynamic_model.onnx")
""",
    "fake mode of 2.1": FAKE
    + """
>>> # Saving model WITHOUT initializers
>>> export_output.save("my_model_without_initializers.onnx")
>>> # Saving model WITH initializers
>>> export_output.save("my_model_with_initializers.onnx", model_state_dict=MyModel().state_dict())
""",
    "fake mode of 2.5": FAKE.replace("export_output", "onnx_program")
    + """
>>> # Saving model WITHOUT initializers
>>> onnx_program.save("my_model_without_initializers.onnx")
>>> # Saving model WITH initializers
>>> onnx_program.save("my_model_with_initializers.onnx", model_state=MyModel().state_dict())
""",
    "diagnostics": MLP
    + """
onnx_program = torch.onnx.dynamo_export(model, tensor_x)
onnx_program.save_diagnostics("mlp.sarif")
""",
    "a call": """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1.0

onnx_program = torch.onnx.dynamo_export(
    Model(),
    torch.randn(1, 1, 2, dtype=torch.float),
)
x = torch.randn(1, 1, 2)
torch.testing.assert_close(onnx_program(x)[0], x + 1.0)
options = torch.onnx.ONNXRuntimeOptions(execution_providers=["CPUExecutionProvider"])
torch.testing.assert_close(onnx_program(x, options=options)[0], x + 1.0)
""",
    "nested inputs": """
import torch
from typing import Dict, Tuple

def func_nested_input(
    x_dict: Dict[str, torch.Tensor],
    y_tuple: Tuple[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]
):
    if "a" in x_dict:
        x = x_dict["a"]
    elif "b" in x_dict:
        x = x_dict["b"]
    else:
        x = torch.randn(3)

    y1, (y2, y3) = y_tuple

    return x + y1 + y2 + y3
x_dict = {"a": torch.tensor(1.)}
y_tuple = (torch.tensor(2.), (torch.tensor(3.), torch.tensor(4.)))
onnx_program = torch.onnx.dynamo_export(func_nested_input, x_dict, y_tuple)
shown = str(onnx_program.adapt_torch_inputs_to_onnx(x_dict, y_tuple, model_with_state_dict=func_nested_input))
assert shown == "(tensor(1.), tensor(2.), tensor(3.), tensor(4.))"
""",
    "nested outputs": """
import torch

def func_returning_tuples(x, y, z):
    x = x + y
    y = y + z
    z = x + y
    return (x, (y, z))
x = torch.tensor(1.)
y = torch.tensor(2.)
z = torch.tensor(3.)
onnx_program = torch.onnx.dynamo_export(func_returning_tuples, x, y, z)
pt_output = func_returning_tuples(x, y, z)
assert str(onnx_program.adapt_torch_outputs_to_onnx(pt_output)) == "[tensor(3.), tensor(5.), tensor(8.)]"
""",
    "the signature": """
import torch

class CustomModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.my_parameter = torch.nn.Parameter(torch.tensor(2.0))
        self.register_buffer("my_buffer1", torch.tensor(3.0))
        self.conv1 = torch.nn.Conv2d(1, 32, 3, 1, bias=False)

    def forward(self, x, b):
        return self.conv1(x).sum() + self.my_buffer1 + b

inputs = (torch.rand((64, 1, 28, 28), dtype=torch.float32), torch.randn(3))
exported_program = torch.export.export(CustomModule(), args=inputs).run_decompositions({})
onnx_program = torch.onnx.dynamo_export(exported_program, *inputs)
assert onnx_program.model_signature.user_inputs == ("x", "b")
""",
    "the image classifier": CLASSIFIER,
    "the registry": REGISTRY,
    "the translation table": TABLE,
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_example_runs_as_written(
    example: str, load: Callable[..., ModuleType], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Python sessions in the documentation are sessions here, without the prompts.
    source = re.sub(r"^(>>>|\.\.\.) ", "", example, flags=re.MULTILINE)
    load(re.sub(r"\btorch\.onnx\b", "onnxplain", f"import torch.onnx\n{source}"))
    for model in tmp_path.glob("*.onnx"):
        if "initializers" in model.name:
            inputs = ["x", "linear.weight", "linear.bias"]
            whole = "without" not in model.name
            proto = onnx.load(model)
            assert [each.name for each in proto.graph.input] == (inputs[:1] if whole else inputs)
            assert len(proto.graph.initializer) == (2 if whole else 0)
        onnx.checker.check_model(model, full_check=True)
    if ".save(" in example:
        assert list(tmp_path.glob("*.onnx"))
    if "report=True" in example:
        assert (tmp_path / "mlp.md").exists()
    if "save_diagnostics" in example:
        assert (tmp_path / "mlp.sarif").exists()


# The page for users of torch.onnx

PAGE = ROOT / "exporter" / "coming-from-torch-onnx.md"


def named() -> list[str]:
    """The names in the second column of the page's tables."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [name for _, cell, _ in rows for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("name", named())
def test_every_name_of_the_page_exists(name: str) -> None:
    call = ast.parse(name, mode="eval").body
    keywords = [keyword.arg for keyword in call.keywords] if isinstance(call, ast.Call) else []
    target = call.func if isinstance(call, ast.Call) else call
    known: object = {"program": onnxplain.ONNXProgram, "registry": OnnxRegistry, "failed": onnxplain.ExportFailed}
    parts = ast.unparse(target).split(".")
    found = known[parts[0]] if parts[0] in known else getattr(onnxplain, parts[0])  # type: ignore[index, operator]
    for part in parts[1:]:
        annotations = getattr(found, "__doc__", "") or ""
        assert hasattr(found, part) or f"        {part}: " in annotations, name
        found = getattr(found, part, None)
    for keyword in keywords:
        assert keyword in inspect.signature(found).parameters, name  # type: ignore[arg-type]


@pytest.mark.parametrize("example", re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
def test_examples_of_the_page(example: str, load: Callable[..., ModuleType]) -> None:
    program = load(example).program
    assert isinstance(program, onnxplain.ONNXProgram)
    assert not program.diagnostics.findings
    assert [node.op_type for node in program.model.graph][-1] == ("Max" if "registry" in example else "Relu")


def test_the_readme_links_the_page() -> None:
    assert f"({PAGE.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")
