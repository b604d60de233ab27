"""Runs translations and records the ONNX operators that they call as onnx_ir nodes.

Our translations call the operators on `op`, others on onnxscript's opsets: a `Recorder` is an onnxscript evaluator as well. onnxscript
itself is loaded only where translations of others run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxplain.torch_internals import onnxscript_calls
from onnxplain.torch_internals.put_back import put_back

from . import axes, dtypes, folding, operators, signatures
from .operators import op
from .python_values import TENSORS, attribute, plain, tensor
from .semantics import LIMIT
from .tensor import VECTOR, Tensor

if TYPE_CHECKING:
    from onnxscript import values


class Recorder:
    """Records the ONNX operators that translations call.

    Args:
        opset: The ONNX opset of the model.

    Attributes:
        opset: The same; translations may use operators that it has and opset 18 does not have.
        nodes: The nodes recorded since the last `take`, in order.
        constants: Every constant of the model, as a value that becomes an initializer; equal small constants are one value.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self.constants: dict[tuple[object, ...], ir.Value] = {}
        self._by_python_value: dict[tuple[object, ...], ir.Value] = {}

    def take(self) -> list[ir.Node]:
        """The nodes recorded since the last call."""
        taken, self.nodes = self.nodes, []
        return taken

    def constant(self, value: Any, dtype: ir.DataType | None = None) -> ir.Value:
        """A constant for a Python value, a list of them, or a tensor. Equal small constants are one value."""
        # NOTE: first by Python value: most constants are the same few sizes and axes, and making a tensor costs more than a look-up.
        key = _python_key(value, dtype)
        found = None if key is None else self._by_python_value.get(key)
        if found is None:
            found = self._tensor_constant(value if isinstance(value, TENSORS) else tensor(value, dtype))
            if key is not None:
                self._by_python_value[key] = found
        return found

    def _tensor_constant(self, tensor: ir.TensorProtocol) -> ir.Value:
        small = tensor.size <= LIMIT and tensor.dtype is not ir.DataType.STRING
        key = (tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes() if small else id(tensor))
        found = self.constants.get(key)
        if found is None:
            found = Tensor(
                name=f"const_{len(self.constants)}",
                shape=ir.Shape(tensor.shape.numpy()),
                type=ir.TensorType(tensor.dtype),
                const_value=tensor,
            )
            self.constants[key] = found
        return found

    def eval_op(self, called: values.Op, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Records an operator of an onnxscript opset. Returns its output, or a list of outputs."""
        attributes = {name: plain(value) for name, value in kwargs.items()}
        if called.op_signature is None:
            return self._record_unknown(called, args, attributes)
        return self.call(signatures.of_onnxscript(called), args, attributes)

    def _record_unknown(self, called: values.Op, args: Sequence[Any], attributes: Mapping[str, Any]) -> ir.Value:
        """Records an operator of a domain that ONNX does not define. It has one output; the runtime must know the operator."""
        inputs = [each if isinstance(each, ir.Value | None) else self.constant(each) for each in args]
        node = ir.Node(
            called.opset.domain,
            called.name,
            inputs,
            attributes=[attribute(name, value) for name, value in attributes.items() if value is not None],
            outputs=[Tensor()],
            version=called.opset.version,
        )
        self.nodes.append(node)
        return node.outputs[0]

    def eval_function(self, function: values.OnnxFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Calls an onnxscript function as Python: its operators come back here one by one, so no function is left to inline."""
        return function.function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def call(self, signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Records one ONNX operator. Returns its output, or a list of outputs.

        Raises:
            ValueError: The arguments do not fit the signature.
        """
        if signature.name == "Constant" and not signature.domain:
            return self._constant_op(kwargs)
        if signature.name == "CastLike" and isinstance(args[1], ir.Value) and args[1].dtype is not None:
            # NOTE: only the second operand's dtype matters, and it is known. A Python float is double, which FLOAT would round.
            if type(args[0]) is float and args[1].dtype.is_floating_point():
                return self.constant(args[0], args[1].dtype)
            return op.Cast(args[0], to=int(args[1].dtype))
        outputs = self._record(signature, args, kwargs, signatures.output_count(signature, kwargs))
        return outputs[0] if len(outputs) == 1 else outputs

    def emit(self, op_type: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int, opset: int = 18) -> list[ir.Value]:
        """Records an ONNX operator of an opset with a number of outputs, which its schema may leave open."""
        return self._record(signatures.newest(op_type, opset), inputs, attributes, outputs)

    def _record(self, signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any], outputs: int) -> list[ir.Value]:
        inputs, named = signatures.bind(signature, args, kwargs)
        attributes: Mapping[str, Any] = named
        types = dtypes.bound_dtypes(inputs)
        if stand_ins := dtypes.stand_ins(signature, types, self.opset, attributes):
            return self._with_casts(signature, inputs, attributes, outputs, types, stand_ins)
        flat = self._flat_inputs(inputs, types)
        if outputs == 1 and not signature.domain:
            shorter, attributes = axes.from_front(signature.name, *folding.shortened(signature.name, flat, attributes))
            flat = [self._tensor_constant(ir.Tensor(each)) if isinstance(each, np.ndarray) else each for each in shorter]
            simpler = folding.simplify(signature.name, flat, attributes)
            if simpler is not None:
                return [simpler if isinstance(simpler, ir.Value) else self._tensor_constant(ir.Tensor(simpler))]
        node = ir.Node(
            signature.domain,
            signature.name,
            flat,
            attributes=[attribute(name, value) for name, value in attributes.items() if value is not None],
            outputs=[Tensor() for _ in range(outputs)],
            version=signature.since_version,
        )
        dtypes.infer_output_dtypes(signature, inputs, attributes, node)
        self.nodes.append(node)
        return list(node.outputs)

    def _with_casts(
        self,
        signature: ir.schemas.OpSignature,
        inputs: signatures.Bound,
        attributes: Mapping[str, Any],
        outputs: int,
        types: Mapping[str, ir.DataType],
        stand_ins: Mapping[str, ir.DataType],
    ) -> list[ir.Value]:
        """Records an operator that does not take some dtypes: on others, with casts around it."""

        def converted(argument: Any, dtype: ir.DataType) -> Any:
            if isinstance(argument, list | tuple):
                return [converted(each, dtype) for each in argument]
            return op.Cast(argument, to=int(dtype)) if isinstance(argument, ir.Value) else argument

        args: list[Any] = []
        for parameter, argument in inputs:
            name = parameter.type_constraint.name
            value = converted(argument, stand_ins[name]) if name in stand_ins else argument
            args.extend(value) if parameter.variadic else args.append(value)
        made = self._record(signature, args, attributes, outputs)
        names = [parameter.type_constraint.name for parameter in signature.outputs]
        names += names[-1:] * (len(made) - len(names))
        return [op.Cast(value, to=int(types[name])) if name in stand_ins else value for value, name in zip(made, names, strict=False)]

    def _constant_op(self, kwargs: Mapping[str, Any]) -> ir.Value:
        for name, value in kwargs.items():
            if value is None:
                continue
            if name in ("value_int", "value_ints"):
                return self.constant(value, ir.DataType.INT64)
            if name in ("value_float", "value_floats"):
                return self.constant(value, ir.DataType.FLOAT)
            if name == "value":
                return self.constant(value if isinstance(value, TENSORS) else ir.tensor(value))
            return self.constant(value)
        raise ValueError("Constant without a value")

    def _flat_inputs(self, inputs: signatures.Bound, types: Mapping[str, ir.DataType]) -> list[ir.Value | None]:
        """The inputs as a node has them: one list of values, without the optional inputs that are left out at the end."""
        flat: list[ir.Value | None] = []
        for parameter, argument in inputs:
            if parameter.variadic or signatures.takes_sequence(parameter):
                flat.extend(self._sequence(parameter, argument, types))
            else:
                flat.append(self._value(parameter, argument, types))
        while flat and flat[-1] is None:
            flat.pop()
        return flat

    def _value(self, parameter: ir.schemas.Parameter, argument: Any, types: Mapping[str, ir.DataType]) -> ir.Value | None:
        if argument is None or isinstance(argument, ir.Value):
            return argument
        dtype = dtypes.constant_dtype(parameter, argument, types)
        if isinstance(argument, list | tuple) and any(isinstance(item, ir.Value) for item in argument):
            return self._stacked(argument, dtype)
        return self.constant(argument, dtype)

    def _sequence(self, parameter: ir.schemas.Parameter, argument: Any, types: Mapping[str, ir.DataType]) -> list[ir.Value | None]:
        if argument is None or isinstance(argument, ir.Value):
            return [argument]
        if signatures.takes_sequence(parameter):
            return [op.SequenceConstruct(*argument)]
        return [self._value(parameter, item, types) for item in argument]

    def _stacked(self, items: Sequence[Any], dtype: ir.DataType) -> ir.Value:
        """A vector of scalars, some of which are known only at run time: `[batch, 4]` as a shape."""
        parts = []
        for item in items:
            if isinstance(item, ir.Value):
                vector = item if item.shape is not None and len(item.shape) == 1 else item.meta.get(VECTOR)
                parts.append(op.Reshape(item, [-1]) if vector is None else vector)
            else:
                parts.append(self.constant([item], dtype))
        return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)


def _python_key(value: Any, dtype: ir.DataType | None) -> tuple[object, ...] | None:
    """A key that tells constants apart by their Python values: True is not 1, and -0.0 is not 0.0. None for tensors and arrays."""
    if isinstance(value, float):
        return float, value or str(value), dtype
    if isinstance(value, bool | int | str):
        return type(value), value, dtype
    if not isinstance(value, list | tuple):
        return None
    kinds = tuple(map(type, value))
    return kinds, str(value) if float in kinds else tuple(value), dtype


@contextlib.contextmanager
def recording(recorder: Recorder, *, onnxscript: bool) -> Iterator[None]:
    """Lets `recorder` record the calls on `op`, and with `onnxscript` this context's calls on onnxscript's opsets as well."""
    outer = len(operators.running)

    def undo() -> None:
        del operators.running[outer:]

    with put_back(undo), onnxscript_calls.evaluated_by(recorder) if onnxscript else contextlib.nullcontext():
        operators.running.append(recorder)
        yield


def current() -> Recorder:
    """The recorder that records what the running translation calls."""
    recorder = operators.running[-1]
    assert isinstance(recorder, Recorder)
    return recorder
