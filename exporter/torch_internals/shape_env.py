"""torch's symbolic shapes: the environment that decides about sizes, its decisions, and its exceptions about data-dependent decisions."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch

from . import config
from .fake_tensors import FakeTensor
from .patching import Slot, all_wrapped, wrapped
from .pytree import keystr
from .symbolic_expressions import decided_by_remainder, divides_to_float
from .symbols import Attribute, Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/symbolic_shapes.py: torch calls `create_symbol` for each size, `_log_guard` for
# each new guard with its purpose and the guard, `_set_replacement` with a symbol and its equal, and `_log_real_tensor_propagation` where
# draft export goes on with the example's value. `guard_int` is in sym_node.py.
_SHAPE_ENVIRONMENT = "torch.fx.experimental.symbolic_shapes:ShapeEnv"
SIZE_MADE = Symbol(f"{_SHAPE_ENVIRONMENT}.create_symbol", without="sizes without any assumption are not known")
GUARD_MADE = Symbol(f"{_SHAPE_ENVIRONMENT}._log_guard", without="findings about dims are not at the line that decided")
SIZE_REPLACED = Symbol(
    f"{_SHAPE_ENVIRONMENT}._set_replacement", without="the finding about a dim that equals another one is not at its line"
)
DATA_ASSUMED = Symbol(
    f"{_SHAPE_ENVIRONMENT}._log_real_tensor_propagation", without="a failed export shows the first data-dependent line only"
)
DATA_NEEDED = Symbol(
    "torch.fx.experimental.symbolic_shapes:GuardOnDataDependentSymNode",
    without="a line that decides by data looks like other failures",
    otherwise=(),
)
_ASSERT_SOUGHT = Symbol(
    f"{_SHAPE_ENVIRONMENT}._is_python_assert", without="with python -O, a line that decides by data looks like other failures"
)
NUMBER_MADE = Symbol(
    "torch.fx.experimental.sym_node:SymNode.guard_int",
    without="a model with an operator that fixes a size may be silently wrong at other sizes",
)
FLOAT_MADE = Symbol("torch.fx.experimental.sym_node:SymNode.guard_float", without=NUMBER_MADE.without)
_BOUNDS = Symbol(
    "torch.utils._sympy.value_ranges:bound_sympy",
    without="the mean of a tensor that is empty at some sizes is 0 and not NaN",
)
_RANGE = Symbol("torch.utils._sympy.value_ranges:ValueRanges", without=_BOUNDS.without)
_WITHOUT_RANGES = f"dims may be narrower than dynamic_shapes says, and {_BOUNDS.without}"
_LEAST = Attribute("torch.utils._sympy.value_ranges:ValueRanges.lower", without=_WITHOUT_RANGES)
_MOST = Attribute("torch.utils._sympy.value_ranges:ValueRanges.upper", without=_WITHOUT_RANGES)
_DECIDED = Symbol(
    f"{_SHAPE_ENVIRONMENT}._maybe_evaluate_static",
    without="a branch that only an empty input would take stops a capture if the size depends on data as well",
    names=("unbacked_only", "var_to_range"),
)
_SIZES = Attribute(
    f"{_SHAPE_ENVIRONMENT}.size_like",
    without="layers such as batch norm and attention end a capture if data decide a size of their inputs",
    otherwise=(),
)
_SOLVE = Symbol(
    "torch.fx.experimental.symbolic_shapes:DimConstraints.solve",
    without="models with relations between sizes that torch's solver cannot solve cannot be captured",
)
_OWN_FILES = Symbol(
    "torch.fx.experimental.symbolic_shapes:uninteresting_files",
    without="messages of torch may name a line of onnxplain",
)

# NOTE: read in torch 2.11, 2.13 and 2.15: torch asks about a size with `evaluate_expr`, and with `guard_or_defer_runtime_assert` where an
# operator requires the answer. Both remember it, unless guards are suppressed.
_ASKED = Symbol(f"{_SHAPE_ENVIRONMENT}.evaluate_expr", without="a failed export shows only the first of several lines that fix a dim")
_REQUIRED = Symbol(f"{_SHAPE_ENVIRONMENT}.guard_or_defer_runtime_assert", without=_ASKED.without)
_SUPPRESSED = Symbol(f"{_SHAPE_ENVIRONMENT}._suppress_guards_tls", without=_ASKED.without)

# NOTE: read in torch 2.11, 2.13 and 2.15: torch writes a relation into the graph (fx/passes/runtime_assert.py) unless this function finds a
# part for which there is no node. It lacks the quotient of two ints, for which there is none either: torch would fail.
_HAS_NO_NODE = Symbol(
    "torch.fx.experimental.symbolic_shapes:_has_uninterpretable_sympy_function",
    without="an operator that takes a number which is a quotient of sizes stops a capture",
)

# NOTE: read in torch 2.11, 2.13 and 2.15: `backed_var_to_val` is the new name of `var_to_val`, which all three deprecate. Sizes from data
# have no entry there.
_REPLACEMENTS = Attribute(
    f"{_SHAPE_ENVIRONMENT}.replacements", without="findings do not name dims that equal another dim or an expression of it", otherwise={}
)
_RANGES = Attribute(f"{_SHAPE_ENVIRONMENT}.var_to_range", without=_WITHOUT_RANGES, otherwise={})
_EXAMPLES = Attribute(
    f"{_SHAPE_ENVIRONMENT}.backed_var_to_val",
    without="a model that writes to memory which two tensors share at size 1 only is silently wrong at that size",
    otherwise={},
)
_BY_SOURCE = Attribute(
    f"{_SHAPE_ENVIRONMENT}.source_to_var",
    without="findings do not name their dims, which may be narrower than dynamic_shapes says",
    otherwise={},
)
_ASSERTIONS = Attribute(
    f"{_SHAPE_ENVIRONMENT}.deferred_runtime_asserts",
    without="relations of sizes that a graph checks when it runs are not reported",
    otherwise={},
)
_ASSERTED = Attribute("torch.fx.experimental.symbolic_shapes:RuntimeAssert.expr", without=_ASSERTIONS.without)
_KNOWN_TRUE = Symbol(
    "torch.fx.experimental.symbolic_shapes:statically_known_true",
    without="code that branches on the largest of equal values may not be captured, and quotients of sizes may be long expressions",
    otherwise=lambda _: False,
)
_SUPPRESS = Symbol(f"{_SHAPE_ENVIRONMENT}.suppress_guards", without="findings may name a condition on sizes that the graph does not have")


@contextlib.contextmanager
def observed(method: Symbol, observer: Callable[..., None]) -> Iterator[None]:
    """Calls `observer` before each call of a method of the shape environments of this thread, with the environment and its arguments."""
    if not method.is_present:
        yield
        return

    def observe(original: Any, *args: Any, **kwargs: Any) -> Any:
        # NOTE: a capture must not fail because an observer does not know the arguments of another torch.
        with contextlib.suppress(Exception):
            observer(*args)
        return original(*args, **kwargs)

    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with wrapped(Slot(ShapeEnv, method.path.rpartition(".")[2]), observe):
        yield


@contextlib.contextmanager
def fixed(observer: Callable[[sympy.Basic, float], None]) -> Iterator[None]:
    """Calls `observer` with each dynamic size that is turned into a Python number, in Python or for an operator, and with the number."""
    made = [each for each in (NUMBER_MADE, FLOAT_MADE) if each.is_present]
    if not made:
        yield
        return

    def observe(original: Any, node: Any, *args: Any) -> Any:
        size = node.expr
        number: float = original(node, *args)
        if not size.is_number:
            observer(size, number)
        return number

    from torch.fx.experimental.sym_node import SymNode

    with all_wrapped((Slot(SymNode, each.name), observe) for each in made):
        yield


@contextlib.contextmanager
def forgetful() -> Iterator[None]:
    """While it is open, the example answers each question about sizes anew: a line that fixes a size does not fix it for later lines.

    Observers of `GUARD_MADE` get every answer. The graph does not hold for other sizes than those of the example.
    """
    if not all(each.is_present for each in (_ASKED, _REQUIRED, _SUPPRESSED, _SUPPRESS, GUARD_MADE)):
        yield
        return

    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def evaluate(original: Callable[..., Any], environment: Any, asked: sympy.Basic, *args: Any, **options: Any) -> Any:
        if _SUPPRESSED.value() or not asked.free_symbols:
            return original(environment, asked, *args, **options)
        with environment.suppress_guards():
            answer = original(environment, asked, *args, **options)
        is_truth = isinstance(answer, bool | sympy.logic.boolalg.BooleanAtom)
        relation = sympy.Eq(asked, answer) if not is_truth else asked if answer else sympy.Not(asked)
        environment._log_guard("forgotten", relation, forcing_spec=False)
        return answer

    def require(original: Callable[..., Any], environment: Any, asked: sympy.Basic, *args: Any, **options: Any) -> Any:
        known = asked.free_symbols <= examples(environment).keys()
        return environment.evaluate_expr(asked) if known else original(environment, asked, *args, **options)

    # NOTE: an equal call of an operator would get the result of the first one, without a question.
    methods = ((Slot(ShapeEnv, each.path.rpartition(".")[2]), by) for each, by in ((_ASKED, evaluate), (_REQUIRED, require)))
    with config.switched_off(config.FAKE_RESULTS_KEPT), all_wrapped(methods):
        yield


@contextlib.contextmanager
def without_asserts() -> Iterator[None]:
    """Keeps torch from asking whether an `assert` decides by data where `python -O` removed all of them.

    torch would compile an `assert` to compare with it, find none, and raise StopIteration (seen in torch 2.13).
    """
    if __debug__ or not _ASSERT_SOUGHT.is_present:
        yield
        return

    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with wrapped(Slot(ShapeEnv, _ASSERT_SOUGHT.path.rpartition(".")[2]), lambda *_: False):
        yield


@contextlib.contextmanager
def deciding_more() -> Iterator[None]:
    """While it is open, torch knows that `n` is at most `7 * ((n + 6) // 7)`, as after padding and for the slice that takes it away.

    And a question about both sizes of inputs and sizes from data is answered as if no input were empty. For example, a graph of n nodes has
    n + u0 edges, where u0 is from data: torch would not know whether there are any.
    """
    if not (_DECIDED.is_present and _RANGE.is_present):
        yield
        return

    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def evaluate(original: Callable[..., Any], environment: Any, expression: sympy.Basic, **options: Any) -> Any:
        answer = original(environment, expression, **options)
        if answer is None and isinstance(expression, sympy.And):
            answers = {evaluate(original, environment, each, **options) for each in expression.args}
            return next(iter(answers)) if len(answers) == 1 else None
        if answer is None and (answer := decided_by_remainder(expression)) is not None:
            return answer
        symbols, known, bounds = expression.free_symbols, _EXAMPLES.of(environment), _RANGES.of(environment)
        mixed = not symbols.isdisjoint(known) and not symbols <= known.keys()
        if answer is not None or not mixed or options.get("unbacked_only") or options.get("var_to_range"):
            return answer
        ranges = {symbol: bounds[symbol] for symbol in symbols if symbol in bounds}
        assumed = {symbol: each & _RANGE.value(1, sympy.oo) if symbol in known else each for symbol, each in ranges.items()}
        return original(environment, expression, **{**options, "var_to_range": tuple(assumed.items())})

    with wrapped(Slot(ShapeEnv, _DECIDED.path.rpartition(".")[2]), evaluate):
        yield


@contextlib.contextmanager
def without_checks_of_quotients() -> Iterator[None]:
    """While it is open, graphs do not check relations that divide sizes, such as `n / 3 == 1.5`. Nor do they check others of floats."""
    if not _HAS_NO_NODE.is_present:
        yield
        return

    from torch.fx.experimental import symbolic_shapes

    def has_no_node(original: Callable[..., Any], expression: sympy.Basic) -> bool:
        return bool(original(expression)) or divides_to_float(expression)

    with wrapped(Slot(symbolic_shapes, _HAS_NO_NODE.name), has_no_node):
        yield


@contextlib.contextmanager
def without_unsolved_constraints() -> Iterator[None]:
    """While it is open, relations that torch's solver cannot solve do not end a capture: `n / 4 == (n / 2) // 2` has a division in it.

    The guards have them all the same.
    """
    if not _SOLVE.is_present:
        yield
        return

    from torch.fx.experimental.symbolic_shapes import DimConstraints

    def solve(original: Callable[..., Any], constraints: Any) -> None:
        with contextlib.suppress(NotImplementedError):
            original(constraints)

    with wrapped(Slot(DimConstraints, _SOLVE.path.rpartition(".")[2]), solve):
        yield


def leave_out(file: str) -> None:
    """Keeps torch's messages from naming `file` as the innermost file outside torch."""
    if _OWN_FILES.is_present:
        _OWN_FILES.value().add(file)


