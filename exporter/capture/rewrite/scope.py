"""Facts that the source tells about names and expressions: which are tensors, which share their data, and predicates as tensors."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from types import NoneType

from onnxplain.diagnostics import Region
from onnxplain.source import syntax

from .schemas import returns_tensor

_VIEWS = frozenset(
    {"expand", "flatten", "narrow", "permute", "reshape", "select", "squeeze", "swapaxes", "t", "transpose", "unsqueeze", "view"}
)
"""Methods whose result may share its data with the tensor; a branch of torch.cond must not return such a result."""
_SELVES = frozenset(
    {"to", "float", "double", "half", "long", "int", "bool", "type", "contiguous", "detach", "cpu", "chunk", "split", "unbind"}
)
"""Methods whose result may be the tensor itself, or parts of it."""
_TENSORS = frozenset({"T", "H", "mT", "mH", "real", "imag", "data"})
"""Attributes of a tensor that are tensors."""
_MODES = frozenset({"no_grad", "enable_grad", "inference_mode", "autocast"})
"""Context managers that change how operators run, and nothing else."""
_UNSUPPORTED = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


@dataclasses.dataclass(frozen=True)
class Scope:
    """The function around a place in the user's file.

    Attributes:
        file: The file.
        function: The function.
        torch: The name of torch in the file.
        tensors: Names of its local variables that hold tensors there; None if that is not known.
        numbers: Names of its local variables that hold integers.
    """

    file: str
    function: ast.FunctionDef
    torch: str
    tensors: frozenset[str] | None
    numbers: frozenset[str]

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of `node` on one line."""
        return syntax.text(self.file, node)

    def region(self, node: ast.expr | ast.stmt) -> Region:
        """The part of the file that `node` covers."""
        return syntax.region(self.file, node)

    @functools.cached_property
    def locals(self) -> frozenset[str]:
        """Names of its local variables, without the module itself."""
        arguments = self.function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        # NOTE: the first parameter of a method is the module itself.
        return frozenset({each.arg for each in parameters} - {"self", "cls"}) | frozenset(stored(self.function.body))

    def unused(self, name: str) -> str:
        """`name`, or a similar name that the function does not use."""
        taken = {node.id for node in ast.walk(self.function) if isinstance(node, ast.Name)} | parameters([self.function])
        taken |= {node.name for node in ast.walk(self.function) if isinstance(node, ast.FunctionDef)}
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        return next(each for each in names if each not in taken)

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether it is certain that `node` is a tensor, provided that tensors are compared with nothing but numbers and tensors."""
        match node:
            case ast.Name(id=name):
                return name in (self.tensors or ())
            case ast.Compare():
                return self._compares_tensors(node)
            case ast.BinOp(op=ast.Mod(), left=left) if not isinstance(left, ast.Constant) or isinstance(left.value, str):
                # NOTE: with a string on the left, `%` formats it.
                return self.is_tensor(left)
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case ast.UnaryOp(op=ast.Not()):
                return False
            case ast.UnaryOp(operand=value) | ast.Subscript(value=value):
                return self.is_tensor(value)
            case ast.Attribute(value=value, attr=name):
                return name in _TENSORS and self.is_tensor(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=self.torch), attr=name)):
                return any(map(self.is_tensor, node.args)) and self._returns_tensor(name, node, node.args)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                return self.is_tensor(owner) and self._returns_tensor(name, node, [owner, *node.args])
            case ast.Call(func=ast.Name(id="abs"), args=[value]):
                return self.is_tensor(value)
        return False

    def _compares_tensors(self, test: ast.Compare) -> bool:
        """Whether each comparison of a chain has a tensor; the chain's value is one of theirs."""
        sides = [test.left, *test.comparators]
        return all(
            not isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn)
            and (self.is_tensor(left) or self.is_tensor(right))
            and not any(isinstance(side, ast.Constant) and isinstance(side.value, str | NoneType) for side in (left, right))
            for operator, left, right in zip(test.ops, sides, sides[1:], strict=False)
        )

    def _returns_tensor(self, name: str, call: ast.Call, arguments: Sequence[ast.expr]) -> bool:
        starred = any(isinstance(each, ast.Starred) for each in arguments) or any(each.arg is None for each in call.keywords)
        return not starred and returns_tensor(name, [*map(self.is_tensor, arguments)], [each.arg or "" for each in call.keywords])

    def asks_tensor(self, test: ast.expr) -> bool:
        """Whether it is certain that `test` asks for the truth of a tensor, or whether tensors are equal."""
        if (inner := self._converted(test)) is not None:
            return self.asks_tensor(inner)
        match test:
            case ast.BoolOp(values=parts):
                return any(self.asks_tensor(part) or self._of_numbers(part) is not None for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.asks_tensor(operand)
            case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.GeneratorExp() as tests]):
                return self._elements(tests).asks_tensor(tests.elt)
            case ast.Call(func=ast.Attribute(value=owner, attr="equal" | "allclose")):
                return self.is_tensor(owner) or (isinstance(owner, ast.Name) and owner.id == self.torch)
        return self.is_tensor(test)

    def _converted(self, test: ast.expr) -> ast.expr | None:
        """The tensor of which `test` makes a Python bool, as in `bool(x)` and `x.item()`; None if it is something else."""
        match test:
            case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]) if "bool" not in self.locals:
                return inner
            case ast.Call(func=ast.Attribute(value=ast.Name(id=self.torch), attr="is_nonzero"), args=[inner], keywords=[]):
                return inner
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]) if self.is_tensor(inner):
                return inner
        return None

    def comparison(self, test: ast.Compare) -> str:
        """The text of a comparison of numbers, with symbolic numbers instead of `float(x)` and `int(x)` of tensors."""
        text = self.text(test)
        for node in ast.walk(test):
            match node:
                case ast.Call(func=ast.Name(id="float" | "int" as name), args=[inner], keywords=[]) if self.is_tensor(inner):
                    plain = self.text(inner) if isinstance(inner, ast.Name | ast.Attribute | ast.Call) else f"({self.text(inner)})"
                    text = text.replace(self.text(node), f"{plain}.{'double' if name == 'float' else 'long'}().item()")
        return text

    def _elements(self, tests: ast.GeneratorExp) -> Scope:
        """This scope within a generator expression: an element of a tensor is a tensor."""
        made = {each.target.id for each in tests.generators if isinstance(each.target, ast.Name) and self.is_tensor(each.iter)}
        return dataclasses.replace(self, tensors=(self.tensors or frozenset()) | made)

    def predicate(self, test: ast.expr) -> str | None:
        """`test` as a tensor of dtype bool; None if the source does not tell how."""
        text = self.text(test)
        if (converted := self._converted(test)) is not None:
            return self.predicate(converted)
        match test:
            case ast.BoolOp(op=operator, values=parts):
                return self._joined(operator, parts)
            case ast.Compare(
                left=left, ops=[ast.In() | ast.NotIn() as operator], comparators=[ast.List() | ast.Tuple() | ast.Set() as choices]
            ):
                return self._in(left, operator, choices.elts)
            case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]) | ast.NamedExpr():
                return None
            case ast.Call() if (compared := self._of_equality(test)) is not None:
                return compared
            case ast.Call(func=ast.Attribute(attr="equal" | "allclose") | ast.Name(id="any" | "all")):
                # NOTE: in these forms they return a bool.
                return None
            case ast.Compare(ops=[_]) | ast.Call(func=ast.Attribute(attr="any" | "all")):
                return text
            case ast.Compare() if self._compares_tensors(test):
                sides = [test.left, *test.comparators]
                pairs = zip(sides, test.ops, sides[1:], strict=False)
                return " & ".join(f"({ast.unparse(ast.Compare(left, [sign], [right]))})" for left, sign, right in pairs)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.predicate(operand)
                plain = self.text(operand) if isinstance(operand, ast.Name | ast.Attribute | ast.Subscript) else inner
                return None if inner is None or is_pythons(inner) else f"{self.torch}.logical_not({plain})"
            case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
                return f"{text}.bool()"
        return None

    def _of_equality(self, test: ast.Call) -> str | None:
        """A call that compares tensors, or asks for several truths, as a tensor; None if it is something else."""
        match test:
            case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() as tests], keywords=[]):
                return self._of_generator(name, tests)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=self.torch), attr="allclose")):
                return f"{self.torch}.isclose{self.text(test).removeprefix(f'{self.torch}.allclose')}.all()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=self.torch), attr="equal"), args=[left, right], keywords=[]):
                return f"{self.torch}.eq({self.text(left)}, {self.text(right)}).all()"
            case ast.Call(func=ast.Attribute(value=left, attr="equal" | "allclose" as name), args=[_, *_]) if self.is_tensor(left):
                method = "eq" if name == "equal" else "isclose"
                return f"{self.text(left)}.{method}({', '.join(map(self.text, test.args))}).all()"
        return None

    def _in(self, element: ast.expr, operator: ast.In | ast.NotIn, choices: Sequence[ast.expr]) -> str | None:
        """Whether a tensor is one of some numbers."""
        if not choices or not all(isinstance(each, ast.Constant) and isinstance(each.value, int | float) for each in choices):
            return None
        text = self.text(element)
        *first, last = [f"{text} == {self.text(each)}" for each in choices]
        for each in reversed(first):
            last = f"{self.torch}.logical_or({each}, {last})"
        return last if isinstance(operator, ast.In) else f"{self.torch}.logical_not({last})"

    def _joined(self, operator: ast.boolop, parts: Sequence[ast.expr]) -> str | None:
        *first, last = parts
        function = "logical_and" if isinstance(operator, ast.And) else "logical_or"
        if (result := self._part(last)) is None:
            return None
        for part in reversed(first):
            text = self._part(part)
            if text is None:
                # NOTE: Python may decide about values that are not tensors, if the test asks for them before all tensors.
                rest = first[: first.index(part) + 1]
                word = "and" if isinstance(operator, ast.And) else "or"
                plain = not any(map(self.asks_tensor, rest)) and all(isinstance(each, ast.Compare | ast.Attribute) for each in rest)
                last_text = f"({result})" if is_pythons(result) else result
                return f" {word} ".join([*map(self.text, rest), last_text]) if plain else None
            if is_pythons(result):
                return None
            result = f"{self.torch}.{function}({text}, {result})"
        return result

    def _part(self, part: ast.expr) -> str | None:
        return self._of_numbers(part) or (self.predicate(part) if self.asks_tensor(part) else None)

    def _of_numbers(self, part: ast.expr) -> str | None:
        """A comparison of numbers that are made of tensors, as in `x.item() > 0`, as one of tensors; None if `part` is something else."""
        if not isinstance(part, ast.Compare) or len(part.ops) > 1:
            return None
        text = self.text(part)
        for side in (part.left, *part.comparators):
            match side:
                case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]) | ast.Call(func=ast.Name(id="float"), args=[inner]):
                    if self.is_tensor(inner):
                        plain = isinstance(inner, ast.Name | ast.Attribute | ast.Call)
                        text = text.replace(self.text(side), self.text(inner) if plain else f"({self.text(inner)})")
        return None if text == self.text(part) else text

    def _of_generator(self, name: str, tests: ast.GeneratorExp) -> str | None:
        element = self.predicate(tests.elt)
        if element is None or is_pythons(element) or len(tests.generators) != 1 or tests.generators[0].ifs or tests.generators[0].is_async:
            return None
        each = tests.generators[0]
        return f"{self.torch}.stack([{element} for {self.text(each.target)} in {self.text(each.iter)}]).{name}()"


