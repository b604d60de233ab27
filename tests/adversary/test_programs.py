"""Random programs: each exports and equals eager mode at every size that is promised, or is refused for a reason at one of its lines.

`cd tests && ../.venv/bin/python -m adversary.test_programs SEED NUMBER` tries many and prints the figures.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib.util
import itertools
import math
import pathlib
import random
import re
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import sympy
import torch
import torch.utils._pytree as pytree
from adversary.programs import Program, random_program
from packaging.version import Version
from torch.utils._python_dispatch import TorchDispatchMode

import onnxplain
from onnxplain.diagnostics import Diagnostic

_TRIES = 12
_SIZES = 3
"""At how many other sizes a model runs."""
_LONG = 20.0
"""The seconds from which on a run shows the program."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a program.

    Attributes:
        kind: `exported`, `refused`, `no kernel` (in ONNX Runtime), `not checked` (other than eager mode where a finding says that the model
            does not check a condition on sizes from data), `not finite` (a difference that docs/differences.md describes), `rounding` (the
            result is that of eager mode in double precision), `raw exception`, `no reason` (a refusal), `untrue note` (eager mode takes
            sizes that a note says it refuses) or `silent difference`.
        detail: The rules of a refusal, or what went wrong.
        seconds: The time of the export.
        others: At how many other sizes the model ran.
    """

    kind: str
    detail: str
    seconds: float
    others: int = 0

    @property
    def is_fault(self) -> bool:
        """Whether the product is at fault."""
        return self.kind not in ("exported", "refused", "no kernel", "not checked", "not finite", "rounding")


def judged(program: Program, folder: pathlib.Path, name: str) -> Verdict:
    """Exports a program and runs the model."""
    path = folder / f"{name}.py"
    path.write_text(program.source(), encoding="utf-8")
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    model, example = module.Net(), program.tensors([each.sizes for each in program.inputs])
    began = time.perf_counter()
    try:
        made = onnxplain.export(model, _copies(example), dynamic_shapes=module.SHAPES)
    except onnxplain.ExportFailed as error:
        seconds = time.perf_counter() - began
        errors = [each for each in error.log.findings if each.fails]
        reasons = {each.rule.id for each in errors if each.rule.id != "OXP0001" and each.location and each.location.file == str(path)}
        headlines = "; ".join(f"{each.rule.id} {each.message[:160]}" for each in errors)
        return Verdict("refused" if reasons else "no reason", headlines, seconds)
    except Exception as error:  # noqa: BLE001  this is what must not happen
        return Verdict("raw exception", f"{type(error).__name__}: {error}"[:300], time.perf_counter() - began)
    seconds, ran = time.perf_counter() - began, 0
    findings = made.diagnostics.findings
    for sizes, inputs in itertools.islice(_others(program, made, model), 1 + _SIZES):
        if note := _untrue_note(program, findings, sizes, inputs):
            return Verdict("untrue note", f"{note}, for inputs of {[list(each) for each in sizes]}", seconds, ran)
        if _is_told(program, findings, sizes, inputs) or _is_out_of_range(program, made, sizes):
            continue
        difference = _difference(program, made, model, inputs)
        if difference and _is_not_checked(findings, difference):
            # NOTE: sizes from data cannot be computed here, so nothing tells whether the condition holds.
            return Verdict("not checked", difference, seconds, ran)
        if "NOT_IMPLEMENTED" in difference or " is not supported with " in difference:
            return Verdict("no kernel", difference, seconds, ran)
        if difference.startswith("output ") and _is_of_kernels(model, inputs):
            return Verdict("not finite", difference, seconds, ran)
        if difference.startswith("output ") and not _difference(program, made, model, inputs, exact=True):
            return Verdict("rounding", difference, seconds, ran)
        if difference:
            return Verdict("silent difference", f"{difference}, for inputs of {[list(each) for each in sizes]}", seconds, ran)
        ran += 1
    return Verdict("exported", "", seconds, ran - 1)


def _is_not_checked(findings: Sequence[Diagnostic], difference: str) -> bool:
    """Whether a finding names a condition on sizes from data; of a removed check only an error may follow, no other result."""
    ids = {each.rule.id for each in findings}
    return "OXP1023" in ids or ("OXP1038" in ids and re.match(r"\w+: ", difference) is not None)


def _copies(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    # NOTE: programs write to their inputs.
    return tuple(each.clone() for each in tensors)


def _eager(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = model(*_copies(inputs))
    tensors = [torch.as_tensor(each) for each in pytree.tree_leaves(results)]
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in tensors]


class _NotFinite(TorchDispatchMode):
    """Notices an operator whose result for numbers that are not finite is the kernel's, as docs/differences.md says."""

    met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        tensors = [each for each in pytree.tree_leaves(args) if isinstance(each, torch.Tensor) and each.is_floating_point()]
        if re.fullmatch(r"(arg|a)?(max|min)|aminmax|logsumexp|topk|(adaptive_)?max_pool\w+", name) or (
            name == "linalg_vector_norm" and args[1:2] in ((math.inf,), (-math.inf,))
        ):
            self.met |= any(bool(each.isnan().any()) for each in tensors)
        if re.match("_?upsample_", name) or name in ("mm", "bmm", "addmm", "baddbmm", "dot", "mv"):
            self.met |= not all(bool(each.isfinite().all()) for each in tensors)
        if (kwargs or {}).get("dtype") in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            # NOTE: the integer that a NaN becomes depends on the processor's instructions, and so on the tensor's size.
            self.met |= not all(bool(each.isfinite().all()) for each in tensors)
        return func(*args, **(kwargs or {}))