# NOTE: for a capture that made no environment, it is None in the functions below.


def replacements(environment: Any) -> dict[sympy.Symbol, sympy.Basic]:
    """The expression that each symbol equals."""
    found: dict[sympy.Symbol, sympy.Basic] = _REPLACEMENTS.of(environment)
    return found


def range_of(environment: Any, symbol: sympy.Basic | None) -> tuple[sympy.Basic, sympy.Basic] | None:
    """The least and the largest value of a symbol, if they are known."""
    found = _RANGES.of(environment).get(symbol)
    return (found.lower, found.upper) if found is not None and _LEAST.is_present and _MOST.is_present else None


def truth_if_large(environment: Any, expression: sympy.Basic) -> bool | None:
    """The truth of a relation of sizes that data decide, if none is 0 or, failing that, if none is 1; None if it depends on more."""
    symbols, ranges = expression.free_symbols, _RANGES.of(environment)
    is_relation = isinstance(expression, sympy.logic.boolalg.Boolean) and not expression.is_Symbol
    if not (
        is_relation and _DECIDED.is_present and _RANGE.is_present and symbols and symbols <= set(_SIZES.of(environment)) & ranges.keys()
    ):
        return None
    for least in (1, 2):
        large = tuple((symbol, ranges[symbol] & _RANGE.value(least, sympy.oo)) for symbol in symbols)
        answer = _DECIDED.value(environment, expression, var_to_range=large)
        if answer in (sympy.true, sympy.false):
            return bool(answer)
    return None


