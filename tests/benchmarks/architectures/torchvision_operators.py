"""Imports torchvision also where its operators do not load: its wheels need CUDA, and the CPU build of torch has none."""

from __future__ import annotations

import importlib
import importlib.util

import torch

_library: torch.library.Library | None = None


def import_torchvision() -> None:
    """Imports torchvision, if it is installed. If its operators do not load, it gets a slow `nms`; the others have Python versions."""
    global _library
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        _library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _library.impl("nms", _non_maximum_suppression, "CPU")
        importlib.import_module("torchvision")
        importlib.import_module("torchvision.ops.boxes")._assert_has_ops = lambda: None


def _non_maximum_suppression(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept: list[torch.Tensor] = []
    rest = scores.argsort(descending=True, stable=True)
    while len(rest):
        best, rest = rest[0], rest[1:]
        kept.append(best)
        common = (torch.minimum(boxes[best, 2:], boxes[rest, 2:]) - torch.maximum(boxes[best, :2], boxes[rest, :2])).clamp(min=0).prod(-1)
        rest = rest[common <= threshold * (areas[best] + areas[rest] - common)]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)
