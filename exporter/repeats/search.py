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
    targets: dict[object, int] = {}
    # NOTE: most graphs have no run, which their operators alone show.
    if _longest(np.array([targets.setdefault(node.target, len(targets)) for node in nodes], dtype=np.int64)) is None:
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
        place = {node: index for index, node in enumerate(self.nodes)}
        (self._output,) = (node for node in self.prepared.graph_module.graph.nodes if node.op == "output")
        # NOTE: what a graph is given has negative numbers, so that one array can hold all that a node reads.
        self._given = list(keys.given)
        place |= {node: index - len(self._given) for index, node in enumerate(self._given)}
        known: dict[object, int] = {}
        read: list[list[int]] = []
        numbers: list[int] = []
        for node in self.nodes:
            key, arguments = keys.of(node)
            numbers.append(known.setdefault(key, len(known)))
            read.append([place.get(each, len(self.nodes)) for each in arguments])
        self._keys = np.array(numbers, dtype=np.int64)
        self._read = read
        read_by_output = [place.get(each, len(self.nodes)) for each in self._output.all_input_nodes]
        readers = [index for index, each in enumerate(read) for _ in each] + [len(self.nodes)] * len(read_by_output)
        self._edges = np.array([readers, [each for row in read for each in row] + read_by_output], dtype=np.int64)
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
        return np.array(
            [
                [each for row in self._read[start + period * index : start + period * (index + 1)] for each in row]
                for index in range(blocks)
            ],
            dtype=np.int64,
        )

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
        follows = [self._follows(rows[index], rows[index + 1], start, period, index, owners) for index in range(blocks - 1)]
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
        reader, made = (self._edges - start) // period
        outside = (made >= 0) & (made < blocks) & (reader != made) & (reader != made + 1)
        irregular = np.zeros(blocks, dtype=np.bool_)
        irregular[made[outside]] = True
        return irregular

    def _owners(self, start: int, period: int, blocks: int) -> Numbers:
        """For what the graph is given, the block that alone reads it; -1 if there is none."""
        owners = np.full(len(self._given), -2, dtype=np.int64)
        reader, read = self._edges
        for block, given in zip(((reader - start) // period).tolist(), (read + len(self._given)).tolist(), strict=True):
            if 0 <= given < len(self._given):
                inside = 0 <= block < blocks
                owners[given] = block if inside and owners[given] in (-2, block) else -1
        return owners

    def _follows(self, before: Numbers, after: Numbers, start: int, period: int, index: int, owners: Numbers) -> bool:
        """Whether a block reads as the block before it does, each from its own place."""
        same = before == after
        # NOTE: a node that reads the one before it reads at most a block back.
        moved = (after - before == period) & (before >= start + period * (index - 1))
        own = (before < 0) & (after < 0) & ~same
        if not (same | moved | own).all():
            return False
        old, new = before[own] + len(self._given), after[own] + len(self._given)
        if (owners[old] != index).any() or (owners[new] != index + 1).any() or (self._own_key[old] != self._own_key[new]).any():
            return False
        return _pattern(old.tolist()) == _pattern(new.tolist())


def _pattern(numbers: Iterable[int]) -> list[int]:
    """Which of `numbers` are equal."""
    seen: dict[int, int] = collections.defaultdict(lambda: len(seen))
    return [seen[each] for each in numbers]
