"""Which translation an operator gets: the user's before ours, and ours before torchlib's."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch

from onnxplain import ops
from onnxplain.diagnostics import InvalidArgument
from onnxplain.request import DEFAULT_OPSET
from onnxplain.torch_internals.operators import HigherOrderOperator, OpOverload, OpOverloadPacket

from . import torchlib

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""What torch's schemas accept as a namespace, as the name of an operator and as that of an overload (torch 2.11 to 2.15)."""

Origin = Literal["torchlib", "onnxplain", "user"]


@dataclasses.dataclass(frozen=True, slots=True)
class Translation:
    """A function that builds the ONNX nodes for one operator.

    Attributes:
        function: An onnxscript function, or a plain function that calls onnxscript opsets. It takes the operator's arguments by the
            ATen schema's order, with ONNX values for tensors.
        origin: Who wrote it.
        is_complex: True if it takes complex tensors, as real ones with a last dim of size 2 (real part, imaginary part); False if it
            takes real ones; None if it is right for both.
        inline: Whether its operators stand in the graph; False makes a function of them.
    """

    function: Callable[..., Any]
    origin: Origin
    is_complex: bool | None = False
    inline: bool = True

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "name", None) or getattr(self.function, "__name__", self.function))

    @property
    def domain(self) -> str:
        """The domain of the ONNX function: that of an onnxscript function, or the module of a Python function."""
        function_ir = getattr(self.function, "function_ir", None)
        return str(getattr(function_ir, "domain", None) or getattr(self.function, "__module__", None) or "")


def qualified_name(target: object) -> str:
    """`aten::add.Tensor` for an OpOverload, `aten::relu` for a default overload, `_operator::add` for a Python function.

    Higher-order operators are in the namespace `higher_order`.
    """
    if isinstance(target, OpOverload):
        return str(target.name())
    if isinstance(target, HigherOrderOperator):
        return f"higher_order::{target.name()}"
    return f"{getattr(target, '__module__', '')}::{getattr(target, '__name__', target)}"


def complex_dtype(node: torch.fx.Node) -> str | None:
    """The dtype, such as `complex64`, of the first complex tensor among the node's inputs and results; None if there is none."""
    for each in (*node.all_input_nodes, node):
        values = each.meta.get("val")
        # NOTE: every export asks this of every operator, several times.
        if isinstance(values, torch.Tensor):
            if values.is_complex():
                return str(values.dtype).removeprefix("torch.")
            continue
        for value in values if isinstance(values, list | tuple) else ():
            if isinstance(value, torch.Tensor) and value.is_complex():
                return str(value.dtype).removeprefix("torch.")
    return None


