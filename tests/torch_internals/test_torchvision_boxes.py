"""`batched_nms` of torchvision: exported for any number of boxes, whichever way it goes for the example's."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest
import torch

import onnxplain


def _nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    kept: list[int] = []
    for place in scores.argsort(descending=True, stable=True).tolist():
        box = boxes[place]
        others = boxes[kept]
        common = (torch.minimum(box[2:], others[:, 2:]) - torch.maximum(box[:2], others[:, :2])).clamp(min=0).prod(-1)
        areas = (others[:, 2:] - others[:, :2]).prod(-1) + (box[2:] - box[:2]).prod()
        if not (common > iou_threshold * (areas - common)).any():
            kept.append(place)
    return torch.tensor(kept, dtype=torch.int64)


def batched_nms(boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """As torchvision's function: one class after the other for many boxes, and all at once for few."""
    if boxes.numel() > 40:
        kept = [(idxs == each).nonzero()[:, 0][_nms(boxes[idxs == each], scores[idxs == each], iou_threshold)] for each in idxs.unique()]
        places = torch.cat(kept)
        return places[scores[places].argsort(descending=True, stable=True)]
    return torch.ops.torchvision.nms(boxes + (idxs.to(boxes) * (boxes.max() + 1))[:, None], scores, iou_threshold)


@pytest.fixture
def boxes_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A stand-in for `torchvision.ops.boxes` with its operator."""
    if "torchvision" in sys.modules:
        pytest.skip("torchvision is loaded, which has these operators")
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", _nms, "CPU")

    def fake(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
        return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)

    torch.library.register_fake("torchvision::nms", fake, lib=library)
    module = types.ModuleType("torchvision.ops.boxes")
    module.batched_nms = batched_nms  # type: ignore[attr-defined]  # a module takes any attribute
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module
    library._destroy()


class Detector(torch.nn.Module):
    def __init__(self, boxes: types.ModuleType) -> None:
        super().__init__()
        self.boxes = boxes

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        likely = scores > 0.2
        boxes, scores, classes = boxes[likely], scores[likely], classes[likely]
        return boxes[self.boxes.batched_nms(boxes, scores, classes, 0.3)]


def _inputs(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    corners = torch.rand(count, 2) * 8
    return torch.cat([corners, corners + 1 + torch.rand(count, 2) * 4], 1), torch.rand(count), torch.arange(count) % 3


def test_any_number_of_boxes(boxes_module: types.ModuleType) -> None:
    torch.manual_seed(0)
    model = Detector(boxes_module)
    boxes = torch.export.Dim("boxes")
    program = onnxplain.export(model, _inputs(12), dynamic_shapes=({0: boxes}, {0: boxes}, {0: boxes}))
    for count in (12, 5, 60):
        given = _inputs(count)
        torch.testing.assert_close(program(*given)[0], model(*given))
