"""`torchvision.ops.batched_nms`, which chooses between two ways by the number of boxes: captured in the way that takes any number.

For many boxes on a CPU, it goes through the classes one by one. Under torch.jit.trace it never does, but torch.export is no trace to it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import shape_env
from .patching import Slot, all_wrapped

shape_env.leave_out(__file__)


def at_once() -> contextlib.AbstractContextManager[None]:
    """While it is open, the function treats all classes at once, if torchvision is loaded."""
    # NOTE: read in torchvision 0.29, ops/boxes.py; its models call the function as an attribute of that module.
    loaded = [sys.modules[name] for name in ("torchvision.ops.boxes", "torchvision.ops") if name in sys.modules]
    return all_wrapped((Slot(module, "batched_nms"), _batched_nms) for module in loaded if hasattr(module, "batched_nms"))


def _batched_nms(original: Callable[..., Any], boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Any:
    if isinstance(boxes.shape[0], int):
        return original(boxes, scores, idxs, iou_threshold)
    # NOTE: boxes of different classes do not overlap if those of one class lie behind all those of the classes before.
    most = torch.cat([boxes.reshape(-1), boxes.new_zeros(1)]).max()
    return torch.ops.torchvision.nms(boxes + (idxs.to(boxes) * (most + 1))[:, None], scores, iou_threshold)
