"""The state that an export could change in torch and in the process: every callable of torch, and the settings of the process."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

State = Mapping[tuple[str, ...], object]


def state() -> State:
    """The current objects, by their paths."""
    found = dict(_callables())
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
    }


def changes(before: State, after: State) -> list[tuple[str, ...]]:
    """The paths whose object has changed. New objects, such as modules that torch loads late, are not changes."""
    return [way for way, value in before.items() if way in after and after[way] is not value and after[way] != value]


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