def is_pythons(predicate: str) -> bool:
    """Whether Python may decide a predicate before it asks a tensor: `k > 2 or x.any()` may be a Python bool."""
    return isinstance(ast.parse(predicate, mode="eval").body, ast.BoolOp)


def fresh(file: str, value: ast.expr) -> str | None:
    """The text of a branch's result as a tensor with separate data; None if it is not a tensor, or sets names."""
    if any(isinstance(node, _UNSUPPORTED) for node in ast.walk(value)):
        return None
    match value:
        case ast.Constant() | ast.Dict() | ast.List() | ast.Starred():
            return None
        case ast.Tuple(elts=parts):
            texts = [fresh(file, part) for part in parts]
            return None if None in texts else f"({''.join(f'{text}, ' for text in texts).strip()})"
        case ast.Name(id=name):
            return f"{name}.clone()"
        case ast.Attribute() | ast.Subscript():
            return f"{syntax.text(file, value)}.clone()"
        case ast.Call(func=ast.Attribute(attr=method)) if method in _VIEWS:
            return f"{syntax.text(file, value)}.clone()"
    return syntax.text(file, value)


def shares(value: ast.expr | None) -> bool:
    """Whether `value` may be a tensor, or a part of a tensor, that has another name as well."""
    match value:
        case None | ast.Name() | ast.Attribute() | ast.Subscript() | ast.IfExp():
            return True
        case ast.Tuple(elts=parts):
            return any(map(shares, parts))
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _VIEWS | _SELVES
    return False


