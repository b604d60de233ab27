"""Names in a model's modules that mean the same for symbolic sizes as for numbers: `isinstance`, and what was imported from torch."""

from __future__ import annotations

import builtins
import queue
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxplain

Load = Callable[..., ModuleType]

SOURCE = """
import numbers
from math import sqrt

import torch
from torch import cov, linspace
from torch.nn.functional import avg_pool2d, one_hot


def pair(n):
    return (n, n) if isinstance(n, (tuple, int)) else n


class Net(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return {}


def function(x):
    n = x.shape[0]
    return {}


class Within(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


net, method, held = Net(), Net().forward, Within(function)
"""

BODIES = {
    "an int": "x * 2 if isinstance(n, int) else x * 3",
    "no int": "x * 2 if isinstance(n / 2, int) else x * 3",
    "a float": "x * 2 if isinstance(n / 2, float) else x * 3",
    "a number": "x * 2 if isinstance(n, numbers.Integral) else x * 3",
    "the class int": "x * 2 if type(n) is int and type(n / 2) is float and type(n > 2) is bool else x * 3",
    "the class beside others": "x * 2 if type(n) in (str, int) and type(x) is torch.Tensor and isinstance(type(n), type) else x * 3",
    "the class of a quotient": "x * (n // 2) if type(n // 2) is int and int(n // 2) == n // 2 else x * 3",
    "a new class": "x * type('Two', (), {'size': n})().size",
    "a helper": "x.new_zeros(pair(n)) + x.sum()",
    "a union": "x * 2 if isinstance(n, int | None) and not isinstance(x, int) else x * 3",
    "a branch": "torch.cond(x.sum() > 0, lambda y: y * 2 if isinstance(y.shape[0], int) else y * 3, lambda y: y - 1, (x,))",
    "imported from torch": "cov(x.T) * linspace(0, 1, n).sum() + sqrt(n)",
    "imported from torch.nn.functional": "one_hot(x.argmax(0), n), avg_pool2d(x[None], (n, x.shape[1]))",
}


@pytest.mark.parametrize("name", ["net", "function", "method", "held"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.falls_back
def test_a_name_means_the_same(body: str, name: str, load: Load) -> None:
    module = load(SOURCE.format(BODIES[body], BODIES[body]))
    before = dict(vars(module))
    model: Any = getattr(module, name)
    program = onnxplain.export(model, (torch.rand(5, 4),), dynamic_shapes=({0: Dim("n", min=2, max=99)},))
    assert vars(module) == before
    assert program.diagnostics.findings == ()
    for size in (5, 7, 3):
        x = torch.rand(size, 4)
        expected = model(x)
        for got, wanted in zip(program(x), expected if isinstance(expected, tuple) else (expected,), strict=True):
            torch.testing.assert_close(got, wanted)


def test_the_class_of_a_tensor(load: Load) -> None:
    body = """
        import torch


        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.listed = torch.nn.Parameter(torch.ones(3)), [torch.ones(3)]
                self.register_buffer("state", torch.ones(3))

            def forward(self, x):
                tensors = [type(each) for each in (x, x + 1, self.weight, self.state, self.listed[0])]
                same = tensors == [torch.Tensor, torch.Tensor, torch.nn.Parameter, torch.Tensor, torch.Tensor]
                return x * self.weight * (2 if same and type(self) is Net else 3)
    """
    program = onnxplain.export(load(body).Net(), (x := torch.rand(3),))
    torch.testing.assert_close(program(x)[0], x * 2)


OTHERS = """
    import torch


    def helper():
        class Meta(type):
            pass

        made = Meta("Made", (int,), {})
        return torch.zeros(2, dtype=int).dtype, type(3) is int, type(made), type.__name__, made(3) + 1, isinstance(True, int)


    def calls():
        classes = [isinstance(each, type) for each in (str, 3)]
        return type(3), classes, list(map(int, "12")), isinstance(2.5, (int, float)), type(torch.ones(2))


    class Net(torch.nn.Module):
        def forward(self, x):
            n = x.shape[0]
            ask()
            return x * BODY if type(n) is int and isinstance(n, int) else x * 3
"""


@pytest.mark.parametrize("body", ["int(n / 2)", "n"])
@pytest.mark.parametrize("name", ["helper", "calls"])
@pytest.mark.falls_back
def test_another_thread_gets_what_python_says(name: str, body: str, load: Load) -> None:
    """The code of a model's file, and what it passes on, is the same for others while the model is exported."""
    source = OTHERS.replace("BODY", body)
    module = load(source if name == "helper" else source[: source.index("    def helper")] + source[source.index("    def calls") :])
    # NOTE: an export puts lists that the model changes back.
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        thread = threading.Thread(target=lambda: found.put(getattr(module, name)()))
        thread.start()
        thread.join()

    before = getattr(module, name)()
    module.ask = ask
    program = onnxplain.export(module.Net(), (torch.rand(5, 4),), dynamic_shapes=({0: Dim("n", min=2, max=99)},))
    assert not found.empty()
    while not found.empty():
        assert list(map(str, found.get())) == list(map(str, before))
    module.ask = lambda: None
    sizes = (5, 7, 3) if program.diagnostics.findings == () else (5,)
    for size in sizes:
        x = torch.rand(size, 4)
        torch.testing.assert_close(program(x)[0], module.Net()(x))


def test_a_module_keeps_its_own_functions(load: Load) -> None:
    """What a module calls `isinstance` or `cov` need not be what Python and torch call so."""
    source = SOURCE.format("x * cov(x) if isinstance(n) else x", "x")
    module = load(source + "\n\ndef isinstance(n):\n    return n > 2\n\n\ndef cov(x):\n    return 7\n")
    program = onnxplain.export(module.net, (torch.rand(5, 4),), dynamic_shapes=({0: Dim("n", min=3, max=99)},))
    x = torch.rand(7, 4)
    torch.testing.assert_close(program(x)[0], x * 7)
    assert module.isinstance(3) is True


def test_names_are_put_back_after_a_failure(load: Load) -> None:
    module = load(SOURCE.format("cov(x).tolist()[0][0] if isinstance(x.sum().item(), int) else {}[n]", "x"))
    before = dict(vars(module))
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(module.net, (torch.rand(5, 4),), dynamic_shapes=({0: "n"},))
    assert vars(module) == before
    assert sys.modules["builtins"].isinstance is builtins.isinstance
