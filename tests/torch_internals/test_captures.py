"""What torch does differently during a capture: graphs, sizes, loops, recurrent layers, keyword inputs, and how it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from torch.export import Dim

import onnxplain
from onnxplain.torch_internals import (
    config,
    decompositions,
    dispatch_modes,
    dynamo,
    fake_tensors,
    functorch,
    keyword_inputs,
    known_weights,
    loop_gradients,
    min_max,
    modules,
    operator_kernels,
    operators,
    patching,
    python_frames,
    python_kernels,
    recurrent_shapes,
    shape_env,
    size_arguments,
    symbolic_expressions,
    torch_frames,
    tracing,
)

aten = torch.ops.aten
X = torch.ones(3, 4)


def exported(model: Any, args: tuple[Any, ...] = (X,), **kwargs: Any) -> torch.export.ExportedProgram:
    module = model if isinstance(model, torch.nn.Module) else _Calling(model)
    return torch.export.export(module, args, strict=False, **kwargs)


class _Calling(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Flagged(torch.nn.Module):
    def __init__(self, **buffers: torch.Tensor) -> None:
        super().__init__()
        for name, value in buffers.items():
            self.register_buffer(name, value)
        self.plain = torch.tensor([1, 0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.flag[0] and self.plain.sum() == 1:
            return x + 1
        return x


def test_small_buffers_and_plain_tensors_have_values() -> None:
    model = Flagged(flag=torch.ones(64, dtype=torch.int64))
    with known_weights.known(model):
        graph = exported(model).graph
    assert [node.target for node in graph.nodes if node.target is aten.add.Tensor] == [aten.add.Tensor]
    for unknown in (Flagged(flag=torch.ones(65, dtype=torch.int64)), Flagged(flag=torch.ones(2))):
        with known_weights.known(unknown), pytest.raises(shape_env.DATA_NEEDED.value):
            exported(unknown)
    with pytest.raises(shape_env.DATA_NEEDED.value):
        exported(model)


def test_small_values_that_are_computed_from_buffers_are_known() -> None:
    class Switched(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("flags", torch.tensor([0, 1]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if (self.flags + 1)[1] == 2 else x

    model = Switched()
    with known_weights.known(model):
        assert aten.add.Tensor in {node.target for node in exported(model).graph.nodes}


def test_a_buffer_that_is_written_loses_its_value() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(x.sum())
            return x + 1 if self.count[0] > 0 else x

    model = Counting()
    with known_weights.known(model), pytest.raises(shape_env.DATA_NEEDED.value):
        exported(model)
    assert model.count.item() == 0


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"batch_first": True}], ids=str)
def test_recurrent_layers_stay_one_node_with_a_dynamic_length(layer: Any, options: dict[str, bool]) -> None:
    model = layer(4, 5, **options).eval()
    x = torch.ones(3, 2, 4)
    with recurrent_shapes.by_shape():
        program = torch.export.export(model, (x,), dynamic_shapes={"input": {0: Dim("a"), 1: Dim("b")}}, strict=False)
        assert [each.shape for each in _tensors(model(x))] == [each.shape for each in _tensors(program.module()(x))]
    (node,) = (node for node in program.graph.nodes if node.target in (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input))
    longer = torch.ones(6, 7, 4)
    found = program.module()(longer)
    assert [tuple(each.shape) for each in _tensors(found)] == [tuple(each.shape) for each in _tensors(model(longer))]
    fake = [each.shape for each in node.meta["val"]]
    assert [len(shape) for shape in fake] == [3] * len(fake)
    assert fake[0][-1] == (10 if "bidirectional" in options else 5)


def _tensors(results: Any) -> list[torch.Tensor]:
    output, state = results
    return [output, *(state if isinstance(state, tuple) else (state,))]


def test_the_cell_state_of_a_projection_is_larger_than_its_output() -> None:
    with recurrent_shapes.by_shape():
        program = torch.export.export(torch.nn.LSTM(4, 5, proj_size=2).eval(), (torch.ones(3, 2, 4),), strict=False)
    (node,) = (node for node in program.graph.nodes if node.target is aten.lstm.input)
    assert [tuple(each.shape) for each in node.meta["val"]] == [(3, 2, 2), (1, 2, 2), (1, 2, 5)]


def test_kernels_are_replaced_and_back() -> None:
    found = operator_kernels.slots([aten.lstm.input, aten.add.Tensor], "CompositeImplicitAutograd", "NoSuchKey")
    for slot in found:
        before = slot.get()
        slot.put(len)
        assert slot.get() is len
        slot.put(before)
        assert slot.get() is before
    assert operator_kernels.slots([torch.ops.higher_order.while_loop], "Autograd", "NoSuchKey")[0].key[0] == id(
        torch.ops.higher_order.while_loop
    )
    assert operator_kernels.slots([], "Autograd") == []


def test_loops_over_weights_are_captured_without_gradients() -> None:
    class Looping(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> Any:
            from torch._higher_order_ops.while_loop import while_loop

            return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * self.weight), (torch.tensor(0), x))

    with loop_gradients.left_out():
        result = Looping()(X)[1]
        program = torch.export.export(Looping(), (X,), strict=False)
    assert not result.requires_grad
    assert torch.ops.higher_order.while_loop in {node.target for node in program.graph.nodes}


class Keywords(torch.nn.Module):
    def forward(self, x: torch.Tensor, **others: torch.Tensor) -> torch.Tensor:
        return x + others["y"]


def test_keyword_inputs_are_beside_others() -> None:
    signature = inspect.signature(Keywords().forward)
    assert keyword_inputs.variadic_keywords(signature) == "others"
    assert keyword_inputs.variadic_keywords(inspect.signature(Flagged().forward)) == ""
    assert keyword_inputs.beside({"x": 1, "others": {"y": 2}}, signature) == {"x": 1, "y": 2}
    assert keyword_inputs.beside({"x": 1}, signature) == {"x": 1}
    batch = Dim("batch")
    with keyword_inputs.beside_others():
        program = torch.export.export(Keywords(), (X,), {"y": X}, dynamic_shapes={"x": {0: batch}, "y": {0: batch}}, strict=False)
    assert program.module()(torch.ones(7, 4), y=torch.ones(7, 4)).shape == (7, 4)


def test_options_are_on_while_open() -> None:
    import torch.fx.experimental._config as options

    before = options.backed_size_oblivious
    with config.switched_on(config.SIZE_ONE):
        assert options.backed_size_oblivious is True
    assert options.backed_size_oblivious is before


def test_decompositions() -> None:
    assert decompositions.decomposition_of(aten.convolution.default) is None
    for operator in (aten.batch_norm.default, aten.hardswish.default):
        found = decompositions.decomposition_of(operator)
        assert found is not None
    assert decompositions.decomposition_of(aten.size.default) is None

    def find(operator: Any) -> Any:
        return decompositions.decomposition_of(operator) if operator is aten.hardswish.default else None

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y.relu_()
        return torch.nn.functional.hardswish(y) + torch.nn.functional.hardsigmoid(x)

    graph = decompositions.traced(function, (X,), find).graph
    called = {node.target for node in graph.nodes if node.op == "call_function"}
    assert aten.hardsigmoid.default in called
    assert called.isdisjoint({aten.hardswish.default, aten.relu_.default})
    assert aten.hardswish.default in {node.target for node in decompositions.traced(function, (X,), lambda _: None).graph.nodes}


def test_every_call_is_seen_with_its_result() -> None:
    seen: list[tuple[Any, int, tuple[int, ...]]] = []
    with dispatch_modes.each_call(lambda operator, args, result: seen.append((operator, len(args), tuple(result.shape)))):
        torch.cat((X, X), dim=1).sum(0)
    torch.relu(X)
    assert [each[0] for each in seen] == [aten.cat.default, aten.sum.dim_IntList]
    assert [each[1:] for each in seen] == [(2, (3, 8)), (2, (8,))]


def test_fake_tensors() -> None:
    with fake_tensors.FakeTensorMode() as mode:
        fake = torch.ones(3)
        view, another = fake.view(3, 1), torch.ones(3)
    meta = torch.ones(2, device="meta")
    assert [fake_tensors.is_fake(each) for each in (fake, X, meta, 3)] == [True, False, False, False]
    assert [fake_tensors.has_no_data(each) for each in (fake, X, meta)] == [True, False, True]
    assert fake_tensors.mode_of(fake) is mode
    assert fake_tensors.mode_of(X) is None
    assert fake_tensors.share_memory(fake, view)
    assert not fake_tensors.share_memory(fake, another)
    assert fake_tensors.checkpoint_offset(X) is None
    assert torch.func.vmap(lambda x: torch.tensor(functorch.is_wrapped(x)))(X).tolist() == [True] * 3
    assert functorch.is_wrapped(X) is False


def test_the_registered_parts_of_modules() -> None:
    inner = torch.nn.BatchNorm1d(4)
    inner.register_buffer("hidden", torch.ones(1), persistent=False)
    inner.register_forward_hook(before := lambda *_: None)
    inner.register_forward_pre_hook(after := lambda *_: None)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Sequential(inner), inner)
    model.register_module("none", None)
    assert [path for path, _ in modules.named_modules(model)] == ["", "0", "1", "1.0"]
    assert [path for path, _ in modules.named_modules(model, "root")] == ["root", "root.0", "root.1", "root.1.0"]
    assert {hook.function for hook in modules.forward_hooks(inner)} == {before, after}
    assert modules.parameters(model[0]) == {"weight": model[0].weight, "bias": None}
    assert modules.buffers(inner).keys() == {"running_mean", "running_var", "num_batches_tracked", "hidden"}
    assert list(modules.children(model)) == ["0", "1", "2", "none"]
    assert modules.without_state(inner) == {"hidden"}
    assert modules.scripted_name(torch.jit.script(torch.nn.ReLU())).endswith("ReLU")  # type: ignore[no-untyped-call]


def test_operators() -> None:
    assert operators.schema(aten.add.Tensor).overload_name == "Tensor"
    assert aten.add.Tensor in operators.overloads("add")
    assert operators.overloads("no_such_operator") == []
    assert operators.is_composite(aten.hardswish.default) is False
    assert operators.is_composite(aten.reshape.default) is True
    assert isinstance(torch.ops.higher_order.cond, operators.HigherOrderOperator)
    assert isinstance(aten.add, operators.OpOverloadPacket)


def test_expressions_as_python() -> None:
    from torch.utils._sympy.functions import FloorDiv, Max, Mod, ToFloat

    x = sympy.Symbol("x", integer=True)
    assert symbolic_expressions.as_python(FloorDiv(x, 2) + 1) == "(x // 2) + 1"
    assert symbolic_expressions.as_python(-FloorDiv(-x, 4)) == "-((-x) // 4)"
    assert [isinstance(each, symbolic_expressions.remainders()) for each in (Mod(x, 3), x)] == [True, False]
    assert [symbolic_expressions.is_pythons(each) for each in (Mod(x, 3) + 1, Max(x, 3), ToFloat(x), x + 1)] == [True, True, True, False]


def test_sizes_guards_and_their_symbols() -> None:
    made: list[Any] = []
    guards: list[sympy.Basic] = []

    def raises(*_: Any) -> None:
        raise ValueError("an observer fails")

    with (
        shape_env.observed(shape_env.SIZE_MADE, lambda environment, *_: made.append(environment)),
        shape_env.observed(shape_env.SIZE_MADE, raises),
    ):
        exported(lambda x: x + 1, dynamic_shapes={"x": {0: Dim("batch", max=9)}})
    assert made == []
    with (
        shape_env.observed(shape_env.SIZE_MADE, lambda environment, *_: made.append(environment)),
        shape_env.observed(shape_env.GUARD_MADE, lambda _, purpose, guard, *__: guards.append(guard)),
    ):
        program = exported(lambda x: x + 1 if x.shape[0] > 2 else x, dynamic_shapes={"x": {0: Dim.AUTO(max=9)}})
    assert made
    environment = made[0]
    symbol = shape_env.symbol_of(environment, ("x",), 0, 0)
    assert symbol is not None
    assert shape_env.symbols_by_source(environment)["L['x'].size()[0]"] == symbol
    assert shape_env.symbol_of(environment, ("y",), 0, 0) is None
    assert shape_env.range_of(environment, symbol) == (3, 9)
    assert shape_env.range_of(environment, sympy.Symbol("other")) is None
    assert list(program.range_constraints) == [symbol]
    assert (symbol > 2) in guards
    for none in (shape_env.replacements(None), shape_env.symbols_by_source(None), shape_env.assertions(None)):
        assert not none
    assert shape_env.range_of(None, symbol) is None
    before = list(environment.guards)
    with shape_env.without_guards(None), shape_env.without_guards(environment):
        environment.evaluate_expr(symbol < 7)
    assert environment.guards == before
    environment.evaluate_expr(symbol < 7)
    assert len(environment.guards) == len(before) + 1


def test_sizes_that_become_numbers() -> None:
    seen: dict[sympy.Basic, float] = {}
    with shape_env.fixed(seen.__setitem__):
        exported(lambda x: x + x.shape[0], dynamic_shapes={"x": {0: Dim("batch")}})
    assert seen == {}
    with shape_env.fixed(seen.__setitem__):
        exported(lambda x: x + int(x.shape[0]), dynamic_shapes={"x": {0: Dim.AUTO}})
    assert [(size.is_Symbol, number) for size, number in seen.items()] == [(True, 3)]


def test_a_file_that_torch_does_not_name() -> None:
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    assert "left_out.py" not in uninteresting_files()
    shape_env.leave_out("left_out.py")
    assert "left_out.py" in uninteresting_files()
    uninteresting_files().remove("left_out.py")
    # NOTE: these call the user's operators while a capture runs, and would be named in place of the user's line.
    assert {size_arguments.__file__, patching.__file__} <= uninteresting_files()


def test_the_size_of_a_flattened_input() -> None:
    class Environment:
        source_to_var = {"L['flat_args'][2].size()[1]": sympy.Symbol("s1"), "L['x'][0].size()[1]": sympy.Symbol("s2")}

    assert str(shape_env.symbol_of(Environment, ("z",), 2, 1)) == "s1"
    assert str(shape_env.symbol_of(Environment, ("x", torch.utils._pytree.SequenceKey(0)), 0, 1)) == "s2"


def test_each_new_node_has_its_kind() -> None:
    found: list[tuple[str, str]] = []
    with tracing.each_new_node(lambda node, kind: found.append((node.name, kind))):
        graph = torch.fx.symbolic_trace(lambda x: torch.relu(x)).graph  # type: ignore[no-untyped-call]
    torch.fx.symbolic_trace(lambda x: torch.relu(x))  # type: ignore[no-untyped-call]
    assert found == [(node.name, node.op) for node in graph.nodes]
    assert [kind for _, kind in found] == ["placeholder", "call_function", "output"]
    assert not any(node.stack_trace for node in graph.nodes)


def test_patches_of_a_tracer_are_hidden_from_other_threads() -> None:
    import threading

    before = torch.nn.Module.__call__
    results: list[torch.Tensor] = []

    class Running(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            thread = threading.Thread(target=lambda: results.append(torch.nn.Sequential(torch.nn.ReLU())(X)))
            thread.start()
            thread.join()
            result: torch.Tensor = self.inner(x)
            return result

    with tracing.hidden_from_other_threads():
        graph = torch.fx.symbolic_trace(Running()).graph
    assert [node.op for node in graph.nodes] == ["placeholder", "call_module", "output"]
    assert [each.shape for each in results] == [X.shape]
    assert torch.nn.Module.__call__ is before


def test_nodes_of_generated_code() -> None:
    seen: list[torch.fx.Node | None] = []
    here: list[bool] = []

    def looks(x: torch.Tensor) -> torch.Tensor:
        frame = python_frames.current(-1)
        assert frame is not None
        assert frame.f_back is not None
        caller = frame.f_back
        seen.append(tracing.node_of_generated(caller))
        here.append(tracing.is_generated(caller.f_code.co_filename))
        seen.append(tracing.node_of_generated(frame))
        return x

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    called = graph.call_function(looks, (graph.call_function(torch.relu, (x,)),))
    graph.output(called)
    torch.fx.GraphModule({}, graph)(X)
    assert here == [True]
    assert seen[0] is not None
    assert seen[0].target is looks
    assert seen[1] is None
    assert not tracing.is_generated(__file__)


def test_the_branches_of_a_failed_cond() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def fails(x: torch.Tensor) -> torch.Tensor:
        return x[:, 9]

    with pytest.raises(Exception) as caught:  # noqa: PT011 - torch's class, which changes with the version
        exported(lambda x: torch.cond(x.sum() > 0, double, fails, (x,)))
    found = torch_frames.branches_of_cond(caught.value)
    assert found is not None
    assert found[:2] == (double, fails)
    assert torch_frames.branches_of_cond(KeyError()) is None


def test_operators_without_a_fake_kernel() -> None:
    library = torch.library.Library("internals", "FRAGMENT")
    library.define("lonely(Tensor x) -> Tensor")
    library.impl("lonely", lambda x: x, "CPU")

    @torch.library.custom_op("internals::custom", mutates_args=())
    def custom(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    for operator in (torch.ops.internals.lonely.default, torch.ops.internals.custom.default):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - torch's class is anonymous
            exported(operator)
        assert torch_frames.operator_without_fake_kernel(caught.value) is operator
    assert torch_frames.operator_without_fake_kernel(KeyError()) is None
    kernel = python_kernels.python_kernel(torch.ops.internals.lonely.default)
    assert kernel is not None
    assert kernel.file == __file__
    assert torch.equal(kernel.function(X), X)
    assert python_kernels.python_kernel(aten.relu.default) is None
    assert python_kernels.python_kernel(aten.relu_.default) is None
    with python_kernels.WithoutData():
        assert torch.relu(X).shape == (3, 4)
        with pytest.raises(TypeError, match="item"):
            X[0, 0].item()


def test_constraints_that_do_not_hold() -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - torch's class
        exported(lambda x: x + torch.ones(3, 4), dynamic_shapes={"x": {0: Dim("batch")}})
    assert dynamo.user_error_type(caught.value) == "CONSTRAINT_VIOLATION"
    assert dynamo.user_error_type(KeyError()) == ""


@pytest.mark.parametrize(
    ("function", "found"),
    [("make_constraints", (True, False)), ("produce_guards_and_solve_constraints", (True, True)), ("make_fake_inputs", (False, False))],
)
def test_the_function_that_checks_constraints(function: str, found: tuple[bool, bool]) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def {function}():\n    raise ValueError(1)", namespace)
    with pytest.raises(ValueError, match="1") as caught:
        namespace[function]()
    assert (torch_frames.makes_constraints(caught.value), torch_frames.solves_constraints(caught.value)) == found


@pytest.mark.parametrize(("function", "found"), [("_tensor_min_max", True), ("min_max", True), ("dispatch", True), ("minimum", False)])
def test_the_function_that_stands_for_max_and_min(function: str, found: bool) -> None:
    namespace: dict[str, Any] = {"current": lambda: python_frames.current(-1)}
    exec(f"def {function}():\n    return current().f_back", namespace)
    assert torch_frames.stands_for_python(namespace[function]()) is found


SEVERAL: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "max of two": lambda x: torch.ones(max(x.shape[0], x.shape[1])),
    "max of three": lambda x: torch.ones(max(x.shape[0], x.shape[1], 2)),
    "min of three": lambda x: torch.ones(min(5, x.shape[1], x.shape[0])),
    "min of four": lambda x: torch.ones(min(x.shape[0] * 2, 6, 9, x.shape[1])),
    "max of a padding and a number": lambda x: torch.ones(max((x.shape[0] + 7) // 8 * 8 - x.shape[0], 3)),
    "numbers": lambda x: torch.ones(max(3, 4, 2)) * x.sum(),
    "floats": lambda x: x * max(1.5, 2.5, 0.5),
}


@pytest.mark.parametrize("function", SEVERAL.values(), ids=SEVERAL)
def test_the_largest_of_several_sizes_stays_symbolic(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with min_max.of_several_sizes():
        program = exported(function, dynamic_shapes={"x": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}})
    for shape in ((3, 4), (7, 3), (2, 9)):
        assert torch.equal(program.module()(torch.ones(shape)), function(torch.ones(shape)))


def test_what_was_at_work() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(5, 2))
    with pytest.raises(RuntimeError) as caught:
        exported(model)
    assert model[0] in list(torch_frames.modules_running(caught.value))
    assert any(value is model[0].weight or value is model[0] for value in torch_frames.values_on_the_way(caught.value))
    calls = [torch_frames.operator_at_work(frame) for frame, _, _ in python_frames.of_traceback(caught.value)]
    assert aten.linear.default in [call[0] for call in calls if call is not None]


def test_what_code_asks() -> None:
    sizes: list[bool] = []

    def answer(self: Any = None, func: Any = None) -> tuple[bool, bool]:
        frame = python_frames.current(-1)
        assert frame is not None
        return torch_frames.asks_for_number(frame), torch_frames.asks_for_truth(frame)

    def ask(x: torch.Tensor) -> torch.Tensor:
        sizes.append(answer(x.shape[0])[0])
        return x + 1

    exported(ask, dynamic_shapes={"x": {0: Dim("batch")}})
    assert sizes[0]
    assert answer(3) == (False, False)
    assert answer(func=torch.Tensor.__bool__) == (True, True)
    assert answer(func=torch.Tensor.__int__) == (True, False)


def test_what_torchdynamo_says_of_itself() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(Exception) as caught:  # noqa: PT011 - torch's class
        torch.export.export(_Calling(branches), (X,), strict=True)
    error = caught.value
    broken = next(each for each in (error, error.__cause__, error.__context__) if each is not None and dynamo.graph_break_type(each))
    assert dynamo.graph_break_type(broken) == dynamo.DATA_DEPENDENT_BRANCH
    assert [frame.name for frame in dynamo.interpreted_frames(broken)][-1] == "branches"
    assert dynamo.graph_break_type(KeyError()) == ""
    assert not dynamo.interpreted_frames(KeyError())
    assert dynamo.interpreted_stack() == []


def test_a_failing_capture_leaves_no_marks_on_the_inputs() -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.sum() > 0 else x

    x = torch.rand(3, 4)
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(Branches(), (x,), dynamic_shapes=({0: "rows"},), strategies=("strict",), try_fixes=False)
    assert vars(x) == {}
