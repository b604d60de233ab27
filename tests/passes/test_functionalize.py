"""In-place operators: the exported model computes the same as eager PyTorch, and the export reports what it leaves out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from onnxscript import opset20 as op

import onnxplain
from onnxplain.rules import ConstraintViolated, DoublePrecision, MutationDropped, MutationNotRemoved
from onnxplain.source import locations


def chain(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.relu_()
    y += 1
    return y.mul_(y)


def old_value_used_before(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.sin()
    y.add_(1)
    return y + z


def view_of_dead_base(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).view(-1).add_(1)


def view_taken_after(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.add_(1)
    v = y.t()
    return v.sin() + y.t()


def other_dtype(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2).half()
    y.add_(x)
    return y


def masked(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.masked_fill_(y > 0, -1.0)
    return y


def broadcast(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    y.copy_(x[0])
    return y


def result_used_twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x + 0
    z = y.mul_(3)
    y.add_(1)
    return y, z


def view_mutated(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[:, 0].add_(1)
    return y


def base_mutated(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    v = y.view(-1)
    y.add_(1)
    return v


def item_assigned(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(3, 4)
    y[1] = x[0]
    y[:, 2] = 7
    return y


def dropout_is_the_same_tensor(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = torch.nn.functional.dropout(y, 0.5, training=False)
    z.add_(1)
    return y


def dropout_beside_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    torch.nn.functional.dropout(y, 0.5, training=False).view(-1)[3:].add_(1)
    return y


def aliased_outputs(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 2
    v = y.t()
    y.add_(1)
    return y, v


def split_mutated(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    a, b = y.split(2, dim=1)
    a.add_(1)
    b.mul_(2)
    return y


def view_used_before(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    before = y.t().sum()
    y.add_(1)
    return y + before


def view_of_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    v = y.view(-1)[2:]
    y.add_(1)
    return v


def write_to_a_view_of_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.t()[1:].add_(1)
    return y


def new_memory_of_a_composite_operator(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = torch.softmax(y, -1)
    y.add_(1)
    return y + z


def maybe_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.flatten()
    y.add_(1)
    return z


def maybe_itself(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.contiguous()
    z.add_(1)
    return y


def view_between_two_writes(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.add_(1)
    v = y.t()
    y.mul_(2)
    return v


def views_before_and_after_a_write(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    before = y.t().sum()
    y.add_(1)
    y.t().mul_(2)
    return y + before


def result_written_again(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.add_(1)
    z.mul_(3)
    return z.t()


def result_written_and_first_name_used(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.add_(1)
    z.mul_(3)
    return y


def of_two_operands(x: torch.Tensor) -> torch.Tensor:
    y, z = x > 0, x < 1
    y &= z
    y |= x > 2
    return y


def shifts(x: torch.Tensor) -> torch.Tensor:
    y = (x.abs() * 8).to(torch.int32) + 1
    y <<= 1
    return y


def powers(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y **= 2
    return y


def written_with_a_list(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    y.index_put_((torch.tensor([0, 2]),), torch.tensor(7.0))
    return y


def in_a_branch(x: torch.Tensor) -> torch.Tensor:
    def add(y: torch.Tensor) -> torch.Tensor:
        return (y * 2).add_(1)

    return torch.cond(x.sum() > 0, add, torch.neg, (x,))  # type: ignore[no-any-return]


def operand_written_later(x: torch.Tensor) -> torch.Tensor:
    y, z = x * 2, x * 3
    y.add_(z)
    z.mul_(2)
    return y + z


def to_another_place(x: torch.Tensor) -> torch.Tensor:
    y, z = x * 2, x * 3
    torch.add(y, 1, out=z)
    return z


def in_a_region_without_gradients(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    with torch.no_grad():
        y[1].add_(1)
    return y


def shown_otherwise_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.mul_(2)
    y.t_().unsqueeze_(0)
    z[:, 1] = 5
    return y + 1


def selected_results(x: torch.Tensor) -> torch.Tensor:
    values, _ = x.max(1)
    values.add_(1)
    return values.view(-1)


def complex_parts(x: torch.Tensor) -> torch.Tensor:
    y = x.view(3, 2, 2) * 2
    torch.view_as_complex(y).mul_(2)
    return y


LOCAL = [
    chain,
    old_value_used_before,
    view_of_dead_base,
    view_taken_after,
    other_dtype,
    masked,
    broadcast,
    result_used_twice,
    dropout_is_the_same_tensor,
    maybe_itself,
    view_used_before,
    new_memory_of_a_composite_operator,
    result_written_again,
    result_written_and_first_name_used,
    of_two_operands,
    shifts,
    written_with_a_list,
    in_a_branch,
    operand_written_later,
    view_mutated,
    base_mutated,
    item_assigned,
    aliased_outputs,
    split_mutated,
    dropout_beside_a_view,
    view_of_a_view,
    write_to_a_view_of_a_view,
    maybe_a_view,
    powers,
    view_between_two_writes,
    views_before_and_after_a_write,
    in_a_region_without_gradients,
    shown_otherwise_in_place,
    selected_results,
    complex_parts,
]
WHOLE = [to_another_place]


@pytest.mark.parametrize("function", [*LOCAL, *WHOLE], ids=lambda function: function.__name__)
def test_equals_eager(function: Callable[..., object]) -> None:
    program = onnxplain.export(function, (torch.randn(3, 4),))
    x = torch.randn(3, 4)
    expected = torch.utils._pytree.tree_leaves(function(x.clone()))
    for got, want in zip(program(x), expected, strict=True):
        torch.testing.assert_close(got, want)
    assert program.diagnostics.findings == ()


@pytest.mark.parametrize("function", [*LOCAL, *WHOLE], ids=lambda function: function.__name__)
def test_traces_again_only_where_it_must(function: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    real = torch.export.ExportedProgram.run_decompositions
    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", lambda *args, **kw: traced.append(1) or real(*args, **kw))
    onnxplain.export(function, (torch.randn(3, 4),))
    assert len(traced) == (function in WHOLE)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x * self.count


class Writer(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2


class ThroughViews(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = self.count.view(3, 1)[2:]
        last.add_(1)
        return x * self.count


@pytest.mark.parametrize("model", [Counter(), ThroughViews(), Writer()], ids=["buffer", "views", "input"])
def test_a_write_that_lasts_is_no_reason_to_trace_again(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    real = torch.export.ExportedProgram.run_decompositions
    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", lambda *args, **kw: traced.append(1) or real(*args, **kw))
    onnxplain.export(model, (torch.ones(3),))
    assert not traced


class Cached(torch.nn.Module):
    """Writes to an input, and may return it."""

    def __init__(self, returns: str) -> None:
        super().__init__()
        self.returns = returns

    def forward(self, x: torch.Tensor, cache: object) -> object:
        kept = cache if isinstance(cache, torch.Tensor) else (cache["k"] if isinstance(cache, dict) else cache[0])  # type: ignore[index]
        kept.add_(x)
        match self.returns:
            case "itself":
                return x * 2, kept
            case "what it is moved to":
                return x * 2, kept.to(torch.float32).to(kept.device)
            case "another dtype":
                return x * 2, kept.to(torch.float64)
            case "something computed":
                return x * 2, kept + 1
        return x * kept


def given(container: str) -> object:
    return {"alone": torch.ones(3), "in a tuple": (torch.ones(3),), "in a dict": {"k": torch.ones(3)}}[container]


@pytest.mark.parametrize(
    ("container", "returns", "is_told"),
    [
        ("alone", "nothing", True),
        ("alone", "itself", True),
        ("in a tuple", "nothing", True),
        ("in a tuple", "itself", False),
        ("in a dict", "nothing", True),
        ("in a dict", "itself", False),
        ("in a dict", "what it is moved to", False),
        ("in a dict", "another dtype", True),
        ("in a dict", "something computed", True),
    ],
)
def test_a_write_to_an_input_is_told_unless_the_result_stands_for_it(container: str, returns: str, is_told: bool) -> None:
    model = Cached(returns)
    program = onnxplain.export(model, (torch.ones(3), given(container)))
    found = [type(each.rule) for each in program.diagnostics.findings]
    assert found == [MutationDropped] * is_told + [DoublePrecision] * (returns == "another dtype")
    x = torch.randn(3)
    expected = torch.utils._pytree.tree_leaves(model(x, given(container)))
    for got, want in zip(program(x, given(container)), expected, strict=True):
        torch.testing.assert_close(got, want)


class InRegions(torch.nn.Module):
    """Operators in a branch and under autocast, and a write that torch alone can resolve."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))  # branch
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = torch.mm(x, x.t())  # autocast
        w = x * 3
        torch.add(x, 1, out=w)  # out
        return y + z.float().sum() + w  # last


