"""A run of equal blocks of operators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch


@dataclasses.dataclass(frozen=True)
class Run:
    """Blocks of operators, one after the other, that compute the same from other weights.

    A block reads itself, the block before it, what comes before the run, and the weights and inputs that it alone reads.

    Attributes:
        blocks: The operators of each block, in order.
        given: The weights and inputs of the model that each block alone reads, in the order in which it reads them.
    """

    blocks: Sequence[Sequence[torch.fx.Node]]
    given: Sequence[Sequence[torch.fx.Node]]

    @property
    def built(self) -> tuple[int, ...]:
        """The places of the blocks that are built: one after which equal blocks follow, two to compare, and the last one."""
        return 0, 1, 2, len(self.blocks) - 1

    @property
    def copied(self) -> range:
        """The places of the blocks that are copies of the third one."""
        return range(3, len(self.blocks) - 1)

    def left_out(self) -> Mapping[torch.fx.Node, torch.fx.Node]:
        """The operators that are not built, each with the one that it equals."""
        pattern = self.blocks[2]
        return {node: same for place in self.copied for node, same in zip(self.blocks[place], pattern, strict=True)}
