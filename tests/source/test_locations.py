"""FX nodes, frames and exceptions lead to the user's innermost line."""

from __future__ import annotations

import importlib
import pathlib
import sys
import traceback
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

import onnx_ir as ir
import pytest
import sympy
import torch
from marks import needs_columns

import onnxplain.diagnostics
import onnxplain.rules
from onnxplain.capture.observe.frames import Frames
from onnxplain.diagnostics import Evidence, Location, Region
from onnxplain.source import locations
from onnxplain.source.locations import Origin

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


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


@needs_columns
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
        (sympy.__file__, Origin.INTERNAL),
        ("<string>", Origin.USER),
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
    exec(compile(code, "<generated>", "exec"), vars(module))
    with pytest.raises(RuntimeError) as raised:
        module.run()
    evidence = locations.at_exception(raised.value)
    lines = [line for name in shown for line in marked(name)]
    assert [frame.line for frame in evidence.stack][-len(lines) :] == lines
    assert [frame.line for frame in evidence.stack].count(lines[0]) == 1
    assert evidence.stack[0].file == __file__, "the whole traceback counts where none of its frames is onnxplain's"
    assert evidence.location is not None
    assert evidence.location.line == lines[-1]


RETRIED = """
    def attempt():
        previous = None
        for _ in range(3):
            try:
                library(previous)  # attempt
            except RuntimeError as error:
                previous = error
        return previous
"""


def test_a_line_that_two_tracebacks_share_is_shown_once(load: Load, marked: Marked) -> None:
    module = load(RETRIED)
    exec(compile("def library(previous):\n    raise RuntimeError('no') from previous\n", "<generated>", "exec"), vars(module))
    evidence = locations.at_exception(module.attempt())
    assert [frame.line for frame in evidence.stack] == marked("attempt")


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


def frame_in(file: str, code: str = "def f():\n    return sys._getframe()\n", **values: object) -> types.FrameType:
    """The frame of the function `f` of `code`, as if it stood in `file`."""
    scope: dict[str, Any] = {"sys": sys, **values}
    exec(compile(code, file, "exec"), scope)
    frame: types.FrameType = scope["f"]()
    return frame


def test_who_asks_for_a_number() -> None:
    size = torch.export.export(lambda_module(), (torch.ones(3),), dynamic_shapes=({0: torch.export.Dim("n")},))
    symbol = next(node.meta["val"] for node in size.graph.nodes if node.op == "placeholder").shape[0]
    named = "def {name}(self=None):\n    return sys._getframe()\nf = lambda: {name}(own)\n"
    users, library = frame_in("model.py"), frame_in(pytest.__file__)
    asking = frame_in(torch.__file__, named.format(name="__bool__"), own=symbol)
    operator = frame_in(torch.__file__, named.format(name="select"), own=torch.ones(1))
    stand_in = frame_in(torch.__file__, named.format(name="min_max"), own=None)
    for outer in (users, library):
        assert locations.python_asks([asking, outer])
        assert locations.python_asks([asking, outer, operator])
        assert locations.python_asks([operator, asking, outer])
        # The replacement of `max` stands between the two for Python.
        assert locations.python_asks([asking, stand_in, outer])
        assert not locations.python_asks([asking, operator, outer])
        assert not locations.python_asks([stand_in, outer])
        assert not locations.python_asks([outer, asking, outer])
    assert not locations.python_asks([asking])
    assert not locations.python_asks([])


def lambda_module() -> torch.nn.Module:
    """A model that doubles."""

    class Double(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    return Double()


STANDARD = pathlib.Path(pathlib.__file__).parent


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("<stdin>", Origin.USER),
        ("<ipython-input-3-abc>", Origin.USER),
        ("<ipython>", Origin.INTERNAL),
        ("<frozen importlib._bootstrap>", Origin.INTERNAL),
        ("torch/nn.py", Origin.INTERNAL),
        ("my/torch/nn.py", Origin.USER),
        ("torchvision.py", Origin.USER),
        (str(pathlib.Path(torch.__file__).parent) + "vision/ops.py", Origin.LIBRARY),
        ("/opt/lib/python3/dist-packages/thing.py", Origin.LIBRARY),
        ("C:\\python\\site-packages\\thing.py", Origin.LIBRARY),
        ("/models/site-packages.py", Origin.USER),
        (str(STANDARD / "json" / "decoder.py"), Origin.INTERNAL),
        (str(STANDARD / "site-packages" / "thing.py"), Origin.LIBRARY),
        (str(pathlib.Path(onnxplain.diagnostics.__file__)), Origin.INTERNAL),
        (str(pathlib.Path(onnxplain.rules.__file__)), Origin.INTERNAL),
    ],
)
def test_owners_of_files(file: str, expected: Origin) -> None:
    assert locations.origin(file) is expected
    assert locations.is_users(file) is (expected is Origin.USER)
    assert locations.is_internal(file) is (expected is Origin.INTERNAL)
    assert locations.is_standard_library(file) is file.startswith(str(STANDARD / "json"))