class OnnxRegistry:
    """Maps operators to translations.

    Args:
        opset_version: The ONNX opset of the exported models; an export to one that ONNX does not have fails with a finding.

    Raises:
        InvalidArgument: `opset_version` is not an int.
    """

    def __init__(self, opset_version: int = DEFAULT_OPSET) -> None:
        self._opset_version = checked_opset(opset_version)
        self._user: dict[str, list[Translation]] = {}

    @property
    def opset_version(self) -> int:
        """The ONNX opset of the exported models."""
        return self._opset_version

    def register_op(
        self,
        function: Callable[..., Any],
        namespace: str,
        op_name: str,
        overload: str | None = None,
        is_complex: bool = False,
        *,
        inline: bool = True,
    ) -> None:
        """Registers a user's translation. The last one registered for an operator takes precedence over all others.

        Args:
            function: An onnxscript function, or a plain function that calls onnxscript opsets.
            namespace: Such as `aten`.
            op_name: Such as `add`.
            overload: Such as `Tensor`; None or `default` is the default overload.
            is_complex: True if it takes complex tensors, as real tensors with a last dim of size 2.
            inline: False makes each call of the operator a call of an ONNX function, which is named after `function`.

        Raises:
            InvalidArgument: `function` is not callable (a TypeError), the name is malformed (a ValueError), or `is_complex` or `inline` is
                not a bool.
        """
        if not callable(function):
            raise InvalidArgument(f"function: expected a callable, got {function!r}")
        if not isinstance(is_complex, bool):
            raise InvalidArgument(f"is_complex: expected a bool, got {is_complex!r}")
        if not isinstance(inline, bool):
            raise InvalidArgument(f"inline: expected a bool, got {inline!r}")
        translation = Translation(function, "user", is_complex, inline)
        self._user.setdefault(_key(namespace, op_name, overload), []).append(translation)

    def register_target(self, target: object, functions: Sequence[Callable[..., Any]]) -> None:
        """Registers translations for an operator of `custom_translation_table`.

        Raises:
            InvalidArgument: `target` is neither an overload such as `torch.ops.aten.add.Tensor` nor a Python function that graphs call, or
                a translation is not callable.
        """
        if isinstance(target, OpOverloadPacket):
            raise InvalidArgument(f"custom_translation_table: expected an overload, such as {target}.default, got the packet {target}")
        in_graphs = isinstance(target, OpOverload | HigherOrderOperator)
        if not in_graphs and getattr(target, "__module__", None) not in ("_operator", "math", "torch"):
            raise InvalidArgument(f"custom_translation_table: expected an overload such as torch.ops.aten.add.Tensor, got {target!r}")
        if not all(map(callable, functions)):
            raise InvalidArgument(f"custom_translation_table[{target}]: expected callables, got {list(functions)!r}")
        for function in functions:
            self._user.setdefault(qualified_name(target), []).append(Translation(function, "user", is_complex=None))

    def get_op_functions(self, namespace: str, op_name: str, overload: str | None = None) -> list[Translation] | None:
        """The translations of an operator in ascending order of precedence: the user's last one comes last.

        Returns:
            The translations; None if there is none.

        Raises:
            InvalidArgument: The name is malformed (a ValueError).
        """
        return list(self.translations(_key(namespace, op_name, overload))) or None

    def is_registered_op(self, namespace: str, op_name: str, overload: str | None = None) -> bool:
        """True if the operator has a translation. Raises `InvalidArgument` (a ValueError) for a malformed name."""
        return self.has(_key(namespace, op_name, overload))

    def translation(self, name: str, *, is_complex: bool) -> Translation | None:
        """The translation that an operator with (or without) complex inputs or results gets; None if there is none."""
        # NOTE: torchlib takes 0.3 s of CPU time to load, with onnxscript, so it is asked only where nobody else has a translation.
        for origin in (lambda: self._user.get(name, ()), lambda: _ours().get(name, ()), lambda: _torchlib().get(name, ())):
            for each in reversed(origin()):
                if each.is_complex in (None, is_complex):
                    return each
        return None

    def translations(self, name: str) -> tuple[Translation, ...]:
        """The translations for a qualified name, in ascending order of precedence."""
        return (*_torchlib().get(name, ()), *_ours().get(name, ()), *self._user.get(name, ()))

    def has(self, name: str) -> bool:
        """True if there is a translation for a qualified name."""
        return name in self._user or name in _ours() or name in _torchlib()

    def is_users(self, name: str) -> bool:
        """True if the user registered a translation for a qualified name."""
        return name in self._user

    def overloads(self, name: str) -> tuple[str, ...]:
        """The registered overloads of an operator, by the qualified name of any overload of it."""
        packet = name.split(".")[0]
        return tuple(sorted(known for known in self.names() if known.split(".")[0] == packet))

    def nearest(self, name: str) -> str:
        """The name of an operator with a translation that is nearly `name`, such as `aten::arange` for `aten::range`; empty if none is."""
        wanted = _bare(name)
        # NOTE: compared without the namespace, among operators that users can call, with as many words: no gradient is near its function.
        known = {
            _bare(each): each.split(".")[0] for each in self.names() if each != name and (each in self._user or each.startswith("aten::"))
        }
        alike = [each for each in known if each.strip("_").count("_") == wanted.strip("_").count("_")]
        found = difflib.get_close_matches(wanted, alike, n=1, cutoff=_NEAR)
        return known[found[0]] if found else ""

    def names(self) -> Iterator[str]:
        """Every registered qualified name."""
        yield from {**_torchlib(), **_ours(), **self._user}


_NEAR = 0.9
"""The share of equal letters from which on names are near. Of the 1120 operators of torch 2.13 without a translation, 118 have a near name,
mostly that of their form that is not in place. From 0.75 on, 355 had one, such as `isinf` for `isin`."""


def checked_opset(version: object) -> int:
    """Returns `version`. Raises `InvalidArgument` if it is not an int."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidArgument(f"opset_version: expected int, got {type(version).__name__}: {version!r}")
    return version


def _bare(name: str) -> str:
    return name.partition("::")[2].split(".")[0]


def _key(namespace: str, op_name: str, overload: str | None) -> str:
    for argument, value in (("namespace", namespace), ("op_name", op_name), ("overload", overload)):
        if value is None and argument == "overload":
            continue
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise InvalidArgument(f"{argument}: expected a name such as 'aten', 'add' or 'Tensor', got {value!r}")
    return f"{namespace}::{op_name}" if overload in (None, "default") else f"{namespace}::{op_name}.{overload}"


# NOTE: wrong in onnxscript 0.7.2, right once decomposed: its chunk always makes as many parts as requested, PyTorch may make fewer.
_WRONG = frozenset({"aten::chunk"})
# NOTE: torchlib's other translations for complex tensors count negative dims from the last dim of size 2, or lose dtypes.
_COMPLEX = frozenset({"aten::conv1d", "aten::conv2d", "aten::conv3d"})


@functools.cache
def _torchlib() -> Mapping[str, tuple[Translation, ...]]:
    """The translations of onnxscript's torchlib, those for complex tensors last."""
    return {
        name: tuple(
            Translation(function, "torchlib", is_complex)
            for function, is_complex in sorted(found, key=lambda each: each[1])
            if not is_complex or name in _COMPLEX
        )
        for name, found in torchlib.functions().items()
        if name not in _WRONG
    }


@functools.cache
def _ours() -> Mapping[str, tuple[Translation, ...]]:
    return {
        name: tuple(Translation(function, "onnxplain", is_complex) for function, is_complex in found) for name, found in ops.load().items()
    }
