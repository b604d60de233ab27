"""A grammar of small random modules. Each program is source text that runs in eager mode, with inputs and their dynamic shapes.

NOTE: hypothesis draws many variations of earlier programs: half of 300 programs differed from another one in a number or not at all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Sequence

import torch
from adversary import operators, statements
from adversary.body import FLOATS, INTS, Body, Misfit


@dataclasses.dataclass(frozen=True)
class Axis:
    """A dim of an input.

    Attributes:
        size: Its size in the example.
        spec: The source of its entry in `dynamic_shapes`; None if it has none.
        name: The variable of which the entry makes it a function; empty for a dim without a name.
        factor: Its size is `factor * variable + offset`.
        offset: See `factor`.
        least: The least value of the variable.
        most: The largest value of the variable.
    """

    size: int
    spec: str | None = None
    name: str = ""
    factor: int = 1
    offset: int = 0
    least: int = 0
    most: int = 64


@dataclasses.dataclass(frozen=True)
class Input:
    """An input: its name, its dtype and its dims."""

    name: str
    dtype: torch.dtype
    axes: tuple[Axis, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The example's sizes."""
        return tuple(axis.size for axis in self.axes)


@dataclasses.dataclass(frozen=True)
class Program:
    """A module.

    Attributes:
        inputs: Its inputs.
        shapes: The source of `dynamic_shapes`.
        statements: The lines of `forward`.
        results: The names that it returns.
        form: The source of what it returns; `{}` stands for the names, with commas.
        dtypes: The dtypes of all values.
    """

    inputs: tuple[Input, ...]
    shapes: str
    statements: tuple[str, ...]
    results: tuple[str, ...]
    form: str
    dtypes: frozenset[torch.dtype]

    def source(self) -> str:
        """A file that defines `Net` and `SHAPES`."""
        names = ", ".join(each.name for each in self.inputs)
        lines = [line for statement in self.statements for line in statement.splitlines()]
        body = "\n".join(f"        {line}" for line in lines)
        head = "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch.export import Dim\n\n"
        returned = self.form.format(", ".join(self.results), last=self.results[-1])
        net = f"class Net(torch.nn.Module):\n    def forward(self, {names}):\n{body}\n        return {returned}\n"
        return f"{head}SHAPES = {self.shapes}\n\n\n{net}"

    def tensors(self, sizes: Sequence[Sequence[int]], seed: int = 0) -> tuple[torch.Tensor, ...]:
        """Inputs of these sizes, of numbers that most arithmetic keeps exact."""
        generator = torch.Generator().manual_seed(seed)
        return tuple(_tensor(each.dtype, size, generator) for each, size in zip(self.inputs, sizes, strict=True))


_KINDS = (*statements.KINDS, *operators.KINDS)


def _tensor(dtype: torch.dtype, sizes: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return (torch.randint(-12, 13, tuple(sizes), generator=generator) / 4).to(dtype)
    low, high = (0, 2) if dtype is torch.bool else (0, 6) if dtype is torch.uint8 else (-5, 6)
    return torch.randint(low, high, tuple(sizes), generator=generator).to(dtype)


def _axis(chance: random.Random, size: int, form: str, known: dict[str, Axis]) -> Axis:
    """A dim of size `size` with an entry in the given form."""
    shared = [each for each in known.values() if each.size == size and each.spec is not None]
    if form == "mixed":
        form = chance.choice(("none", "none", "string", "string", "Dim", "range", "derived", "AUTO", "AUTO", "DYNAMIC", "STATIC", "shared"))
    if form == "shared" and shared:
        return chance.choice(shared)
    name = "BTUVWXYZ"[len(known)]
    plain = {"AUTO": "Dim.AUTO", "DYNAMIC": "Dim.DYNAMIC", "STATIC": "Dim.STATIC", "none": None}
    if form in plain:
        return Axis(size, plain[form])
    if form == "Dim":
        axis = Axis(size, f"Dim('{name}')", name)
    elif form == "range":
        least, most = chance.choice(((1, 9), (2, 16), (2, 8), (size, size + 3), (max(size - 1, 0), size), (0, 12)))
        if not least <= size <= most or most < 2:
            least, most = 1, 16
        axis = Axis(size, f"Dim('{name}', min={least}, max={most})", name, least=least, most=most)
    elif form == "derived":
        factor, offset = (2, 0) if size % 2 == 0 else (1, 1)
        spec = f"{factor} * Dim('{name}', min=1, max=9)" if factor > 1 else f"Dim('{name}', min=1, max=9) + 1"
        axis = Axis(size, spec, name, factor, offset, 1, 9)
        if size == 1:
            return Axis(size, "Dim.DYNAMIC")
    else:
        axis = Axis(size, f"'{name}'", name)
    known[name] = axis
    return axis


def random_program(chance: random.Random, most: int = 6) -> Program:
    """A random program with up to `most` lines that do something."""
    form = chance.choice(("mixed", "mixed", "mixed", "mixed", "string", "range", "AUTO", "Dim", "True", "True", "None"))
    known: dict[str, Axis] = {}
    inputs = []
    for index in range(chance.choice((1, 1, 2))):
        rank = chance.choice((1, 2, 2, 2, 3))
        sizes = [chance.choice((2, 3, 3, 4, 4, 5, 6, 1)) for _ in range(rank)]
        if index and chance.random() < 0.5:
            sizes = list(inputs[0].sizes)
        axes = tuple(_axis(chance, size, form if form not in ("True", "None") else "none", known) for size in sizes)
        inputs.append(Input(f"x{index}", chance.choice((*FLOATS, *FLOATS, *INTS, torch.bool)), axes))
    shapes = form if form in ("True", "None") else _shapes(chance, inputs)
    made = Program(tuple(inputs), shapes, (), (), "{},", frozenset())
    example = made.tensors([each.sizes for each in inputs])
    body = Body(chance, {each.name: value.clone() for each, value in zip(inputs, example, strict=True)})
    wanted = chance.randint(1, most)
    for _ in range(4 * wanted):
        if len(body.lines) < wanted:
            with contextlib.suppress(Misfit):
                chance.choice(_KINDS)(body)
    if not body.lines:
        body.add(f"{{}} = {inputs[0].name} + 1", exact=True)
    own = [name for name in body.names if name not in body.inputs] or body.names
    results = dict.fromkeys([own[-1], *(chance.choice(body.names) for _ in range(chance.randint(0, 2)))])
    returned = chance.choice(
        ("{},", "{},", "{},", "[{}]", "dict(zip('abc', ({},)))", "({},), {{'last': {last}}}", "{last}", f"{{}}, {body.size()}")
    )
    return dataclasses.replace(made, statements=tuple(body.lines), results=tuple(results), form=returned, dtypes=frozenset(body.dtypes))


def _shapes(chance: random.Random, inputs: Sequence[Input]) -> str:
    """The source of `dynamic_shapes`: dicts or tuples of entries."""
    entries = []
    for each in inputs:
        if chance.random() < 0.5 or not each.axes:
            given = ", ".join(f"{index}: {axis.spec}" for index, axis in enumerate(each.axes) if axis.spec is not None)
            entries.append(f"{{{given}}}")
        else:
            entries.append(f"({', '.join(str(axis.spec) for axis in each.axes)},)")
    if chance.random() < 0.5:
        return f"({', '.join(entries)},)"
    return "{" + ", ".join(f"'{each.name}': {entry}" for each, entry in zip(inputs, entries, strict=True)) + "}"
