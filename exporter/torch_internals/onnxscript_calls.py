"""onnxscript in this context: who evaluates its operators, which operators its opsets have, and what torchlib's decorator does."""

from __future__ import annotations

import contextlib
import functools
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


def torchlib_decorated_by(decorator: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """While it is open, `decorator` decorates the functions of the modules of torchlib that this context imports."""
    from onnxscript.function_libs.torch_lib import registration

    return wrapped(Slot(registration, "torch_op"), lambda _, *args, **kwargs: decorator(*args, **kwargs))


@functools.cache
def _onnx_domains() -> frozenset[str]:
    """The domains that ONNX defines."""
    return frozenset(schema.domain for schema in onnx.defs.get_all_schemas())
