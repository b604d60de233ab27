"""Every form in which a user can say which dims are dynamic becomes one value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch.export import Dim

import onnxplain
from onnxplain.diagnostics import InvalidArgument
from onnxplain.request import DynamicShapes, InputDim, Kind, as_shapes

BATCH = Dim("batch", min=2, max=64)
X, Y = torch.ones(4, 6), torch.ones(4, 6)


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class Apart(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, y * 2


class Nested(torch.nn.Module):
    def forward(self, parts: Any) -> torch.Tensor:
        result: torch.Tensor = sum(parts.values()) if isinstance(parts, dict) else sum(parts)
        return result


class Many(torch.nn.Module):
    def forward(self, *parts: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        return sum([*parts, *named.values()], torch.zeros(()))


def parsed(given: Any, model: torch.nn.Module | None = None, args: tuple[Any, ...] = (X, Y), **kwargs: Any) -> DynamicShapes:
    return DynamicShapes.parse(given, model or Two(), args, kwargs)


def said(shapes: DynamicShapes) -> dict[str, tuple[Kind, str]]:
    """What is said of each dim that is not static, by its place in `forward`."""
    return {dim.place: (dim.kind, dim.label) for dim in shapes.dims if dim.kind is not Kind.STATIC}


NAMED = {"x.shape[0]": (Kind.DIM, "batch"), "y.shape[0]": (Kind.DIM, "batch")}


@pytest.mark.parametrize(
    "given",
    [
        {"x": {0: BATCH}, "y": {0: BATCH}},
        ({0: BATCH}, {0: BATCH}),
        [{0: BATCH}, {0: BATCH}],
        ((BATCH, None), [BATCH, 6]),
        {"y": (BATCH, None), "x": {0: BATCH, 1: None}},
    ],
    ids=["dict", "tuple", "list", "per-axis", "mixed"],
)
def test_structures_say_the_same(given: Any) -> None:
    shapes = parsed(given)
    assert said(shapes) == NAMED
    assert [dim.least for dim in shapes.dynamic] == [2, 2]
    assert [dim.most for dim in shapes.dynamic] == [64, 64]
    assert {dim.flat_index for dim in shapes.dynamic} == {0, 1}
    assert torch.export.export(Two(), (X, Y), dynamic_shapes=shapes.for_torch()).graph is not None


@pytest.mark.parametrize(
    ("word", "kind", "label", "stays"),
    [
        ("rows", Kind.NAMED, "rows", True),
        (BATCH, Kind.DIM, "batch", True),
        (2 * Dim("half"), Kind.DERIVED, "2*half", True),
        (Dim.DYNAMIC, Kind.DYNAMIC, "x_dim_0", True),
        (Dim.AUTO, Kind.AUTO, "x_dim_0", False),
        (Dim.STATIC, Kind.STATIC, "", False),
        (4, Kind.STATIC, "", False),
        (None, Kind.STATIC, "", False),
    ],
    ids=str,
)
def test_kinds(word: Any, kind: Kind, label: str, stays: bool) -> None:
    shapes = parsed(({0: word}, None))
    dim = shapes.dims[0]
    assert (dim.kind, dim.label, dim.stays) == (kind, label, stays)
    assert (dim in shapes.dynamic) == stays
    assert (dim in shapes.open) == (kind is Kind.AUTO)
    assert dim.size == 4


@pytest.mark.parametrize(
    "given",
    [{"x": {-1: "n"}, "y": {-2: BATCH, 1: 6}}, ({-1: "n"}, {0: BATCH}), [{1: "n"}, {-2: BATCH}]],
    ids=["dict", "tuple", "list"],
)
def test_axes_that_count_from_the_end(given: Any) -> None:
    shapes = parsed(given)
    assert said(shapes) == {"x.shape[1]": (Kind.NAMED, "n"), "y.shape[0]": (Kind.DIM, "batch")}
    placeholders = torch.export.export(Apart(), (X, Y), dynamic_shapes=shapes.for_torch()).graph.find_nodes(op="placeholder")
    assert [[isinstance(size, int) for size in each.meta["val"].shape] for each in placeholders] == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("parts", "given"),
    [
        ({"a": X, "b": Y}, {"a": {-1: "n"}, "b": None}),
        ({"a": X, "b": Y}, {"a": None, "b": {-1: "n"}}),
        ([X, Y], [{-1: "n"}, None]),
        ([X, Y], (None, {-1: "n"})),
        (Pair(X, Y), Pair({-1: "n"}, None)),
    ],
)
def test_axes_of_parts_that_count_from_the_end(parts: Any, given: Any) -> None:
    for shapes in ({"parts": given}, (given,)):
        found = DynamicShapes.parse(shapes, Nested(), (parts,), {})
        assert [(dim.axis, dim.label) for dim in found.dynamic] == [(1, "n")]
        assert type(found.for_torch()["parts"]) is type(parts)


def test_an_axis_that_a_tensor_lacks_is_left_to_torch() -> None:
    given = {"x": {-3: "n", 2: "m"}, "y": None}
    assert parsed(given).given is given


def test_true_leaves_all_dims_open() -> None:
    shapes = parsed(True)
    assert {dim.kind for dim in shapes.dims} == {Kind.OPEN}
    assert len(shapes.open) == 4
    assert not shapes.dynamic
    assert len({dim.label for dim in shapes.dims}) == 4


@pytest.mark.parametrize("given", [None, {}, (), ({}, {}), {"x": None}], ids=str)
def test_nothing_said(given: Any) -> None:
    shapes = parsed(given)
    assert said(shapes) == {}
    assert not shapes.for_torch() or not any(shapes.for_torch() if isinstance(shapes.for_torch(), tuple) else shapes.for_torch().values())


@pytest.mark.parametrize(
    ("model", "args", "kwargs", "given", "places"),
    [
        (Nested(), ({"a": X, "b": Y},), {}, {"parts": {"a": {0: "n"}, "b": {1: "m"}}}, ["parts['a'].shape[0]", "parts['b'].shape[1]"]),
        (Nested(), ([X, Y],), {}, {"parts": [{0: "n"}, None]}, ["parts[0].shape[0]"]),
        (Nested(), (Pair(X, Y),), {}, (Pair({0: "n"}, {0: "n"}),), ["parts.left.shape[0]", "parts.right.shape[0]"]),
        (
            *(Many(), (X, Y), {"z": X}, {"parts": ({0: "n"}, {}), "named": {"z": {1: "m"}}}),
            ["parts[0].shape[0]", "named['z'].shape[1]"],
        ),
        (Two(), (X,), {"y": Y}, {"y": {0: "n"}, "x": {0: "n"}}, ["x.shape[0]", "y.shape[0]"]),
    ],
    ids=["dict", "list", "named-tuple", "args-and-kwargs", "keyword"],
)
def test_nested_inputs(model: torch.nn.Module, args: Any, kwargs: Any, given: Any, places: list[str]) -> None:
    shapes = DynamicShapes.parse(given, model, args, kwargs)
    assert [dim.place for dim in shapes.dynamic] == places
    assert [leaf.value.shape for leaf in shapes.leaves] == [(4, 6)] * len(shapes.leaves)


class Rest(torch.nn.Module):
    def forward(self, x: torch.Tensor, *rest: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        return sum(rest, x) if scale is None else sum(rest, x) * scale


@pytest.mark.parametrize(
    ("model", "args", "given", "places"),
    [
        (Rest(), (X, Y, X), ({0: "n"}, {0: "n"}, None), ["x.shape[0]", "rest[0].shape[0]"]),
        (Rest(), (X, Y, X), ({0: "n"}, ({0: "n"}, None)), ["x.shape[0]", "rest[0].shape[0]"]),
        (Rest(), (X, Y), ({0: "n"}, ("m", None)), ["x.shape[0]", "rest[0].shape[0]"]),
        (Rest(), (X,), ({0: "n"},), ["x.shape[0]"]),
        (torch.nn.DataParallel(torch.nn.Linear(6, 2)), (X,), ({0: "n"},), ["inputs[0].shape[0]"]),
        (torch.nn.DataParallel(torch.nn.Linear(6, 2)), (X,), ([{0: "n"}],), ["inputs[0].shape[0]"]),
        (functools.partial(torch.softmax, dim=-1), (X,), ({0: "n"},), ["args[0].shape[0]"]),
    ],
    ids=["flat", "nested", "of-axes", "no-rest", "parallel", "parallel-nested", "builtin"],
)
def test_entries_for_what_a_star_takes(model: Any, args: Any, given: Any, places: list[str]) -> None:
    assert [dim.place for dim in DynamicShapes.parse(given, model, args, {}).dynamic] == places


def test_axes_say_the_same_as_shapes() -> None:
    axes = as_shapes(Two(), (X, Y), {}, ["first"], {"first": {0: "batch"}, "y": [1]})
    assert said(parsed(axes)) == {"x.shape[0]": (Kind.NAMED, "batch"), "y.shape[1]": (Kind.DYNAMIC, "y_dim_1")}


def test_names_and_equal_names() -> None:
    shapes = parsed(({0: "n", 1: "m"}, {0: "n", 1: BATCH}))
    assert sorted(shapes.names().values()) == ["batch", "m", "n", "n"]
    first = shapes.dims[0]
    assert [(each.flat_index, each.axis) for each in shapes.same_name(first)] == [(0, 0), (1, 0)]


def test_a_change_leaves_the_rest() -> None:
    shapes = parsed(({0: "n", 1: "m"}, {0: "n"}))
    changed = shapes.replaced({shapes.dims[1]: None, shapes.dims[3]: Dim.AUTO})
    assert said(changed) == {"x.shape[0]": (Kind.NAMED, "n"), "y.shape[0]": (Kind.NAMED, "n"), "y.shape[1]": (Kind.AUTO, "y_dim_1")}
    assert said(shapes)["x.shape[1]"] == (Kind.NAMED, "m")
    assert said(parsed(changed.given)) == said(changed)


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, count: int, scale: float, flag: bool) -> torch.Tensor:
        return x * count * scale if flag else x


def test_a_change_leaves_the_entries_of_numbers() -> None:
    args = X, 3, 2.0, True
    shapes = parsed(({0: "n"}, Dim.DYNAMIC, None, None), Scaled(), args)
    assert shapes.replaced({}).given == {"x": {0: "n"}, "count": Dim.DYNAMIC, "scale": None, "flag": None}
    assert parsed(True, Scaled(), args).for_torch() == {"x": {0: Dim.AUTO, 1: Dim.AUTO}, "count": None, "scale": None, "flag": None}


@pytest.mark.parametrize(
    "given",
    [({0: "n"}, {0: "n", 1: Dim.AUTO}), {"x": {0: BATCH}, "y": {0: BATCH}}, True, ({0: 2 * Dim("half", max=8)}, None)],
    ids=["names", "dims", "all", "derived"],
)
def test_source_says_the_same(given: Any) -> None:
    shapes = parsed(given)
    names: dict[str, Any] = {"torch": torch}
    exec(shapes.as_source(), names)
    assert {place: kind for place, (kind, _) in said(parsed(names["dynamic_shapes"])).items()} == {
        place: Kind.AUTO if kind is Kind.OPEN else kind for place, (kind, _) in said(shapes).items()
    }


def test_dims_are_equal_by_their_place() -> None:
    one, other = parsed(({0: "n"}, None)), parsed(({0: BATCH}, None))
    assert one.dims[0] == other.dims[0]
    assert len({*one.dims, *other.dims}) == 4
    assert isinstance(one.dims[0], InputDim)


def test_names_within_named_tuples() -> None:
    given, model = (Pair({0: "n"}, {0: "n"}),), Nested()
    shapes = DynamicShapes.parse(given, model, (Pair(X, Y),), {})
    assert shapes.for_torch() == (Pair({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}),)  # type: ignore[arg-type]
    names: dict[str, Any] = {"torch": torch, "Pair": Pair}
    exec(shapes.as_source(), names)
    assert names["dynamic_shapes"] == given
    assert isinstance(names["dynamic_shapes"][0], Pair)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ({"x": {0: "n"}, "y": None}, {"x": {0: Dim.DYNAMIC}, "y": None}),
        (({0: BATCH}, [BATCH, None]), ({0: BATCH}, [BATCH, None])),
        (True, {"x": {0: Dim.AUTO, 1: Dim.AUTO}, "y": {0: Dim.AUTO, 1: Dim.AUTO}}),
    ],
    ids=["none", "dict", "tuple", "all"],
)
def test_what_torch_gets(given: Any, expected: Any) -> None:
    assert parsed(given).for_torch() == expected


def test_what_torch_gets_after_a_change() -> None:
    shapes = parsed(({0: "n"}, None)).replaced({})
    assert shapes.for_torch() == {"x": {0: Dim.DYNAMIC}, "y": {}}
    assert parsed(({0: "n"}, None), args=(), model=Two()).replaced({}).for_torch() is None


def test_a_collection_of_torch_is_handed_on() -> None:
    collection = torch.export.ShapesCollection()
    x, y = torch.ones(4, 6), torch.ones(4, 6)
    collection[x] = {0: BATCH}
    shapes = parsed(collection, args=(x, y))
    assert said(shapes) == {"x.shape[0]": (Kind.DIM, "batch")}
    assert shapes.for_torch() is collection


def test_a_collection_about_other_tensors_is_refused() -> None:
    collection, x = torch.export.ShapesCollection(), torch.ones(3, 4)
    collection[x] = (Dim("rows"), 4)
    with pytest.raises(InvalidArgument, match=r"^dynamic_shapes: ") as refused:
        onnxplain.export(torch.nn.Linear(4, 4), (x.clone(),), dynamic_shapes=collection)
    assert isinstance(refused.value.__cause__, ValueError)


class Part:
    def __init__(self, value: Any) -> None:
        self.value = value


torch.utils._pytree.register_pytree_node(Part, lambda part: ([part.value], None), lambda values, _: Part(*values))


def test_classes_that_the_user_registered() -> None:
    shapes = DynamicShapes.parse({"parts": [Part({0: "n"}), None]}, Nested(), ([Part(X), Y],), {})
    assert [(dim.flat_index, dim.axis, dim.label) for dim in shapes.dynamic] == [(0, 0, "n")]


class Couple:
    def __init__(self, one: Any, other: Any) -> None:
        self.one, self.other = one, other


torch.utils._pytree.register_pytree_node(Couple, lambda pair: ([pair.one, pair.other], None), lambda values, _: Couple(*values))


@pytest.mark.parametrize(
    "given", [[None, {0: "n"}], (None, {0: "n"}), Couple(None, {0: "n"}), [None, ("n", None)]], ids=["list", "tuple", "object", "axes"]
)
def test_parts_that_nothing_is_said_of(given: Any) -> None:
    shapes = DynamicShapes.parse({"parts": [given]}, Nested(), ([Couple(X, Y)],), {})
    assert [(dim.flat_index, dim.axis, dim.label) for dim in shapes.dynamic] == [(1, 0, "n")]
    nested = DynamicShapes.parse({"parts": [[[None, {0: "n"}], None]]}, Nested(), ([Couple([X, Y], X)],), {})
    assert [(dim.flat_index, dim.axis, dim.label) for dim in nested.dynamic] == [(1, 0, "n")]


@pytest.mark.parametrize(
    ("given", "source"),
    [
        (
            {"x": [Dim.AUTO(min=2, max=9), Dim.DYNAMIC], "y": None},
            '{"x": [torch.export.Dim.AUTO(min=2, max=9), torch.export.Dim.DYNAMIC], "y": None}',
        ),
        (({0: 4}, {1: "n"}), '({0: 4}, {1: "n"},)'),
        (({0: "größe"}, ()), '({0: "größe"}, (),)'),
        (({0: Dim.AUTO(max=9)}, ()), "({0: torch.export.Dim.AUTO(max=9)}, (),)"),
    ],
)
def test_the_source_of_shapes(given: Any, source: str) -> None:
    assert parsed(given).as_source() == f"dynamic_shapes = {source}"


@pytest.mark.parametrize(
    ("dim", "lines"),
    [
        (Dim("n"), ['n = torch.export.Dim("n")']),
        (Dim("n", min=2), ['n = torch.export.Dim("n", min=2)']),
        (Dim("n", max=8), ['n = torch.export.Dim("n", max=8)']),
        (Dim("n", min=2, max=8), ['n = torch.export.Dim("n", min=2, max=8)']),
    ],
    ids=["bare", "min", "max", "both"],
)
def test_the_source_of_dims(dim: Any, lines: list[str]) -> None:
    assert parsed(({0: dim}, {0: 2 * dim})).as_source().splitlines() == [*lines, "dynamic_shapes = ({0: n}, {0: 2*n},)"]


def test_sizes_that_a_dim_allows() -> None:
    dim = parsed(({0: BATCH}, None)).dims[0]
    assert [dim.allows(size) for size in (1, 2, 64, 65)] == [False, True, True, False]
    assert [dim.name, dim.place] == ["batch", "x.shape[0]"]
    (opened, *_) = parsed(True).dims
    assert opened.name == "x.shape[0]"
    assert opened.may_stay
    assert not opened.stays


@pytest.mark.parametrize(("derive", "least"), [(lambda dim: dim - 1, 2), (lambda dim: 2 * dim - 7, 4)])
def test_a_dim_that_could_be_negative_is_refused(derive: Callable[[Dim], Dim], least: int) -> None:
    x, length = torch.ones(8), Dim("length")
    with pytest.raises(InvalidArgument, match=rf"min={least}\b"):
        DynamicShapes.parse({"x": {0: derive(length)}}, lambda x: x, (x,), {})
    assert DynamicShapes.parse({"x": {0: derive(Dim("length", min=least))}}, lambda x: x, (x,), {}).dims[0].least == 1


@pytest.mark.parametrize(("size", "wanted"), [(5, 2), (9, 4), (4, None)])
def test_a_derived_dim_knows_the_size_that_it_is_computed_from(size: int, wanted: int | None) -> None:
    n = Dim("n", min=1, max=64)
    dims = {dim.place: dim for dim in parsed(({0: 2 * n + 1}, {0: n}), args=(torch.ones(size, 6), torch.ones(7, 6))).dims}
    assert dims["x.shape[0]"].root == ("n", wanted)
    assert dims["y.shape[0]"].root == ("n", 7)


@pytest.mark.parametrize(
    ("name", "label"),
    [("batch size", "batch_size"), ("2n", "dim_2n"), ("past + n", "past_n_2"), ("a,b", "a_b"), ("?", "dim"), ("\x1b", "dim")],
)
@pytest.mark.parametrize("argument", ["dynamic_shapes", "dynamic_axes"])
def test_a_name_that_is_no_identifier_is_changed(name: str, label: str, argument: str) -> None:
    """Also to one that no other dim has."""
    given = {"x": {0: name}, "y": {0: "past_n"}, "z": {0: name}}
    names = ["x", "y", "z"]
    args = torch.ones(2, 3), torch.ones(4, 3), torch.ones(2, 3)
    program = onnxplain.export(lambda x, y, z: (x + z, y * 2), args, input_names=names, **{argument: given})
    assert [value.shape[0] for value in program.model.graph.inputs] == [label, "past_n", label]
    (changed,) = (each for each in program.diagnostics.findings if each.rule.id == "OXP4001")
    assert (changed.rule.kind, changed.rule.asked, changed.rule.given) == ("dim", name, label)
    torch.testing.assert_close(program(torch.ones(5, 3), torch.ones(1, 3), torch.ones(5, 3))[0], torch.full((5, 3), 2.0))


def test_names_of_equal_dims_that_are_no_identifiers() -> None:
    """One size has one name, and different names are not taken for one."""
    args = torch.ones(2, 3), torch.ones(2, 3), torch.ones(4, 3)
    shapes = ({0: "a b"}, {0: "a.b"}, {0: "a-b"})
    program = onnxplain.export(lambda x, y, z: (x + y, z * 2), args, dynamic_shapes=shapes)
    assert [value.shape[0] for value in program.model.graph.inputs] == ["a_b", "a_b", "a_b_3"]
    changed = {each.rule.asked: each.rule.given for each in program.diagnostics.findings if each.rule.id == "OXP4001"}
    assert changed == {"a b": "a_b", "a.b": "a_b", "a-b": "a_b_3"}


@pytest.mark.parametrize("argument", ["dynamic_shapes", "dynamic_axes"])
def test_a_name_is_not_empty(argument: str) -> None:
    given = {"input": {0: " "}}
    with pytest.raises(InvalidArgument, match=argument):
        onnxplain.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),), **{argument: given})


@pytest.mark.parametrize("argument", ["dynamic_shapes", "dynamic_axes"])
def test_an_axis_has_one_entry(argument: str) -> None:
    axes = {"input": {0: "a", -2: "b"}}
    with pytest.raises(InvalidArgument, match=argument):
        onnxplain.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),), **{argument: axes})


class Tree(torch.nn.Module):
    def forward(self, a: dict[str, list[torch.Tensor]], b: tuple[torch.Tensor, ...]) -> torch.Tensor:
        return a["x"][0] + b[0]


@pytest.mark.parametrize("dim", ["n", Dim("n")])
def test_lists_and_tuples_stand_for_each_other(dim: Any) -> None:
    given = {"a": {"x": ({0: dim},)}, "b": [{0: dim}]}
    program = onnxplain.export(Tree(), ({"x": [torch.ones(2, 3)]}, (torch.ones(2, 3),)), dynamic_shapes=given)
    assert [value.shape[0].value for value in program.model.graph.inputs] == ["n", "n"]


def test_dims_of_all_tensors_in_a_list() -> None:
    args = ({"x": [torch.ones(2, 3), torch.ones(2, 4)]}, (torch.ones(2, 3),))
    program = onnxplain.export(Tree(), args, dynamic_shapes={"a": {"x": {0: "n"}}, "b": {-2: "n"}})
    assert [[value.shape[0].value, value.shape[1]] for value in program.model.graph.inputs] == [["n", 3], ["n", 4], ["n", 3]]
