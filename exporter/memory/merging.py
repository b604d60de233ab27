"""What ONNX Runtime's graph optimizer merges into one kernel, as far as a large tensor between the nodes vanishes."""

from __future__ import annotations

import math

from onnxplain.recording import uniform_number

from .execution import Kernel, Kernels

# NOTE: read in ONNX Runtime 1.31, core/optimizer, and compared with the graphs that it writes.
_ANCHORS = frozenset({"Erf", "Sigmoid", "Tanh"})
_AROUND = frozenset({"Add", "Div", "Mul", "Pow"})
_ACTIVATIONS = frozenset({"Clip", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh"})
_BY_CHANNEL = frozenset({"Add", "BatchNormalization", "Mul"})


def merge(kernels: Kernels) -> None:
    """Merges kernels, in place."""
    for step in (_convolution, _gelu, _product, _gemm, _normalization, _with_bias, _with_activation):
        for kernel in kernels:
            if kernel in kernels:
                step(kernels, kernel)


def _convolution(kernels: Kernels, kernel: Kernel) -> None:
    """A convolution, and what scales or shifts its channels by constants."""
    if kernel.operator != "Conv":
        return
    while (reader := kernels.only_reader(kernel.outputs[0])) is not None and reader.operator in _BY_CHANNEL:
        if len(kernels.variable(reader)) > 1:
            return
        kernel = kernels.merge([kernel, reader], "Conv", kernel.node)


def _gelu(kernels: Kernels, anchor: Kernel) -> None:
    """`x * f(x)`, where f contains an Erf, a Sigmoid or a Tanh, and constants beside x."""
    if anchor.operator not in _ANCHORS:
        return
    inside = [anchor]
    while (maker := _maker_inside(kernels, inside)) is not None:
        inside.insert(0, maker)
    inside.sort(key=lambda kernel: kernel.number)
    made = {value for kernel in inside for value in kernel.outputs}
    given = {value for kernel in inside for value in kernels.variable(kernel)} - made
    if len(given) != 1:
        return
    (x,) = given
    reads_x = False
    while (reader := kernels.only_reader(inside[-1].outputs[0])) is not None and reader.operator in _AROUND:
        others = set(kernels.variable(reader)) - {inside[-1].outputs[0]}
        scaled = [maker for value in others - {x} if (maker := kernels.maker(value)) is not None]
        if any(kernels.variable(each) != [x] or each.operator != "Mul" or kernels.only_reader(each.outputs[0]) is None for each in scaled):
            break
        reads_x = reads_x or bool(others)
        inside += [*scaled, reader]
    if reads_x:
        kernels.merge(inside, "Gelu")


def _maker_inside(kernels: Kernels, inside: list[Kernel]) -> Kernel | None:
    """A kernel whose result only those `inside` read."""
    for value in {value: None for kernel in inside for value in kernels.variable(kernel)}:
        maker = kernels.maker(value)
        if maker is not None and maker not in inside and maker.operator in _AROUND and set(kernels.readers(value)) <= set(inside):
            return maker
    return None


def _product(kernels: Kernels, kernel: Kernel) -> None:
    """A product of matrices with what transposes or scales its factors, or scales its result."""
    if kernel.operator != "MatMul":
        return
    for value in kernel.inputs[:2]:
        maker = kernels.maker(value)
        if maker is not None and kernels.only_reader(value) is kernel and (_swaps_matrix(maker) or _scales(kernels, maker)):
            kernel = kernels.merge([maker, kernel], "MatMul")
    reader = kernels.only_reader(kernel.outputs[0])
    if reader is not None and _scales(kernels, reader):
        kernels.merge([kernel, reader], "MatMul")


def _swaps_matrix(kernel: Kernel) -> bool:
    perm = kernel.node.attributes.get("perm")
    if kernel.operator != "Transpose" or perm is None:
        return False
    axes = list(perm.as_ints())
    return axes == [*range(len(axes) - 2), len(axes) - 1, len(axes) - 2]


def _scales(kernels: Kernels, kernel: Kernel) -> bool:
    constants = [value for value in kernel.inputs if value in kernels.constants]
    return kernel.operator in {"Mul", "Div"} and len(constants) == 1 and uniform_number(constants[0]) is not None


def _gemm(kernels: Kernels, kernel: Kernel) -> None:
    """A product of matrices and the sum with a matrix or a row; of more dims, the product with a constant matrix and a constant row."""
    reader = kernels.only_reader(kernel.outputs[0])
    if kernel.operator != "MatMul" or reader is None or reader.operator != "Add":
        return
    (added,) = [value for value in reader.inputs if value is not kernel.outputs[0]] or [kernel.outputs[0]]
    ranks = [len(kernels.shapes.sizes(value) or ()) for value in (*kernel.inputs, added)]
    if ranks[:2] == [2, 2] and ranks[2] in {1, 2} and kernels.shapes.sizes(reader.outputs[0]) == kernels.shapes.sizes(kernel.outputs[0]):
        kernels.merge([kernel, reader], "Gemm")
        return
    shape = kernel.inputs[0].shape
    # NOTE: of more dims, ONNX Runtime makes two, with Reshapes before and behind the Gemm, which it writes for constant shapes only.
    if shape is None or not all(isinstance(dim, int) for dim in shape) or ranks[1:] != [2, 1]:
        return
    if not {kernel.inputs[1], added} <= set(kernels.constants):
        return
    merged = kernels.merge([kernel, reader], "Gemm")
    (result,) = merged.outputs
    sizes = kernels.shapes.sizes(result)
    if sizes is not None:
        kernels.remove(merged)
        merged.outputs = [kernels.shapes.like(result, (math.prod(sizes[:-1]), sizes[-1]))]
        kernels.add(merged)
        kernels.new(merged.node, "Reshape", merged.outputs, [result])


def _normalization(kernels: Kernels, kernel: Kernel) -> None:
    """A layer normalization of a sum that nothing else reads."""
    if kernel.operator != "LayerNormalization":
        return
    added = kernels.maker(kernel.inputs[0])
    if added is None or not _joins(kernels, added, kernel, 2):
        return
    merged = kernels.merge([added, kernel], "SkipLayerNormalization")
    for value in merged.inputs:
        maker = kernels.maker(value)
        if maker is not None and _joins(kernels, maker, merged, 1):
            kernels.merge([maker, merged], "SkipLayerNormalization")
            return


def _joins(kernels: Kernels, added: Kernel, reader: Kernel, variables: int) -> bool:
    """Whether `added` is a sum for `reader` alone, with so many terms that are not constant, of the result's shape."""
    terms = kernels.variable(added)
    shapes = {kernels.shapes.sizes(value) for value in (*terms, *added.outputs)}
    return added.operator == "Add" and kernels.only_reader(added.outputs[0]) is reader and len(terms) == variables and len(shapes) == 1


def _with_bias(kernels: Kernels, kernel: Kernel) -> None:
    """A Gelu of a sum with a constant row."""
    if kernel.operator != "Gelu":
        return
    added = kernels.maker(kernel.inputs[0])
    if added is not None and _joins(kernels, added, kernel, 1):
        kernels.merge([added, kernel], "Gelu")


def _with_activation(kernels: Kernels, kernel: Kernel) -> None:
    """A convolution or a Gemm, and an activation of its result."""
    reader = kernels.only_reader(kernel.outputs[0])
    if kernel.operator in {"Conv", "Gemm"} and reader is not None and reader.operator in _ACTIVATIONS:
        kernels.merge([kernel, reader], f"Fused{kernel.operator}", kernel.node)