def is_plain(statements: Iterable[ast.stmt], *, items: bool = False) -> bool:
    """Whether the statements only set local variables and return, and with `items` also items of local variables."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name())]) | ast.AugAssign(target=ast.Subscript(value=ast.Name())) if items:
                pass
            case ast.Assign(targets=targets) if all(map(_is_name, targets)):
                pass
            case ast.AnnAssign(target=ast.Name(), value=ast.expr()) | ast.AugAssign(target=ast.Name()) | ast.Pass() | ast.Assert():
                pass
            case ast.Return(value=ast.expr()):
                pass
            case ast.If(body=body, orelse=orelse) if is_plain(body, items=items) and is_plain(orelse, items=items):
                pass
            case ast.For(target=target, body=body, orelse=[]) if _is_name(target) and is_plain(body, items=items):
                pass
            case ast.With(items=managers, body=body) if all(map(_is_mode, managers)) and is_plain(body, items=items):
                pass
            case _:
                return False
        for node in ast.walk(statement):
            if isinstance(node, _UNSUPPORTED) or (isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno):
                return False
    return True


def _is_mode(manager: ast.withitem) -> bool:
    """Whether it is one of torch's modes, such as `torch.no_grad()`."""
    match manager:
        case ast.withitem(context_expr=ast.Call(func=ast.Attribute(attr=name)), optional_vars=None):
            return name in _MODES
    return False


