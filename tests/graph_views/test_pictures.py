"""Pictures of whole models: every module with its operators and parameters, and what flows between them."""

from __future__ import annotations

import html.parser
import pathlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import onnx_ir as ir
import pytest
import torch
from click.testing import CliRunner
from function_models import Stack, UNet
from torch import nn

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import markdown
from onnxplain.diagnostics.html import to_html
from onnxplain.graph_views import Box, chart, of_model, page, svg

SVG = "{http://www.w3.org/2000/svg}"


def box_of(model: nn.Module, x: torch.Tensor, functions: str = "modules") -> Box:
    program = onnxplain.export(model.eval(), (x,), dynamic_shapes=[{0: "batch"}], functions=functions)  # type: ignore[arg-type]
    return of_model("net", program.model, by_module=True)


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]


def test_boxes_have_the_operators_and_parameters_of_modules() -> None:
    box = box_of(Stack(2), torch.randn(2, 4))
    assert [(each.name, each.kind) for each in box.boxes] == [("layers.0", "Layer"), ("layers.1", "Layer"), ("layers.0_1", "Layer")]
    for layer in box.boxes:
        assert layer.operators == {"Gemm": 1, "Relu": 1, "Add": 1, "LayerNormalization": 1}
        assert (layer.parameters, layer.size) == (28, 112)
    # NOTE: the first layer runs twice, with the same weights.
    assert (box.parameters, box.size) == (56, 224)
    assert [(each.source, each.target, each.label) for each in box.edges] == [(index, index + 1, "[batch, 4]") for index in (-1, 0, 1, 2)]


def test_metadata_tell_the_modules_of_a_model_without_functions() -> None:
    box = box_of(Stack(2), torch.randn(2, 4), "none")
    (layers,) = box.boxes
    assert [(each.name, each.kind) for each in layers.boxes] == [("0", "Layer"), ("1", "Layer")]
    assert [each.name for each in layers.boxes[1].boxes] == ["linear", "Relu, Add", "norm"]
    assert box.parameters == 56


def test_a_skip_connection_is_an_edge_past_other_boxes() -> None:
    box = box_of(UNet(), torch.randn(2, 2, 8, 8))
    names = [each.name for each in box.boxes]
    concat = next(index for index, name in enumerate(names) if "Concat" in name)
    sources = {names[each.source] for each in box.edges if each.target == concat}
    assert "up.0" in sources
    assert len(sources) == 2
    assert ET.fromstring(svg(box)).tag == f"{SVG}svg"


def test_a_picture_has_as_many_levels_as_asked() -> None:
    box = box_of(Stack(2), torch.randn(2, 4))
    assert not any(text.startswith("linear") for text in texts(svg(box, 1)))
    assert sum(text == "linear: Linear" for text in texts(svg(box, 2))) == 3
    assert texts(svg(box)) == texts(svg(box, 2))


def test_a_large_model_is_drawn_with_the_levels_that_are_legible() -> None:
    blocks = [nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(8))) for _ in range(9)]
    box = box_of(nn.Sequential(*blocks), torch.randn(2, 2))
    assert [len(texts(svg(box, levels))) for levels in (1, 2)] == [30, 255]
    assert svg(box) == svg(box, 1)


def test_a_picture_and_a_chart(golden: Callable[[str, str], None]) -> None:
    box = box_of(UNet(), torch.randn(2, 2, 8, 8))
    golden("unet.svg", svg(box).replace("><", ">\n<"))
    golden("unet.mmd", chart(box, 8000))


