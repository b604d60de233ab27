"""The loss of connectionist temporal classification, for which torch has no fake kernel: made of other operators, with a loop over time.

The recursion of Graves et al., "Connectionist Temporal Classification", ICML 2006, section 4.1, in logarithms.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from . import patching, shape_env
from .patching import Slot, wrapped

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)

_MEAN, _SUM = 1, 2
"""The numbers by which torch.ctc_loss knows its reductions; 0 is none."""


@contextlib.contextmanager
def made_of_others() -> Iterator[None]:
    """While it is open, torch.ctc_loss is made of other operators."""
    with wrapped(Slot(torch, "ctc_loss"), _loss):
        yield


def _loss(
    original: Callable[..., Any],
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = _MEAN,
    zero_infinity: bool = False,
) -> Tensor:
    """The loss of log_probs (T, N, C) or (T, C) for targets (N, S) or (sum of target_lengths) of integers."""
    del original
    single = log_probs.ndim == 2
    if single:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    # NOTE: on a GPU, PyTorch takes targets and lengths on the CPU as well.
    device = log_probs.device
    targets = targets.to(device)
    frames, length = (_lengths(each).to(device) for each in (input_lengths, target_lengths))
    if targets.ndim == 1:
        starts, places = length.cumsum(0) - length, torch.arange(targets.shape[0], device=device)
        targets = targets[(starts[:, None] + places).clamp(max=targets.shape[0] - 1)]
    scores = _scores(log_probs, targets, frames, length, blank)
    last = scores.gather(1, 2 * length[:, None]).squeeze(1)
    before = scores.gather(1, (2 * length[:, None] - 1).clamp(min=0)).squeeze(1)
    loss = -_added(torch.stack([last, torch.where(length > 0, before, -math.inf)]))
    loss = torch.where(frames > 0, loss, torch.where(length > 0, math.inf, 0.0).to(loss.dtype))
    if zero_infinity:
        loss = torch.where(loss == math.inf, 0.0, loss)
    if reduction == _MEAN:
        return (loss / length.clamp(min=1)).mean()
    return loss.sum() if reduction == _SUM else loss.squeeze(0) if single else loss


def _lengths(values: Tensor | Sequence[int]) -> Tensor:
    tensor = values if isinstance(values, Tensor) else torch.tensor(list(values))
    return tensor.to(torch.int64).reshape(-1)


def _scores(log_probs: Tensor, targets: Tensor, frames: Tensor, length: Tensor, blank: int) -> Tensor:
    """The logarithms of the probabilities of all beginnings of the targets with blanks between them, (N, 2 * S + 1), at the last frame."""
    # NOTE: what fills up the targets may be any number.
    targets = targets.to(torch.int64).clamp(0, log_probs.shape[2] - 1)
    blanks = torch.full_like(targets[:, :1], blank) if targets.shape[1] else length[:, None] * 0 + blank
    labels = torch.cat([torch.stack([blanks.expand_as(targets), targets], 2).flatten(1), blanks], 1)
    emitted = log_probs.gather(2, labels.expand(log_probs.shape[0], -1, -1))
    nothing = torch.full_like(emitted[0], -math.inf)
    place = torch.arange(labels.shape[1], device=labels.device)
    start = torch.where((place < 2) & (place <= 2 * length[:, None]), emitted[0], nothing)
    # NOTE: a label may follow another label without a blank between them only if the two differ.
    skips = (place > 1) & (labels != labels.roll(2, 1))

    def step(frame: Any, scores: Tensor) -> tuple[Any, Tensor]:
        one = torch.where(place > 0, scores.roll(1, 1), nothing)
        two = torch.where(skips, scores.roll(2, 1), nothing)
        new = _added(torch.stack([scores, one, two])) + emitted.select(0, frame)
        return frame + 1, torch.where(frame < frames[:, None], new, scores)

    count = log_probs.shape[0]
    result: Tensor = torch.while_loop(lambda frame, _: frame < count, step, (1, start))[1]
    return result


def _added(logarithms: Tensor) -> Tensor:
    """The logarithm of the sum of numbers along dim 0. That of zeros is minus infinity."""
    largest = logarithms.amax(0)
    largest = torch.where(largest == -math.inf, 0.0, largest)
    return (logarithms - largest).exp().sum(0).log() + largest