def test_operators_keep_their_lines_when_the_program_is_traced_again() -> None:
    program = onnxplain.export(InRegions(), (torch.randn(3, 4),))
    lines, first = inspect.getsourcelines(InRegions)
    marks = {number: line.rpartition("# ")[2].strip() for number, line in enumerate(lines, first) if "  # " in line}
    found: dict[str, set[str | None]] = {}
    for node in program.model.graph.all_nodes():
        if locations.FX_NODE in node.meta:
            place = locations.at_node(node.meta[locations.FX_NODE]).location
            found.setdefault(node.op_type, set()).add(marks.get(place.line or 0) if place else None)
    assert (found["Sin"], found["Cos"], found["If"]) == ({"branch"}, {"branch"}, {"branch"})
    assert found["MatMul"] == {"autocast"}
    assert None not in set().union(*found.values())


LIBRARY = torch.library.Library("onnxplain_views", "FRAGMENT")
LIBRARY.define("both(Tensor(a) x) -> (Tensor(a), Tensor)")
LIBRARY.impl("both", lambda x: (x.view(-1), x + 1), "CompositeExplicitAutograd")


def test_an_operator_with_a_view_and_a_new_tensor() -> None:
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        view, fresh = torch.ops.onnxplain_views.both(y)
        y.add_(1)
        return view, fresh

    table = {torch.ops.onnxplain_views.both.default: lambda x: (op.Reshape(x, [-1]), op.Add(x, op.CastLike(1.0, x)))}
    x = torch.randn(3, 4)
    program = onnxplain.export(forward, (x,), custom_translation_table=table)
    for got, want in zip(program(x), forward(x), strict=True):
        torch.testing.assert_close(got, want)


