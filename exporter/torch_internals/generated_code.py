"""The Python code that torch generates from a graph: made when it is first needed.

torch generates it anew after every change of a graph module, six times in a capture, and an export runs none of it. That takes a tenth
of the time of a capture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .patching import Slot, wrapped
from .symbols import Attribute, Symbol

_RECOMPILE = Symbol("torch.fx.graph_module:GraphModule.recompile", without="exports take a tenth longer")
_GENERATOR = Attribute("torch.fx.graph:Graph._codegen", without=_RECOMPILE.without)

_LINES = Attribute(
    "torch.fx.graph_module:GraphModule._lineno_map", without="findings in a branch of torch.cond are at the line of torch.cond"
)


def lines_of(module: object) -> Any:
    """For each line of a graph module's code, the index of the node that it calls; None if there is no code."""
    return _LINES.of(module)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """While it is open, a graph module that torch compiles gets its code when it is first called, or when its code is read."""
    if not (_RECOMPILE.is_present and _GENERATOR.is_present):
        yield
        return
    with wrapped(Slot(torch.fx.GraphModule, "recompile"), _defer):
        yield


def _defer(recompile: Callable[..., Any], module: torch.fx.GraphModule) -> Any:
    # NOTE: read in torch 2.11, 2.13 and 2.15, fx/graph_module.py: each graph module has its own class, and `recompile` puts the function
    # there. For other kinds of code generators, `recompile` also copies how the inputs are nested.
    if type(module.graph._codegen) is not torch.fx.graph.CodeGen:
        return recompile(module)
    own: Any = type(module)

    def compiled(module: torch.fx.GraphModule) -> None:
        if "code" in vars(own):
            del own.code
        recompile(module)

    def forward(module: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        compiled(module)
        return own.forward(module, *args, **kwargs)

    def code(module: torch.fx.GraphModule) -> str:
        compiled(module)
        return module.code

    own.forward, own.code = forward, property(code)
    return None
