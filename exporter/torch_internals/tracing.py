"""FX nodes as torch's tracers make them, and the lines of the code that torch generates from graphs."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import torch

from . import generated_code
from .patching import Slot, wrapped
from .put_back import put_back
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, fx: all names of this file. Every tracer makes its nodes in TracerBase.create_node.
_CREATE_NODE = Symbol(
    "torch.fx.proxy:TracerBase.create_node",
    without="findings in a helper function are at the line of forward that calls it",
)
Symbol("torch.fx.proxy:TracerBase.record_stack_traces", without="a capture takes longer")

_NOTHING = object()

_newest: ContextVar[tuple[Any, torch.fx.Node] | None] = ContextVar("_newest", default=None)


def answering_that_it_exports() -> AbstractContextManager[None]:
    """While it is open, `torch.compiler.is_exporting()` is True in this context, although nothing is captured."""
    return wrapped(Slot(torch.compiler, "is_exporting"), lambda _: True)


def load() -> None:
    """Loads the modules that the first call of `torch.export.export` loads (read in torch 2.11, 2.13 and 2.15), which takes a second."""
    with suppress(ImportError):
        importlib.import_module("torch.export._trace")


@contextmanager
def each_new_node(on_node: Callable[[torch.fx.Node, str], None]) -> Iterator[None]:
    """Calls `on_node` with every FX node that a tracer makes, and its kind, such as `call_function`. The nodes lack the stacks of torch.

    Nodes of TorchDynamo, which also traces the branches of torch.cond, keep the whole stacks that TorchDynamo writes.
    """
    if not _CREATE_NODE.is_present:
        yield
        return

    def create_node(original: Any, tracer: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
        if type(tracer).__module__.startswith("torch._dynamo"):
            return original(tracer, kind, *args, **kwargs)
        # NOTE: torch's stack has fewer frames, and it is slow: torch looks up the source of every frame for every node.
        tracer.record_stack_traces = False
        node: torch.fx.Node = original(tracer, kind, *args, **kwargs)
        _newest.set((tracer, node))
        on_node(node, kind)
        return node

    try:
        with wrapped(Slot(torch.fx.proxy.TracerBase, "create_node"), create_node):
            yield
    finally:
        _newest.set(None)


def newest_node() -> tuple[Any, torch.fx.Node] | None:
    """The last node of `each_new_node`, and its tracer: the operator that runs now. None outside of it."""
    return _newest.get()


# NOTE: while a tracer runs, torch.nn.Module has another `__call__` and another `__getattr__`, for all threads.
_PATCH_METHOD = Symbol(
    "torch.fx._symbolic_trace:_Patcher.patch_method",
    without="modules that other threads run during an export may fail",
)


@contextmanager
def hidden_from_other_threads() -> Iterator[None]:
    """Hides the patches of this thread's tracers from other threads, which get the originals."""
    if not _PATCH_METHOD.is_present:
        yield
        return

    replaced: list[tuple[type, str, Any, Any]] = []

    def patch_method(original: Any, patcher: Any, cls: type, name: str, new: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        here, old = threading.get_ident(), getattr(cls, name)

        @functools.wraps(new)
        def only_here(*args: Any, **kwargs: Any) -> Any:
            return (new if threading.get_ident() == here else old)(*args, **kwargs)

        replaced.append((cls, name, old, only_here))
        return original(patcher, cls, name, only_here, *args, **kwargs)

    def undo() -> None:
        # NOTE: torch restores them itself, unless an interrupt comes at that moment.
        for cls, name, old, new in reversed(replaced):
            if vars(cls).get(name) is new:
                setattr(cls, name, old)

    with put_back(undo), wrapped(Slot(torch.fx._symbolic_trace._Patcher, "patch_method"), patch_method):
        yield


# NOTE: while a tracer runs, functions that `torch.fx.wrap` names have wrappers in the globals of their modules.
_PATCH = Symbol("torch.fx._symbolic_trace:_Patcher.patch", without="an interrupted export may leave wrappers of torch.fx in modules")
_PATCHER = Symbol("torch.fx._symbolic_trace:CURRENT_PATCHER", without="an interrupted export may leave a tracer's patches to the next one")


@contextmanager
def wrappers_as_before() -> Iterator[None]:
    """Puts back what a tracer wraps in the globals of modules, after an interrupt that comes while torch does so."""
    if not _PATCH.is_present:
        yield
        return

    replaced: list[tuple[dict[str, Any], str, Any, Any]] = []
    owner = torch.fx._symbolic_trace
    before = getattr(owner, _PATCHER.name, None)

    def patch(original: Any, patcher: Any, namespace: dict[str, Any], name: str, new: Any, *args: Any, **kwargs: Any) -> Any:
        replaced.append((namespace, name, namespace.get(name, _NOTHING), new))
        return original(patcher, namespace, name, new, *args, **kwargs)

    def undo() -> None:
        for namespace, name, old, new in reversed(replaced):
            if namespace.get(name) is new:
                namespace.pop(name) if old is _NOTHING else namespace.update({name: old})
        if _PATCHER.is_present and owner.CURRENT_PATCHER is not before:
            owner.CURRENT_PATCHER = before

    with put_back(undo), wrapped(Slot(owner._Patcher, "patch"), patch):
        yield


# NOTE: TorchDynamo replaces it while it compiles, and puts it back, unless an interrupt comes before the `try` of that.
_FORWARD_FROM_SOURCE = Symbol(
    "torch.fx.graph_module:_forward_from_src",
    without="an interrupted export may leave a function of TorchDynamo in torch.fx",
)


@contextmanager
def generated_code_as_before() -> Iterator[None]:
    """Puts back what makes functions from generated code, where this export or a trial of it was interrupted."""

    def undo() -> None:
        slot = Slot(torch.fx.graph_module, "_forward_from_src")
        if _FORWARD_FROM_SOURCE.is_present and slot.get() is not inspect.unwrap(slot.get()):
            slot.put(inspect.unwrap(slot.get()))

    with put_back(undo):
        yield


_FILE = "<eval_with_key>."
_WITHOUT_LINES = "findings in a branch of torch.cond are at the line of torch.cond"
Symbol("torch.fx.graph_module:_EvalCacheLoader._get_key", without=_WITHOUT_LINES, names=(_FILE,))


def is_generated(file: str) -> bool:
    """Whether torch generated the code of a `file` from a graph."""
    return file.startswith(_FILE)


def node_of_generated(frame: types.FrameType) -> torch.fx.Node | None:
    """The FX node of the line of generated code that `frame` is at.

    TorchDynamo turns a branch of torch.cond into a graph, which then runs as Python instead of the user's lines.
    """
    # NOTE: the lines are counted below the `def`.
    graph_module = frame.f_locals.get("self")
    index = (generated_code.lines_of(graph_module) or {}).get(frame.f_lineno - frame.f_code.co_firstlineno)
    if not isinstance(graph_module, torch.fx.GraphModule) or index is None:
        return None
    return next(itertools.islice(graph_module.graph.nodes, index, None), None)
