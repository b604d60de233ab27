"""FX nodes, frames and exceptions lead to the user's innermost line."""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType

import onnx_ir as ir
import pytest
import torch

from onnxplain.capture.observe.frames import Frames
from onnxplain.diagnostics import Evidence, Location, Region
from onnxplain.source import locations
from onnxplain.source.locations import Origin

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


with_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python knows no columns before 3.11")

NESTED = """
    import functools

    import torch


    def twice(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)  # wrapper
        return wrapper


    @twice
    def helper(h):
        é = h * 2; return é + torch.softmax(h, -1)  # helper


    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)

        def forward(self, x):
            return helper(self.fc(x))  # layer


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Layer(), Layer()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)  # net
            return sum([each.exp() for each in x.unbind()])  # comprehension
"""


def _export(model: torch.nn.Module, *, strict: bool = False) -> torch.export.ExportedProgram:
    args = (torch.randn(2, 3),)
    if strict:
        return torch.export.export(model.eval(), args, strict=True)
    with Frames() as frames, frames.on_nodes():
        return torch.export.export(model.eval(), args)


def _at(program: torch.export.ExportedProgram, operator: str) -> Evidence:
    return locations.at_node(next(node for node in program.graph.nodes if str(node.target) == operator))


def _place(location: Location | None) -> tuple[str, int | None]:
    assert location is not None
    return location.function, location.line


@pytest.mark.parametrize("strict", [False, True], ids=["non-strict", "strict"])
def test_helper_line_with_its_callers(load: Load, marked: Marked, strict: bool) -> None:
    evidence = _at(_export(load(NESTED, "nested").Net(), strict=strict), "aten.softmax.int")
    assert _place(evidence.location) == ("helper", marked("helper", "nested")[0])
    assert evidence.location is not None
    assert evidence.location.module == "layers.0"
    lines = [frame.line for frame in evidence.stack]
    assert lines == [marked(name, "nested")[0] for name in ("net", "layer", "wrapper", "helper")]


@with_columns
def test_columns_count_code_points(load: Load, marked: Marked, tmp_path: pathlib.Path) -> None:
    location = _at(_export(load(NESTED, "nested").Net()), "aten.softmax.int").location
    assert location is not None
    assert location.region is not None
    text = (tmp_path / "nested.py").read_text(encoding="utf-8").splitlines()[marked("helper", "nested")[0] - 1]
    assert location.region.column is not None
    assert location.region.end_column is not None
    assert text[location.region.column - 1 : location.region.end_column - 1] == "torch.softmax(h, -1)"


def test_comprehension_is_in_the_function_that_holds_it(load: Load, marked: Marked) -> None:
    evidence = _at(_export(load(NESTED, "nested").Net()), "aten.exp.default")
    assert evidence.location is not None
    assert evidence.location.line == marked("comprehension", "nested")[0]
    assert evidence.stack[0].function == "forward"


def test_place_survives_decomposition(load: Load, marked: Marked) -> None:
    program = _export(load(NESTED, "nested").Net()).run_decompositions()
    evidence = _at(program, "aten._softmax.default")
    assert _place(evidence.location) == ("helper", marked("helper", "nested")[0])
    *steps, last = (step.message for step in evidence.code_flow)
    assert last == "", "left to the text of the ONNX graph"
    assert ["softmax" in step for step in steps] == [True, True, True]
    assert ["aten.softmax.int" in step for step in steps] == [False, True, False]
    assert ["aten._softmax.default" in step for step in steps] == [False, False, True]


def test_torch_layer_is_blamed_on_its_caller(load: Load, marked: Marked) -> None:
    evidence = _at(_export(load(NESTED, "nested").Net()), "aten.linear.default")
    assert _place(evidence.location) == ("forward", marked("layer", "nested")[0])
    assert evidence.location is not None
    assert evidence.location.module == "layers.0.fc"


def test_node_without_stack_keeps_its_module() -> None:
    node = torch.fx.Graph().call_function(torch.relu, ())
    node.meta["nn_module_stack"] = {"root": ("", "Net"), "key": ("L['self'].block.1@2", "Block")}
    evidence = locations.at_node(node)
    assert evidence.location == Location("", module="block.1")
    assert evidence.stack == ()