@needs_columns
def test_frame_summaries(load: Load) -> None:
    file = str(load("def total(x):\n    é = 1; return (é +\n        x)\n").__file__)

    def summary(line: int | None, **position: int | None) -> traceback.FrameSummary:
        made = traceback.FrameSummary(file, line, "total")
        for name, value in {"colno": None, "end_lineno": None, "end_colno": None, **position}.items():
            object.__setattr__(made, name, value)
        return made

    # NOTE: the letter takes two bytes, and columns count characters.
    assert locations.summarized(summary(2, colno=12, end_lineno=3, end_colno=10)) == Location(file, Region(2, 12, 3, 11), "total")
    assert locations.summarized(summary(2, colno=4, end_lineno=None, end_colno=6)) == Location(file, Region(2, 5, 2, 6), "total")
    assert locations.summarized(summary(2, end_lineno=2, end_colno=6)) == Location(file, Region(2), "total")
    assert locations.summarized(summary(2, colno=4, end_lineno=2)) == Location(file, Region(2), "total")
    assert locations.summarized(summary(None)) == Location(file, Region(1), "total")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("block.1", "block.1"),
        ("", ""),
        ("L['self']", ""),
        ("L['self'].block", "block"),
        ("L__self___block", "block"),
        ("L__self__", ""),
        ("_export_root.block", "block"),
        ("_export_root", ""),
        ("block@1.fc@12", "block.fc"),
        ("a.L['self']", "a.L['self']"),
    ],
)
def test_the_path_of_a_module(path: str, shown: str) -> None:
    node = torch.fx.Graph().placeholder("x")
    node.meta["nn_module_stack"] = {"outer": ("outer", "Net"), "inner": (path, "Net")}
    location = locations.at_node(node).location
    assert (location.module if location else "") == shown


def test_a_node_without_modules_and_lines_has_no_place() -> None:
    node = torch.fx.Graph().placeholder("x")
    assert locations.at_node(node).location is None
    node.meta["nn_module_stack"] = {}
    assert locations.at_node(node).location is None
    node.meta["stack_trace"] = 'File "nowhere.py", line 3, in forward'
    assert locations.at_node(node).location == Location("nowhere.py", Region(3), "forward", module="")


def test_the_module_that_failed(load: Load) -> None:
    module = load(NESTED, "nested")
    net = module.Net()
    with pytest.raises(RuntimeError) as raised:
        net.layers[1].fc(torch.ones(2))
    found = locations.at_exception(raised.value, net).location
    assert found is not None
    assert found.module == "layers.1.fc"
    # A model that does not hold the failing module has no path for it.
    other = locations.at_exception(raised.value, module.Net()).location
    assert other is not None
    assert other.module == ""
    plain = locations.at_exception(raised.value).location
    assert plain is not None
    assert plain.module == ""