def may_be_zero(size: int | torch.SymInt, *, whatever_torch_found: bool = False) -> bool:
    """Whether a size may be 0 where all dims of the inputs are at least 1. False for a symbolic size if its bounds are not known.

    Args:
        size: The size.
        whatever_torch_found: Whether the dims of the inputs may have all sizes from 1, also where torch found that it needs larger ones.
    """
    if isinstance(size, int):
        return size == 0
    environment, expression = size.node.shape_env, size.node.expr
    ranges, backed = _RANGES.of(environment), _EXAMPLES.of(environment)
    if expression in backed:
        return False
    if not (_BOUNDS.is_present and _RANGE.is_present and _LEAST.is_present) or not expression.free_symbols <= ranges.keys():
        return False
    any_size, none = _RANGE.value(1, sympy.oo), _RANGE.value(0, 0)
    # NOTE: an operator that asks whether a size from data is 0 gets the answer no, and then torch takes that for known.
    assumed = {
        symbol: (any_size if whatever_torch_found else ranges[symbol] & any_size) if symbol in backed else ranges[symbol] | none
        for symbol in expression.free_symbols
    }
    return not bool(_BOUNDS.value(expression, assumed).lower > 0)


def is_true(condition: bool | torch.SymBool) -> bool:
    """Whether a condition on sizes holds for all of them, as far as torch knows without a guard."""
    return bool(_KNOWN_TRUE.value(condition))


