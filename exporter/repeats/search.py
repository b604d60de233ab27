"""Finds runs of equal blocks in the graph of a program."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from onnxplain.passes import Prepared
from onnxplain.registry import OnnxRegistry

from .keys import Keys
from .run import Run

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_FEWEST_BLOCKS = 6
"""Four blocks of a run are built, so that fewer than two would be copied."""
_FEWEST_COPIED = 16
"""Copies of fewer operators take longer to find than to translate."""
_PERIODS = 12
"""How many lengths of blocks are tried."""


def find(prepared: Prepared, registry: OnnxRegistry) -> tuple[Run, ...]:
    """The runs in the main graph of a program, in no certain order. They do not overlap.

    Args:
        prepared: The program, before or after the passes.
        registry: The translations of its operators. An operator for which the user registered one is in no run.
    """
    nodes = [node for node in prepared.graph_module.graph.nodes if node.op in ("call_function", "get_attr")]
    if len(nodes) < _FEWEST_BLOCKS + _FEWEST_COPIED:
        return ()
    targets: dict[int, int] = {}
    # NOTE: most graphs have no run, which their operators alone show.
    if _longest(np.array([targets.setdefault(id(node.target), len(targets)) for node in nodes], dtype=np.int64)) is None:
        return ()
    search = _Search(prepared, registry, nodes)
    runs = []
    while (found := search.next()) is not None:
        runs.append(found)
    return tuple(runs)


def _longest(keys: Numbers) -> tuple[int, int, int] | None:
    """The first node, the length of a block and the number of blocks of the run with the most copies; None if no run is worth it."""
    best: tuple[int, int, int] | None = None
    most = _FEWEST_COPIED - 1
    for period in _periods(keys):
        equal = np.concatenate([[False], keys[:-period] == keys[period:], [False]])
        (edges,) = np.nonzero(equal[1:] != equal[:-1])
        for start, end in edges.reshape(-1, 2).tolist():
            blocks = (end - start) // period + 1
            copies = (blocks - 4) * period
            if blocks >= _FEWEST_BLOCKS and copies > most:
                best, most = (start, period, blocks), copies
    return best


def _periods(keys: Numbers) -> list[int]:
    """The distances from a node to the next equal one that cover the most: an operator that each block has once covers the whole run."""
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    distances, counts = np.unique(np.diff(order)[same], return_counts=True)
    return [int(each) for each in distances[np.argsort(-distances * counts, kind="stable")][:_PERIODS]]


@dataclasses.dataclass
class _Search:
    """Looks for one run after the other.

    Args:
        prepared: The program.
        registry: The translations of its operators.
        nodes: The operators of its main graph.
    """

    prepared: Prepared
    registry: OnnxRegistry
    nodes: Sequence[torch.fx.Node]

    def __post_init__(self) -> None:
        keys = Keys(self.prepared, self.registry)
        graph = self.prepared.graph_module.graph
        # NOTE: what a graph is given has negative numbers, so that one array can hold all that a node reads.
        self._given = list(keys.given)
        place = dict.fromkeys(graph.nodes, len(self.nodes))
        place.update((node, index) for index, node in enumerate(self.nodes))
        place.update((node, index - len(self._given)) for index, node in enumerate(self._given))
        known: dict[object, int] = {}
        read: list[torch.fx.Node] = []
        ends: list[int] = [0]
        numbers: list[int] = []
        for node in self.nodes:
            key = keys.of(node, read)
            numbers.append(known.setdefault(key, len(known)))
            ends.append(len(read))
        read += graph.output_node().all_input_nodes
        self._keys = np.array(numbers, dtype=np.int64)
        self._read = np.fromiter(map(place.__getitem__, read), dtype=np.int64, count=len(read))
        self._ends = ends
        self._readers = np.repeat(np.arange(len(ends)), np.diff([*ends, len(read)]))
        self._own_key = np.array([known.setdefault(keys.given[node], len(known)) for node in self._given] or [0], dtype=np.int64)

    def next(self) -> Run | None:
        """The longest run among the operators that are in no run yet."""
        while (found := _longest(self._keys)) is not None:
            start, period, blocks = found
            first, last = self._chain(start, period, blocks)
            if last - first + 1 < _FEWEST_BLOCKS or (last - first - 3) * period < _FEWEST_COPIED:
                self._forget(start, start + period * blocks)
                continue
            rows = self._rows(start, period, blocks)[first : last + 1]
            run = Run(
                [self.nodes[start + period * each : start + period * (each + 1)] for each in range(first, last + 1)],
                [[self._given[each] for each in dict.fromkeys(row[self._is_own(rows)].tolist()) if each < 0] for row in rows],
            )
            self._forget(start + period * first, start + period * (last + 1))
            return run
        return None

    def _forget(self, start: int, end: int) -> None:
        """Makes nodes differ from all others."""
        self._keys[start:end] = np.arange(start, end) - 2 * len(self._keys)

    def _rows(self, start: int, period: int, blocks: int) -> Numbers:
        """What each block reads, in order."""
        return self._read[self._ends[start] : self._ends[start + period * blocks]].reshape(blocks, -1)

    @staticmethod
    def _is_own(rows: Numbers) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which reads are of weights and inputs that the block alone reads, in a run of blocks."""
        own: np.ndarray[Any, np.dtype[np.bool_]] = (rows[1] < 0) & (rows[1] != rows[2])
        return own

    def _chain(self, start: int, period: int, blocks: int) -> tuple[int, int]:
        """The places of the first and the last block of the longest run in which each block reads and is read as the one before it."""
        rows = self._rows(start, period, blocks)
        irregular = self._irregular(start, period, blocks)
        owners = self._owners(start, period, blocks)
        follows = self._follows(rows, start, period, owners)
        best = (0, 0)
        first = 0
        for last in range(1, blocks):
            # NOTE: what the first block of a run reads does not matter, nor who reads the last one.
            if last - first > 1 and (irregular[last - 1] or not follows[last - 1]):
                first = last - 1
            best = max(best, (first, last), key=lambda each: each[1] - each[0])
        return best

    def _irregular(self, start: int, period: int, blocks: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether others than a block itself and the next one read what it makes."""
        reader, made = (self._readers - start) // period, (self._read - start) // period
        outside = (made >= 0) & (made < blocks) & (reader != made) & (reader != made + 1)
        irregular = np.zeros(blocks, dtype=np.bool_)
        irregular[made[outside]] = True
        return irregular

    def _owners(self, start: int, period: int, blocks: int) -> Numbers:
        """For what the graph is given, the block that alone reads it; -1 if there is none."""
        is_given = self._read < 0
        given = self._read[is_given] + len(self._given)
        block = (self._readers[is_given] - start) // period
        block[(block < 0) | (block >= blocks)] = -1
        first, last = np.full(len(self._own_key), blocks), np.full(len(self._own_key), -1)
        np.minimum.at(first, given, block)
        np.maximum.at(last, given, block)
        return np.where(first == last, first, -1)

    def _follows(self, rows: Numbers, start: int, period: int, owners: Numbers) -> list[bool]:
        """Whether each block but the first reads as the block before it does, each from its own place."""
        before, after, index = rows[:-1], rows[1:], np.arange(len(rows) - 1)[:, None]
        same = before == after
        # NOTE: a node that reads the one before it reads at most a block back.
        moved = (after - before == period) & (before >= start + period * (index - 1))
        own = (before < 0) & (after < 0) & ~same
        old, new = np.where(own, before + len(self._given), -1), np.where(own, after + len(self._given), -1)
        alone = (owners[old] == index) & (owners[new] == index + 1) & (self._own_key[old] == self._own_key[new])
        regular = (same | np.where(own, alone, moved)).all(axis=1)
        return [
            fine and _pattern(one) == _pattern(other) for fine, one, other in zip(regular.tolist(), old.tolist(), new.tolist(), strict=True)
        ]


def _pattern(numbers: Iterable[int]) -> list[int]:
    """Which of `numbers` are equal."""
    seen: dict[int, int] = collections.defaultdict(lambda: len(seen))
    return [seen[each] for each in numbers]
