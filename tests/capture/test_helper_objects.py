"""Plain objects that a module holds: a capture leaves no tensors without data in them, and nothing else changes them."""

from __future__ import annotations

import queue
from collections.abc import Callable

import pytest
import torch

import onnxplain


class Table:
    """Caches tensors, each in another way."""

    def __init__(self) -> None:
        self.rows: torch.Tensor | None = None
        self.count = 0
        self.both: tuple[torch.Tensor, ...] = ()
        self.by_size: dict[int, torch.Tensor] = {}
        self.waiting: queue.Queue[int] = queue.Queue()

    def attribute(self, x: torch.Tensor) -> torch.Tensor:
        if self.rows is None or self.count < 3:
            self.rows, self.count = torch.arange(3.0), 3
        return x + self.rows

    def pair(self, x: torch.Tensor) -> torch.Tensor:
        self.both = self.both or (torch.arange(3.0), torch.ones(3))
        return x + self.both[0] + self.both[1]

    def entry(self, x: torch.Tensor) -> torch.Tensor:
        if 3 not in self.by_size:
            self.by_size[3] = torch.arange(3.0)
        return x + self.by_size[3]


class Uses(torch.nn.Module):
    def __init__(self, way: Callable[[Table, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.table, self.way = Table(), way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.way(self.table, x)


@pytest.mark.parametrize("way", [Table.attribute, Table.pair, Table.entry])
def test_a_cache_has_data_after_an_export(way: Callable[[Table, torch.Tensor], torch.Tensor]) -> None:
    model, x = Uses(way), torch.ones(3)
    program = onnxplain.export(model, (x,))
    assert type(model(x)) is torch.Tensor
    torch.testing.assert_close(program(x)[0], model(x))


def test_a_queue_keeps_count_of_what_it_holds() -> None:
    def put(table: Table, x: torch.Tensor) -> torch.Tensor:
        table.waiting.put(1)
        return x + 1

    class Holds(Uses):
        def __init__(self) -> None:
            super().__init__(put)
            self.waiting = self.table.waiting

    model = Holds()
    onnxplain.export(model, (torch.ones(3),))
    assert model.waiting.unfinished_tasks == model.waiting.qsize()


def test_an_object_that_computes_its_namespace() -> None:
    class Odd:
        @property
        def __dict__(self) -> dict[str, object]:  # type: ignore[override]  # what this is about
            raise RuntimeError("no namespace")

    class Holds(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.odd = Odd()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    x = torch.ones(3)
    torch.testing.assert_close(onnxplain.export(Holds(), (x,))(x)[0], x + 1)
