"""What a Python loop iterates over: numbers, the rows of tensors, or a condition."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence

from onnxplain.diagnostics import Region

from . import block_loops, blocks, scope
from .block_loops import Blocks
from .blocks import Rewrite
from .scope import Scope


@dataclasses.dataclass(frozen=True)
class Item:
    """A part of a tensor by the number of an iteration.

    Attributes:
        owner: The tensor.
        axis: The dim along which it is taken.
        number: The position along it.
        index: The rest of the index, for the part; empty if there is none.
        positions: For a window that begins at an iteration's number, the positions that it covers; empty for a single position.
    """

    owner: str
    axis: int | str
    number: str
    index: str = ""
    positions: str = ""

    def read(self, *, scans: bool) -> str:
        """The part, without the rest of the index. In a scan, the number is a tensor."""
        if self.positions:
            return f"{self.owner}.index_select({self.axis}, {self.positions})"
        if scans:
            return f"{self.owner}.index_select({self.axis}, {self.number}).squeeze({self.axis})"
        return f"{self.owner}.select({self.axis}, {self.number})"

    def put_back(self, name: str, *, scans: bool) -> str:
        """The tensor with `name` as its part."""
        if self.positions:
            return f"{self.owner}.index_copy({self.axis}, {self.positions}, {name})"
        if scans:
            return f"{self.owner}.index_copy({self.axis}, ({self.number}).reshape(1), {name}.unsqueeze({self.axis}))"
        return f"{self.owner}.select_scatter({name}, {self.axis}, {self.number})"


@dataclasses.dataclass(frozen=True)
class Loop:
    """The parts of a loop whose body becomes a function.

    Attributes:
        test: The condition for another iteration.
        statements: The body.
        before: The code that runs once, before the loop.
        counter: The loop variable with its start, its next value and its name after the loop; empty for a `while`.
        left: How many iterations are left, or a number of the same sign; empty for a `while`.
        numbers: The arguments of `range` or torch.arange; empty for a `while`.
        rows: The other variables that an iteration sets to parts of tensors, with their values.
        last: The number of a last iteration that comes after these, and takes a block that may be shorter; empty if there is none.
        ends: What the variables in `rows` are in that iteration.
        blocks: The blocks that the iterations take; None if they take none.
        parts: The statements before that made lists of parts, which make the whole tensors instead.
    """

    test: str
    statements: Sequence[ast.stmt]
    before: tuple[str, ...] = ()
    counter: tuple[str, str, str] | None = None
    left: str = ""
    numbers: str = ""
    rows: Mapping[str, Item] = dataclasses.field(default_factory=dict)
    last: str = ""
    ends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    blocks: Blocks | None = None
    parts: tuple[Rewrite, ...] = ()

    @property
    def number(self) -> str:
        """The name of the iteration's number; empty for a `while`."""
        return "" if self.counter is None else self.counter[0]


def of_for(where: Scope, statement: ast.For) -> Loop | None:
    """The parts of a `for`; None if the source does not tell over what it iterates."""
    targets = scope.stored([statement.target])
    if statement.orelse or any(blocks.target_outlives(where, statement, name) for name in targets):
        return None
    return _over(where, statement)


def of_comprehension(where: Scope, generator: ast.comprehension, value: ast.expr) -> Loop | None:
    """The parts of a comprehension, whose body is the expression `value`; None if the source does not tell over what it iterates."""
    body = ast.Assign([ast.Name("_", ast.Store())], value)
    return _over(where, ast.For(generator.target, generator.iter, [ast.fix_missing_locations(ast.copy_location(body, value))], []))


def _over(where: Scope, statement: ast.For) -> Loop | None:
    match statement.iter:
        case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]) if isinstance(statement.target, ast.Name):
            return _range(where, statement, statement.target.id, bounds)
        case ast.Call(func=ast.Name(id="reversed"), args=[ast.Call(func=ast.Name(id="range"), args=[bound], keywords=[])], keywords=[]):
            if isinstance(statement.target, ast.Name):
                one, end = ast.Constant(-1), ast.BinOp(bound, ast.Sub(), ast.Constant(1))
                return _range(where, statement, statement.target.id, [ast.fix_missing_locations(end), one, one])
    return _rows(where, statement)


