"""Dims that `dynamic_shapes` computes from another one, such as `half + 2`, where the program computes them in another way.

torch.export lets the model's relation take the place of such a promise without a word (seen in 2.13).
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy
import torch

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe.dim_symbols import as_text
from onnxplain.capture.observe.guards import Guards, is_identity
from onnxplain.capture.observe.program_sizes import sizes_in
from onnxplain.diagnostics import Confidence, Fix
from onnxplain.request import InputDim, Kind, Request
from onnxplain.rules import ConstraintViolated
from onnxplain.torch_internals import dim_entries

from . import assumptions, shapes_argument


def findings(request: Request, guards: Guards, program: torch.export.ExportedProgram) -> Iterator[Finding]:
    """A finding for each such dim."""
    sizes = {dim: size for dim, size in sizes_in(program, request.shapes.dynamic).items() if not isinstance(size, int)}
    formulas = {dim: _formula(dim) for dim in sizes if dim.kind in (Kind.DIM, Kind.DERIVED)}
    # NOTE: a size that nothing computes is what it is stated to be.
    stated: dict[sympy.Basic, sympy.Expr] = {}
    stating = [dim for dim in formulas if sizes[dim].is_Symbol or dim.kind is Kind.DERIVED]
    for dim in sorted(stating, key=lambda dim: not sizes[dim].is_Symbol):
        unknown = sizes[dim].free_symbols - stated.keys()
        if len(unknown) == len(sizes[dim].free_symbols) == 1:
            (symbol,) = unknown
            slope, offset = _line(sizes[dim], symbol)
            if slope:
                stated[symbol] = (formulas[dim] - offset) / slope
    for dim in (dim for dim in formulas if dim.kind is Kind.DERIVED):
        if not sizes[dim].free_symbols <= stated.keys():
            continue
        size = sympy.expand(sizes[dim].xreplace(stated))
        relation = sympy.Eq(size, formulas[dim], evaluate=False)
        if is_identity(relation):
            continue
        rule = ConstraintViolated(dim=dim.name, constraint=as_text(relation))
        at = assumptions.evidence_about(request, guards.decisive(dim))
        yield Finding(rule, at, (f"The dim '{dim.name}' is {dim.place}.",), _fixes(request, dim, size), blocking=False)


def _formula(dim: InputDim) -> sympy.Expr:
    """The size that `dim` is stated to have, by the name of the dim that it is computed from."""
    root = dim_entries.root(dim.given)
    return sympy.Symbol(dim.name) if root is None else dim_entries.from_root(dim.given)(sympy.Symbol(root.__name__))


def _line(size: sympy.Expr, symbol: sympy.Basic) -> tuple[sympy.Expr, sympy.Expr]:
    """The factor of `symbol` in `size`, and what is added; both 0 where `size` is no linear function of `symbol`."""
    slope, offset = size.coeff(symbol, 1), size.coeff(symbol, 0)
    return (slope, offset) if size == slope * symbol + offset else (sympy.Integer(0), sympy.Integer(0))


def _fixes(request: Request, dim: InputDim, size: sympy.Expr) -> tuple[Fix, ...]:
    """The fix that states `size`, if a `Dim` can say it."""
    root = dim_entries.root(dim.given)
    assert root is not None
    slope, offset = _line(size, sympy.Symbol(root.__name__))
    if not (slope.is_Integer and slope > 0 and offset.is_Integer):
        return ()
    stated = root if slope == 1 else int(slope) * root
    stated = stated + int(offset) if offset else stated
    structure = request.shapes.by_parameter(dict.fromkeys(request.shapes.same_name(dim), stated))
    return (shapes_argument.fix(request, "State it in dynamic_shapes.", Confidence.SAFE, structure),)