def _is_of_kernels(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> bool:
    with _NotFinite() as seen:
        _eager(model, inputs)
    return seen.met


def _others(
    program: Program, made: onnxplain.ONNXProgram, model: torch.nn.Module
) -> Iterator[tuple[list[tuple[int, ...]], tuple[torch.Tensor, ...]]]:
    """The example's sizes with inputs, then others that are promised and run in eager mode."""
    example = [each.sizes for each in program.inputs]
    yield example, program.tensors(example)
    chance = random.Random(program.source())
    dims = {value.name: [size if isinstance(size, int) else str(size.value) for size in value.shape] for value in made.model.graph.inputs}
    seen = {tuple(example)}
    for _ in range(_TRIES):
        sizes = _drawn(program, dims, chance)
        if sizes is None or tuple(sizes) in seen:
            continue
        seen.add(tuple(sizes))
        with contextlib.suppress(Exception):
            inputs = program.tensors(sizes, seed=len(seen))
            _eager(model, inputs)
            yield sizes, inputs


def _drawn(program: Program, dims: dict[str | None, list[int | str]], chance: random.Random) -> list[tuple[int, ...]] | None:
    """Sizes that the user's `dynamic_shapes` allows; for those that it leaves to the export, that the model allows."""
    alike = chance.randint(1, 9) if chance.random() < 0.4 else None

    def number(least: int, most: int) -> int:
        drawn = alike or chance.choice((*range(1, 9), 12, 17))
        return min(max(drawn, least, 1), most)

    variables: dict[str, int] = {}
    known: dict[str, int] = {}
    sizes = [list(each.sizes) for each in program.inputs]
    left = []
    for position, given in enumerate(program.inputs):
        for index, axis in enumerate(given.axes):
            dim = dims.get(given.name, list(given.sizes))[index]
            if axis.name:
                variables.setdefault(axis.name, number(axis.least, axis.most))
                sizes[position][index] = axis.factor * variables[axis.name] + axis.offset
            elif (axis.spec in ("Dim.AUTO", "Dim.DYNAMIC") or program.shapes == "True") and isinstance(dim, str):
                # NOTE: dims without a name may be equal in the model, which then says so.
                left.append((position, index, dim))
                continue
            elif axis.spec == "Dim.DYNAMIC":
                sizes[position][index] = number(1, 64)
            if isinstance(dim, str):
                known[dim] = sizes[position][index]
    for position, index, dim in sorted(left, key=lambda each: not each[2].isidentifier()):
        if dim.isidentifier():
            known.setdefault(dim, number(1, 64))
        names = {name: known.setdefault(name, number(1, 64)) for name in re.findall(r"[A-Za-z_]\w*", dim)}
        sizes[position][index] = known[dim] if dim in known else int(eval(dim, names))
        if sizes[position][index] < 1:
            return None
    return [tuple(each) for each in sizes]


def _names(program: Program, sizes: Sequence[Sequence[int]], inputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """What the names in conditions stand for: inputs and dims."""
    names: dict[str, Any] = {each.name: tensor for each, tensor in zip(program.inputs, inputs, strict=True)}
    for given, size in zip(program.inputs, sizes, strict=True):
        for axis, number in zip(given.axes, size, strict=True):
            if axis.name:
                names[axis.name] = (number - axis.offset) // axis.factor
    return names


def _untrue_note(program: Program, findings: Sequence[Diagnostic], sizes: Sequence[Sequence[int]], inputs: Sequence[torch.Tensor]) -> str:
    """The note that says that eager mode refuses these sizes, which it takes; empty if there is none."""
    names = _names(program, sizes, inputs)
    for finding in findings:
        if finding.rule.id == "OXP1041":
            told = dict(zip(finding.rule.arguments(), finding.rule.argument_texts(), strict=True))
            # NOTE: a constraint may have other names.
            with contextlib.suppress(NameError):
                if not eval(told["constraint"], dict(names)):
                    return finding.message
    return ""


def _is_told(program: Program, findings: Sequence[Diagnostic], sizes: Sequence[Sequence[int]], inputs: Sequence[torch.Tensor]) -> bool:
    """Whether a finding says that the model is not meant for these sizes."""
    names = _names(program, sizes, inputs)
    for finding in findings:
        told = dict(zip(finding.rule.arguments(), finding.rule.argument_texts(), strict=True))
        if finding.rule.id == "OXP4001" and told["kind"] == "dim" and names.get(told["asked"]) != names.get(told["given"]):
            return True
        if finding.rule.id == "OXP1011":
            try:
                if not eval(told["constraint"], dict(names)):
                    return True
            except Exception:  # noqa: BLE001  a constraint may have other names
                return True
    return False


def _is_out_of_range(program: Program, made: onnxplain.ONNXProgram, sizes: Sequence[Sequence[int]]) -> bool:
    """Whether the signature that an export prints says that dims without names cannot have their sizes."""
    exported = made.exported_program
    inputs = [node.meta["val"] for node in exported.graph.nodes if node.name in exported.graph_signature.user_inputs]
    free: dict[sympy.Basic, int] = {}
    for given, value, wanted in zip(program.inputs, inputs, sizes, strict=True):
        for axis, size, number in zip(given.axes, value.shape, wanted, strict=True):
            if not axis.name and not isinstance(size, int):
                free[size.node.expr] = number
    limits = {symbol: exported.range_constraints[symbol] for symbol in free if symbol in exported.range_constraints}
    relations = [
        node.args[0].meta["val"].node.expr
        for node in exported.graph.nodes
        if str(node.target) == "aten._assert_scalar.default" and isinstance(node.args[0], torch.fx.Node)
    ]
    return any(not each.lower <= free[symbol] <= each.upper for symbol, each in limits.items()) or any(
        each.free_symbols <= free.keys() and each.xreplace(free) == False  # noqa: E712  it may be undecided
        for each in relations
    )


def _difference(
    program: Program, made: onnxplain.ONNXProgram, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], *, exact: bool = False
) -> str:
    """How the model differs from eager mode; empty if it does not.

    Args:
        program: The program.
        made: The export.
        model: The program's model.
        inputs: The inputs.
        exact: Whether eager mode computes with these inputs in double precision, which shows where its own rounding makes the difference:
            a float16 product overflows, or a quotient is a whole number.
    """
    expected = _eager(model, inputs)
    if exact:
        dtypes = [each.dtype for each in expected]
        try:
            doubles = _eager(model, [each.double() if each.is_floating_point() else each for each in inputs])
        except RuntimeError:
            # NOTE: some programs need tensors of one dtype.
            return "not known"
        expected = [each.to(dtype) for each, dtype in zip(doubles, dtypes, strict=True)]
    try:
        actual = made(*_copies(inputs))
    except Exception as error:  # noqa: BLE001  ONNX Runtime raises many
        cause = error.__cause__ or error
        # NOTE: PyTorch looks neither at indices nor at divisors where the result is empty.
        if re.search("out of data bounds|modulo by zero|division by zero", str(cause)) and any(each.numel() == 0 for each in expected):
            return ""
        return f"{type(cause).__name__}: {cause}"[:400]
    precision = min((torch.finfo(each).bits for each in program.dtypes if each.is_floating_point), default=64)
    tolerance = {16: 3e-2, 32: 2e-4, 64: 1e-7}[precision]
    if len(expected) != len(actual):
        return f"{len(actual)} outputs instead of {len(expected)}"
    for index, (want, got) in enumerate(zip(expected, actual, strict=True)):
        if want.dtype is not got.dtype or want.shape != got.shape:
            return f"output {index} is {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
        one, other = want.double(), got.double()
        if re.search(r"complex|\dj\b", program.source()):
            # NOTE: PyTorch computes a + 1 * b with complex numbers, and gets NaN where b is infinite; its scalar code does not.
            other = torch.where(one.isnan(), one, other)
        scale = one[one.isfinite()].abs().max().item() if one.isfinite().any() else 1.0
        if not torch.allclose(
            other, one, rtol=tolerance, atol=tolerance * max(scale, 1.0) if want.is_floating_point() else 0, equal_nan=True
        ):
            return f"output {index} is {got.flatten().tolist()[:12]} instead of {want.flatten().tolist()[:12]}"
    return ""


def smallest(program: Program, kind: str, folder: pathlib.Path, name: str) -> Program:
    """The program up to its first line with the same fault, without the lines that this one does not use."""
    for count, statement in enumerate(program.statements, 1):
        target = [*re.findall(r"\w+", statement)[:1], *re.findall(r"(v\d+) = ", statement)][-1]
        lines = list(program.statements[:count])
        shorter = dataclasses.replace(program, statements=tuple(lines), results=(target,), form="{},")
        if judged(shorter, folder, f"{name}_{count}").kind != kind:
            continue
        for line in reversed(lines[:-1]):
            without = dataclasses.replace(shorter, statements=tuple(each for each in shorter.statements if each is not line))
            with contextlib.suppress(Exception):
                if judged(without, folder, f"{name}_{count}_{lines.index(line)}").kind == kind:
                    shorter = without
        return shorter
    return program


def attack(seed: int, number: int, folder: pathlib.Path) -> Iterator[tuple[Program, Verdict]]:
    """Judges random programs."""
    chance = random.Random(seed)
    for index in range(number):
        made = random_program(chance)
        yield made, judged(made, folder, f"program_{seed}_{index}")


@pytest.mark.slow
@pytest.mark.skipif(
    Version(torch.__version__) < Version("2.12"), reason="the counts of unique elements have another dtype in torch 2.11's graph"
)
def test_random_programs_export_or_are_refused_for_a_reason(tmp_path: pathlib.Path) -> None:
    verdicts = list(attack(1, 30, tmp_path))
    assert [(verdict, made.source()) for made, verdict in verdicts if verdict.is_fault] == []
    # NOTE: a run in which most programs are refused, or run at one size only, would show little.
    assert sum(verdict.kind == "exported" for _, verdict in verdicts) > 15
    assert sum(verdict.others > 1 for _, verdict in verdicts) > 4


def main(seed: int, number: int, folder: pathlib.Path) -> None:
    """Prints each fault with its smallest program, and the figures of the run."""
    kinds, rules, seconds, others = collections.Counter[str](), collections.Counter[str](), list[float](), 0
    for index, (made, verdict) in enumerate(attack(seed, number, folder)):
        kinds[verdict.kind] += 1
        rules.update(set(re.findall(r"OXP\d{4}", verdict.detail)) if verdict.kind == "refused" else ())
        seconds.append(verdict.seconds)
        others += verdict.others
        if verdict.kind == "no kernel" or re.search(r"OXP[03-9]\d{3}", verdict.detail):
            print(f"# {index} of seed {seed}: {verdict.kind}: {verdict.detail[:200]}", flush=True)  # noqa: T201  perhaps without need
        if verdict.is_fault:
            least = smallest(made, verdict.kind, folder, f"smallest_{seed}_{index}")
            inputs = [f"{each.name}: {each.dtype}{list(each.sizes)}" for each in made.inputs]
            print(f"# {index} of seed {seed}: {verdict.kind}: {verdict.detail}", *inputs, least.source(), sep="\n", flush=True)  # noqa: T201
        if verdict.seconds > _LONG:
            print(f"# {index} of seed {seed} took {verdict.seconds:.1f} s", made.source(), sep="\n", flush=True)  # noqa: T201
        if len(seconds) in (number, 250) or len(seconds) % 1000 == 0:
            median, decile, worst = statistics.median(seconds), statistics.quantiles(seconds, n=10)[-1], max(seconds)
            print(f"{len(seconds)} programs: {dict(kinds)}, at {others} other sizes; refused by {dict(rules.most_common())}")  # noqa: T201
            print(f"median {median:.3f} s, p90 {decile:.3f} s, worst {worst:.3f} s", flush=True)  # noqa: T201


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(place))