def _range(where: Scope, statement: ast.For, target: str, bounds: Sequence[ast.expr]) -> Loop | None:
    if any(isinstance(each, ast.Starred) for each in bounds):
        return None
    if (taken := block_loops.of(where, statement, bounds)) is not None:
        return _blocks(where, statement, taken, bounds)
    used = target in scope.loaded(statement.body)
    counter = target if used or target != "_" else where.unused("i")
    step = int(ast.literal_eval(bounds[2])) if len(bounds) == 3 and _is_int(bounds[2]) else 1
    if (len(bounds) == 3 and not _is_int(bounds[2])) or step == 0:
        return None
    start = "0" if len(bounds) == 1 else where.text(_number(bounds[0]))
    stop = _number(bounds[0] if len(bounds) == 1 else bounds[1])
    limit, before = where.text(stop), ""
    if not isinstance(stop, ast.Constant | ast.Name) or limit in scope.stored(statement.body):
        limit = where.unused("rounds" if len(bounds) == 1 else "stop")
        before = f"{limit} = {count(where, stop)}"
    following = f"{counter} {'+' if step > 0 else '-'} {abs(step)}"
    test = f"{counter} {'<' if step > 0 else '>'} {limit}"
    left = f"{limit} - {counter}" if step > 0 else f"{counter} - {limit}"
    return Loop(test, statement.body, (before,) if before else (), (counter, start, following), left, f"{start}, {limit}, {step}")


def _blocks(where: Scope, statement: ast.For, taken: Blocks, bounds: Sequence[ast.expr]) -> Loop:
    """The iterations that take whole blocks, and the last one, which may take a shorter one."""
    last, number = where.unused("last"), taken.number
    start = "0" if len(bounds) == 1 else where.text(_number(bounds[0]))
    step = "1" if taken.counts else where.text(taken.step)
    stop = count(where, _number(bounds[0] if len(bounds) == 1 else bounds[1]))
    before = f"{last} = {stop} - 1"
    if not taken.counts:
        length = f"({stop} - 1)" if start == "0" else f"({stop} - {start} - 1)"
        before = f"{last} = {length} // {step} * {step}" + ("" if start == "0" else f" + {start}")
    counter = (number, start, f"{number} + {step}")
    numbers = f"{start}, {last}, {step}"
    return Loop(f"{number} < {last}", statement.body, (before,), counter, f"{last} - {number}", numbers, last=last, blocks=taken)