class Cache(torch.nn.Module):
    """Keeps a tensor that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.zeros(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.kept.to(x)
        kept[1:4].add_(1)
        return x + self.kept[:3]


@pytest.mark.parametrize(
    ("model", "kind"),
    [(Counter(), "buffer"), (ThroughViews(), "buffer"), (Writer(), "input"), (Cache(), "attribute")],
    ids=["buffer", "views", "input", "attribute"],
)
def test_dropped_mutation_is_said_at_its_line(model: torch.nn.Module, kind: str) -> None:
    x = torch.ones(3)
    program = onnxplain.export(model, (x.clone(),))
    (finding,) = program.diagnostics.findings
    assert finding.rule.id == "OXP2003"
    assert isinstance(finding.rule, MutationDropped)
    assert finding.rule.kind == kind
    assert finding.location is not None
    assert "add_(1)" in finding.location.snippet
    torch.testing.assert_close(program(x)[0], type(model)()(x.clone()))


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("write", [lambda kept, x: kept.add_(1), lambda kept, x: kept[1:3].copy_(x[:2])], ids=["all", "part"])
def test_an_attribute_that_is_written_keeps_its_data(write: Callable[..., Any], verify: bool) -> None:
    class Written(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = torch.zeros(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            write(self.kept, x)
            return self.kept * x

    model, x = Written(), torch.ones(4)
    program = onnxplain.export(model, (x,), verify=verify)
    assert [finding.rule.id for finding in program.diagnostics.findings] == ["OXP2003"]
    assert model.kept.tolist() == [0, 0, 0, 0]
    for _ in range(2):
        torch.testing.assert_close(program(x)[0], Written()(x))


WHOLE_VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all": lambda y: y[:],
    "from-the-first": lambda y: y[0:],
    "to-the-last": lambda y: y[:, :4],
    "narrow": lambda y: y.narrow(1, 0, 4),
    "negative-start": lambda y: y.narrow(1, -4, 4),
    "one-piece": lambda y: y.split(4, 1)[0],
}
PARTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "not-the-first": lambda y: y[1:],
    "not-the-last": lambda y: y[:, :3],
    "every-second": lambda y: y[::2],
    "narrow": lambda y: y.narrow(0, 0, 2),
    "negative-start": lambda y: y.narrow(0, -3, 2),
    "one-of-two-pieces": lambda y: y.split(2)[1],
}


@pytest.mark.parametrize("view", WHOLE_VIEWS.values(), ids=WHOLE_VIEWS)
def test_a_write_to_the_whole_tensor_needs_no_scatter(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        view(y).sin_()
        return y

    program = onnxplain.export(forward, (torch.randn(3, 4),), dynamic_shapes=({0: "rows"},))
    x = torch.randn(5, 4)
    torch.testing.assert_close(program(x)[0], forward(x))
    assert [node.op_type for node in program.model.graph if node.op_type not in ("Slice", "Split")] == ["Mul", "Sin"]


@pytest.mark.parametrize("view", PARTS.values(), ids=PARTS)
def test_a_write_to_a_part_leaves_the_rest(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        view(y).sin_()
        return y

    program, x = onnxplain.export(forward, (torch.randn(3, 4),)), torch.randn(3, 4)
    torch.testing.assert_close(program(x)[0], forward(x))


def under_autocast(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x.relu().add_(1)


@pytest.mark.parametrize("function", [*WHOLE, under_autocast], ids=lambda function: function.__name__)
def test_sizes_keep_their_names_when_the_program_is_traced_again(function: Callable[..., torch.Tensor]) -> None:
    program = onnxplain.export(function, (torch.randn(3, 4),), dynamic_shapes=({0: "rows", 1: torch.export.Dim("columns")},))
    assert [list(map(str, each.shape or ())) for each in program.model.graph.inputs] == [["rows", "columns"]]
    assert [list(map(str, each.shape or ())) for each in program.model.graph.outputs] == [["rows", "columns"]]


def test_writes_to_views_of_dynamic_sizes() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 1:].add_(1)
        y.view(-1)[0] = 3
        y.unsqueeze(0).reshape(1, -1).mul_(2)
        return y

    batch, width = torch.export.Dim("batch"), torch.export.Dim("width")
    program = onnxplain.export(forward, (torch.randn(3, 4),), dynamic_shapes=({0: batch, 1: width},))
    x = torch.randn(2, 5)
    torch.testing.assert_close(program(x)[0], forward(x))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.zero_(),
        lambda y: y.index_fill_(-1, torch.tensor([0]), 1),
        lambda y: y.masked_fill_(y > 0, 1),
        lambda y: y.index_put_((torch.tensor([0]),), torch.tensor(1.0)),
    ],
    ids=["zero", "index-fill", "masked-fill", "index-put"],
)
def test_a_write_to_repeated_elements_is_refused(write: Callable[[torch.Tensor], torch.Tensor], fixed: bool) -> None:
    class Expanded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = (x + 1).unsqueeze(2).expand(-1, -1, x.shape[0], -1)
            write(y[:, 0])
            return y

    x = torch.ones(3, 4, 5)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Expanded(), (x,), dynamic_shapes=None if fixed else True)
    assert [each.rule.id for each in failed.value.findings] == ["OXP2001"]


def windows_with_a_rest(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y.unfold(1, 2, 2)[0].mul_(2)
    return y


def windows_with_gaps(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y[:, :4].unfold(1, 1, 2).zero_()
    return y


def a_copy_of_windows_that_overlap(x: torch.Tensor) -> torch.Tensor:
    windows = (x + 1).unfold(1, 2, 1)
    return torch.diagonal_scatter(windows, windows.diagonal() * 2)


@pytest.mark.parametrize("dynamic_shapes", [None, ({0: torch.export.Dim.DYNAMIC},)], ids=["static", "dynamic"])
@pytest.mark.parametrize("forward", [windows_with_a_rest, windows_with_gaps, a_copy_of_windows_that_overlap])
def test_a_write_to_some_elements_of_windows_is_refused(forward: Callable[..., Any], dynamic_shapes: Any) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(forward, (torch.randn(3, 5),), dynamic_shapes=dynamic_shapes)
    assert [each.rule.id for each in failed.value.findings] == ["OXP2001"]


def test_writes_to_windows_that_hold_each_element_once() -> None:
    def forward(x: torch.Tensor) -> Any:
        y = x + 1
        y[:, :4].unfold(1, 2, 2).mul_(torch.tensor([2.0, 3.0]))
        repeated = x[:1].expand(3, 5)
        one = x[:, :4].unfold(1, 4, 2)
        return (
            y,
            torch.slice_scatter(one, one[..., 1:] * 2, 2, 0, 3),
            torch.select_scatter(repeated, x[0], 0, 1),
            torch.slice_scatter(x.T, x.T[:2], 0, 1, 3),
            x.unfold(1, 2, 1),
        )

    x = torch.randn(3, 5)
    torch.testing.assert_close(list(onnxplain.export(forward, (x,))(x)), list(forward(x)))


class Windows(torch.nn.Module):
    """Writes through windows of rows whose number varies."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y.unfold(-1, 2, 2).mul_(torch.tensor([2.0, 3.0]))
        y.t().unfold(0, 3, 3)[1] += 5
        return y


