"""Operators without a translation: those that torch decomposes, and those that are written in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from parity import check

import onnxplain
from onnxplain.rules import CustomOperatorInlined


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    """A namespace for the operators of a test."""
    with torch.library._scoped_library("passes_tests", "FRAGMENT") as made:
        yield made


def test_an_operator_in_python_is_inlined_and_reported(library: torch.library.Library) -> None:
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake("passes_tests::twice", torch.empty_like, lib=library)
    x = torch.ones(3)
    program = onnxplain.export(Uses(), (x,))
    torch.testing.assert_close(program(x)[0], x * 2)
    (finding,) = [each for each in program.diagnostics.findings if isinstance(each.rule, CustomOperatorInlined)]
    assert finding.rule.operator == "passes_tests::twice"
    assert finding.location is not None
    assert finding.location.line == Uses.forward.__code__.co_firstlineno + 1
    assert finding.fixes


@pytest.mark.parametrize(
    "twice",
    [
        lambda x: torch.cat([row * 2 for row in x.split(1)]),
        lambda x: x * 2 * int(x.shape[0]) / int(x.shape[0]),
        lambda x: x * 2 if x.shape[0] > 2 else x + x,
        lambda x: x * 2 * len(x) / x.shape[0],
        lambda x: x * (2 + 0 * torch.rot90(x[None], x.shape[0]).sum()),
    ],
    ids=["parts", "number", "branch", "length", "argument"],
)
def test_an_operator_in_python_that_fixes_a_dynamic_size_is_refused(
    library: torch.library.Library, twice: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", twice, "CompositeExplicitAutograd")
    torch.library.register_fake("passes_tests::twice", torch.empty_like, lib=library)
    x = torch.ones(3)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Uses(), (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    (finding,) = failed.value.log.findings
    assert finding.rule.id == "OXP3001"
    assert finding.location is not None
    assert finding.location.line == Uses.forward.__code__.co_firstlineno + 1
    assert any("passes_tests::twice" in event.text for event in failed.value.log.events)
    torch.testing.assert_close(onnxplain.export(Uses(), (x,))(x)[0], x * 2)


class Uses(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.passes_tests.twice(x)  # type: ignore[no-any-return]


def test_an_operator_of_torch_is_decomposed_without_a_finding() -> None:
    program = onnxplain.export(Difference(), (torch.rand(4),))
    torch.testing.assert_close(program(torch.arange(4.0))[0], torch.ones(3))
    assert program.diagnostics.findings == ()


class Difference(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diff(x)


COMPOSITES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rms_norm": lambda x: torch.nn.functional.rms_norm(x, [4]),
    "cosine_similarity": lambda x: torch.cosine_similarity(x, x.flip(0), dim=1),
    "nanmean": lambda x: torch.where(x > 0.5, torch.nan, x).nanmean(1),
    "poisson_nll_loss": lambda x: torch.nn.functional.poisson_nll_loss(x, x.abs()),
    "margin_ranking_loss": lambda x: torch.nn.functional.margin_ranking_loss(x, x.flip(0), x.sign()),
    "diff": lambda x: x.diff(n=2, dim=1, prepend=x[:, :1]),
    "vander": lambda x: torch.vander(x[0], 3),
}


def test_every_copy_of_a_view() -> None:
    # NOTE: found by their names, so that one that torch adds is tested as well.
    functions: dict[str, Callable[[torch.Tensor], Any]] = {
        "alias_copy": torch.alias_copy,
        "as_strided_copy": lambda x: torch.as_strided_copy(x, (2, 3), (1, 2)),
        "detach_copy": torch.detach_copy,
        "diagonal_copy": torch.diagonal_copy,
        "expand_copy": lambda x: torch.expand_copy(x[:, None], (3, 2, 4)),
        "narrow_copy": lambda x: torch.narrow_copy(x, 1, 1, 2),
        "permute_copy": lambda x: torch.permute_copy(x, (1, 0)),
        "select_copy": lambda x: torch.select_copy(x, 1, -2),
        "slice_copy": lambda x: torch.slice_copy(x, 1, 0, 3, 2),
        "split_copy": lambda x: torch.split_copy(x, 3, 1),
        "split_with_sizes_copy": lambda x: torch.split_with_sizes_copy(x, [1, 3], 1),
        "squeeze_copy": lambda x: torch.squeeze_copy(x[:, None], 1),
        "t_copy": torch.t_copy,
        "transpose_copy": lambda x: torch.transpose_copy(x, 0, 1),
        "unbind_copy": torch.unbind_copy,
        "unfold_copy": lambda x: torch.unfold_copy(x, 1, 2, 2),
        "unsqueeze_copy": lambda x: torch.unsqueeze_copy(x, 0),
        "view_as_complex_copy": lambda x: torch.view_as_complex_copy(x.reshape(6, 2)).abs(),
        "view_as_real_copy": lambda x: torch.view_as_real_copy(torch.complex(x, x)),
        "view_copy": lambda x: torch.view_copy(x, (4, 3)),
    }
    of_other_layouts = {"ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "indices_copy", "row_indices_copy", "values_copy"}
    assert {name for name in dir(torch) if name.endswith("_copy") and name[0] != "_"} - of_other_layouts - {
        "index_copy"
    } == functions.keys()
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
    for function in functions.values():
        check(lambda x, function=function: function(x), onnxplain.export(lambda x, function=function: function(x), (x,)), (x,))


@pytest.mark.parametrize("name", COMPOSITES)
def test_operators_that_write_to_what_they_have_made(name: str) -> None:
    function, x = COMPOSITES[name], torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
    check(function, onnxplain.export(function, (x,)), (x,))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "targets", [[[0, 1, -1, 2], [3, -1, 0, 0], [-1, 0, 0, 0]], [[0, 1, 2, 3]] * 3, [2, 0, -1, 1]], ids=["short", "all", "one"]
)
def test_a_multilabel_margin_loss_ends_at_the_first_minus_1(targets: list[Any], reduction: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.multilabel_margin_loss(x, y, reduction=reduction)

    y = torch.tensor(targets)
    x = torch.randn(y.shape, generator=torch.Generator().manual_seed(5))
    check(function, onnxplain.export(function, (x, y)), (x, y))
    check(function, onnxplain.export(function, (x, y)), (x, y.flip(-1)))


fft = torch.fft
FOURIER: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fft": lambda x: fft.fft(x),
    "fft of fewer": lambda x: fft.fft(x, n=3, dim=0),
    "fft of more": lambda x: fft.fft(x, n=6),
    "fft of a batch": lambda x: fft.fft(x.view(2, 2, 5)),
    "fft with the default written": lambda x: fft.fft(x, norm="backward"),
    "fft of ints": lambda x: fft.fft((x * 4).long()),
    "ifft": lambda x: fft.ifft(x, norm="ortho"),
    "ifft of complex": lambda x: fft.ifft(fft.fft(x), norm="forward"),
    "rfft": lambda x: fft.rfft(x),
    "irfft": lambda x: fft.irfft(fft.rfft(x)),
    "irfft of a length": lambda x: fft.irfft(fft.rfft(x), n=5),
    "irfft of reals": lambda x: fft.irfft(x, norm="ortho"),
    "hfft": lambda x: fft.hfft(fft.ihfft(x), n=4),
    "hfft without a length": lambda x: fft.hfft(x, norm="forward"),
    "hfft2": lambda x: fft.hfft2(fft.fft(x), s=(3, 7), norm="ortho"),
    "hfftn": lambda x: fft.hfftn(x, s=(6,)),
    "ihfft2": lambda x: fft.ihfft2(x, norm="forward"),
    "ihfftn": lambda x: fft.ihfftn(x, s=(3, 6), norm="ortho"),
    "fft2": lambda x: fft.fft2(x, s=(3, -1)),
    "fft2 of a batch": lambda x: fft.fft2(x.view(2, 2, 5)),
    "irfft2": lambda x: fft.irfft2(fft.rfft2(x)),
    "irfftn of lengths": lambda x: fft.irfftn(fft.rfftn(x), s=(4, 5)),
    "irfftn of the last dims": lambda x: fft.irfftn(fft.rfftn(x, dim=(1,)), s=(3,)),
    "ifftn": lambda x: fft.ifftn(x, dim=(0,), norm="forward"),
}


@pytest.mark.parametrize("name", FOURIER)
def test_fourier_transforms(name: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = FOURIER[name](x)
        return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(4))
    check(function, onnxplain.export(function, (x,)), (x,))


@pytest.mark.parametrize("name", FOURIER)
def test_fourier_transforms_of_dynamic_dims(name: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = FOURIER[name](x)
        return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y

    x, shorter, longer = (torch.randn(sizes) for sizes in ((4, 5), (2, 3), (8, 9)))
    if "batch" in name:
        pytest.skip("its view has fixed sizes")
    program = onnxplain.export(function, (x,), dynamic_shapes=({0: "rows", 1: "columns"},))
    for each in (x, shorter, longer):
        check(function, program, (each,))


def test_a_fourier_transform_of_the_present_length_costs_nothing_more() -> None:
    x = torch.rand(4, 5)
    plain, given = (onnxplain.export(function, (x,)) for function in (lambda x: fft.irfft(x), lambda x: fft.irfft(x, n=8)))
    assert [node.op_type for node in given.model.graph] == [node.op_type for node in plain.model.graph]


@pytest.mark.parametrize(
    "operator",
    [
        lambda a: torch.linalg.inv(a),
        lambda a: torch.linalg.lu(a),
        lambda a: torch.linalg.qr(a),
        lambda a: torch.linalg.slogdet(a),
        lambda a: torch.linalg.matrix_exp(a),
        lambda a: torch.lu_unpack(*torch.linalg.lu_factor(a)),
        lambda a: torch.cholesky_inverse(a),
        lambda a: torch.nn.functional.adaptive_max_pool2d(a[None], 2, return_indices=True),
    ],
)
def test_tensors_that_a_decomposition_makes_are_on_the_device_of_its_input(operator: Callable[[torch.Tensor], object]) -> None:
    program = onnxplain.export(operator, (torch.empty(3, 3, device="meta"),))
    check(operator, program, (torch.tensor([[2.0, 1.0, 0.5], [3.0, 1.0, 1.0], [0.5, 2.0, 4.0]]),))


@pytest.mark.parametrize("options", [{"pin_memory": True}, {"device": "cpu"}], ids=str)
def test_a_constant_wherever_the_model_would_keep_it(options: dict[str, Any]) -> None:
    class Window(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.bartlett_window(4, **options)

    program = onnxplain.export(Window(), (torch.ones(4),))
    torch.testing.assert_close(program(torch.ones(4))[0], torch.bartlett_window(4))


@pytest.mark.parametrize("bias", [True, False])
def test_the_kernels_of_recurrent_cells_on_a_gpu(bias: bool) -> None:
    aten = torch.ops.aten

    class Cells(torch.nn.Module):
        """The operators that GRUCell and LSTMCell call on a GPU, for which PyTorch has no kernel on the CPU."""

        def __init__(self) -> None:
            super().__init__()
            self.gru, self.lstm = torch.nn.GRUCell(4, 3, bias=bias), torch.nn.LSTMCell(4, 3, bias=bias)

        def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
            gru, lstm = self.gru, self.lstm
            new, _ = aten._thnn_fused_gru_cell(x @ gru.weight_ih.mT, h @ gru.weight_hh.mT, h, gru.bias_ih, gru.bias_hh)
            gates = (x @ lstm.weight_ih.mT, h @ lstm.weight_hh.mT)
            shown, cell, _ = aten._thnn_fused_lstm_cell(*gates, h * 2, lstm.bias_ih, lstm.bias_hh)
            return new, shown, cell

    model = Cells()
    program = onnxplain.export(model, (torch.randn(2, 4), torch.randn(2, 3)), dynamic_shapes={"x": {0: "rows"}, "h": {0: "rows"}})
    check(lambda x, h: (model.gru(x, h), *model.lstm(x, (h, h * 2))), program, (torch.randn(5, 4), torch.randn(5, 3)))


def test_a_histogram_of_integers_is_that_of_floats() -> None:
    class Counts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.histc(x.float(), 7, -3, 12)

    # NOTE: PyTorch counts integers on GPUs only, so the program of one is made from that of floats.
    program = torch.export.export(Counts(), (torch.arange(20),), dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}})
    (node,) = [each for each in program.graph.nodes if each.target is torch.ops.aten.histc.default]
    node.args = (node.args[0].args[0], *node.args[1:])
    node.meta["val"] = node.meta["val"].long()
    check(lambda x: Counts()(x).long(), onnxplain.export(program), (torch.arange(-9, 30).repeat(2),))


def test_a_product_over_a_dim_that_is_1_in_the_example_alone() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.tensordot(x.diagonal(-1), x.diagonal(-1), dims=1)

    program = onnxplain.export(model, (torch.randn(2, 3),), dynamic_shapes={"x": {0: torch.export.Dim("rows", min=2), 1: "columns"}})
    check(model, program, (torch.randn(5, 3),))
