"""onnxscript in this context: who evaluates its operators, which operators its opsets have, and what torchlib's decorator does."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import onnx

from .patching import Slot, wrapped


@contextlib.contextmanager
def evaluated_by(evaluator: Any) -> Iterator[None]:
    """While it is open, calls of onnxscript's operators and functions from this context go to `evaluator`, an onnxscript evaluator.

    Opsets of domains that ONNX does not define have every operator that is named.
    """
    from onnxscript import values

    def operator(original: Any, opset: values.Opset, name: str) -> Any:
        # NOTE: onnxscript accepts these in functions that it has parsed, but not in functions that run as Python (read in 0.7.2).
        if opset.domain in _onnx_domains() or name.startswith("__"):
            return original(opset, name)
        return values.Op(opset, name)

    with _evaluator(evaluator), wrapped(Slot(values.Opset, "__getattr__"), operator):
        yield


@contextlib.contextmanager
def _evaluator(evaluator: Any) -> Iterator[None]:
    from onnxscript import evaluator as evaluators

    # NOTE: read in onnxscript 0.7.2: each call of an operator asks `default` of the module that defines it, for all threads alike.
    # `default_as` would change the answer for all threads as well.
    default = Slot(sys.modules[evaluators.default.__module__], "default")
    with wrapped(default, lambda _: evaluator), wrapped(Slot(evaluators, "default_as"), lambda _, other: _evaluator(other)):
        yield


def import_torchlib(package: str, decorator: Callable[..., Any]) -> None:
    """Imports `package`, one of torchlib, with `decorator` for its functions, and takes it out of `sys.modules` again.

    Others expect compiled functions there.
    """
    from onnxscript.function_libs.torch_lib import registration

    try:
        with wrapped(Slot(registration, "torch_op"), lambda _, *args, **kwargs: decorator(*args, **kwargs)):
            importlib.import_module(package)
    finally:
        for module in [module for module in sys.modules if module == package or module.startswith(f"{package}.")]:
            del sys.modules[module]
        parent, _, name = package.rpartition(".")
        vars(sys.modules[parent]).pop(name, None)


@functools.cache
def _onnx_domains() -> frozenset[str]:
    """The domains that ONNX defines."""
    return frozenset(schema.domain for schema in onnx.defs.get_all_schemas())
