"""The arguments of a call become the inputs of the exported graph, or an exception names the argument that does not fit."""

from __future__ import annotations

import enum
import inspect
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import InvalidArgument
from onnxplain.request import fitted, flat_inputs, signature_of
from onnxplain.torch_internals.opaque_objects import is_opaque

# Each is told from the others by its size.
X, Y, Z, W = (torch.ones(2, size) for size in (3, 1, 3, 3))


class Net(torch.nn.Module):
    def forward(self, x: Any, y: Any = None, /, scale: float = 2.0, *rest: Any, flag: bool = False, **named: Any) -> torch.Tensor:
        total: torch.Tensor = x * scale
        for each in (*([] if y is None else [y]), *rest, *named.values()):
            total = total + each
        return -total if flag else total


class Last(torch.nn.Module):
    def forward(self, scale: float, x: torch.Tensor) -> torch.Tensor:
        return x * scale


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None, scale: float = 2.0) -> torch.Tensor:
        return x * scale if y is None else x * scale + y


class Nested(torch.nn.Module):
    def forward(self, parts: dict[str, Any]) -> torch.Tensor:
        result: torch.Tensor = parts["a"] + parts["b"][0]
        return result


@pytest.fixture(scope="module")
def both() -> torch.export.ExportedProgram:
    return torch.export.export(Plain(), (X, Y), {"scale": 3.0})


KNOWN = [inspect.signature(Plain().forward), None]


@pytest.mark.parametrize("forward", KNOWN, ids=["signature", "no-signature"])
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((X, Y), {"scale": 3.0}),
        ((X, Y, 3.0), {}),
        ((X,), {"scale": 3.0, "y": Y}),
        ((), {"y": Y, "scale": 3.0, "x": X}),
    ],
)
def test_inputs_go_by_position_or_by_name(
    both: torch.export.ExportedProgram, forward: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if forward is None and len(args) == 3:
        # Nobody knows that the keyword has a position as well.
        with pytest.raises(InvalidArgument, match=r"^args: expected 2 "):
            flat_inputs(both, args, kwargs, forward)
        return
    found = flat_inputs(both, args, kwargs, forward)
    assert [each is given for each, given in zip(found, (X, Y), strict=True)] == [True, True]
    positional, named = fitted(both, args, kwargs, forward)
    assert [each is given for each, given in zip(positional, (X, Y), strict=True)] == [True, True]
    assert named == {"scale": 3.0}


@pytest.mark.parametrize(
    ("args", "kwargs", "argument"),
    [
        ((X, Y), {"scale": 3.0, "y": Y}, "kwargs"),
        ((X,), {"scale": 3.0}, "args"),
        ((X, Y), {"scale": 2.0}, "scale"),
        ((X, Y), {"scale": 3}, "scale"),
        ((X, Y), {}, "args"),
        ((X, Y), {"scale": 3.0, "z": X}, "kwargs"),
        ((X, Y, 3.0, 4.0), {}, "args"),
    ],
)
def test_the_argument_that_does_not_fit_is_named(
    both: torch.export.ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument}: "):
        flat_inputs(both, args, kwargs)


def test_an_unknown_name_may_be_none_where_the_signature_is_not_known(both: torch.export.ExportedProgram) -> None:
    assert len(flat_inputs(both, (X, Y), {"scale": 3.0, "mask": None})) == 2
    with pytest.raises(InvalidArgument, match=r"^kwargs: "):
        flat_inputs(both, (X, Y), {"scale": 3.0, "mask": None}, KNOWN[0])


def test_what_the_export_did_not_get_keeps_its_default() -> None:
    program = torch.export.export(Plain(), (X,))
    forward = KNOWN[0]
    for args, kwargs in [((X,), {}), ((X, None), {}), ((X, None, 2.0), {}), ((X,), {"scale": 2.0, "y": None})]:
        assert [each is X for each in flat_inputs(program, args, kwargs, forward)] == [True]
    for args, kwargs, argument in [((X, Y), {}, "y"), ((X,), {"scale": 3.0}, "scale"), ((X, None, 2), {}, "scale")]:
        with pytest.raises(InvalidArgument, match=f"^{argument}: "):
            flat_inputs(program, args, kwargs, forward)
    with pytest.raises(InvalidArgument, match=r"^args: "):
        flat_inputs(program, (X, None, 2.0, 1), {}, forward)


def test_a_default_stands_for_a_missing_input() -> None:
    program = torch.export.export(Plain(), (X, Y, 2.0))
    assert len(flat_inputs(program, (X, Y), {}, KNOWN[0])) == 2
    with pytest.raises(InvalidArgument, match=r"^args: "):
        flat_inputs(program, (X, Y), {})


def test_any_number_of_arguments() -> None:
    program = torch.export.export(Net(), (X, Y, 2.0, Z), {"flag": True, "w": W})
    for forward in (signature_of(Net()), None):
        found = flat_inputs(program, (X, Y, 2.0, Z), {"w": W, "flag": True}, forward)
        assert [each is given for each, given in zip(found, (X, Y, Z, W), strict=True)] == [True] * 4
        assert len(flat_inputs(program, (X, Y, 2.0, Z), {"w": W, "flag": True, "more": None}, forward)) == 4
        for args, kwargs, argument in [
            ((X, Y, 2.0), {"w": W, "flag": True}, "args"),
            ((X, Y, 2.0, Z, Z), {"w": W, "flag": True}, "args"),
            ((X, Y, 2.0, Z), {"w": W, "flag": True, "more": X}, "kwargs"),
            ((X, Y, 2.0, Z), {"w": W, "flag": False}, "flag"),
        ]:
            with pytest.raises(InvalidArgument, match=f"^{argument}: "):
                flat_inputs(program, args, kwargs, forward)


def test_nan_is_the_same_constant() -> None:
    program = torch.export.export(Plain(), (X, Y, float("nan")))
    assert len(flat_inputs(program, (X, Y, float("nan")), {})) == 2
    with pytest.raises(InvalidArgument, match=r"^scale: "):
        flat_inputs(program, (X, Y, 1.0), {})


def test_a_size_of_torch_is_a_tuple() -> None:
    program = onnxplain.export(lambda x, size: x.reshape(size), (X, X.shape))
    assert torch.equal(program(X, X.shape)[0], X)
    assert torch.equal(program(X, tuple(X.shape))[0], X)
    with pytest.raises(InvalidArgument, match=r"^size_0: "):
        program(X, torch.Size([3, 2]))


class Mode(enum.Enum):
    UP = "up"
    DOWN = "down"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    ("member", "other"),
    [(Level.LOW, Level.HIGH), *([(Mode.UP, Mode.DOWN)] if is_opaque(Mode.UP) else [])],  # torch 2.11 takes numbers and strings only
)
@pytest.mark.parametrize("strategy", ["non-strict", "strict"])
def test_enum_members_are_constants(member: Any, other: Any, strategy: str) -> None:
    def model(x: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
        return x + 1 if options["mode"] is member else x - 1

    shapes = {"x": {0: "rows"}, "options": {"mode": None}}
    program = onnxplain.export(model, (X, {"mode": member}), dynamic_shapes=shapes, strategies=(strategy,), verify=True)
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1012"]
    assert [value.name for value in program.model.graph.inputs] == ["x"]
    longer = torch.cat([X, X])
    assert torch.equal(program(longer, {"mode": member})[0], longer + 1)
    with pytest.raises(InvalidArgument, match=r"^options_mode: "):
        program(X, {"mode": other})
    assert len(flat_inputs(program.exported_program, (X, {"mode": member}), {})) == 1


def test_a_generator_of_random_numbers_is_no_input() -> None:
    """Some versions of torch take it without looking into it, as they take members of enumerations."""
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Plain(), (X, Y, torch.Generator()))
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1008"]