def count(where: Scope, node: ast.expr) -> str:
    """The text of a number of iterations. `len` of a tensor is a Python number, which fixes a dynamic size; its shape is not."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call() as tensor], keywords=[]):
            if where.is_tensor(tensor):
                return f"{where.text(tensor)}.shape[0]"
    return where.text(node)


def _rows(where: Scope, statement: ast.For) -> Loop | None:
    """A loop over the rows of a tensor, of several tensors together, or over rows with their numbers."""
    iterable, target, counter = statement.iter, statement.target, ""
    match iterable, target:
        case ast.Call(func=ast.Name(id="enumerate"), args=[iterable], keywords=[]), ast.Tuple(elts=[ast.Name(id=counter), target]):
            pass
    match iterable, target:
        case ast.Call(func=ast.Name(id="zip"), args=sources), ast.Tuple(elts=targets) if len(sources) == len(targets):
            pairs = list(zip(sources, targets, strict=True))
        case _:
            pairs = [(iterable, target)]
    counter = counter or where.unused("i")
    if (split := _split(where, statement, pairs, counter)) is not None:
        return split
    changed = {*scope.stored(statement.body), *scope.written(statement.body)}
    rows: dict[str, Item] = {}
    before, sizes = [], []
    for source, each in pairs:
        tensor, axis = _unbound(where, source)
        if not isinstance(each, ast.Name) or not where.is_tensor(tensor):
            return None
        text = where.text(tensor)
        if not isinstance(tensor, ast.Name | ast.Attribute) or changed & scope.loaded([tensor]).keys():
            # NOTE: Python evaluates it once, before the first iteration.
            before.append(f"{(name := where.unused(f'rows_{len(rows) + 1}'))} = {text}")
            text = name
        rows[each.id] = Item(text, axis, counter)
        sizes.append(f"{text}.shape[{axis}]")
    limit = where.unused("rounds")
    least = sizes[0]
    for size in sizes[1:]:
        least = f"{where.torch}.sym_min({least}, {size})"
    return Loop(
        f"{counter} < {limit}",
        statement.body,
        (*before, f"{limit} = {least}"),
        (counter, "0", f"{counter} + 1"),
        f"{limit} - {counter}",
        limit,
        rows,
    )


def _split(where: Scope, statement: ast.For, pairs: Sequence[tuple[ast.expr, ast.expr]], counter: str) -> Loop | None:
    """A loop over the parts into which `split` divides tensors, all of one length but the last."""
    before: list[str] = []
    rows: dict[str, Item] = {}
    ends: dict[str, str] = {}
    parts: list[Rewrite] = []
    last = where.unused("last")
    for source, target in pairs:
        divided = block_loops.divided(where, source)
        if divided is None or not isinstance(target, ast.Name):
            return None
        tensor, length, dim = divided
        axis, step, whole = where.text(dim) if dim is not None else "0", where.text(length), where.unused("whole")
        whole += f"_{len(rows) + 1}" if len(pairs) > 1 else ""
        size = f"{whole}.shape[{axis}]"
        text = where.text(tensor)
        if isinstance(source, ast.Name) and (made := block_loops.made_for(where, source.id)) is not None:
            # NOTE: the tensor may have another name by now.
            parts.append(Rewrite(where.region(made.value), text))
            text = source.id
        before.append(f"{whole} = {text}")
        if not rows:
            before.append(f"{last} = ({size} - 1) // {step}")
        rows[target.id] = Item(whole, axis, counter, positions=f"{counter} * {step} + {_positions(where, step, whole)}")
        ends[target.id] = f"{whole}.narrow({axis}, {last} * {step}, {size} - {last} * {step})"
    test, left = f"{counter} < {last}", f"{last} - {counter}"
    return Loop(
        test, statement.body, tuple(before), (counter, "0", f"{counter} + 1"), left, last, rows, last=last, ends=ends, parts=tuple(parts)
    )


def _unbound(where: Scope, source: ast.expr) -> tuple[ast.expr, str]:
    """The tensor whose parts `source` has, and the dim along which it is taken apart."""
    match source:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="unbind"), args=[tensor, *dims], keywords=keywords):
            pass
        case ast.Call(func=ast.Attribute(value=tensor, attr="unbind"), args=dims, keywords=keywords):
            pass
        case _:
            return source, "0"
    dims = [*dims, *(each.value for each in keywords if each.arg == "dim")]
    return tensor, where.text(dims[0]) if dims else "0"


def selected(where: Scope, loop: Loop, *, scans: bool) -> list[Rewrite] | None:
    """Items of tensors by the loop's number, written so that torch takes a symbolic number there; None if one cannot be written so.

    Among slices, torch takes such a number in `select` only. Where a gradient is recorded, it does not change an item in place. In a scan
    the number is a tensor, with which torch cannot index.
    """
    found: list[Rewrite] = []
    for node in (each for statement in loop.statements for each in ast.walk(statement)):
        match node:
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                if any(_is_numbered(part, loop) for part in _parts(target.slice)):
                    changed = _changed(where, node, target, loop, scans=scans)
                    if not changed or _has_item(target.slice, loop, scans=scans):
                        return None
                    found += changed
            case ast.Subscript(value=owner, slice=index, ctx=ast.Load()) if _is_item(node, loop, scans=scans):
                item = _item(where, owner, _parts(index), loop)
                if item is None or any(_has_item(part, loop, scans=scans) for part in (owner, *_parts(index))):
                    return None
                if scans and not where.is_tensor(owner):
                    return None
                found.append(Rewrite(where.region(node), item.read(scans=scans) + item.index))
    return found


def transposed(where: Scope, loop: Loop) -> list[Rewrite]:
    """The attributes `T` of tensors that an iteration takes from outside, as calls.

    TorchDynamo takes an attribute for another input of the loop, which shares its data with the tensor: torch refuses that (seen in 2.13).
    """
    own = {*scope.stored(loop.statements), *loop.rows}
    nodes = [node for statement in loop.statements for node in ast.walk(statement) if isinstance(node, ast.Attribute) and node.attr == "T"]
    outer = [node for node in nodes if isinstance(node.value, ast.Name) and where.is_tensor(node.value) and node.value.id not in own]
    return [Rewrite(where.region(node), f"{where.text(node.value)}.t()") for node in outer]


def _is_item(node: ast.Subscript, loop: Loop, *, scans: bool) -> bool:
    """Whether the item is written in another way. Outside of a scan, torch takes a single number as it is."""
    # NOTE: torch takes no symbolic number in a slice.
    otherwise = scans or isinstance(node.slice, ast.Tuple) or loop.blocks is not None or _length(node.slice, loop.number) is not None
    return otherwise and any(_is_numbered(part, loop) for part in _parts(node.slice))


def _parts(index: ast.expr) -> Sequence[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _has_item(node: ast.AST, loop: Loop, *, scans: bool) -> bool:
    """Whether `node` contains an item that is rewritten as well, for example within the index of another one."""
    return any(isinstance(each, ast.Subscript) and _is_item(each, loop, scans=scans) for each in ast.walk(node))


def written_otherwise(loop: Loop) -> dict[str, None]:
    """The names with items that the loop sets, and not by the iteration's number."""
    nodes = [each for statement in loop.statements for each in ast.walk(statement)]
    items = [node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    return scope.written(node for node in items if not any(_is_numbered(part, loop) for part in _parts(node.slice)))


def _changed(where: Scope, statement: ast.Assign | ast.AugAssign, target: ast.Subscript, loop: Loop, *, scans: bool) -> list[Rewrite]:
    """The statement as a change of a copy of the item, which then takes the item's place."""
    item = _item(where, target.value, _parts(target.slice), loop)
    if item is None:
        return []
    name, place, whole = where.unused("item"), where.region(target), where.region(statement)
    indent = "\n" + " " * whole.offset
    # NOTE: `=` sets all elements of the copy, `+=` changes them.
    changed = f"{name}{item.index}" if item.index or isinstance(statement, ast.AugAssign) else f"{name}[...]"
    back = f"{item.owner} = {item.put_back(name, scans=scans)}"
    return [
        Rewrite(place, f"{name} = {item.read(scans=scans)}.clone(){indent}{changed}"),
        Rewrite(Region(whole.last_line, whole.end_column, whole.last_line, whole.end_column), f"{indent}{back}"),
    ]


def _item(where: Scope, owner: ast.expr, parts: Sequence[ast.expr], loop: Loop) -> Item | None:
    """The item; None if its index has another form."""
    numbered = [number for number, part in enumerate(parts) if _is_numbered(part, loop)]
    if len(numbered) != 1:
        return None
    (place,) = numbered
    positions = _window(where, owner, part, loop) if isinstance(part := parts[place], ast.Slice) else ""
    if positions is None:
        return None
    before, after = parts[:place], parts[place + 1 :]
    axis, known = (-1 - len(after), after) if any(map(_is_ellipsis, before)) else (place, before)
    if not all(isinstance(part, ast.Slice) for part in known):
        return None
    rest = [*before, *after]
    index = "" if all(_is_ellipsis(part) or _is_whole(part) for part in rest) else f"[{', '.join(map(where.text, rest))}]"
    return Item(where.text(owner), axis, where.text(part), index, positions)


def _is_numbered(part: ast.expr, loop: Loop) -> bool:
    """Whether a part of an index depends on the iteration's number."""
    is_block = loop.blocks is not None and isinstance(part, ast.Slice) and loop.blocks.length(part) is not None
    return is_block or loop.number in scope.loaded([part])


def _window(where: Scope, owner: ast.expr, part: ast.Slice, loop: Loop) -> str | None:
    """The positions of a slice such as `[i : i + 3]`, whose length is the same for all numbers; None for other slices."""
    if loop.blocks is not None:
        block = loop.blocks.length(part)
        return None if block is None or part.lower is None else f"{where.text(part.lower)} + {_positions(where, block, where.text(owner))}"
    if (window := _length(part, loop.number)) is None or part.lower is None:
        return None
    return f"{where.text(part.lower)} + {_positions(where, where.text(window), where.text(owner))}"


def _positions(where: Scope, count: str, owner: str) -> str:
    """The first `count` positions, on the device of the tensor `owner`."""
    return f"{where.torch}.arange({count}{blocks.on_device_of(owner)})"


def _length(part: ast.expr, counter: str) -> ast.expr | None:
    """The length of a slice such as `[i : i + 3]`; None for other parts of an index."""
    match part:
        case ast.Slice(lower=ast.expr() as first, upper=ast.BinOp(left=left, op=ast.Add(), right=length), step=None):
            return length if ast.dump(first) == ast.dump(left) and counter not in scope.loaded([length]) else None
    return None


def _is_ellipsis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is ...


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and (part.lower, part.upper, part.step) == (None, None, None)


def _number(value: ast.expr) -> ast.expr:
    """`value` without a conversion to a Python number: torch.while_loop also compares tensors."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return inner
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            return _number(inner)
    return value


def _is_int(node: ast.expr) -> bool:
    try:
        return type(ast.literal_eval(node)) is int
    except ValueError:
        return False
