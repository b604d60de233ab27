"""A script that computes one operator in PyTorch and its ONNX nodes in ONNX Runtime, with inputs for which the results differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.process import random_numbers_kept

from .calls import Call
from .causes import Scene
from .comparison import compare
from .parts import tensor_of

_ELEMENTS = 200
"""The most elements of all inputs whose numbers the script has if random numbers do not show the difference."""
_TEXT = 20_000
"""The most characters of the ONNX nodes."""
_DTYPES = frozenset(
    {torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
)
"""The dtypes that NumPy has."""


@dataclasses.dataclass(frozen=True)
class _Variable:
    """An input of the script: its name, the code that makes it, and a function that makes the same tensor."""

    name: str
    code: str
    make: Callable[[], torch.Tensor]


def script(scene: Scene, call: Call | None) -> str:
    """The script; empty if there is none that shows the difference.

    Args:
        scene: The operator, and what the exported model has before it.
        call: The operator's call in PyTorch.
    """
    part = scene.part
    if part is None or call is None:
        return ""
    inputs = [*(scene.values[value] for value in part.inputs), *(tensor_of(value) for value in part.weights)]
    tensors = [*inputs, *(each for each in call.tensors() if _place(each, inputs) is None)]
    if any(each.dtype not in _DTYPES for each in (*tensors, scene.got)):
        return ""
    count = len(part.inputs)
    # NOTE: the numbers are the user's data. Those of the translation, such as axes, are not.
    made = [_random(f"x{index}", each, is_input=not count <= index < len(inputs)) for index, each in enumerate(tensors)]
    if not _shows(scene, call, tensors, made):
        if sum(each.numel() for each in tensors) > _ELEMENTS:
            return ""
        made = [_given(f"x{index}", each) for index, each in enumerate(tensors)]
    text, expression = _nodes(scene, inputs), call.text([made[_place(each, tensors) or 0].name for each in call.tensors()])
    if not text or not expression:
        return ""
    feeds = ", ".join(f'"{each.name}": {each.name}.numpy()' for each in made[: len(inputs)])
    return "\n".join(
        [
            "import onnx.parser",
            "import onnx.reference",
            "import onnxruntime",
            "import torch",
            "",
            "torch.manual_seed(0)",
            *(f"{each.name} = {each.code}" for each in made),
            "model = onnx.parser.parse_model(",
            *(f"    {line + chr(10)!r}" for line in text.splitlines()),
            ")",
            f"feeds = {{{feeds}}}",
            f"eager = {expression}",
            "(exported,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)",
            "(standard,) = onnx.reference.ReferenceEvaluator(model).run(None, feeds)",
            'print("largest difference of ONNX Runtime from PyTorch:", abs(torch.tensor(exported).double() - eager.double()).max().item())',
            'print("that of ONNX\'s reference evaluator:", abs(torch.tensor(standard).double() - eager.double()).max().item())',
        ]
    )


def _place(tensor: torch.Tensor, others: Sequence[torch.Tensor]) -> int | None:
    """The index of an equal tensor."""
    return next((index for index, each in enumerate(others) if _is_equal(tensor, each)), None)


def _is_equal(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if tensor.dtype != other.dtype or tensor.shape != other.shape:
        return False
    return torch.equal(tensor, other) or (tensor.is_floating_point() and torch.allclose(tensor, other, 0.0, 0.0, equal_nan=True))


def _shows(scene: Scene, call: Call, tensors: Sequence[torch.Tensor], variables: Sequence[_Variable]) -> bool:
    """Whether the script's random numbers show the difference."""
    part = scene.part
    assert part is not None
    # NOTE: the weights are inputs of the script, so they are random as well.
    with random_numbers_kept(0):
        given = [each.make() for each in variables]
    values = dict(zip((*part.inputs, *part.weights), given, strict=False))
    try:
        whole = dataclasses.replace(part, inputs=(*part.inputs, *part.weights))
        got = whole.run(scene.model, values, scene.write)[part.outputs[0]]
        want = call.replaced([given[_place(each, tensors) or 0] for each in call.tensors()]).run()
    except Exception:  # noqa: BLE001  an operator may refuse random numbers with any exception
        return False
    return compare(got, want).difference > scene.limit


def _given(name: str, tensor: torch.Tensor) -> _Variable:
    numbers = repr(tensor.tolist()).replace("inf", 'float("inf")').replace("nan", 'float("nan")')
    shaped = f"torch.tensor({numbers}, dtype={tensor.dtype})"
    return _Variable(name, shaped if tensor.numel() else f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype})", lambda: tensor)


def _random(name: str, tensor: torch.Tensor, *, is_input: bool) -> _Variable:
    """Random numbers in the range of those of `tensor`; the same numbers for a few of the translation."""
    shape, dtype = list(tensor.shape), tensor.dtype
    if not is_input and tensor.numel() <= (1 if dtype.is_floating_point else _ELEMENTS):
        return _given(name, tensor)
    if not tensor.numel():
        return _given(name, tensor)
    if dtype is torch.bool:
        return _Variable(name, f"torch.rand({shape}) > 0.5", lambda: torch.rand(shape) > 0.5)
    if not dtype.is_floating_point:
        least, end = int(tensor.min()), int(tensor.max()) + 1
        return _Variable(
            name, f"torch.randint({least}, {end}, {shape}, dtype={dtype})", lambda: torch.randint(least, end, shape, dtype=dtype)
        )
    finite = tensor[tensor.isfinite()].double()
    lowest, highest = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 1.0)
    width, begin = float(f"{highest - lowest:.3g}"), float(f"{lowest:.3g}")
    return _Variable(
        name,
        f"(torch.rand({shape}, dtype=torch.float64) * {width} + {begin}).to({dtype})",
        lambda: (torch.rand(shape, dtype=torch.float64) * width + begin).to(dtype),
    )


def _nodes(scene: Scene, inputs: Sequence[torch.Tensor]) -> str:
    """The ONNX nodes as a model in ONNX's text format, whose inputs are x0, x1 and so on; empty if that format lacks something."""
    import onnx.parser
    import onnx.printer

    part = scene.part
    assert part is not None
    whole = dataclasses.replace(part, inputs=(*part.inputs, *part.weights))
    made = whole.model(scene.model, dict(zip(whole.inputs, inputs, strict=True)))
    names: dict[str, int] = {}
    for index, value in enumerate(made.graph.inputs):
        value.name = f"x{index}"
    for node in made.graph.all_nodes():
        node.name = ""
        node.metadata_props.clear()
        for value in node.outputs:
            value.name = value.name and f"y{names.setdefault(value.name, len(names))}"
            value.metadata_props.clear()
            if not value.is_graph_output():
                value.shape = value.type = None
    proto = ir.to_proto(made)
    proto.ClearField("producer_name")
    text: Any = onnx.printer.to_text(proto)
    try:
        onnx.parser.parse_model(text)
    except onnx.parser.ParseError:
        return ""
    return str(text) if len(text) <= _TEXT else ""