class Skips(nn.Module):
    """Values that pass other layers: from the inputs, to the outputs, and several at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third, self.fourth = (nn.Linear(4, 4) for _ in range(4))
        self.joint = nn.Bilinear(4, 4, 4)
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = self.first(x)
        second = self.second(first)
        third = self.third(second)
        return second, self.layers(self.joint(self.joint(self.fourth(third), first), self.joint(second, x)))


def test_lines_pass_boxes_beside_each_other(golden: Callable[[str, str], None]) -> None:
    golden("skips.html", page(box_of(Skips(), torch.randn(2, 4))).replace("><", ">\n<"))


def test_findings_mark_the_boxes_around_them() -> None:
    program = onnxplain.export(Stack(2).eval(), (torch.randn(2, 4),), functions="modules")
    box = of_model("net", program.model, by_module=True, found=["layers.1.norm", "layers.1", "lay"])
    assert (box.findings, [each.findings for each in box.boxes]) == (3, [0, 2, 0])
    assert [each.findings for each in box.boxes[1].boxes if each.name == "norm"] == [1]
    assert svg(box, 2).count('class="found"') == 3
    assert chart(box, 8000).count(":::found") == 1
    assert chart(box, 8000).count(" found\n") == 2


@pytest.mark.parametrize(("size", "told"), [(999, "999 bytes"), (8_000_000, "8 MB"), (3_000_000_000_000, "3e+03 GB")])
def test_sizes_have_units(size: int, told: str) -> None:
    inner = Box("layer", "Layer", {"Gemm": 1}, 2, size)
    assert any(f"({told})" in text for text in texts(svg(Box("net", "Net", {"Gemm": 1}, 2, size, (inner,)))))


def test_a_model_without_operators_is_a_box() -> None:
    box = of_model("net", ir.Model(ir.Graph([], [], nodes=[], opset_imports={"": 20}), ir_version=10), by_module=True)
    assert (box.boxes, box.operators) == ((), {})
    assert ET.fromstring(svg(box)).tag == f"{SVG}svg"
    assert chart(box, 8000).count("0 operators") == 1


def test_a_chart_fits() -> None:
    box = box_of(Stack(3), torch.randn(2, 4))
    whole = chart(box, 100_000)
    assert 0 < len(chart(box, len(whole) - 1)) < len(whole)
    assert chart(box, 100) == ""


@pytest.mark.parametrize(("report", "shown"), [("net.md", "```mermaid\nflowchart"), ("net.html", "svg xmlns=")])
def test_a_report_shows_the_model(tmp_path: pathlib.Path, report: str, shown: str) -> None:
    onnxplain.export(Stack(1).eval(), (torch.randn(2, 4),), tmp_path / "net.onnx", report=tmp_path / report)
    text = (tmp_path / report).read_text()
    assert shown in text
    assert "layers" in text


def test_a_report_leaves_out_a_picture_that_is_too_large(tmp_path: pathlib.Path) -> None:
    layers = nn.Sequential(*(nn.Linear(1, 1) for _ in range(700)))
    log = onnxplain.export(layers.eval(), (torch.randn(2, 1),), tmp_path / "net.onnx").diagnostics
    for text in (markdown.to_markdown(log), to_html([log])):
        assert "flowchart" not in text
        assert "svg xmlns=" not in text


def test_names_are_escaped() -> None:
    odd = '<script>&"\u202e'
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([odd]))
    node = ir.Node("", "Relu", [value], name=odd)
    node.metadata_props["onnxplain.module"] = f"{odd}.b"
    box = of_model(odd, ir.Model(ir.Graph([value], node.outputs, nodes=[node], opset_imports={"": 20}), ir_version=10), by_module=True)
    for picture in (svg(box), page(box)):
        assert "<script" not in picture
        assert "\u202e" not in picture
    assert any(text.startswith("<script>") for text in texts(svg(box)))
    assert not set("<>&\u202e") & set(chart(box, 8000).replace("<br>", "").replace("-->", ""))
    html.parser.HTMLParser().feed(page(box))


@pytest.mark.parametrize("name", ["net.svg", "net.html", None])
@pytest.mark.parametrize("by", ["module", "operator"])
def test_the_command_draws_a_saved_model(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str | None, by: str) -> None:
    monkeypatch.chdir(tmp_path)
    onnxplain.export(Stack(1), (torch.randn(2, 4),), "net.onnx", functions="modules", external_data=True)
    result = CliRunner().invoke(main, ["show", "net.onnx", "--by", by, *(["-o", name] if name else [])])
    assert result.exit_code == 0, result.output
    text = pathlib.Path(name or "net.html").read_text()
    assert ("layers.0: Layer" in text) == (by == "module")
    assert "28 parameters (112 bytes)" in text


@pytest.mark.parametrize("arguments", [["lacking.onnx"], ["odd.onnx"], ["odd.onnx", "-o", "odd.png"], ["odd.svg", "-o", "odd.svg"]])
def test_what_cannot_be_drawn_is_a_wrong_usage(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("odd.onnx").write_bytes(b"\xff\xff no model")
    result = CliRunner().invoke(main, ["show", *arguments])
    assert result.exit_code == 2
    assert re.search("expected|cannot be read|no ONNX model", result.output)
