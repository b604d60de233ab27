"""The private names of torch in the sources of torch_internals: which of them the installed torch has, and that all others are symbols.

The tests of single names read the sources and import nothing of torch_internals: where torch lacks a name that is imported, the test of
that name fails, and so do all other files at their imports.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch

ROOT = pathlib.Path(importlib.util.find_spec("onnxplain").submodule_search_locations[0])  # type: ignore[union-attr, index]
TREES = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "torch_internals").glob("*.py"))}
# NOTE: what torch.export itself is built on: no export works without these, so onnxplain does not look them up first. The sources say so.
NEEDED = {
    "torch._subclasses.fake_tensor",
    "torch.fx.experimental.proxy_tensor",
    "torch.utils._python_dispatch",
    "torch.utils._pytree",
}
ATTRIBUTES: dict[str, Callable[[], Any]] = {
    "torch._ops:OpOverload._schema": lambda: torch.ops.aten.add.Tensor,
    "torch.nn:Module._parameters": torch.nn.Module,
    "torch.nn:Module._buffers": torch.nn.Module,
    "torch.nn:Module._modules": torch.nn.Module,
    "torch._subclasses.fake_tensor:FakeTensor.fake_mode": lambda: _fake(),
    "torch:SymInt.node": lambda: _size(),
    "torch.fx.experimental.sym_node:SymNode.expr": lambda: _size().node,
    "torch.fx.experimental.sym_node:SymNode.shape_env": lambda: _size().node,
    "torch.fx.experimental.sym_node:SymNode.has_hint": lambda: _size().node,
}
"""Attributes of the same kind, and objects that have them."""
CORE = {"_fft_c2c", "_fft_c2r", "_fft_r2c", "_local_scalar_dense", "_to_copy"}
"""Operators of core ATen, which torch documents, and one that they are like."""


def _fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(torch.ones(2))


def _size() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    return mode.from_tensor(torch.ones(3), static_shapes=False).shape[0]


def chain(node: ast.expr) -> list[str]:
    """The parts of a dotted name; empty for other expressions."""
    if isinstance(node, ast.Name):
        return [node.id]
    parts = chain(node.value) if isinstance(node, ast.Attribute) else []
    return [*parts, node.attr] if parts and isinstance(node, ast.Attribute) else []


def aliases(tree: ast.Module) -> dict[str, list[str]]:
    """The names that stand for a part of torch in a file."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname: each.name.split(".") for each in node.names if each.asname and each.name.startswith("torch")}
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and chain(node.value)[:1] == ["torch"]:
            found[node.targets[0].id] = chain(node.value)
    return found


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_private(parts: list[str]) -> bool:
    """Whether a dotted name leads through a private name. `torch.fx.experimental` says that it has no stable names."""
    return any(map(private, parts)) or parts[:3] == ["torch", "fx", "experimental"]


def imported(trees: Mapping[str, ast.Module] = TREES) -> Iterator[tuple[str, ast.ImportFrom, str]]:
    """Every import from a private module of torch: the file, the statement and the name."""
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and is_private((node.module or "").split(".")):
                yield from ((file, node, f"{node.module}:{each.name}") for each in node.names)


def dotted(trees: Mapping[str, ast.Module] = TREES) -> Iterator[str]:
    """Every private name of torch in the sources, as in `torch.fx._symbolic_trace._Patcher`."""
    for tree in trees.values():
        known = aliases(tree)
        for node in ast.walk(tree):
            parts = chain(node) if isinstance(node, ast.Attribute) else []
            parts = [*known.get(parts[0], parts[:1]), *parts[1:]] if parts else []
            if parts[:1] == ["torch"] and is_private(parts):
                yield ".".join(parts)


@pytest.mark.parametrize("name", sorted({*dotted(), *(name for _, _, name in imported())}))
def test_the_installed_torch_has_it(name: str) -> None:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        pytest.fail(f"torch {torch.__version__} has no {name}")


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_objects_of_the_installed_torch_have_it(path: str) -> None:
    owner, _, name = path.rpartition(".")
    example = ATTRIBUTES[path]()
    assert isinstance(example, pkgutil.resolve_name(owner))
    assert hasattr(example, name), f"torch {torch.__version__} has no {path}"


def looked_up() -> set[str]:
    """The parts of the paths of all symbols, and of the names that need none."""
    from onnxplain import torch_internals
    from onnxplain.torch_internals import symbols

    for each in pkgutil.iter_modules(torch_internals.__path__):
        importlib.import_module(f"onnxplain.torch_internals.{each.name}")
    paths = {each.path for each in symbols.known()} | NEEDED | ATTRIBUTES.keys()
    return CORE | {part for path in paths for part in path.replace(":", ".").split(".")}


def names_in(node: ast.AST) -> list[str]:
    """The attributes that an expression reads, by dots or by their names as texts; none of the objects that are not torch's."""
    if isinstance(node, ast.Attribute):
        return [] if chain(node)[:1] in (["self"], ["cls"], ["sys"], ["functools"]) else [node.attr]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr", "Slot"):
        return [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return []


def test_every_private_name_is_a_symbol_or_needed() -> None:
    known = looked_up()
    found = [(file, node, name) for file, tree in TREES.items() for node in ast.walk(tree) for name in names_in(node) if private(name)]
    assert [f"{file}.py:{node.lineno}: {name}" for file, node, name in found if name not in known] == []  # type: ignore[attr-defined]


def test_no_other_file_has_private_names() -> None:
    """Neither torch's, nor attributes without an underscore that only torch documents for itself, such as `SymInt.node`."""
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "torch_internals"]
    elsewhere = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    assert [name for _, _, name in imported(elsewhere)] == []
    assert list(dotted(elsewhere)) == []
    behind = {path.rpartition(".")[2] for path in ATTRIBUTES} - {"node"}
    found = [(file, node) for file, tree in elsewhere.items() for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert [f"{file}:{node.lineno}" for file, node in found if node.attr in behind and isinstance(node.value, ast.Attribute)] == []


def test_every_import_that_may_fail_follows_a_check() -> None:
    """The others stop the import of onnxplain where torch lacks the name."""
    at_once = [(file, node) for file, node, _ in imported() if node in TREES[file].body]
    assert [f"{file}.py:{node.lineno}" for file, node in at_once if node.module not in NEEDED] == []


def test_every_file_says_in_which_versions_of_torch_its_names_were_read() -> None:
    from onnxplain.torch_internals.symbols import READ_IN

    users = {
        file for file, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "symbols"
    }
    texts = {
        file: re.sub(r"\n\s*# ", " ", (ROOT / "torch_internals" / f"{file}.py").read_text(encoding="utf-8"))
        for file in users | {file for file, _, _ in imported()}
    }
    assert [file for file, text in texts.items() if f"read in torch {', '.join(READ_IN[:-1])} and {READ_IN[-1]}" not in text] == []


def test_torch_s_functions_for_operators_name_their_module() -> None:
    """repro/registrations.py knows them by that name."""
    functions = (torch.library.custom_op, torch.library.register_fake, torch.library.define, torch.library.impl, torch.library.Library)
    assert {inspect.unwrap(each).__module__ for each in functions} == {"torch.library"}
