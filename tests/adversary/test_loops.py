"""Random loops over the rows of a tensor: what an export rewrites computes the same at other sizes and for other data.

`cd tests && ../.venv/bin/python -m adversary.test_loops SEED NUMBER` tries many and prints the figures.
"""

from __future__ import annotations

import collections
import importlib.util
import pathlib
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import onnxruntime
import pytest
import torch
from torch.export import Dim

import onnxplain

_STARTS = ("torch.zeros(3)", "x[0]", "x.mean(0)", "x[0] * 1", "x[0].clone()")
_TABLES = ("torch.zeros_like(x)", "x.clone()", "x * 2", "x", "x.view(-1, 3)")
_HEADS = {
    "for i in range(x.shape[0]):": ("x[i]", "x[i, :]"),
    "for i in range(1, x.shape[0]):": ("x[i]", "x[i - 1]"),
    "for i in reversed(range(len(x))):": ("x[i]",),
    "for row in x:": ("row",),
    "for i, row in enumerate(x):": ("row", "x[i]"),
    "for row, other in zip(x, x.flip(0)):": ("row", "other"),
}
_RESULTS = ("torch.stack(parts)", "torch.stack(parts, dim=1)", "torch.cat(parts)", "torch.cat(parts, dim=-1)")


class _Loop:
    """Writes one random `forward`."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        head, rows = chance.choice(list(_HEADS.items()))
        self._values = ["state", *rows]
        table, parts = chance.random() < 0.5 and " i " in head, chance.random() < 0.3
        self._names = ["state", *(["table"] if table else []), *(["parts"] if parts else [])]
        lines = [f"state = {chance.choice(_STARTS)}"]
        lines += [f"table = {chance.choice(_TABLES)}"] * table + ["parts = []"] * parts
        if table:
            self._values.append(chance.choice(("table[i]", "table[i, :]")))
        body = [line for _ in range(chance.randint(1, 4)) for line in self._statement(table=table)]
        body += [f"parts.append({self._expression()})"] * parts
        if chance.random() < 0.2:
            body += ["if state.abs().sum() > 4:", "    break"]
        results = [name if name != "parts" else chance.choice(_RESULTS) for name in self._names]
        self.lines = [*lines, head, *(f"    {line}" for line in body), f"return {', '.join(results)}, x + 1"]

    def _expression(self, depth: int = 0) -> str:
        chance = self._chance
        if depth > 2 or chance.random() < 0.35:
            return chance.choice(self._values)
        if chance.random() < 0.5:
            return f"{chance.choice(('torch.tanh', 'torch.relu', '-'))}({self._expression(depth + 1)})"
        other = chance.choice((self._expression(depth + 1), "0.5", "2"))
        return f"({self._expression(depth + 1)} {chance.choice('+-*')} {other})"

    def _statement(self, *, table: bool) -> list[str]:
        chance, value = self._chance, self._expression()
        ways = [[f"state = {value}"], [f"state += {value}"], [f"step = {value}"], [f"state = torch.maximum(state, {self._values[1]})"]]
        if table:
            ways += [[f"table[i] = {value}"], [f"table[i] += {value}"], [f"table[i, 1:] = {value}[1:]"], ["table[i, :2] *= 0.5"]]
        branch = [f"if {chance.choice(('state.sum() > 0.5', f'{self._values[1]}.max() > 0'))}:", f"    state = {value}"]
        ways += [branch, [*branch, "else:", f"    state = {self._expression()}"]]
        chosen = chance.choice(ways)
        if chosen[0].startswith("step") and "step" not in self._values:
            self._values.append("step")
        return chosen


def judged(lines: list[str], folder: pathlib.Path, name: str) -> str:
    """What became of a loop: `fails` in eager mode, `refused`, `rewritten`, `unrolled`, or a fault that is named."""
    path = folder / f"{name}.py"
    source = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        " + "\n        ".join(lines) + "\n"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Net()
    x = torch.randn(4, 3)
    if _eager(model, x) is None:
        return "fails"
    try:
        program = onnxplain.export(model, (x,), dynamic_shapes=({0: Dim.DYNAMIC},), control_flow="rewrite")
    except onnxplain.ExportFailed as failed:
        rules = {each.rule.id for each in failed.findings if each.blocking}
        return "refused" if rules <= {"OXP1001", "OXP1002", "OXP1003", "OXP1009"} else f"fault: {sorted(rules)}"
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    for size, scale in ((2, 1), (4, -1), (5, 3), (9, 1), (9, -1)):
        x = torch.randn(size, 3) * scale
        expected = _eager(model, x)
        if expected is None:
            continue
        got = [torch.from_numpy(each) for each in session.run(None, {"x": x.numpy()})]
        try:
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3, equal_nan=True)
        except AssertionError as error:
            return f"fault: differs at size {size}: {error}"
    return "rewritten" if any(each.rule.id == "OXP1037" for each in program.diagnostics.findings) else "unrolled"


def _eager(model: Any, x: torch.Tensor) -> list[torch.Tensor] | None:
    try:
        with torch.no_grad():
            return list(model(x.clone()))
    except (RuntimeError, IndexError, UnboundLocalError):
        return None


def attack(seed: int, number: int, folder: pathlib.Path) -> Iterator[tuple[list[str], str]]:
    """Judges random loops."""
    chance = random.Random(seed)
    torch.manual_seed(seed)
    for index in range(number):
        lines = _Loop(chance).lines
        yield lines, judged(lines, folder, f"loop_{seed}_{index}")


@pytest.mark.slow
def test_random_loops_compute_the_same_or_are_refused(tmp_path: pathlib.Path) -> None:
    verdicts = list(attack(3, 6, tmp_path))
    assert [(verdict, lines) for lines, verdict in verdicts if verdict.startswith("fault")] == []
    assert sum(verdict == "rewritten" for _, verdict in verdicts) >= 2


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    kinds = collections.Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        for found, verdict in attack(int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(place)):
            kinds[verdict.split(":")[0]] += 1
            if verdict.startswith("fault"):
                print(verdict, *found, sep="\n", flush=True)  # noqa: T201  the figures of the run
    print(dict(kinds))  # noqa: T201  the figures of the run
