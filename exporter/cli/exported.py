"""What the command line tells about an exported model: its inputs and outputs, the ranges of its dims, its size, and what was verified."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

import sympy
import torch
from onnx_ir.tensor_adapters import to_torch_dtype

from onnxplain import weights
from onnxplain.diagnostics import Rule
from onnxplain.registry import qualified_name
from onnxplain.request import fake_inputs
from onnxplain.rules import DimsFixed
from onnxplain.torch_internals.symbolic_expressions import as_python, expression_of, minima, remainders

if TYPE_CHECKING:
    import onnx_ir as ir

    from onnxplain.program import ONNXProgram
    from onnxplain.runtime import Verification

_Rule = TypeVar("_Rule", bound=Rule)

_TOLD = 3
"""The most relations between several dims that are listed, the shortest ones."""
_SHOWN = 8
"""The most inputs, and the most outputs, that are listed."""
_UNITS = ("bytes", "KB", "MB", "GB")


def details(program: ONNXProgram) -> Iterator[tuple[str, str]]:
    """Lines about an exported model, each with its label."""
    graph = program.model.graph
    for label, values in (("input", graph.inputs), ("output", graph.outputs)):
        yield from _signature(label, [value for value in values if value.name not in graph.initializers])
    if dims := list(_dims(program)):
        yield "dims", "; ".join(dims)
    if fixed := [size for rule in _rules(program, DimsFixed) for size in rule.sizes]:
        yield "fixed", ", ".join(fixed)
    functions = program.model.functions
    count = sum(1 for each in (graph, *(function.graph for function in functions.values())) for _ in each.all_nodes())
    shared = f" in {len(functions)} functions" if functions else ""
    opset = program.model.opset_imports.get("")
    written = [each.size for each in program.diagnostics.artifacts if each.role == "resultFile"]
    files = f", {_size(sum(written))} in {len(written)} file{'s' if len(written) > 1 else ''}" if written else ""
    yield "graph", f"{count} operators{shared}, opset {opset}, {_size(weights.total_bytes(program.model))} of weights{files}"
    yield from _verified(program.verification)


def _signature(label: str, values: Sequence[ir.Value]) -> Iterator[tuple[str, str]]:
    for value in values[:_SHOWN]:
        dims = "?" if value.shape is None else ", ".join(str(getattr(dim, "value", dim)) for dim in value.shape)
        dtype = "?" if value.dtype is None else str(to_torch_dtype(value.dtype)).removeprefix("torch.")
        yield label, f"{value.name}: {dtype}[{dims}]"
    if len(values) > _SHOWN:
        yield label, f"and {len(values) - _SHOWN} more"


def _dims(program: ONNXProgram) -> Iterator[str]:
    """What is assumed of each dynamic dim, such as `batch: 2 to 64` or `height: multiple of 2`, and of several together."""
    symbols: dict[sympy.Basic, str] = {}
    limits = program.exported_program.range_constraints
    told: dict[str, list[str]] = {}
    least, most, excluded = dict[str, int](), dict[str, float](), dict[str, set[int]]()
    for value, fake in zip(program.model.graph.inputs, fake_inputs(program.exported_program), strict=False):
        sizes = fake.shape if isinstance(fake, torch.Tensor) else ()
        for dim, size in zip(value.shape or (), sizes, strict=False):
            if isinstance(size, torch.SymInt) and (name := str(getattr(dim, "value", dim))) not in told:
                expression = expression_of(size)
                told[name], excluded[name] = [], set()
                least[name], most[name] = _range(limits.get(expression))
                if expression.is_Symbol:
                    symbols[expression] = name
    together: list[str] = []
    for relation in _assumptions(program):
        if relation.free_symbols and relation.free_symbols <= symbols.keys():
            (first, *others) = sorted(symbols[each] for each in relation.free_symbols)
            if isinstance(relation, sympy.Ne) and relation.lhs.is_Symbol and relation.rhs.is_Integer:
                excluded[first].add(int(relation.rhs))
            elif (bounds := _bounds(relation)) is not None:
                least[first], most[first] = max(least[first], bounds[0]), min(most[first], bounds[1])
            else:
                text = _told(relation, symbols, alone=not others)
                place = together if others else told[first]
                if text and text not in place:
                    place.append(text)
    for name, assumed in told.items():
        yield f"{name}: {', '.join([*_sizes(least[name], most[name], excluded[name]), *assumed]) or 'any size'}"
    yield from sorted(together, key=len)[:_TOLD]
    if len(together) > _TOLD:
        yield f"and {len(together) - _TOLD} more"


def _sizes(least: int, most: float, excluded: Set[int]) -> Iterator[str]:
    """The sizes of a dim in this range without some; nothing for all sizes."""
    first = next(size for size in itertools.count(least) if size not in excluded)
    if most < math.inf:
        yield f"only {first}" if first == most else f"{first} to {most}"
    elif first > 1:
        yield f"at least {first}"
    yield from (f"not {size}" for size in sorted(excluded) if first < size <= most)


def _bounds(relation: sympy.Basic) -> tuple[int, float] | None:
    """The least and the largest size of the only dim in `relation`, such as `n < 8` or `n == min(64, n)`; None for other relations.

    The range that torch knows may be wider. A slice of 64 rows asks for a minimum.
    """
    if isinstance(relation, sympy.Eq) and relation.lhs.is_Symbol and isinstance(relation.rhs, minima()) and len(relation.rhs.args) == 2:
        limits = [each for each in relation.rhs.args if each != relation.lhs]
        return (1, int(limits[0])) if len(limits) == 1 and limits[0].is_Integer else None
    if isinstance(relation, sympy.Gt | sympy.Ge | sympy.Lt | sympy.Le):
        one: Any = relation if relation.lhs.is_Symbol else relation.reversed
        if one.lhs.is_Symbol and one.rhs.is_Integer:
            is_upper, is_strict = isinstance(one, sympy.Lt | sympy.Le), isinstance(one, sympy.Lt | sympy.Gt)
            return (1, int(one.rhs) - is_strict) if is_upper else (int(one.rhs) + is_strict, math.inf)
    return None


def _range(known: Any) -> tuple[int, float]:
    """The least and the largest size of a dim."""
    if known is None:
        return 1, math.inf
    # NOTE: torch's infinity is no number of Python's.
    bounded = isinstance(known.upper, int) or known.upper.is_Integer
    return max(int(known.lower), 1), int(known.upper) if bounded else math.inf


def _assumptions(program: ONNXProgram) -> Iterator[sympy.Basic]:
    """The relations between sizes that the captured program checks when it runs, and the exported model does not."""
    for node in program.exported_program.graph.nodes:
        if qualified_name(node.target) == "aten::_assert_scalar":
            checked = node.args[0].meta.get("val") if isinstance(node.args[0], torch.fx.Node) else None
            if isinstance(checked, torch.SymBool):
                yield expression_of(checked)


def _told(relation: sympy.Basic, symbols: Mapping[sympy.Basic, str], *, alone: bool) -> str:
    """A relation as a text; empty for one that a range tells."""
    if alone and isinstance(relation, sympy.Eq) and isinstance(relation.lhs, remainders()) and relation.rhs == 0:
        whole, factor = relation.lhs.args
        if whole.is_Symbol and factor.is_Integer:
            return f"multiple of {factor}"
    texts = {symbol: name if name.isidentifier() else f"({name})" for symbol, name in symbols.items()}
    named = relation.xreplace({symbol: sympy.Symbol(text, integer=True) for symbol, text in texts.items()})
    if isinstance(named, sympy.Rel):
        return f"{as_python(named.lhs)} {named.rel_op} {as_python(named.rhs)}"
    return as_python(named)


def _rules(program: ONNXProgram, kind: type[_Rule]) -> Iterator[_Rule]:
    return (each.rule for each in program.diagnostics.findings if isinstance(each.rule, kind))


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def _verified(verification: Verification | None) -> Iterator[tuple[str, str]]:
    from onnxplain.runtime import difference_text, sizes_text

    if verification is None:
        yield "checked", "no (`--verify` compares the outputs with PyTorch's)"
        return
    outputs = verification.outputs
    compared = [each for each in outputs if not each.not_compared]
    if not compared:
        yield "checked", f"no, {outputs[0].not_compared}" if outputs else "no, the model has no outputs"
        return
    count = "all outputs equal" if len(compared) == len(outputs) else f"{len(compared)} of {len(outputs)} outputs equal"
    sizes = "; ".join(["the example's sizes", *map(sizes_text, verification.sizes)])
    yield "checked", f"{count} PyTorch's, with {sizes}"
    if verification.refused:
        yield "", f"not with {'; '.join(map(sizes_text, verification.refused))}: the model takes no such inputs"
    yield from (("apart", difference_text(each)) for each in compared[:_SHOWN])
    if len(compared) > _SHOWN:
        yield "", f"{max(each.absolute or 0.0 for each in compared[_SHOWN:]):.2g} or less for {len(compared) - _SHOWN} more"
