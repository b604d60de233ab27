"""Inputs and outputs in a cache, in a dict or in attributes get names that tell where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils import _pytree as pytree

from onnxplain.request import DynamicShapes, containers, input_names, output_names

X, Y = torch.ones(3, 4), torch.full((3, 4), 2.0)


class Layer:
    def __init__(self, keys: Any, values: Any) -> None:
        self.keys, self.values = keys, values


class Cache:
    def __init__(self, layers: Any, length: Any = None) -> None:
        self.layers = layers
        if length is not None:
            self.length = length


class Both:
    def __init__(self, one: Any, other: Any) -> None:
        self.self_attention_cache, self.cross_attention_cache = Cache([Layer(one, other)]), Cache([Layer(other, one)])


class Pair(NamedTuple):
    first: Any
    second: Any


class Vanishing:
    """Its registration rebuilds something with fewer parts."""


class Refusing:
    """Its registration refuses to rebuild an object without real tensors."""


class Nameless:
    def __init__(self, x: Any) -> None:
        self.x = x


def refused(parts: Any, _: Any) -> Any:
    if any(part.ndim == 4 for part in parts):
        raise LookupError("no such thing")
    return Refusing()


pytree.register_pytree_node(Vanishing, lambda _: ([X, Y], None), lambda parts, _: next(iter(parts)))
pytree.register_pytree_node(Refusing, lambda _: ([X], None), refused)
pytree.register_pytree_node(Nameless, lambda each: ([each.x], None), lambda parts, _: Nameless(*parts))


class Returning(torch.nn.Module):
    def __init__(self, make: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.make(x * 2, x + y)


OUTPUTS: dict[str, tuple[Callable[[Any, Any], Any], list[str]]] = {
    "a tensor": (lambda x, y: x, []),
    "positions": (lambda x, y: (x, y), ["", ""]),
    "a dict": (lambda x, y: {"a": x, "b": [y, y.relu()]}, ["a", "b.0", "b.1"]),
    "a dict with numbers": (lambda x, y: {0: x, "b": y}, ["", "b"]),
    "a dict in a tuple": (lambda x, y: (x, {"b": y}), ["", ""]),
    "a named tuple": (lambda x, y: Pair(x, {"b": y}), ["first", "second.b"]),
    "None and texts": (lambda x, y: {"a": x, "b": None, "c": "text"}, ["a", "b", "c"]),
    "a cache": (lambda x, y: {"logits": x, "past": Cache([Layer(x, y)])}, ["logits", "present.0.key", "present.0.value"]),
    "a cache alone": (
        lambda x, y: Cache([Layer(x, y), Layer(y, x)]),
        [f"present.{at}.{kind}" for at in (0, 1) for kind in ("key", "value")],
    ),
    "a cache with a length": (lambda x, y: Cache([Layer(x, y)], x.sum()), ["present.0.key", "present.0.value", "length"]),
    "two caches": (lambda x, y: Both(x, y), [f"present.0.{side}.{kind}" for side in ("decoder", "encoder") for kind in ("key", "value")]),
    "layers of tensors": (lambda x, y: Cache([x, y]), ["layers.0", "layers.1"]),
    "layers in a dict": (lambda x, y: Cache({"a": Layer(x, y)}), ["layers.a.keys", "layers.a.values"]),
    "layers of dicts": (lambda x, y: Cache([{"keys": x, "other": [y]}]), ["present.0.key", "present.0.other.0"]),
    "layers under a key": (lambda x, y: {"layers": [{"keys": x}, {"keys": y}]}, ["layers.0.keys", "layers.1.keys"]),
    "a class without names": (lambda x, y: {"a": Nameless(x), "b": y}, []),
    "a class that loses parts": (lambda x, y: {"a": Vanishing(), "b": y}, []),
    "a class that refuses": (lambda x, y: {"a": Refusing(), "b": y}, []),
}


@pytest.mark.parametrize(("make", "names"), OUTPUTS.values(), ids=OUTPUTS)
def test_names_of_outputs(make: Callable[[Any, Any], Any], names: list[str]) -> None:
    containers.register(make(X, Y))
    assert output_names(torch.export.export(Returning(make), (X, Y))) == names


class Reading(torch.nn.Module):
    def forward(self, x: torch.Tensor, past: Any, mode: str = "sum", **more: Any) -> torch.Tensor:
        tensors = [each for each in pytree.tree_leaves((past, more)) if isinstance(each, torch.Tensor)]
        return x + sum(tensors)


def test_names_of_inputs() -> None:
    past, encoded = Cache([Layer(X, Y)], torch.tensor(3.0)), Both(X, Y)
    containers.register((past, encoded))
    args, kwargs = (X, past, "sum"), {"encoded": encoded, "plain": {"layers": [Y]}}
    program = torch.export.export(Reading(), args, kwargs)
    found = input_names(program, DynamicShapes.parse(None, Reading(), args, kwargs))
    assert list(found.values()) == [
        "past.0.key",
        "past.0.value",
        *(f"encoded.0.{side}.{kind}" for side in ("decoder", "encoder") for kind in ("key", "value")),
    ]
    placeholders = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    assert list(found) == [*placeholders[1:3], *placeholders[5:9]]


def test_inputs_that_the_program_lacks_have_no_names() -> None:
    past = Cache([Layer(X, Y)])
    containers.register(past)
    program = torch.export.export(Reading(), (X, past))
    assert input_names(program, DynamicShapes.parse(None, Reading(), (X, past), {"more": Y})) == {}