def test_a_module_whose_forward_is_called_by_itself() -> None:
    class Inner(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(7)

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner.forward(x)

    model = Outer()
    with pytest.raises(RuntimeError) as raised:
        model(torch.ones(2))
    found = locations.at_exception(raised.value, model).location
    assert found is not None
    assert found.module == "inner"


@pytest.mark.parametrize(
    ("decorators", "is_found"), [(0, True), (1, True), (99, True), (100, False)], ids=["none", "one", "the last line", "too many"]
)
def test_a_definition_is_searched_for_a_hundred_lines(load: Load, marked: Marked, decorators: int, is_found: bool) -> None:
    source = "def same(f):\n    return f\n" + "@same\n" * decorators + "def decorated(x):  # here\n    return x\n"
    location = locations.module_definition(load(source).decorated)
    assert location is not None
    assert location.line == (marked("here")[0] if is_found else 3)
    assert (location.region is not None and location.region.column) == (1 if is_found else None)


def test_traces_are_read_line_by_line(load: Load) -> None:
    file = str(load("def total(x):\n    return (x +\n            1)\n").__file__)

    def region(line: int, code: str, carets: str) -> Region | None:
        node = torch.fx.Graph().placeholder("x")
        node.meta["stack_trace"] = f'File "{file}", line {line}, in total\n{code}\n{carets}'
        (frame,) = locations.stack_of(node)
        return frame.region

    assert region(2, "return (x +", "        ^^^") == Region(2, 13, 2, 16)
    assert region(2, "    return (x +", "           ~^^^  ") == Region(2, 12, 2, 16)
    assert region(2, "  return (x +", "  ^^^^^^") == Region(2, 5, 2, 11)
    assert region(2, "return (x +", "") == Region(2)
    assert region(2, "return (x +", "not carets ^") == Region(2)
    assert region(2, "return x", "^^^^") == Region(2)
    assert region(9, "", "^^^^") == Region(9)


def test_steps_follow_a_node_to_the_operator_that_was_captured() -> None:
    def source(name: str, target: str, *before: object) -> types.SimpleNamespace:
        return types.SimpleNamespace(name=name, target=target, from_node=list(before))

    decomposed = [("captured", "mul"), ("prepared", "relu"), ("onnx", "relu")]
    assert flow(from_node=[source("mul", "aten.mul.Tensor")]) == decomposed
    assert flow(from_node=[source("relu", "aten.relu.default", source("mul", "aten.mul.Tensor"))]) == decomposed
    # Names of other things than operators do not count.
    assert flow(from_node=[source("mul", "aten.mul.Tensor", source("x", "x"))]) == decomposed
    assert flow(from_node=[source("relu", "aten.relu.default")]) == [("captured", "relu"), ("onnx", "relu")]
    assert flow(from_node=[]) == [("captured", "relu"), ("onnx", "relu")]


def test_the_steps_name_the_function_that_was_called() -> None:
    node = torch.fx.Graph().call_function(torch.ops.aten.relu.default, (), name="relu")
    node.meta.update(stack_trace='File "nowhere.py", line 3, in forward', torch_fn=("relu_1", "function.relu6"))
    assert "relu6" in locations.at_node(node).code_flow[0].message
    assert "function" not in locations.at_node(node).code_flow[0].message


def test_an_exception_that_the_user_raises_within_onnxplain(load: Load, marked: Marked) -> None:
    module = load(
        """
        def raising():
            raise LookupError("ours")  # raised
        """
    )
    within: dict[str, Any] = {}
    # Code of onnxplain: one function that calls what it is given, and one that raises itself.
    exec(compile("def call(given):\n    given()\ndef fail():\n    raise LookupError", str(onnxplain.diagnostics.__file__), "exec"), within)

    def place_of(function: Callable[[], object]) -> Location | None:
        with pytest.raises(LookupError) as raised:
            function()
        return locations.raised_by_user(raised.value)

    place = place_of(lambda: within["call"](module.raising))
    assert place is not None
    assert (place.file, [place.line], place.function) == (module.__file__, marked("raised"), "raising")
    # What onnxplain raises itself, or what it has no part in.
    assert place_of(within["fail"]) is None
    assert place_of(lambda: within["call"](within["fail"])) is None
    assert place_of(module.raising) is None


def test_the_files_of_a_model_are_its_own_and_those_that_the_program_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("model_of_three", "helper_of_three"):
        (tmp_path / f"{name}.py").write_text("import torch\n\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n        return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    model, helper = map(importlib.import_module, ("model_of_three", "helper_of_three"))
    namespace = types.ModuleType("namespace_of_three")
    monkeypatch.setitem(sys.modules, "namespace_of_three", namespace)
    try:
        found = locations.source_files(torch.nn.Sequential(model.Net(2, 2)))
    finally:
        for each in (model, helper):
            del sys.modules[each.__name__]
    assert {model.__file__, helper.__file__, torch.nn.Sequential.forward.__code__.co_filename} <= found
    assert not any(each is None or each.endswith("pathlib.py") for each in found)