def test_nested_inputs_have_the_structure_of_the_export() -> None:
    program = torch.export.export(Nested(), ({"a": X, "b": [Y]},))
    found = flat_inputs(program, ({"b": [Y], "a": X},), {})
    assert [each is given for each, given in zip(found, (X, Y), strict=True)] == [True, True]
    for wrong in ({"a": X}, {"a": X, "b": Y}, [X, [Y]]):
        with pytest.raises(InvalidArgument, match=r"^args: "):
            flat_inputs(program, (wrong,), {})


def test_a_program_without_the_structure_of_its_inputs(both: torch.export.ExportedProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    program = torch.export.export(Plain(), (X, Y))
    monkeypatch.setattr(type(program), "call_spec", type("Spec", (), {"in_spec": None})())
    assert len(flat_inputs(program, (X, Y), {})) == 2
    assert fitted(program, (X, Y), {}) == ((X, Y), {})
    with pytest.raises(InvalidArgument, match=r"^args: expected 2 "):
        flat_inputs(program, (X,), {})


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (torch.ones(2, 3), True),
        (torch.ones(7, 3), True),
        (torch.ones(2, 4), False),
        (torch.ones(2, 3, 1), False),
        (torch.ones(2), False),
        (torch.ones(2, 3, dtype=torch.float64), False),
        (1.0, False),
    ],
    ids=str,
)
def test_inputs_that_a_captured_program_takes(given: Any, fits: bool) -> None:
    program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (X,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    if fits:
        assert fitted(program, (given,), {}) == ((given,), {})
        return
    with pytest.raises(InvalidArgument, match=r"^input: "):
        fitted(program, (given,), {})


def test_numbers_that_a_captured_program_takes() -> None:
    program = torch.export.export(Plain(), (X, Y, 3), dynamic_shapes=({}, {}, torch.export.Dim.DYNAMIC))
    assert flat_inputs(program, (X, Y, 5), {})[2] == 5
    assert fitted(program, (X, Y, 5), {}) == ((X, Y, 5), {})
    program = torch.export.export(Last(), (3, X), dynamic_shapes=(torch.export.Dim.DYNAMIC, {}))
    with pytest.raises(InvalidArgument, match=r"^x: "):
        fitted(program, (5, X[:1]), {})


def test_signatures() -> None:
    assert list((signature_of(Plain()) or inspect.Signature()).parameters) == ["x", "y", "scale"]
    assert list((signature_of(lambda left, right: left) or inspect.Signature()).parameters) == ["left", "right"]
    assert [str(each) for each in (signature_of(torch.relu) or inspect.Signature()).parameters.values()] == ["*args", "**kwargs"]
    assert signature_of(torch.export.export(Plain(), (X,))) is None


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_a_scripted_module_without_forward() -> None:
    class Steps(torch.nn.Module):
        @torch.jit.export
        def step(self, x: torch.Tensor) -> torch.Tensor:
            return x

    scripted = torch.jit.script(Steps())
    assert signature_of(scripted) is None
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(scripted, (X,))
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1026"]