def listed(argument: ast.expr) -> ast.expr:
    """An argument without calls of `list` or `tuple` around it."""
    match argument:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner], keywords=[]):
            return listed(inner)
        case ast.List(elts=[ast.Starred(value=inner)]) | ast.Tuple(elts=[ast.Starred(value=inner)]):
            return listed(inner)
    return argument


def returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether the statements return on every path."""
    match statements[-1:]:
        case [ast.Return(value=ast.expr())]:
            return True
        case [ast.If(body=body, orelse=orelse)]:
            return returns(body) and returns(orelse)
    return False


def has_return(statements: Iterable[ast.stmt]) -> bool:
    """Whether the statements contain a return."""
    return any(isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement))


def read_first(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether the statements may read `name` before they set it."""
    for statement in statements:
        if _reads(statement, name):
            return True
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.If | ast.With) and sets([statement], name):
            return False
    return False


def _reads(statement: ast.stmt, name: str) -> bool:
    """Whether a statement may read the value that `name` has before it."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=target), value=value):
            return name == target or name in loaded([value])
        case ast.If(test=test, body=body, orelse=orelse):
            return name in loaded([test]) or read_first(body, name) or read_first(orelse, name)
        case ast.With(items=managers, body=body):
            return name in loaded(managers) or read_first(body, name)
        case ast.For(target=target, iter=values, body=body, orelse=[]):
            return name in loaded([values]) or (name not in stored([target]) and read_first(body, name))
    return name in loaded([statement])


def sets(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether the statements certainly set `name`."""
    return any(
        sets(each.body, name) and (isinstance(each, ast.With) or sets(each.orelse, name))
        if isinstance(each, ast.If | ast.With)
        else name in stored([each])
        for each in statements
        if not isinstance(each, ast.For)
    )


def bodies(node: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a statement or a function."""
    return [body for name in ("body", "orelse", "finalbody") if isinstance(body := getattr(node, name, None), list)]


def loaded(nodes: Iterable[ast.AST]) -> dict[str, None]:
    """The names that are read in `nodes`, in the order of the text."""
    return _names(nodes, ast.Load)


def stored(nodes: Iterable[ast.AST]) -> dict[str, None]:
    """The names that are set in `nodes`, in the order of the text, without those of comprehensions."""
    inside = [node for root in nodes for node in ast.walk(root) if isinstance(node, ast.comprehension)]
    own = {id(name) for each in inside for name in ast.walk(each.target)}
    return _names(nodes, ast.Store, own)


def written(nodes: Iterable[ast.AST]) -> dict[str, None]:
    """The names whose items are set in `nodes`, as in `x[0] = y`, in the order of the text."""
    found = [node for root in nodes for node in ast.walk(root) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    return dict.fromkeys(node.value.id for node in found if isinstance(node.value, ast.Name))


def parameters(nodes: Iterable[ast.AST]) -> set[str]:
    """The parameters of functions in `nodes`."""
    return {node.arg for root in nodes for node in ast.walk(root) if isinstance(node, ast.arg)}


def made_once(where: Scope, name: str) -> ast.expr | None:
    """The value of a variable that the function sets in one place."""
    stores = [
        node for node in ast.walk(where.function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    made = [node for node in ast.walk(where.function) if isinstance(node, ast.Assign) and stores and stores[0] in node.targets]
    return made[0].value if len(stores) == len(made) == 1 and name not in parameters([where.function]) else None


def bound_inside(nodes: Iterable[ast.expr | ast.stmt]) -> set[str]:
    """The names that comprehensions and lambdas in `nodes` bind."""
    nodes = list(nodes)
    inside = [node.target for root in nodes for node in ast.walk(root) if isinstance(node, ast.comprehension)]
    return parameters(nodes) | set(_names(inside, ast.Store))


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context], without: Iterable[int] = ()) -> dict[str, None]:
    found = [node for root in nodes for node in ast.walk(root) if isinstance(node, ast.Name) and isinstance(node.ctx, context)]
    found = [node for node in found if id(node) not in set(without)]
    found.sort(key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
    return dict.fromkeys(node.id for node in found)


def _is_name(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) or (isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts))