class WindowsAndAnotherPlace(Windows):
    """Torch has to trace this one again, and undoes the windows itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return to_another_place(super().forward(x))


def test_writes_to_windows_of_varying_tensors() -> None:
    program = onnxplain.export(Windows(), (torch.randn(3, 6),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert program.diagnostics.findings == ()
    x = torch.randn(5, 6)
    torch.testing.assert_close(program(x)[0], Windows()(x))


def test_a_size_that_torch_fixes_while_it_traces_again_is_told() -> None:
    shapes = ({0: torch.export.Dim("rows")},)
    program = onnxplain.export(WindowsAndAnotherPlace(), (torch.randn(3, 6),), dynamic_shapes=shapes)
    (finding,) = program.diagnostics.findings
    assert (finding.rule.id, finding.rule.argument_texts()) == ("OXP1011", ("rows", "rows == 3"))


def test_a_custom_operator_that_writes_is_refused_whatever_comments_say(load: Callable[..., ModuleType], marked: Any) -> None:
    module = load("""
        import torch

        LIBRARY = torch.library.Library("onnxplain_writes", "FRAGMENT")
        LIBRARY.define("touch(Tensor(a!) x) -> ()")

        @torch.library.impl(LIBRARY, "touch", "CompositeExplicitAutograd")
        def touch(x):
            x.zero_()

        @torch.library.register_fake("onnxplain_writes::touch", lib=LIBRARY)
        def _(x):
            return None

        class Net(torch.nn.Module):
            def forward(self, x):
                y = x.clone()
                torch.ops.onnxplain_writes.touch(y)  # onnxplain: ignore[OXP2001]
                return x - y
    """)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Net(), (torch.ones(3),))
    (finding,) = failed.value.findings
    assert (finding.rule, finding.blocking) == (MutationNotRemoved(operator="onnxplain_writes::touch"), True)
    assert finding.location is not None
    assert [finding.location.line] == marked("onnxplain: ignore[OXP2001]")


def test_an_expansion_that_repeats_nothing_is_written() -> None:
    class Expanded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = (x + 1).unsqueeze(2).expand(-1, -1, 1, -1)
            y[:, 0].zero_()
            return y

    x = torch.rand(3, 4, 5)
    torch.testing.assert_close(onnxplain.export(Expanded(), (x,))(x)[0], Expanded()(x))


def rows_written(x: torch.Tensor) -> torch.Tensor:
    rows = x[:, :2]
    rows.flatten().add_(1)
    return rows * 1


def rows_written_before_the_copy_is_read(x: torch.Tensor) -> torch.Tensor:
    rows = (x * 2)[:, :2]
    flat = rows.reshape(-1)
    rows.mul_(3)
    return flat


def rows_in_use_no_more(x: torch.Tensor) -> torch.Tensor:
    rows = (x * 2)[:, :2]
    return rows.flatten().add_(1)


def rows_of_which_the_size_is_read(x: torch.Tensor) -> torch.Tensor:
    rows = x[:, :2]
    return rows.flatten().add_(1) * rows.shape[0]


@pytest.mark.parametrize(
    ("function", "least", "told"),
    [
        (rows_written, 1, ["rows.flatten().add_(1)"]),
        (rows_written_before_the_copy_is_read, 1, ["rows.mul_(3)"]),
        (rows_written, 2, []),
        (rows_in_use_no_more, 1, []),
        (rows_of_which_the_size_is_read, 1, []),
    ],
)
@pytest.mark.parametrize("example", [2, 4])
def test_a_copy_that_is_a_view_at_size_one_is_told(
    function: Callable[[torch.Tensor], torch.Tensor], least: int, told: list[str], example: int
) -> None:
    program = onnxplain.export(function, (torch.ones(example, 5, 3),), dynamic_shapes=({0: torch.export.Dim("batch", min=least)},))
    found = [each for each in program.diagnostics.findings if each.rule.id == "OXP1011"]
    assert [each.location.snippet for each in found if each.location] == told
    assert [each.rule.arguments() for each in found] == [("dim", "constraint") for _ in told]
    for size in (3,) if told else (3, least):
        x = torch.rand(size, 5, 3)
        torch.testing.assert_close(program(x)[0], function(x.clone()))


def columns_written(x: torch.Tensor) -> torch.Tensor:
    turned = x.transpose(0, 1)
    turned.flatten().add_(1)
    return turned * 1


@pytest.mark.parametrize(("least", "told"), [((1, 2), ["rows"]), ((2, 1), ["columns"]), ((1, 1), ["columns", "rows"]), ((2, 2), [])])
def test_only_sizes_that_may_be_one_are_told(least: tuple[int, int], told: list[str]) -> None:
    """Either size makes the copy a view if it is 1."""
    dims = {index: torch.export.Dim(name, min=low) for index, (name, low) in enumerate(zip(("rows", "columns"), least, strict=True))}
    program = onnxplain.export(columns_written, (torch.ones(4, 5),), dynamic_shapes=(dims,))
    found = [each.rule for each in program.diagnostics.findings if each.rule.id == "OXP1011"]
    assert sorted(rule.dim for rule in found if isinstance(rule, ConstraintViolated)) == told
    x = torch.rand(3, 2)
    torch.testing.assert_close(program(x)[0], columns_written(x.clone()))


class Refused(torch.nn.Module):
    """An operator that refuses the example's size; the vmap is traced again."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        try:
            y = x.view(-x.shape[1])
        except RuntimeError:
            y = x
        return y * 2, torch.vmap(lambda row: row.flip(0))(x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_operator_whose_exception_the_model_catches_is_left_out(dynamic: bool) -> None:
    x = torch.randn(3, 4)
    program = onnxplain.export(Refused(), (x,), dynamic_shapes=({1: "width"},) if dynamic else None)
    told = [(each.rule.id, each.location and each.location.line) for each in program.diagnostics.findings]
    assert told == ([("OXP1011", Refused.forward.__code__.co_firstlineno + 2)] if dynamic else [])
    for given in (x, torch.randn(3, 6)) if dynamic else (x,):
        for actual, expected in zip(program(given), Refused()(given), strict=True):
            torch.testing.assert_close(actual, expected)


def test_places_of_a_condition_beside_a_vmap() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.vmap(lambda row: row * 2 + row.sum())(x[:2]), torch.where(x > 0)[0]

    # NOTE: torch knows a decomposition of `where` from the first export on, and it is of no use.
    for _ in range(2):
        program = onnxplain.export(model, (torch.randn(4),), dynamic_shapes=({0: "rows"},))
        x = torch.randn(7)
        for got, wanted in zip(program(x), model(x), strict=True):
            torch.testing.assert_close(got, wanted)


def test_a_size_of_an_input_that_is_written_is_not_the_input() -> None:
    def function(parts: list[torch.Tensor]) -> tuple[int, torch.Tensor]:
        parts[0].add_(1)
        return parts[0].shape[0], parts[0].sum()

    program = onnxplain.export(function, ([torch.ones(3)],), dynamic_shapes=([{0: "rows"}],))
    assert [finding.rule.id for finding in program.diagnostics.findings] == ["OXP2003"]
    size, total = program([torch.ones(5)])
    assert (int(size), float(total)) == (5, 10)
