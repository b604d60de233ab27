"""Names in a model's modules while several exports replace them, in whatever order these end."""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from onnxplain.torch_internals import size_numbers
from onnxplain.torch_internals.module_names import original, standing_for
from onnxplain.torch_internals.patching import reached_by_import
from onnxplain.torch_internals.size_conversions import classes_kept, kept

SQRT = math.sqrt

SOURCE = """
import torch
from math import sqrt

class Net(torch.nn.Module):
    def forward(self, x):
        return int(x) if isinstance(x, int) or type(x) is torch.Tensor else sqrt(x)
"""


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    made = types.ModuleType("made")
    exec(compile(SOURCE, "made.py", "exec"), vars(made))
    before = dict(vars(made))
    yield made
    assert vars(made) == before


def all_replaced(module: types.ModuleType) -> AbstractContextManager[object]:
    stack = contextlib.ExitStack()
    stack.enter_context(size_numbers.kept())
    stack.enter_context(reached_by_import([module.Net.forward]))
    stack.enter_context(classes_kept([module.Net.forward]))
    stack.enter_context(kept(module.Net(), {"made.py": ["int"]}))
    return stack


NAMES: dict[str, Callable[[types.ModuleType], object]] = {
    "sqrt": lambda module: module.sqrt is not SQRT,
    "isinstance": lambda module: "isinstance" in vars(module),
    "int": lambda module: "int" in vars(module),
    "type": lambda module: "type" in vars(module),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("first_ends_first", [True, False])
def test_names_stand_for_others_until_the_last_export_ends(name: str, first_ends_first: bool, module: types.ModuleType) -> None:
    is_replaced = NAMES[name]
    assert not is_replaced(module)
    first, second = all_replaced(module), all_replaced(module)
    order = [first, second] if first_ends_first else [second, first]
    order[0].__exit__(None, None, None)
    assert is_replaced(module)
    order[1].__exit__(None, None, None)
    assert not is_replaced(module)


def test_a_name_that_the_model_sets_itself_stays() -> None:
    namespace: dict[str, object] = {"limit": 1}
    with standing_for([(namespace, "limit", 2), (namespace, "made", 3)]):
        assert namespace == {"limit": 2, "made": 3}
        assert (original(namespace, "limit"), original(namespace, "made"), original(namespace, "other")) == (1, None, None)
        namespace["limit"] = 5
        assert original(namespace, "limit") == 5
    assert namespace == {"limit": 5}


def test_a_name_keeps_the_first_value_until_its_last_user_ends() -> None:
    namespace: dict[str, object] = {"limit": 1}
    first, second = standing_for([(namespace, "limit", 2)]), standing_for([(namespace, "limit", 3)])
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert namespace == {"limit": 2}
    second.__exit__(None, None, None)
    assert namespace == {"limit": 1}


def test_names_are_put_back_after_an_exception() -> None:
    namespace: dict[str, object] = {"limit": 1}
    with pytest.raises(KeyboardInterrupt), standing_for([(namespace, "limit", 2)]):
        raise KeyboardInterrupt
    assert namespace == {"limit": 1}
