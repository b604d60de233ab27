"""The module calls that made the blocks of runs: whether functions can be made of them before the blocks are copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from onnxplain.passes import Prepared
from onnxplain.source.module_calls import ModuleCall, module_calls

from .run import Run

Stack = tuple[ModuleCall, ...]


def enclosing(prepared: Prepared, runs: Sequence[Run]) -> frozenset[str] | None:
    """The keys of the module calls around the blocks.

    Args:
        prepared: The program.
        runs: Its runs.

    Returns:
        The keys; None if the calls within blocks are not equal, or if operators outside of a block are in the same call as one in it.
    """
    around: set[str] = set()
    owners: dict[str, tuple[Run, int]] = {}
    for run in runs:
        rows = [list(_stacks(block)) for block in run.blocks]
        keys = [tuple([call.key for call in stack]) for row in rows for stack in _distinct(row)]
        depth = len(_common(min(keys), max(keys)))
        around.update(min(keys)[:depth])
        for index, row in enumerate(rows):
            owned = {call.key for stack in _distinct(row) for call in stack[depth:]}
            if not owners.keys().isdisjoint(owned) or not _are_equal(rows[2], row, depth):
                return None
            owners.update(dict.fromkeys(owned, (run, index)))
    inside = {node for run in runs for block in run.blocks for node in block}
    outside = (node for node in prepared.graph_module.graph.nodes if node.op == "call_function" and node not in inside)
    if any(call.key in owners for node in outside for call in module_calls(node)):
        return None
    return frozenset(around)


def _stacks(nodes: Sequence[torch.fx.Node]) -> Iterator[Stack]:
    """The calls in which each node was made."""
    before: object = None
    found: Stack = ()
    for node in nodes:
        # NOTE: most nodes of a module follow one another.
        entries = node.meta.get("nn_module_stack")
        if entries != before:
            before, found = entries, module_calls(node)
        yield found


def _distinct(stacks: Iterable[Stack]) -> Iterable[Stack]:
    """The stacks, each object once. Their hashes take more time: those of all strings in them."""
    return {id(stack): stack for stack in stacks}.values()


def _common(one: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    """What two sequences begin with. Of the first and the last in order it is what all begin with."""
    length = next((index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))
    return one[:length]


def _are_equal(pattern: Sequence[Stack], row: Sequence[Stack], depth: int) -> bool:
    """Whether the operators of two blocks are in calls of equal classes, and together in one call in both."""
    keys: dict[str, str] = {}
    for one, other in {(id(one), id(other)): (one, other) for one, other in zip(pattern, row, strict=True)}.values():
        if [call.class_name for call in one[depth:]] != [call.class_name for call in other[depth:]]:
            return False
        if any(keys.setdefault(call.key, same.key) != same.key for call, same in zip(one[depth:], other[depth:], strict=True)):
            return False
    return len(set(keys.values())) == len(keys)