def of(size: torch.SymInt) -> Any:
    """The environment of the symbols in `size`."""
    return size.node.shape_env


def of_tensor(fake: FakeTensor) -> Any:
    """The environment of the symbols in the sizes of `fake`; None if they are all numbers."""
    return fake.fake_mode.shape_env


def examples(environment: Any) -> dict[sympy.Symbol, int]:
    """The size that each symbol has in the example."""
    return {symbol: int(value) for symbol, value in _EXAMPLES.of(environment).items()}


def symbols_by_source(environment: Any) -> dict[str, sympy.Symbol]:
    """The symbol of each size by its source, such as `L['x'][0].size()[1]`."""
    found: dict[str, sympy.Symbol] = _BY_SOURCE.of(environment)
    return found


def assertions(environment: Any) -> list[sympy.Basic]:
    """The relations that no dim's range expresses; the graph checks them when it runs."""
    deferred = _ASSERTIONS.of(environment).values() if _ASSERTED.is_present else ()
    return [each.expr for each in itertools.chain.from_iterable(deferred)]


def without_guards(environment: Any) -> contextlib.AbstractContextManager[None]:
    """While it is open, questions to `environment` do not become guards of the graph."""
    if environment is None or not _SUPPRESS.is_present:
        return contextlib.nullcontext()
    manager: contextlib.AbstractContextManager[None] = environment.suppress_guards()
    return manager


def symbol_of(environment: Any, way: Sequence[Any], flat_index: int, axis: int) -> sympy.Symbol | None:
    """The symbol of a dim of an input; None if it has none, or if `environment` has none.

    Args:
        environment: The environment.
        way: The path to the tensor: the name of the parameter, then pytree's keys.
        flat_index: Its position among the flattened inputs.
        axis: The dim.
    """
    # NOTE: a size is named after its source (_dynamo/source.py): non-strict export takes the parameter, TorchDynamo the flattened inputs.
    parameter, *keys = way
    symbols = symbols_by_source(environment)
    tensors = (f"L['{parameter}']{keystr(tuple(keys))}", f"L['flat_args'][{flat_index}]")
    return next((symbols[size] for tensor in tensors if (size := f"{tensor}.size()[{axis}]") in symbols), None)
