"""Objects that hold tensors, as inputs and outputs: caches, dataclasses, subclasses of dict and list, and any class that can be rebuilt."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import pathlib
import types
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.utils import _pytree as pytree
from transformers import BartConfig, BartForConditionalGeneration, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.cache_utils import DynamicCache, StaticCache

import onnxplain
from onnxplain.request import DynamicShapes, containers

X, Y = torch.ones(3, 4), torch.full((3, 4), 2.0)
D = Dim.DYNAMIC


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    scale: int = 2
    mask: torch.Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("x", "y")
    x: torch.Tensor
    y: torch.Tensor


class Pair(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


class Plain(dict[str, Any]):
    pass


class Namespace(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


class Mirror(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__()
        for name, item in items.items():
            setattr(self, name, item)

    def __setattr__(self, name: str, item: Any) -> None:
        super().__setattr__(name, item)
        self[name] = item


class Ordered(OrderedDict[str, Any]):
    pass


class Counting(defaultdict[str, Any]):
    pass


class Numbers(list[Any]):
    pass


class State:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.settings, self.parts = x, {"eps": [1e-5]}, [y]


MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "dataclass": Batch,
    "slots": Slotted,
    "named tuple": Pair,
    "dict": lambda x, y: Plain(x=x, y=y),
    "namespace": lambda x, y: Namespace(x=x, y=y),
    "mirror": lambda x, y: Mirror(x=x, y=y),
    "ordered": lambda x, y: Ordered(x=x, y=y),
    "defaultdict": lambda x, y: Counting(list, {"x": x, "y": y}),
    "UserDict": lambda x, y: UserDict({"x": x, "y": y}),
    "list": lambda x, y: Numbers([x, y]),
    "attributes": State,
    "nested": lambda x, y: types.SimpleNamespace(inner=State(x, y), name="outer"),
}


class Doubled(torch.nn.Module):
    """Takes an object apart and returns another one of its class."""

    def __init__(self, make: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, value: Any) -> Any:
        x, y = pytree.tree_leaves(value)[:2]
        return self.make(x * 2, x + y)


@pytest.mark.parametrize("kind", MAKERS)
def test_objects_as_inputs_and_outputs(kind: str) -> None:
    make = MAKERS[kind]
    model = Doubled(make)
    program = onnxplain.export(model, (make(X, Y),), dynamic_shapes=True, verify=True)
    assert program.diagnostics.active == ()
    other = make(torch.ones(5, 4), torch.ones(5, 4))
    torch.testing.assert_close(list(program(other)), [torch.full((5, 4), 2.0)] * 2)
    assert type(program.exported_program.module()(other)) is type(other)


def test_attributes_and_their_objects_stay() -> None:
    state = State(X, Y)
    containers.register(state)
    leaves, structure = pytree.tree_flatten(state)
    again = pytree.tree_unflatten(leaves, structure)
    assert leaves == [X, Y] or all(map(torch.equal, leaves, [X, Y]))
    assert vars(again).keys() == vars(state).keys()
    assert again.settings == state.settings
    assert again.settings is not state.settings


class Loop:
    def __init__(self, x: Any) -> None:
        self.x, self.again = x, self


class Single:
    made: Any = None

    def __new__(cls, _: Any = None) -> Any:
        cls.made = cls.made or super().__new__(cls)
        return cls.made

    def __init__(self, x: Any) -> None:
        self.x = x


class Arrays:
    def __init__(self, x: Any) -> None:
        self.x, self.array = x, np.ones(3)


class Reading(torch.nn.Module):
    def forward(self, value: Any) -> torch.Tensor:
        result: torch.Tensor = value.x * 2
        return result


class Guarded:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __reduce_ex__(self, _: Any) -> Any:
        raise LookupError("no copies")


class Filled(dict[str, Any]):
    """Never empty."""

    def __new__(cls, *_: Any) -> Any:
        made = super().__new__(cls)
        dict.__setitem__(made, "x", X)
        return made

    def __init__(self, _: Any) -> None:
        super().__init__()

    @property
    def x(self) -> Any:
        return self["x"]


class Triple(tuple[Any, ...]):
    __slots__ = ()

    @property
    def x(self) -> Any:
        return self[0]


@pytest.mark.parametrize("cls", [Loop, Single, Arrays, Guarded, Filled, lambda x: Triple([x]), lambda x: Batch(Loop(x), x)])
def test_objects_that_are_more_than_their_parts(cls: Callable[[Any], Any]) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Reading(), (cls(X),))
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1008"]


OTHERS: dict[str, Callable[[], Any]] = {
    "complex": lambda: 1j,
    "dtype": lambda: torch.float32,
    "device": lambda: torch.device("cpu"),
    "layout": lambda: torch.strided,
    "memory format": lambda: torch.channels_last,
    "generator": torch.Generator,
    "generators": lambda: [{"own": torch.Generator()}],
    "module": lambda: torch.nn.Linear(2, 2),
    "distribution": lambda: torch.distributions.Normal(X, X),
    "storage": lambda: X.untyped_storage(),
    "object": object,
    "function": lambda: len,
    "class": lambda: int,
    "array": lambda: np.ones(3),
    "number of numpy": lambda: np.float32(1),
    "slice": lambda: slice(1, 2),
    "range": lambda: range(3),
    "bytes": lambda: b"x",
    "set": lambda: {1},
    "fraction": lambda: fractions.Fraction(1, 2),
    "decimal": lambda: decimal.Decimal("1.5"),
    "date": lambda: datetime.date(2026, 1, 1),
    "path": lambda: pathlib.Path("x"),
    "sparse": X.to_sparse,
    "sparse rows": X.to_sparse_csr,
    "nested": lambda: torch.nested.nested_tensor([X[0], X[1, :2]]),
    "jagged": lambda: torch.nested.nested_tensor([X[0], X[1, :2]], layout=torch.jagged),
    "quantized": lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.quint8),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", OTHERS)
def test_inputs_without_a_place_in_onnx(kind: str) -> None:
    value = OTHERS[kind]()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(lambda x, _: x + 1, (X, value))
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1008"]
    assert type(value) in (list, dict) or pytree.tree_is_leaf(value)


def test_a_class_that_the_user_registered_stays_as_it_is() -> None:
    class Own:
        def __init__(self, x: Any) -> None:
            self.x = x

    pytree.register_pytree_node(Own, lambda own: ([own.x], "own"), lambda parts, _: Own(*parts))
    containers.register(Own(X))
    assert pytree.tree_structure(Own(X)).context == "own"


def cache(layers: int) -> DynamicCache:
    made = DynamicCache()
    for layer in range(layers):
        made.update(torch.ones(2, 2, 5, 8), torch.ones(2, 2, 5, 8), layer)
    return made


class Caching(torch.nn.Module):
    def forward(self, x: torch.Tensor, past: Any = None, *, flag: bool = False, **others: Any) -> torch.Tensor:
        return x * 2 if flag else x + others["shift"]


KEY, VALUE = {0: "batch"}, {2: "past"}
FORMS: dict[str, Callable[[int], Any]] = {
    "by part": lambda layers: [[[KEY, VALUE]] * layers],
    "by attribute": lambda layers: {"layers": [{"keys": KEY, "values": VALUE}] * layers},
    "flat": lambda layers: [KEY, VALUE] * layers,
    "dims in tuples": lambda layers: (("batch", None, None, None), (None, None, "past", None)) * layers,
    "lists of keys and values": lambda layers: [[KEY] * layers, [VALUE] * layers],
    "named lists": lambda layers: {"key_cache": [KEY] * layers, "value_cache": [VALUE] * layers},
    "pairs": lambda layers: [(KEY, VALUE)] * layers,
}


@pytest.mark.parametrize(("form", "layers"), [(form, layers) for form in FORMS for layers in (1, 3)])
def test_forms_of_dynamic_shapes_for_a_cache(form: str, layers: int) -> None:
    past = cache(layers)
    containers.register(past)
    shapes = DynamicShapes.parse({"x": None, "past": FORMS[form](layers)}, Caching(), (X, past), {})
    expected = [(f"past.layers[{at}].{kind}.shape[{axis}]") for at in range(layers) for kind, axis in (("keys", 0), ("values", 2))]
    assert [dim.place for dim in shapes.dynamic] == expected
    assert shapes.for_torch()["past"] == [[[{0: D}, {2: D}]] * layers]


@pytest.mark.parametrize(("entry", "kept", "open_"), [({0: "batch", 2: "past"}, 8, 0), (True, 0, 16), (None, 0, 0)], ids=str)
def test_one_entry_for_a_whole_cache(entry: Any, kept: int, open_: int) -> None:
    past = cache(2)
    containers.register(past)
    shapes = DynamicShapes.parse({"x": None, "past": entry}, Caching(), (X, past), {})
    assert (len(shapes.dynamic), len(shapes.open)) == (kept, open_)


def test_axes_that_a_tensor_of_a_cache_lacks_are_left_out() -> None:
    past = types.SimpleNamespace(keys=torch.ones(2, 3, 4), length=torch.ones(5))
    containers.register(past)
    shapes = DynamicShapes.parse({"x": None, "past": {0: "first", -1: "last", -2: "before", 2: "third"}}, Caching(), (X, past), {})
    # The last axis of `keys` has two entries; the later one counts.
    assert [(dim.place, dim.label) for dim in shapes.dynamic] == [
        ("past.keys.shape[0]", "first"),
        ("past.keys.shape[1]", "before"),
        ("past.keys.shape[2]", "third"),
        ("past.length.shape[0]", "last"),
    ]


UNKNOWN = {
    "too few tensors": [KEY, VALUE, KEY],
    "too many tensors": [KEY] * 5,
    "lists of unequal length": [[KEY, KEY], [VALUE]],
    "a list of one column": [[KEY, KEY, KEY]],
    "three columns": [[KEY, KEY], [VALUE, VALUE], [KEY, KEY]],
    "pairs within pairs": [(KEY, [VALUE]), (KEY, [VALUE])],
    "axes and names": {0: "batch", "layers": None},
    "another name": {"layer": [[KEY, VALUE]] * 2},
    "a word": "batch",
    "an empty dict": {},
    "an empty list": [],
}


@pytest.mark.parametrize("entry", UNKNOWN.values(), ids=UNKNOWN)
def test_what_fits_no_form_is_left_to_torch(entry: Any) -> None:
    past = cache(2)
    containers.register(past)
    shapes = DynamicShapes.parse({"x": {0: "n"}, "past": entry}, Caching(), (X, past), {})
    assert shapes.given["past"] is entry


def test_a_container_within_an_object() -> None:
    """The entries have the structure of the container that the object wraps."""
    for inner, entry in (({"a": X, "b": Y}, {"a": {0: "n"}, "b": None}), ([X, [Y, X]], [{0: "n"}, [None, None]])):
        wrapped = types.SimpleNamespace(inner=inner)
        containers.register(wrapped)
        shapes = DynamicShapes.parse({"x": None, "past": entry}, Caching(), (X, wrapped), {})
        assert [dim.label for dim in shapes.dynamic] == ["n"]
        assert shapes.for_torch()["past"] == [{"a": {0: D}, "b": {}} if isinstance(inner, dict) else [{0: D}, [{}, {}]]]


def test_entries_for_keywords_and_constants() -> None:
    given = {"x": {0: "n"}, "shift": {0: "n"}}
    program = onnxplain.export(
        Caching(), (X,), kwargs={"mode": None, "flag": False, "shift": Y}, dynamic_shapes=given, verify=True, strategies=["non-strict"]
    )
    torch.testing.assert_close(program(torch.ones(7, 4), flag=False, shift=torch.ones(7, 4), mode=None)[0], torch.full((7, 4), 2.0))
    nested = DynamicShapes.parse({"x": {0: "n"}, "others": {"shift": {0: "n"}}}, Caching(), (X,), {"shift": Y})
    assert [dim.place for dim in nested.dynamic] == ["x.shape[0]", "others['shift'].shape[0]"]


SIZES = {"vocab_size": 19, "max_position_embeddings": 32}


def llama() -> tuple[PreTrainedModel, Callable[[int, int, int], dict[str, Any]]]:
    config = LlamaConfig(
        **SIZES, hidden_size=8, intermediate_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, use_cache=True
    )

    def inputs(batch: int, past: int, new: int) -> dict[str, Any]:
        known = DynamicCache()
        for layer in range(2 if past else 0):
            known.update(torch.randn(batch, 1, past, 4), torch.randn(batch, 1, past, 4), layer)
        ids, mask = torch.ones(batch, new, dtype=torch.long), torch.ones(batch, past + new, dtype=torch.long)
        return {"input_ids": ids, "attention_mask": mask, **({"past_key_values": known} if past else {})}

    return LlamaForCausalLM(config).eval(), inputs


def test_a_decoder_with_its_cache() -> None:
    model, inputs = llama()
    shapes = {"input_ids": {0: D, 1: D}, "attention_mask": {0: D, 1: D}, "past_key_values": {0: D, 2: D}}
    program = onnxplain.export(model, kwargs=inputs(2, 5, 3), dynamic_shapes=shapes, verify=True)
    assert program.diagnostics.active == ()
    caches = [f"{layer}.{kind}" for layer in range(2) for kind in ("key", "value")]
    assert [each.name for each in program.model.graph.inputs][2:] == [f"past_key_values.{each}" for each in caches]
    assert [each.name for each in program.model.graph.outputs] == ["logits", *(f"present.{each}" for each in caches)]
    for sizes in ((1, 9, 4), (3, 2, 1)):
        given = inputs(*sizes)
        got = program(**given)
        with torch.no_grad():
            torch.testing.assert_close(list(got), pytree.tree_leaves(model(**given)), rtol=1e-3, atol=1e-4)


def test_a_decoder_that_begins() -> None:
    model, inputs = llama()
    shapes = {name: {0: "batch", 1: "length"} for name in ("input_ids", "attention_mask")}
    program = onnxplain.export(model, kwargs=inputs(2, 0, 3), dynamic_shapes=shapes)
    given = inputs(3, 0, 5)
    with torch.no_grad():
        torch.testing.assert_close(list(program(**given)), pytree.tree_leaves(model(**given)), rtol=1e-3, atol=1e-4)


def test_a_static_cache_that_the_model_writes_and_returns() -> None:
    model, _ = llama()

    def inputs(batch: int, new: int) -> dict[str, Any]:
        known = StaticCache(config=model.config, max_cache_len=8)
        known.early_initialization(batch, 1, 4, torch.float32, torch.device("cpu"))
        return {"input_ids": torch.ones(batch, new, dtype=torch.long), "past_key_values": known}

    shapes = {"input_ids": {0: D, 1: D}, "past_key_values": {0: D}}
    program = onnxplain.export(model, kwargs=inputs(2, 3), dynamic_shapes=shapes)
    assert program.diagnostics.active == ()
    given = inputs(3, 5)
    got = program(**given)
    with torch.no_grad():
        torch.testing.assert_close(list(got), pytree.tree_leaves(model(**given)), rtol=1e-3, atol=1e-4)


def test_names_with_an_encoder() -> None:
    sizes = {f"{side}_{name}": number for side in ("encoder", "decoder") for name, number in (("layers", 1), ("attention_heads", 2))}
    model = BartForConditionalGeneration(BartConfig(**SIZES, **sizes, d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8)).eval()
    ids = torch.full((2, 4), 5)
    program = onnxplain.export(model, kwargs={"input_ids": ids, "decoder_input_ids": ids, "use_cache": True})
    expected = [f"present.0.{side}.{kind}" for side in ("decoder", "encoder") for kind in ("key", "value")]
    assert [each.name for each in program.model.graph.outputs] == ["logits", *expected, "encoder_last_hidden_state"]
