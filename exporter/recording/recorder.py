"""Runs translations and records the ONNX operators that they call as onnx_ir nodes.

Translations of ours call them on `op`, others on onnxscript's opsets, whose evaluator a `Recorder` is, too. onnxscript itself is
loaded only where others' translations run.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from . import folding

if TYPE_CHECKING:
    from onnxscript import values

VECTOR = "vector"
"""Key, in the `meta` of a scalar, of the same number as a tensor of one element: shapes are made of those."""

# NOTE: not ir.TensorProtocol: asking a typing.Protocol what a value is costs more than all else that is done here.
_TENSORS = (ir.Tensor, ir.StringTensor, ir.LazyTensor, ir.ExternalTensor, ir.serde.TensorProtoTensor)

_DOMAINS = frozenset(schema.domain for schema in onnx.defs.get_all_schemas())
"""The domains that ONNX defines."""

_PYTHON_DTYPES = {bool: ir.DataType.BOOL, int: ir.DataType.INT64, float: ir.DataType.FLOAT, str: ir.DataType.STRING}


class Operators:
    """The operators of ONNX opset 18 by name, and those that later ones have added: calls are recorded by the current `Recorder`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        signature = _newest(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return current().call(signature, args, kwargs)

        setattr(self, name, call)
        return call


op = Operators()


class Tensor(ir.Value):
    """An ONNX value on which translations may use Python's operators. They become ONNX nodes, with ONNX's broadcasting."""

    @property
    def rank(self) -> int | None:
        """The number of dims, if known."""
        return None if self.shape is None else len(self.shape)

    def __add__(self, other: Any) -> Any:
        return op.Add(self, other)

    def __radd__(self, other: Any) -> Any:
        return op.Add(other, self)

    def __sub__(self, other: Any) -> Any:
        return op.Sub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return op.Sub(other, self)

    def __mul__(self, other: Any) -> Any:
        return op.Mul(self, other)

    def __rmul__(self, other: Any) -> Any:
        return op.Mul(other, self)

    def __truediv__(self, other: Any) -> Any:
        return op.Div(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return op.Div(other, self)

    def __pow__(self, other: Any) -> Any:
        return op.Pow(self, other)

    def __matmul__(self, other: Any) -> Any:
        return op.MatMul(self, other)

    def __mod__(self, other: Any) -> Any:
        return op.Mod(self, other, fmod=int(self.dtype is not None and self.dtype.is_floating_point()))

    def __neg__(self) -> Any:
        return op.Neg(self)

    def __and__(self, other: Any) -> Any:
        return op.And(self, other)

    def __rand__(self, other: Any) -> Any:
        return op.And(other, self)

    def __or__(self, other: Any) -> Any:
        return op.Or(self, other)

    def __ror__(self, other: Any) -> Any:
        return op.Or(other, self)

    def __lt__(self, other: Any) -> Any:
        return op.Less(self, other)

    def __le__(self, other: Any) -> Any:
        return op.LessOrEqual(self, other)

    def __gt__(self, other: Any) -> Any:
        return op.Greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return op.GreaterOrEqual(self, other)

    # NOTE: torchlib compares values with `!=` for elementwise inequality, but `==` must stay identity: onnx_ir keeps values in sets.
    def __ne__(self, other: object) -> Any:
        return op.Not(op.Equal(self, other))

    __hash__ = ir.Value.__hash__


class Recorder:
    """Records what translations call.

    Attributes:
        opset: The ONNX opset of the model; translations may use operators that it has and opset 18 has not.
        nodes: What was recorded since the last `take`, in order.
        constants: Every constant of the model, as values that become initializers; each is made once.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self.constants: dict[tuple[object, ...], ir.Value] = {}
        self._plain: dict[tuple[object, ...], ir.Value] = {}

    def take(self) -> list[ir.Node]:
        """The nodes recorded since the last call."""
        taken, self.nodes = self.nodes, []
        return taken

    def constant(self, value: Any, dtype: ir.DataType | None = None) -> ir.Value:
        """A constant for a Python value, a list of them, or a tensor. Small equal ones are one value."""
        items = tuple(value) if isinstance(value, list | tuple) else value
        kind = tuple(map(type, items)) if isinstance(items, tuple) else type(items)
        # NOTE: by Python value first: most are the same few sizes and axes, and making a tensor costs more than a look-up.
        plain = (kind, items, dtype) if isinstance(items, tuple | bool | int | float | str) else None
        if plain is None or plain not in self._plain:
            found = self._tensor_constant(value if isinstance(value, _TENSORS) else _tensor(value, dtype))
            if plain is None:
                return found
            self._plain[plain] = found
        return self._plain[plain]

    def _tensor_constant(self, tensor: ir.TensorProtocol) -> ir.Value:
        small = tensor.size <= folding.LIMIT and tensor.dtype is not ir.DataType.STRING
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
        """Records an operator of an onnxscript opset."""
        attributes = {name: _plain(value) for name, value in kwargs.items()}
        if called.op_signature is None:
            return self._record_unknown(called, args, attributes)
        return self.call(_signature(called), args, attributes)

    def _record_unknown(self, called: values.Op, args: Sequence[Any], attributes: Mapping[str, Any]) -> ir.Value:
        """Records an operator of a domain that ONNX does not define: whoever runs the model does. It has one output."""
        inputs = [each if isinstance(each, ir.Value | None) else self.constant(each) for each in args]
        node = ir.Node(
            called.opset.domain,
            called.name,
            inputs,
            attributes=[_attribute(name, value) for name, value in attributes.items() if value is not None],
            outputs=[Tensor()],
            version=called.opset.version,
        )
        self.nodes.append(node)
        return node.outputs[0]

    def call(self, signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Records one ONNX operator. Returns its output, or a list of them."""
        if signature.name == "Constant" and not signature.domain:
            return self._constant_op(kwargs)
        if signature.name == "CastLike" and isinstance(args[1], ir.Value) and args[1].dtype is not None:
            # The dtype is known: what else the operand is does not matter.
            return op.Cast(args[0], to=int(args[1].dtype))
        outputs = self._record(signature, args, kwargs, _output_count(signature, kwargs))
        return outputs[0] if len(outputs) == 1 else outputs

    def emit(self, op_type: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int, opset: int = 18) -> list[ir.Value]:
        """Records an ONNX operator, as of an opset, with a number of outputs that its schema may leave open."""
        return self._record(_newest(op_type, opset), inputs, attributes, outputs)

    def _record(self, signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any], outputs: int) -> list[ir.Value]:
        inputs, named = _bind(signature, args, kwargs)
        attributes: Mapping[str, Any] = named
        types = _known_types(inputs)
        if refused := _refused(signature, types):
            return self._in_float(signature, inputs, attributes, outputs, refused)
        flat: list[ir.Value | None] = []
        for parameter, argument in inputs:
            if parameter.variadic or _takes_sequence(parameter):
                flat.extend(self._sequence(parameter, argument, types))
            else:
                flat.append(self._value(parameter, argument, types))
        while flat and flat[-1] is None:
            flat.pop()
        if outputs == 1 and not signature.domain:
            shorter, attributes = folding.shortened(signature.name, flat, attributes)
            flat = [self._tensor_constant(ir.Tensor(each)) if isinstance(each, np.ndarray) else each for each in shorter]
            simpler = folding.simplify(signature.name, flat, attributes)
            if simpler is not None:
                return [simpler if isinstance(simpler, ir.Value) else self._tensor_constant(ir.Tensor(simpler))]
        node = ir.Node(
            signature.domain,
            signature.name,
            flat,
            attributes=[_attribute(name, value) for name, value in attributes.items() if value is not None],
            outputs=[Tensor() for _ in range(outputs)],
            version=signature.since_version,
        )
        _infer_dtypes(signature, inputs, attributes, node)
        self.nodes.append(node)
        return list(node.outputs)

    def _in_float(
        self,
        signature: ir.schemas.OpSignature,
        inputs: Bound,
        attributes: Mapping[str, Any],
        outputs: int,
        refused: Mapping[str, ir.DataType],
    ) -> list[ir.Value]:
        """Records an operator that is not defined for a narrow float dtype: on float32, with casts around it."""

        def widened(argument: Any) -> Any:
            if isinstance(argument, list | tuple):
                return [widened(each) for each in argument]
            return op.Cast(argument, to=int(ir.DataType.FLOAT)) if isinstance(argument, ir.Value) else argument

        args: list[Any] = []
        for parameter, argument in inputs:
            value = widened(argument) if parameter.type_constraint.name in refused else argument
            args.extend(value) if parameter.variadic else args.append(value)
        made = self._record(signature, args, attributes, outputs)
        names = [parameter.type_constraint.name for parameter in signature.outputs]
        names += names[-1:] * (len(made) - len(names))
        return [op.Cast(value, to=int(refused[name])) if name in refused else value for value, name in zip(made, names, strict=False)]

    def eval_function(self, function: values.OnnxFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Calls a scripted function as Python: its operators come back here one by one, so nothing is left to inline."""
        return function.function(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def _constant_op(self, kwargs: Mapping[str, Any]) -> ir.Value:
        for name, value in kwargs.items():
            if value is None:
                continue
            if name in ("value_int", "value_ints"):
                return self.constant(value, ir.DataType.INT64)
            if name in ("value_float", "value_floats"):
                return self.constant(value, ir.DataType.FLOAT)
            if name == "value":
                return self.constant(value if isinstance(value, _TENSORS) else ir.tensor(value))
            return self.constant(value)
        raise ValueError("Constant without a value")

    def _value(self, parameter: ir.schemas.Parameter, argument: Any, types: Mapping[str, ir.DataType]) -> ir.Value | None:
        if argument is None or isinstance(argument, ir.Value):
            return argument
        dtype = _constant_dtype(parameter, argument, types)
        if isinstance(argument, list | tuple) and any(isinstance(item, ir.Value) for item in argument):
            return self._stacked(argument, dtype)
        return self.constant(argument, dtype)

    def _sequence(self, parameter: ir.schemas.Parameter, argument: Any, types: Mapping[str, ir.DataType]) -> list[ir.Value | None]:
        if argument is None or isinstance(argument, ir.Value):
            return [argument]
        if _takes_sequence(parameter):
            return [op.SequenceConstruct(*argument)]
        return [self._value(parameter, item, types) for item in argument]

    def _stacked(self, items: Sequence[Any], dtype: ir.DataType) -> ir.Value:
        """A 1-D tensor of scalars, some of them known only at run time: `[batch, 4]` as a shape."""
        parts = []
        for item in items:
            if isinstance(item, ir.Value):
                parts.append(item.meta.get(VECTOR) or (item if item.shape is not None and len(item.shape) == 1 else op.Reshape(item, [-1])))
            else:
                parts.append(self.constant([item], dtype))
        return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)


_current: list[Recorder] = []


@contextlib.contextmanager
def recording(recorder: Recorder, *, onnxscript: bool) -> Iterator[None]:
    """Lets `recorder` record what is called on `op`, and with `onnxscript` what is called on onnxscript's opsets, too."""
    with contextlib.ExitStack() as stack:
        if onnxscript:
            from onnxscript import evaluator

            stack.enter_context(evaluator.default_as(recorder))
            stack.enter_context(_any_operator_of_others())
        _current.append(recorder)
        stack.callback(_current.pop)
        yield


@contextlib.contextmanager
def _any_operator_of_others() -> Iterator[None]:
    """Lets onnxscript's opsets of domains that ONNX does not define have every operator that a translation names."""
    from onnxscript import values

    known = values.Opset.__getattr__

    def operator(opset: values.Opset, name: str) -> values.Op:
        # NOTE: onnxscript knows these in functions that it has parsed, but not where they run as Python (read in 0.7.2).
        if opset.domain in _DOMAINS or name.startswith("__"):
            return known(opset, name)
        return values.Op(opset, name)

    values.Opset.__getattr__ = operator
    try:
        yield
    finally:
        values.Opset.__getattr__ = known


def current() -> Recorder:
    """The recorder that the running translation writes to."""
    return _current[-1]


@functools.cache
def _newest(name: str, oldest: int = 18) -> ir.schemas.OpSignature:
    """An operator as of an opset, or as it was when a later one added it."""
    for opset in range(oldest, onnx.defs.onnx_opset_version() + 1):
        if onnx.defs.has(name, opset, ""):
            return _signature_of("", name, onnx.defs.get_schema(name, opset, "").since_version)
    raise AttributeError(f"there is no ONNX operator {name}")


@functools.cache
def _signature_of(domain: str, name: str, version: int) -> ir.schemas.OpSignature:
    return ir.schemas.OpSignature.from_op_schema(onnx.defs.get_schema(name, version, domain))


def _signature(op: values.Op) -> ir.schemas.OpSignature:
    if op.op_schema is None:
        raise ValueError(f"there is no ONNX operator {op.name} in {op.opset!r}")
    return _signature_of(op.op_schema.domain, op.op_schema.name, op.op_schema.since_version)


class UnknownArgument(ValueError):
    """A call of an ONNX operator has an argument that the operator has not.

    Attributes:
        name: The argument.
        nearest: The one of the operator's that is most like it; None if none is.
        is_int: Whether that one is an attribute that holds one int.
    """

    def __init__(self, signature: ir.schemas.OpSignature, name: str) -> None:
        parameters = {parameter.name: parameter for parameter in signature.params}
        self.name = name
        self.nearest = next(iter(difflib.get_close_matches(name, parameters, n=1)), None)
        self.is_int = getattr(parameters.get(self.nearest or ""), "type", None) is ir.AttributeType.INT
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else f"; it has {', '.join(parameters)}"
        super().__init__(f"{signature.name} has no argument {name!r}{hint}")


Bound = list[tuple[ir.schemas.Parameter, Any]]


def _bind(signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Bound, dict[str, Any]]:
    """Python arguments as the operator's inputs and attributes."""
    inputs: Bound = []
    attributes: dict[str, Any] = {}
    rest = list(args)
    for parameter in signature.params:
        if isinstance(parameter, ir.schemas.Parameter):
            if parameter.variadic:
                inputs.append((parameter, rest))
                rest = []
            elif rest:
                inputs.append((parameter, rest.pop(0)))
            else:
                argument = kwargs.get(parameter.name)
                if argument is None and parameter.required:
                    raise ValueError(f"{signature.name} needs an input {parameter.name!r}")
                inputs.append((parameter, argument))
        else:
            value = rest.pop(0) if rest else kwargs.get(parameter.name)
            if value is None and parameter.required:
                raise ValueError(f"{signature.name} needs an attribute {parameter.name!r}")
            if parameter.type is ir.AttributeType.FLOAT and isinstance(value, int):
                value = float(value)
            attributes[parameter.name] = value
    known = {parameter.name for parameter in signature.params}
    unknown = [name for name in kwargs if name not in known]
    if unknown:
        raise UnknownArgument(signature, unknown[0])
    if rest:
        raise ValueError(f"{signature.name} has no further arguments")
    return inputs, attributes


def _attribute(name: str, value: Any) -> ir.Attr:
    # NOTE: onnx_ir's own conversion asks protocols, too.
    if isinstance(value, bool | int):
        return ir.AttrInt64(name, int(value))
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if isinstance(value, list | tuple) and value and all(isinstance(item, int) for item in value):
        return ir.AttrInt64s(name, value)
    return ir.convenience.convert_attribute(name, value)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, ir.Attr) else value


def _takes_sequence(parameter: ir.schemas.Parameter) -> bool:
    return all(isinstance(allowed, ir.SequenceType) for allowed in parameter.type_constraint.allowed_types)


def _known_types(inputs: Bound) -> dict[str, ir.DataType]:
    """Type constraint to the dtype that an input has bound it to."""
    types: dict[str, ir.DataType] = {}
    for parameter, argument in inputs:
        for value in argument if isinstance(argument, list | tuple) else (argument,):
            if isinstance(value, ir.Value) and value.dtype is not None and not _is_sequence(value):
                types.setdefault(parameter.type_constraint.name, value.dtype)
    return types


_NARROW = frozenset({ir.DataType.BFLOAT16, ir.DataType.FLOAT16})


def _refused(signature: ir.schemas.OpSignature, types: Mapping[str, ir.DataType]) -> dict[str, ir.DataType]:
    """Type constraints that are bound to a narrow float dtype for which the operator is not defined."""
    if _NARROW.isdisjoint(types.values()):
        return {}
    allowed = {parameter.type_constraint.name: parameter.type_constraint.allowed_types for parameter in signature.inputs}
    return {name: dtype for name, dtype in types.items() if dtype in _NARROW and ir.TensorType(dtype) not in allowed[name]}


def _is_sequence(value: ir.Value) -> bool:
    return isinstance(value.type, ir.SequenceType)


def _constant_dtype(parameter: ir.schemas.Parameter, argument: Any, types: Mapping[str, ir.DataType]) -> ir.DataType:
    """The dtype of a Python constant: that of its siblings; else the only one allowed; else Python's own."""
    bound = types.get(parameter.type_constraint.name)
    if bound is not None:
        return bound
    allowed = parameter.type_constraint.allowed_types
    if len(allowed) == 1:
        return next(iter(allowed)).dtype
    if isinstance(argument, _TENSORS):
        return argument.dtype
    return _python_dtype(argument)


def _python_dtype(argument: Any) -> ir.DataType:
    items = argument if isinstance(argument, list | tuple) else [argument]
    dtypes = [item.dtype if isinstance(item, ir.Value) else _PYTHON_DTYPES.get(type(item)) for item in items]
    for dtype in (ir.DataType.FLOAT, *(dtype for dtype in dtypes if dtype is not None)):
        if dtype in dtypes:
            return dtype
    if isinstance(argument, np.ndarray | np.generic):
        return ir.DataType.from_numpy(argument.dtype)
    # NOTE: an empty list is a shape or a list of axes.
    return ir.DataType.INT64


def _tensor(value: Any, dtype: ir.DataType | None) -> ir.TensorProtocol:
    """A Python value as a tensor; complex numbers as pairs of real ones."""
    if isinstance(value, str):
        return ir.StringTensor([value.encode()], shape=ir.Shape([]))
    if isinstance(value, complex):
        value = (value.real, value.imag)
    dtype = dtype or _python_dtype(value)
    return ir.Tensor(np.asarray(value).astype(dtype.numpy()), dtype=dtype)


def _output_count(signature: ir.schemas.OpSignature, attributes: Mapping[str, Any]) -> int:
    match signature.name:
        case "BatchNormalization" if not attributes.get("training_mode"):
            return 1
        case "Split":
            if not isinstance(attributes.get("num_outputs"), int):
                raise ValueError("Split needs num_outputs here; a split into sizes says how many outputs it has with `ops.emit`")
            return int(attributes["num_outputs"])
        case _:
            return len(signature.outputs)


def _infer_dtypes(signature: ir.schemas.OpSignature, inputs: Bound, attributes: Mapping[str, Any], node: ir.Node) -> None:
    """Gives outputs the dtype that follows from the signature, so that constants beside them get the right one."""
    types = {
        parameter.type_constraint.name: value.dtype
        for (parameter, _), value in zip(inputs, node.inputs, strict=False)
        if value is not None and value.dtype is not None and not _is_sequence(value)
    }
    if signature.name == "Cast":
        node.outputs[0].dtype = ir.DataType(attributes["to"])
        return
    for parameter, output in zip(signature.outputs, node.outputs, strict=False):
        allowed = parameter.type_constraint.allowed_types
        if _takes_sequence(parameter):
            output.type = ir.SequenceType(ir.TensorType(node.inputs[0].dtype or ir.DataType.UNDEFINED))  # type: ignore[union-attr]
        elif parameter.type_constraint.name in types:
            output.dtype = types[parameter.type_constraint.name]
        elif len(allowed) == 1:
            output.dtype = next(iter(allowed)).dtype