def test_library_frame_is_related_to_the_users_line(
    load: Load, marked: Marked, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_layers.py").write_text("import torch\n\n\ndef gate(x):\n    return torch.tanh(x)\n")
    monkeypatch.syspath_prepend(folder)
    module = load(
        """
        import some_layers
        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                return some_layers.gate(x)  # here
        """
    )
    evidence = _at(_export(module.Net()), "aten.tanh.default")
    assert _place(evidence.location) == ("forward", marked("here")[0])
    assert [(place.function, place.line) for place in evidence.related] == [("gate", 5)]
    sys.modules.pop("some_layers")


def test_library_alone_is_blamed_on_itself(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    source = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.tanh(x)\n"
    (folder / "some_models.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    evidence = _at(_export(importlib.import_module("some_models").Net()), "aten.tanh.default")
    assert _place(evidence.location) == ("forward", 6)
    assert evidence.related == ()
    sys.modules.pop("some_models")


def test_exception_in_a_helper(load: Load, marked: Marked) -> None:
    model = load(NESTED, "nested").Net()
    with pytest.raises(RuntimeError) as raised:
        model(torch.randn(2, 4))
    evidence = locations.at_exception(raised.value, model)
    assert _place(evidence.location) == ("forward", marked("layer", "nested")[0])
    assert evidence.location is not None
    assert evidence.location.module == "layers.0.fc"


def test_exception_that_torch_raised_from_a_deeper_one(load: Load, marked: Marked) -> None:
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                return self.step(x)  # caller

            def step(self, x):
                return torch.cond(x.sum() > 0, lambda t: t[:1], lambda t: t[:1] - 1, (x,))  # here
        """
    )
    with pytest.raises(Exception, match=r".") as raised:
        torch.export.export(module.Net(), (torch.ones(4),))
    evidence = locations.at_exception(raised.value)
    assert _place(evidence.location) == ("step", marked("here")[0])
    assert [frame.line for frame in evidence.stack][-2:] == [*marked("caller"), *marked("here")]


def test_exception_that_the_user_raised_from_another_stays_the_users(load: Load, marked: Marked) -> None:
    module = load(
        """
        def lookup(table, key):
            return table[key]


        def checked(table, key):
            try:
                return lookup(table, key)
            except KeyError as error:
                raise ValueError(f"no {key}") from error  # here
        """
    )
    with pytest.raises(ValueError, match="no x") as raised:
        module.checked({}, "x")
    assert _place(locations.at_exception(raised.value).location) == ("checked", marked("here")[0])


def test_caller_is_the_users_frame(load: Load, marked: Marked) -> None:
    module = load(
        """
        from onnxplain.source import locations


        def export():
            return locations.callers()[0]  # here
        """
    )
    assert _place(module.export()) == ("export", marked("here")[0])


def test_code_without_a_file_has_a_line_and_no_columns() -> None:
    scope: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}
    exec(compile("def forward(x):\n    return x @ x\n", "/nowhere/model.py", "exec"), scope)
    with pytest.raises(RuntimeError) as raised:
        scope["forward"](torch.ones(2, 3))
    location = locations.at_exception(raised.value).location
    assert location == Location("/nowhere/model.py", Region(2), "forward")


def test_module_definition(load: Load, marked: Marked) -> None:
    module = load(
        """
        import torch


        def plain(x):  # function
            return x


        class Own(torch.nn.Module):
            @torch.no_grad()
            def forward(self, x):  # forward
                return x


        class Inherited(torch.nn.Sequential):  # class
            pass
        """
    )
    assert _place(locations.module_definition(module.plain)) == ("plain", marked("function")[0])
    assert _place(locations.module_definition(module.Own())) == ("forward", marked("forward")[0])
    assert _place(locations.module_definition(module.Inherited())) == ("Inherited", marked("class")[0])
    assert locations.module_definition(torch.nn.Linear(1, 1)) is None
    assert locations.module_definition(torch.relu) is None


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (__file__, Origin.USER),
        (torch.__file__, Origin.INTERNAL),
        (locations.__file__, Origin.INTERNAL),
        (pathlib.__file__, Origin.INTERNAL),
        (pytest.__file__, Origin.LIBRARY),
        ("<string>", Origin.INTERNAL),
        ("torch/fx/passes/runtime_assert.py", Origin.INTERNAL),
    ],
)
def test_origin(file: str, expected: Origin) -> None:
    assert locations.origin(file) is expected


WRAPPED = """
    def checked(function):
        return wrapped(function)  # outer


    def run():
        return checked(fails)


    def fails():
        return {}["x"]  # inner
"""


@pytest.mark.parametrize(
    ("clause", "shown"),
    [("from error", ["outer", "inner"]), ("", ["outer", "inner"]), ("from None", ["outer"])],
    ids=["from-the-cause", "implicit", "from-none"],
)
def test_an_exception_that_a_library_raised_from_the_users(load: Load, marked: Marked, clause: str, shown: list[str]) -> None:
    module = load(WRAPPED)
    code = (
        f"def wrapped(function):\n    try:\n        function()\n    except KeyError as error:\n        raise RuntimeError('no') {clause}\n"
    )
    exec(compile(code, "<string>", "exec"), vars(module))
    with pytest.raises(RuntimeError) as raised:
        module.run()
    evidence = locations.at_exception(raised.value)
    lines = [line for name in shown for line in marked(name)]
    assert [frame.line for frame in evidence.stack][-len(lines) :] == lines
    assert [frame.line for frame in evidence.stack].count(lines[0]) == 1
    assert evidence.stack[0].file == __file__, "the whole traceback counts where none of its frames is onnxplain's"
    assert evidence.location is not None
    assert evidence.location.line == lines[-1]


def test_only_the_nearest_callers_are_kept(load: Load, marked: Marked) -> None:
    module = load(
        """
        from onnxplain.source import locations


        def export(depth):
            return locations.callers() if depth == 0 else export(depth - 1)
        """
    )
    assert [place.function for place in module.export(20)] == ["export"] * 10
    assert [place.function for place in module.export(2)][:4] == [*["export"] * 3, "test_only_the_nearest_callers_are_kept"]


def function_of(file: str, code: str) -> Callable[..., bool]:
    """The function `f` of `code`, as if it stood in `file`."""
    scope = {"locations": locations}
    exec(compile(code, file, "exec"), scope)
    function: Callable[..., bool] = scope["f"]  # type: ignore[assignment]
    return function


def test_who_speaks() -> None:
    assert locations.user_speaks()
    speaks = "def f(above=0):\n    return locations.user_speaks(above)\n"
    library = function_of(torch.__file__, speaks)
    assert not library()
    assert library(1), "one frame above it is this test"
    # The standard library speaks for whoever calls it.
    standard = function_of(pathlib.__file__, speaks)
    assert standard()
    assert not function_of(torch.__file__, "def f(ask):\n    return ask()\n")(standard)


def test_the_onnx_node_that_a_message_names() -> None:
    graph = torch.fx.Graph()
    made = [graph.call_function(torch.ops.aten.relu.default, (), name=name) for name in ("short", "long")]
    nodes = [ir.node("Relu", [], name=name) for name in ("relu_1", "relu_12", None, "relu_3")]
    for node, origin in zip(nodes, made, strict=False):
        node.meta[locations.FX_NODE] = origin
    model = ir.Model(ir.Graph([], [], nodes=nodes), ir_version=10)
    assert locations.onnx_node("no kernel for relu_12", model) is nodes[1]
    assert locations.onnx_node("no kernel for relu_1", model) is nodes[0]
    assert locations.onnx_node("no kernel", model) is None
    evidence = locations.at_onnx_node("no kernel for relu_12", model)
    assert evidence is not None
    assert evidence.node is made[1]
    assert locations.at_onnx_node("no kernel", model) is None
    assert locations.at_onnx_node("no kernel for relu_3", model) is None


def flow(**meta: object) -> list[tuple[str, str]]:
    """The stage and the name of each step of a node."""
    node = torch.fx.Graph().call_function(torch.ops.aten.relu.default, (), name="relu")
    node.meta.update(meta)
    return [(step.graph, step.node) for step in locations.at_node(node).code_flow]


def test_the_steps_of_a_node() -> None:
    assert flow() == [("captured", "relu"), ("onnx", "relu")]
    assert flow(original_aten=torch.ops.aten.relu.default) == [("captured", "relu"), ("onnx", "relu")]
    decomposed = [("captured", "relu"), ("prepared", "relu"), ("onnx", "relu")]
    assert flow(original_aten=torch.ops.aten.relu6.default) == decomposed
    assert flow(original_aten=torch.ops.aten.relu6.default, **{locations.CAPTURED_AS: "relu6"}) == [("captured", "relu6"), *decomposed[1:]]
    assert flow(stack_trace='File "nowhere.py", line 3, in forward') == [("", ""), ("captured", "relu"), ("onnx", "relu")]
    node = torch.fx.Graph().placeholder("x")
    assert [(step.graph, step.node) for step in locations.at_node(node).code_flow] == [("captured", "x"), ("onnx", "x")]


TRACE = """
  File "{file}", line 4, in forward
    return total(x)
           ^^^^^^^^
  File "{file}", line 2, in total
    return x
  File "nowhere.py", line 7, in other
    return y
           ^
  File "{file}", line 4, in changed
    another line
           ^^^^^^^^
  File "{file}", line 4, in last
"""


def test_the_frames_in_a_stack_trace(load: Load) -> None:
    file = str(load("def total(x):\n    return x\ndef forward(x):\n    return total(x)\n").__file__)
    node = torch.fx.Graph().placeholder("x")
    node.meta["stack_trace"] = TRACE.format(file=file)
    assert locations.stack_of(node) == (
        Location(file, Region(4, 12, 4, 20), "forward"),
        Location(file, Region(2), "total"),
        Location("nowhere.py", Region(7), "other"),
        Location(file, Region(4), "changed"),
        Location(file, Region(4), "last"),
    )


def test_stacks_without_the_users_lines() -> None:
    inside = Location(torch.__file__, Region(1), "relu")
    assert locations.at_stack([inside]) == Evidence(None)
    assert locations.at_stack([inside], "layer").location == Location("", module="layer")
    users, outer, library = Location("model.py", Region(2)), Location(pytest.__file__, Region(7)), Location(pytest.__file__, Region(3))
    found = locations.at_stack([users, outer, library, inside], "layer")
    assert found.location == Location("model.py", Region(2), module="layer")
    assert found.stack == (users, outer, library)
    assert [place.line for place in found.related] == [3]
    assert locations.at_stack([library, users]).related == ()


RETURNS = """
    import torch


    def several(x):  # several
        if x:
            return 1
        return 2  # last


    def nothing(x):  # nothing
        pass


    class Net(torch.nn.Module):
        @torch.no_grad()
        async def forward(self, x):  # forward
            return x  # end


    class Plain(torch.nn.Sequential):  # class
        pass
"""


def test_the_last_return(load: Load, marked: Marked) -> None:
    module = load(RETURNS)
    assert _place(locations.last_return(module.several)) == ("several", marked("last")[0])
    assert _place(locations.last_return(module.nothing)) == ("nothing", marked("nothing")[0])
    assert _place(locations.last_return(module.Net())) == ("forward", marked("end")[0])
    scope: dict[str, Callable[[int], int]] = {}
    exec(compile("def f(x):\n    return x\n", "nowhere.py", "exec"), scope)
    assert _place(locations.last_return(scope["f"])) == ("f", 1)
    assert locations.last_return(torch.nn.ReLU()) is None
    assert locations.last_return(len) is None


def test_the_lines_of_definitions(load: Load, marked: Marked) -> None:
    module = load(RETURNS)
    line = marked("forward")[0]
    text = "        async def forward(self, x):  # forward"[4:]
    location = locations.module_definition(module.Net())
    assert location is not None
    assert location.region == Region(line, 5, line, len(text) + 1)
    assert _place(locations.class_definition(module.Plain)) == ("Plain", marked("class")[0])
    assert locations.class_definition(torch.nn.ReLU) is None
    assert locations.class_definition(int) is None
    assert _place(locations.definition_of(module.several)) == ("several", marked("several")[0])
    assert locations.definition_of(len) is None


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_a_scripted_module_has_no_definition(load: Load) -> None:
    source = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return x\n"
    scripted = torch.jit.trace(load(source).Net(), torch.ones(1))
    assert locations.module_definition(scripted) is None
