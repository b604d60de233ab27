"""The state that an export could change in torch and in the process: every callable of torch, kernels, options, settings of the process."""

from __future__ import annotations

import gc
import logging
import pkgutil
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils import _python_dispatch

from onnxplain.torch_internals import config, fake_kernels, loop_gradients, recurrent_shapes
from onnxplain.torch_internals.symbols import Symbol

State = Mapping[tuple[str, ...], object]


def state() -> State:
    """The current objects, by their paths."""
    found = dict(_callables()) | dict(_options()) | dict(_kernels())
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.split(".")[0] == "torch" and isinstance(logger, logging.Logger):
            found |= {("log", name, str(id(handler))): list(handler.filters) for handler in logger.handlers}
    return found | {
        ("stderr",): sys.stderr,
        ("showwarning",): warnings.showwarning,
        ("filters",): list(warnings.filters),
        ("gc",): gc.isenabled(),
        ("trace",): sys.gettrace(),
        ("hook",): sys.excepthook,
        ("thread",): threading.Thread.start,
        ("job",): ThreadPoolExecutor.submit,
        ("depth",): sys.getrecursionlimit(),
        ("gradients",): (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        ("function modes",): torch.overrides._get_current_function_mode_stack(),
        ("dispatch modes",): [*_python_dispatch._get_current_dispatch_mode_stack(), torch._ops._len_torch_dispatch_stack_pre_dispatch()],
        ("dispatch keys",): [str(read()) for read in (torch._C._dispatch_tls_local_include_set, torch._C._dispatch_tls_local_exclude_set)],
    }


def changes(before: State, after: State) -> list[tuple[str, ...]]:
    """The paths whose object has changed. New objects, such as modules that torch loads late, are not changes."""
    return [way for way, value in before.items() if way in after and after[way] is not value and after[way] != value]


def _options() -> Iterator[tuple[tuple[str, ...], object]]:
    """The options of torch that an export switches."""
    for each in vars(config).values():
        if isinstance(each, Symbol) and each.is_present:
            yield ("option", each.path), pkgutil.resolve_name(each.path)


def _kernels() -> Iterator[tuple[tuple[str, ...], object]]:
    """The kernels of the operators whose kernels an export replaces, and the operators with a fake kernel."""
    loops = (getattr(torch.ops.higher_order, name, None) for name in loop_gradients._OPERATORS)
    for operator in (*recurrent_shapes._shapes(), *loops):
        yield ("kernels", str(operator)), dict(getattr(operator, "py_kernels", {}))
    yield ("fake kernels",), dict(fake_kernels.TABLE.value or {})


def _callables() -> Iterator[tuple[tuple[str, ...], object]]:
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in ("torch", "onnxscript", "onnx_ir") or not isinstance(module, types.ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            if not callable(value):
                continue
            yield (name, attribute), value
            if isinstance(value, type) and vars(value).get("__module__") == name:
                members = ((member, each) for member, each in list(vars(value).items()) if callable(each) or hasattr(each, "__get__"))
                yield from (((name, attribute, member), each) for member, each in members)
