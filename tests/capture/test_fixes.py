"""The findings about a capture and the code of their fixes, case by case, as golden files. A fix is shown as the lines that it changes."""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import needs_columns
from packaging.version import Version
from told import told

import onnxplain

Load = Callable[..., ModuleType]

pytestmark = needs_columns
# NOTE: versions of torch differ in what they decide about sizes and branches.
of_one_torch = pytest.mark.skipif(Version(torch.__version__).release[:2] != (2, 13), reason="the golden file holds what torch 2.13 decides")

X = torch.tensor([1.0, -2.0, 3.0])

# The statements of `forward(self, x)`, whose test asks for data.
BRANCHES = {
    "both return": "if x.sum() > 0:\n    return x + 1\nreturn x - 1",
    "statements that return": "if x.sum() > 0:\n    y = x * 2\n    y += 1\n    return y\ny = x - 1\nreturn y.view(-1)",
    "two variables": "y, z = x + 1, x + 2\nif x.sum() > 0:\n    y = x * 2\n    z = y + 1\nelse:\n    z = x - 1\nreturn y + z",
    "elif returns": "if self.training:\n    return x * 2\nelif x.sum() > 3:\n    return x + 2\nelse:\n    return x + 3",
    "elif, and a return below": "if self.training:\n    return x * 2\nelif x.sum() > 3:\n    return x + 2\nreturn x + 3",
    "third elif": (
        "if self.training:\n    return x * 2\nelif x.dim() > 3:\n    return x\nelif x.sum() > 3:\n    return x + 2\nreturn x + 3"
    ),
    "elif below one that goes on": "if self.training:\n    x = x * 2\nelif x.sum() > 3:\n    return x + 2\nreturn x + 3",
    "elif sets a variable": "y = x\nif self.training:\n    y = x * 2\nelif x.sum() > 3:\n    y = x + 2\nelse:\n    y = x + 1\nreturn y",
    "elif with statements": (
        "y = x\nif self.training:\n    y = x * 2\nelif x.sum() > 3:\n    y = x + 2\n    y = y * x\nelse:\n    y = x + 1\nreturn y"
    ),
    "number": "n = 2\nif x.sum() > 0:\n    n = 3\nreturn x * n",
    "choice in both": "if x.sum() > 0:\n    return x\nreturn x + 1 if x.max() > 9 else x - 1",
    "number that grows": "n = 2\nif x.sum() > 0:\n    n += 1\nreturn x * n",
    "number that statements read and set": "n = 2\nif x.sum() > 0:\n    n = n + 1\n    x = x * n\nreturn x * n",
    "number in both": "if x.sum() > 0:\n    n = 3\nelse:\n    n = 4\nreturn x * n",
    "variable in one": "if x.sum() > 0:\n    y = x + 1\nelse:\n    z = x\nreturn x if self.training else y",
    "text": "if x.sum() > 0:\n    y = 'a'\nelse:\n    y = 'b'\nreturn x * len(y)",
    "text that is replaced": "y = 'a'\nif x.sum() > 0:\n    y = x\nreturn x * len(y)",
    "variable that nothing reads": "if x.sum() > 0:\n    y = x + 1\nreturn x",
    "return without a value": "if x.sum() > 0:\n    y = x + 1\n    return\nreturn x",
    "branch within": "if x.sum() > 0:\n    y = x * 2\n    if y.max() > 4:\n        y = y + 1\n    return y\nreturn x.neg()",
    "choice within": ("if x.sum() > 0:\n    y = x * 2\n    z = y + 1 if y.max() > 4 else y - 1\n    return z * y\nelse:\n    return x[:]"),
    "branches within each other": (
        "if x.sum() > 0:\n    y = x * 2\n    if y.max() > 4:\n        if y.min() > 1:\n            y = y + 1\n    return y\nreturn x.neg()"
    ),
    "two choices on a line": (
        "if x.sum() > 0:\n    y = (x + 1 if x.max() > 4 else x - 1) * (x + 2 if x.min() > 4 else x - 2)\n    return y\nreturn x.neg()"
    ),
    "branches in both": (
        "if x.sum() > 0:\n    if x.max() > 4:\n        x = x + 1\n    else:\n        x = x + 2\n"
        "else:\n    x = x.abs() if x.min() > 3 else x.neg()\nreturn x"
    ),
    "branch within that is no torch.cond": (
        "if x.sum() > 0:\n    y = x * 2\n    if y.max() > 4:\n        y.append(3)\n    return y\nreturn x.neg()"
    ),
    "branch on a number within": "if x.sum() > 0:\n    y = x * 2\n    if x.dim() > 4:\n        y = y + 1\n    return y\nreturn x.neg()",
    "in a loop": "y = x\nfor i in range(2):\n    z = y * 2\n    if z.sum() > 0:\n        y = z + 1\nreturn y",
    "read by the next iteration": "y = x\nz = x\nfor i in range(2):\n    z = y + z\n    if z.sum() > 0:\n        y = z + 1\nreturn z",
    "in place": "y = x * 1\nif x.sum() > 0:\n    y *= x - 2\nreturn y",
    "in place on the input": "if x.sum() > 0:\n    x *= 2\nreturn x",
    "in place and by name": "y = x * 1\nif x.sum() > 0:\n    y -= x + 1\n    z = y\n    y /= 2\nelse:\n    z = y\nreturn y - z",
    "loop within": "y = x * 1\nif x.sum() > 0:\n    for i in range(3):\n        y = y * 2\n    y = y + 1\nelse:\n    y = y + 1\nreturn y",
    "loop within that may set nothing": "if x.sum() > 0:\n    for y in x:\n        y = y * 2\nelse:\n    y = x + 1\nreturn y",
    "statement within": "y = x * 1\nif x.sum() > 0:\n    with torch.no_grad():\n        y = y * 2\nreturn y",
    "names that are taken": (
        "when_true = x * 2\nif x.sum() > 0:\n    y = when_true + 1\n    z = y\nelse:\n    z = x\n    y = x\nreturn y + z"
    ),
    "names of functions and parameters": (
        "def when_true(when_false):\n    return when_false\nif x.sum() > 0:\n    y = x + 1\n    z = y\nelse:\n    z = x\n    y = x\n"
        "return when_true(y + z)"
    ),
    "no operands": "if x.sum() > 0:\n    y = torch.ones(3)\nelse:\n    y = torch.zeros(3)\nreturn y",
    "several lines": "if x.sum() > 0:\n    y = (x +\n         1)\n    # a comment\n\n    y = y * 2\n    return y\nreturn x * 3",
    "text on several lines": "if x.sum() > 0:\n    y = '''a\n    b'''\n    y = x * 2\n    return y\nreturn x * 3",
    "annotation": "if x.sum() > 0:\n    y: torch.Tensor = x + 1\n    z = y * 2\nelse:\n    z = x\nreturn z",
    "assert and pass": "if x.sum() > 0:\n    pass\n    assert x.dim() == 1\n    y = x + 1\nelse:\n    y = x\nreturn y",
    "tuple": "if x.sum() > 0:\n    y = x + 1\n    return y, x\nreturn x, x.T",
    "tuple of a number": "if x.sum() > 0:\n    return x, 1\nreturn x, 2",
    "list": "if x.sum() > 0:\n    return [x]\nreturn [x + 1]",
    "function inside": "def inner(a):\n    if a.sum() > 0:\n        return a + 1\n    return a - 1\nreturn inner(x)",
    "views": "if x.sum() > 0:\n    y = x.view(3)\nelse:\n    y = x.float()\nreturn y + x",
    "attribute": "self.y = x\nif x.sum() > 0:\n    y = self.y\nelse:\n    y = x.T\nreturn y + x",
    "generator": "y = [x for x in x]\nif x.sum() > 0:\n    y = x + sum(z for z in x)\nelse:\n    y = x\nreturn y",
    "other arguments": "n, s = 3, 'a'\nif x.sum() > 0:\n    y = x * n + len(s)\n    z = y\nelse:\n    y = x\n    z = y\nreturn y + z",
    "try": "try:\n    x = x + 1\nfinally:\n    if x.sum() > 0:\n        x = x + 1\nreturn x",
    "name that a result sets": "if x.sum() > 0:\n    return (y := x + 1)\nreturn x - 1",
    "name that a choice sets": "y = (z := x + 1) if x.sum() > 0 else x - 1\nreturn y",
    "name that a part of a result sets": "if x.sum() > 0:\n    return x, (y := x) + 1\nreturn x, x - 1",
    "all ways within return": (
        "if x.sum() > 0:\n    if x.dim() == 1:\n        return x + 1\n    else:\n        return x + 2\nreturn x - 1"
    ),
    "one way within returns": "if x.sum() > 0:\n    if x.dim() == 1:\n        return x + 1\n    x = x * 2\nreturn x - 1",
    "other way within returns": ("if x.sum() > 0:\n    if x.dim() == 1:\n        x = x + 1\n    else:\n        return x + 2\nreturn x - 1"),
    "only else returns": "if x.sum() > 0:\n    x = x + 1\nelse:\n    return x + 2\nreturn x - 1",
    "choice of tuples": "y, z = (x, x + 1) if x.sum() > 0 else (x * 2, x)\nreturn y + z",
    "choice of a tuple and a list": "y, z = (x, x + 1) if x.sum() > 0 else [x * 2, x]\nreturn y + z",
    "tuple within a tuple": "if x.sum() > 0:\n    return x, (x.T, x[0])\nreturn x, (x.abs().t(), x.sum())",
    "starred tuple": "if x.sum() > 0:\n    return (*[x], x)\nreturn x, x + 1",
    "dict": "if x.sum() > 0:\n    return {'a': x}\nreturn {'a': x + 1}",
    "function of torch": "if x.sum() > 0:\n    return torch.flatten(x)\nreturn torch.neg(x)",
    "read first in a branch within": (
        "y = x * 2\nif x.sum() > 0:\n    if y.dim() == 1:\n        y = x\n    z = y + 1\n    y = z * 2\nelse:\n    z = y\nreturn y + z"
    ),
    "set in both ways within": (
        "if x.sum() > 0:\n    if x.dim() == 1:\n        y = x + 1\n    else:\n        y = x + 2\n    z = y * 2\n"
        "else:\n    y = x * 2\n    z = x * 3\nreturn y + z"
    ),
    "set in one way within": (
        "y = x * 2\nif x.sum() > 0:\n    if x.dim() == 1:\n        y = x + 1\n    z = y * 2\nelse:\n    y = x * 2\n    z = x\nreturn y + z"
    ),
    "set in the other way within": (
        "y = x * 2\nif x.sum() > 0:\n    if x.dim() == 1:\n        z = x + 1\n    else:\n        z = y\n        y = x + 1\n    z = y * z\n"
        "else:\n    y = x * 2\n    z = x * 3\nreturn y + z"
    ),
    "annotation that reads first": "y = x * 1\nif x.sum() > 0:\n    y: torch.Tensor = y + 1\n    z = y\nelse:\n    z = x\nreturn y * z",
    "annotation without a value": "y = x * 1\nif x.sum() > 0:\n    y: torch.Tensor\n    y = x + 1\nreturn y",
    "loop that reads first": "y = x\nif x.sum() > 0:\n    for i in range(2):\n        y = y + i\n    z = y\nelse:\n    z = x\nreturn y * z",
    "loop that sets": "y = x * 1\nif x.sum() > 0:\n    for i in range(2):\n        y = x + i\n    z = y\nelse:\n    z = x\nreturn y * z",
    "loop over two names": (
        "y = x * 1\nif x.sum() > 0:\n    for i, z in enumerate(x):\n        y = y + i * z\n    y = y * 2\nelse:\n    y = y - 1\nreturn y"
    ),
    "loop with else within": (
        "y = x\nif x.sum() > 0:\n    for i in range(2):\n        y = y + i\n    else:\n        y = y * 2\nelse:\n    y = y - 1\nreturn y"
    ),
    "part of a tensor that is set": "y = x * 1\nif x.sum() > 0:\n    y[0] = 1\n    y = y + 1\nreturn y",
    "two targets": "if x.sum() > 0:\n    y = z = x + 1\nelse:\n    y, z = x, x * 2\nreturn y + z",
    "comprehension that takes a name": (
        "y = x * 1\nif x.sum() > 0:\n    z = [y for y in x]\n    y = z[0] + x\nelse:\n    y = y * 2\nreturn y"
    ),
    "lambda": "y = x * 1\nif x.sum() > 0:\n    z = lambda y, x=x: y * 2 + x\n    y = z(y)\nelse:\n    y = y * 2\nreturn y",
    "in place on a view": "y = x * 1\nif x.sum() > 0:\n    z = y.view(-1)\n    z += 1\nelse:\n    z = y + 1\nreturn y + z",
    "in place on what a method may share": "y = x * 1\nif x.sum() > 0:\n    z = y.float()\n    z *= 2\nelse:\n    z = y + 1\nreturn y + z",
    "in place on a new tensor": "y = x * 1\nif x.sum() > 0:\n    z = y.exp()\n    z *= 2\nelse:\n    z = y + 1\nreturn y + z",
    "in place on a choice": "y = x * 1\nif x.sum() > 0:\n    z = y if x.dim() == 1 else x\n    z *= 2\nelse:\n    z = y + 1\nreturn y + z",
    "else of a loop": "for i in range(2):\n    x = x + 1\nelse:\n    if x.sum() > 0:\n        x = x + 1\nreturn x",
}

# The test of `x + 1 if ... else x - 1`, below `flag = x.any()` and `k = 1`.
TESTS = (
    "torch.equal(x, x * 2)",
    "torch.allclose(x, x * 2, atol=3)",
    "x.equal(x * 2)",
    "x.allclose(x * 2)",
    "x.any()",
    "not x.any()",
    "not flag",
    "not x.sum() > 0",
    "flag",
    "flag[None][0]",
    "x.max().item() > 2",
    "x.sum() in (1, 2, 3)",
    "x.sum() not in [1]",
    "x.sum() in {2.0, 3}",
    "x.sum() in (k, 2)",
    "x.sum() in () or x.any()",
    "x.sum() > 0 and x.max() > 2 and x.any()",
    "x.sum() > 0 or not x.any()",
    "x.sum() > 0 or (x.min() < 0 and x.max() > 9)",
    "x.shape[0] > 2 and not self.training and x.any()",
    "x.dim() == 1 and x.any()",
    "self.training or x.dim() == 2 or x.any()",
    "x.dim() == 1 and x.max() > 2 and x.any()",
    "x.max() > 2 and x.dim() == 1 and x.any()",
    "x.any() and x.dim() == 1",
    "(y := x.sum()) > 0",
    "0 < x.sum() < 5",
    "x.sum() > 0 < 5",
    "any(part.max() > 2 for part in x.chunk(3)) and x.any()",
    "all(row > 2 for row in x) or x.any()",
    "(-x.T[0] % 2).abs() > 2 or x.any()",
    "2 % x.sum() > 1 and x.any()",
    "'%d' % x.dim() == 'a' or x.any()",
    "abs(x.sum()) > 1 and x.any()",
    "torch.max(x) > 1 and x.any()",
    "torch.max(*[x]) > 1 and x.any()",
    "x.max(**{}) > 1 and x.any()",
    "torch.ones(1) > 2 or x.any()",
    "x.sum() == None or x.any()",
    "x.sum() is None or x.any()",
    "x.tolist()[0] > 3 or x.any()",
    "x.sum() in [1, 'a'] or x.any()",
    "x.sum() in (True, 2)",
    "x.sum() not in (1, 2.5)",
    "torch.equal(x, other=x)",
    "torch.allclose(x, other=x)",
    "x.equal(other=x)",
    "x.allclose(x, 1e-3)",
    "x.sum() == 'a' or x.any()",
    "x.sum() != x.max() == 3",
    "k == x.sum() < k",
    "k == 1 == x.sum()",
    "x.real.any()",
    "x.shape and x.any()",
    "x.requires_grad or x.any()",
    "torch.any(x > 2)",
    "torch.max(x, 0)[0].any() and x.any()",
    "torch.abs(input=x).any()",
    "~x.any()",
    "+x.sum()",
    "k == 1 and len(x) == 3 and x.all()",
    "len(x) and x.all()",
    "any(part > 2 for part in x if k)",
    "all([row > 2 for row in x])",
    "any(k - 1 for _ in x) or x.any()",
    "any(part > k for part in x)",
    "all(part > k for part in x.chunk(3) for k in (1, 2)) or x.any()",
    "x.any() and any(x.max() > z for z in (1, 2))",
    "any((part > k for part in x), *[]) or x.any()",
    "not (x.any() or x.all())",
    "not (x.any() and k)",
    "not x.sum()",
    "not x[0]",
    "not x[0].item()",
    "x[k] > 0",
    "[x][0].any()",
    "abs(k) > 2 or x.any()",
    "abs(x).any()",
    "1 - x.sum()",
    "1 % x.sum()",
    "x.sum() % 2",
    "x.sum() and x.max()",
    "x.any().bool()",
    "x.sum().is_nonzero()",
)

# The statements of `forward(self, x, n)` with a loop.
LOOPS = {
    "range": "for i in range(n.item()):\n    x = x * i\nreturn x",
    "range of int": "for _ in range(int(n)):\n    x = x + 1\nreturn x",
    "range of int of item": "for _ in range(int(n.item())):\n    x = x + 1\nreturn x",
    "underscore that is read": "for _ in range(n.item()):\n    x = x + _\nreturn x",
    "sum": "for i in range(n.item() + 1):\n    x = x * 2 + i\nreturn x",
    "start": "k = n.item()\nfor i in range(1, k):\n    x = x + i\nreturn x",
    "step": "for i in range(1, n.item() * 4, 2):\n    x = x + i\nreturn x",
    "downwards": "for i in range(n.item(), 0, -1):\n    x = x + i\nreturn x",
    "step by name": "s = 2\nfor i in range(0, n.item(), s):\n    x = x + i\nreturn x",
    "step of 0": "for i in range(0, n.item(), 0):\n    x = x + i\nreturn x",
    "step of True": "for i in range(0, n.item(), True):\n    x = x + i\nreturn x",
    "counter that is read below": "for i in range(n.item()):\n    x = x + i\nreturn x * i",
    "counter that is set": "for i in range(n.item()):\n    x = x * i\n    i = 3\nreturn x",
    "limit that is set": "k = n.item()\nfor i in range(k):\n    k = k + 1\n    x = x * k\nreturn x",
    "nothing is kept": "for i in range(n.item()):\n    y = x * i\nreturn x",
    "list": "y = []\nfor i in range(n.item()):\n    y = [x]\nreturn x + len(y)",
    "branch": "for i in range(n.item()):\n    if x.sum() > 0:\n        x = x - 1\nreturn x",
    "branch without torch.cond": "for i in range(n.item()):\n    if x.sum() > 0:\n        x = None\nreturn x",
    "range with else": "for i in range(n.item()):\n    x = x + 1\nelse:\n    x = x + 2\nreturn x",
    "starred": "k = (1, n.item())\nfor i in range(*k):\n    x = x + 1\nreturn x",
    "tensor and number": "y, c = x * 1, 0\nfor i in range(n.item()):\n    y = y + x\n    c += 1\nreturn y * c",
    "in place": "for i in range(n.item()):\n    x += 1\nreturn x",
    "rounds is taken": "rounds, i = 1, 2\nfor _ in range(n.item() + rounds):\n    x = x + 1\nreturn x * i",
    "while": "while x.sum() > 1:\n    x = x / 2\nreturn x",
    "while with and": "c = 0\nwhile x.sum() > 1 and x.max() < 90:\n    x = x / 2\n    c += 1\nreturn x + c",
    "while on a number": "k = n.item()\nwhile k > 0:\n    x = x + 1\n    k = k - 1\nreturn x",
    "while on a number with else": "k = n.item()\nwhile k > 0:\n    k = k - 1\nelse:\n    x = x + 1\nreturn x",
    "while with else": "while x.sum() > 1:\n    x = x / 2\nelse:\n    x = x + 1\nreturn x",
    "while with return": "while x.sum() > 1:\n    return x / 2\nreturn x",
    "body is taken": "body = 2\nwhile x.sum() > body:\n    x = x / 2\nreturn x",
    "two names for a tensor": "y = x\nwhile x.sum() > 1:\n    y = x\n    x = x / 2\nreturn x + y",
    "view": "while x.sum() > 1:\n    x = (x / 2).view(3)\nreturn x",
    "variable of the body": "while x.sum() > 1:\n    y = x / 2\n    x = y - 1\nreturn x",
    "flag": "done = False\nwhile not done:\n    x = x + 1\n    done = bool(x.sum() > 30)\nreturn x",
    "break in an endless loop": "while True:\n    x = x + 1\n    if x.sum() > 20:\n        break\nreturn x",
    "break": "for i in range(3):\n    x = x + 1\n    if x.sum() > 20 or x.max() > 3:\n        break\nreturn x",
    "break in the inner loop": (
        "for i in range(3):\n    for j in range(2):\n        x = x + 1\n        if x.sum() > 20:\n            break\nreturn x"
    ),
    "continue": "for i in range(3):\n    x = x + 1\n    if x.sum() > 20:\n        continue\n    x = x * 2\nreturn x",
    "break or else": "for i in range(3):\n    x = x + 1\n    if x.sum() > 20:\n        break\n    else:\n        x = x - 3\nreturn x",
    "break after a statement": "for i in range(3):\n    if x.sum() > 20:\n        x = x - 3\n        break\nreturn x",
    "break in an elif": (
        "for i in range(3):\n    x = x + 1\n    if self.training:\n        x = x - 1\n    elif x.sum() > 20:\n        break\nreturn x"
    ),
    "return in a loop": "for i in range(3):\n    x = x + 1\n    if x.sum() > 20:\n        return x\nreturn x",
    "flag that ends the loop": (
        "done = False\nfor i in range(3):\n    x = x + 1\n    if x.sum() > 20:\n        done = True\n    if done:\n        break\nreturn x"
    ),
    "break on a number": "for i in range(3):\n    k = n.item()\n    if k > i:\n        break\nreturn x",
    "break that another test decides": (
        "for i in range(3):\n    if x.sum() > 20:\n        y = None\n    if i > 1:\n        break\n    x = x + 1\nreturn x"
    ),
    "break of a loop inside": "if x.sum() > 0:\n    for i in range(3):\n        break\nreturn x",
    "loop inside that a break leaves": (
        "for j in range(2):\n    if x.sum() > 0:\n        for i in range(3):\n            break\n        x = x + 1\nreturn x"
    ),
}

# The statements of `forward(self, x, n)` that need a number from data, or check or print it.
VALUES = {
    "int": "return x * int(x.sum())",
    "float": "return x * float(x.sum() + 1)",
    "int of a number": "return x * int(n.item() / 2)",
    "index": "return x[int(n)]",
    "module of a list": "return self.parts[n.item()](x)",
    "module of a dict": "return self.named[str(n.item())](x)",
    "part of a list": "y = [x, x + 1, x + 2]\nreturn y[n.item()]",
    "branch that sets": "k = n.item()\nif k < 2:\n    x = x + 1\nreturn x",
    "branch on not": "k = n.item()\nif not k:\n    x.abs_()\nreturn x",
    "branch on and": "k = n.item()\nif k and self.training is False:\n    x.abs_()\nreturn x",
    "branch and elif": "k = n.item()\nif k == 1:\n    x.abs_()\nelif k < 4:\n    x.neg_()\nreturn x",
    "elif": "k = n.item()\nif self.training:\n    x.abs_()\nelif k >= 4:\n    x.neg_()\nreturn x",
    "choice": "k = n.item()\ny = x.abs() if k <= 2 else self.parts[0](x)\nreturn y",
    "behind a statement": "k = n.item(); y = x.abs() if k != 2 else [x][0]\nreturn y",
    "assert": "k = n.item()\nassert k > 1, 'no'\nreturn x * k",
    "assert on a tensor": "assert x.sum() > 0 or x.max() > 0, 'no'\nreturn x",
    "assert that sets a name": "assert (y := x.sum() > 0)\nreturn x",
    "raise": "if x.sum() > 0:\n    raise ValueError\nreturn x",
    "raise or else": "if x.sum() > 0:\n    raise ValueError\nelse:\n    x = x + 1\nreturn x",
    "raise after a statement": "if x.sum() > 0:\n    x = x + 1\n    raise ValueError\nreturn x",
    "print": "print(end='', *range(int(x.sum() * 0)))\nreturn x",
    "print behind a statement": "y = x; print('' * int(x.sum()), end='')\nreturn y",
    "print in an expression": "y = print('' * int(x.sum()), end='')\nreturn x",
    "log": "logging.getLogger('a').info(str(list(range(int(x.sum())))))\nreturn x",
    "another call": "len(str(list(range(int(x.sum())))))\nreturn x",
    "bool": "return x + bool(x.sum() > 0)",
    "any": "return x * any(part.max() > 2 for part in x.chunk(3))",
    "any with a condition": "return x * any(part.max() > 2 for part in x.chunk(3) if part.dim())",
    "any of two": "return x * any(part.max() > y.max() for part in x.chunk(3) for y in x.chunk(3))",
    "any that is no predicate": "return x * any((part.max() > 2) is part for part in x.chunk(3)) + bool(x.any())",
    "max of three tensors": "return x * max(x.sum() + 1, x.max(), x.min())",
    "max of tensors in a helper": "return x * larger(x.sum() + 1, x.max())",
    "numpy": "return x * float(x.numpy().max())",
    "array": "return x * np.asarray(x).max()",
}

HEAD = """\
import logging
import numpy as np
import torch


def larger(one, other):
    return sorted([one, other])[1]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.ReLU() for _ in range(4))
        self.named = torch.nn.ModuleDict({str(k): torch.nn.ReLU() for k in range(4)})

"""

# The statements of `forward(self, x)` with `x` of shape [3, 4], of which the first dim should be dynamic.
SIZES = {
    "int": "return x[: int(x.shape[0]) - 1]",
    "int of two arguments": "return x[: int(str(x.shape[0]), 10)]",
    "view": "return x.view(3, 4) * 2",
    "view with -1": "return x.view(3, -1) * 2",
    "view of a tuple": "return x.reshape((3, 4)) * 2",
    "two views": "return x.reshape(3, 2, 2) + x.reshape(3, 2, 2)",
    "ones": "return x + torch.ones(3, 4)",
    "ones where x is set": "y = x * 2\nx = y\nreturn x + torch.ones(3, 1)",
    "zeros of a list": "return x + torch.zeros([3, 4])",
    "a line above": "y = torch.ones(3, 4)\nz = torch.ones(4)\nreturn x * 2 + y + z",
    "two lines above": "y = torch.ones(3, 4)\nz = torch.ones(3, 1)\nreturn x + y * z",
    "rows": "return torch.stack([row * 2 for row in x])",
    "rows in a function": "return torch.stack([torch.relu(row) for row in x])",
    "rows along another dim": "return torch.stack([torch.relu(row) for row in x], 1)",
    "rows with a condition": "return torch.stack([row for row in x if row.dim()])",
    "rows of an attribute": "self.x = x\nreturn torch.stack([torch.relu(row) for row in self.x])",
    "rows of another function": "return torch.cat([row for row in x])",
    "size of another tensor": "y = torch.arange(24.0)\nreturn y.view(x.shape[0], -1).sum() + x",
    "size of another tensor by name": "n = x.shape[0]\ny = torch.arange(24.0)\nreturn y.view(n, -1).sum() + x",
    "multiple": "return x.sum(1).view(-1, 3)",
    "limit": "return x.sum(1) + torch.arange(5)[: x.shape[0]]",
    "branch": "return x * 2 if x.shape[0] > 2 else x",
    "branch on int": "return x * 2 if int(x.shape[0]) > 2 else x",
    "helper": "return helper(x)",
    "unpacked": "a, b, c = x.unbind()\nreturn a + b + c",
    "parts": "return torch.stack(x.split(2)[:1]) + 1",
    "squeeze": "return x[:, None].squeeze() * 2",
    "squeeze of a dim": "return x.squeeze(0) * 2",
    "check": "torch._check(x.shape[0] <= 9)\nreturn x * 2",
}

# The sizes of the inputs `x`, `y` and `z`, their `dynamic_shapes`, and the statements of `forward`.
A, D = torch.export.Dim.AUTO, torch.export.Dim.DYNAMIC
N, M, HALF = torch.export.Dim("n"), torch.export.Dim("m"), torch.export.Dim("half", max=40)
ASSUMPTIONS: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[Any, ...], str]] = {
    "squeeze of size 1": (((1, 4),), ({0: N},), "return x.squeeze() * 2"),
    "squeeze of size 1 of two": (((1, 4, 1),), ({0: N, 2: M},), "return x.squeeze() * 2"),
    "squeeze of a part": (((3, 4),), ({0: N},), "return x[: x.shape[0] // 2].squeeze() * 2"),
    "squeeze in place": (((3, 4),), ({0: N},), "return x.clone().squeeze_() * 2"),
    "squeeze that may be open": (((3, 4),), ({0: A, 1: A},), "return x.squeeze() * 2"),
    "squeeze of size 1 that may be open": (((1, 4),), ({0: A, 1: A},), "return x.squeeze() * 2"),
    "squeeze of the smaller of two dims": (
        ((5, 1), (5, 1)),
        ({0: A, 1: torch.export.Dim("k", min=1)}, {0: N, 1: A}),
        "return y[: min(y.shape[1], y.shape[0])].squeeze()",
    ),
    "parts": (((4, 4),), ({0: N},), "return torch.cat(x.split(2)[1:]) + 1"),
    "parts of one row": (((3, 4),), ({0: N},), "return torch.cat(x.split(1)) + 1"),
    "sizes of parts within a small range": (
        ((1, 4),),
        ({0: torch.export.Dim("k", min=1, max=4)},),
        "return torch.cat([part * place for place, part in enumerate(torch.ops.aten.tensor_split(x, 4))])",
    ),
    "last part": (((5, 4),), ({0: N},), "return x.split(3)[-1].sum() + x"),
    "first part": (((5, 4),), ({0: N},), "return x.split(3)[0] + 1"),
    "chunks": (((5, 4),), ({0: D},), "one, two = x.chunk(2)\nreturn one.sum() + two"),
    "parts of a multiple": (((8, 4),), ({0: 2 * HALF},), "return torch.cat(x.split(3)) + 1"),
    "branch on a multiple": (((8, 4),), ({0: 2 * HALF},), "return x + 1 if x.shape[0] < 20 else x"),
    "branch that a multiple decides": (((8, 4),), ({0: 2 * HALF},), "return x + 1 if x.shape[0] % 2 == 0 else x"),
    "parts that may be open": (((4, 4), (3, 4)), ({0: A}, {0: A}), "return torch.cat(x.split(2)) + y.sum()"),
    "multiple of a part of a product": (((2, 8),), ({0: N, 1: torch.export.Dim("k", max=50)},), "return x.view(x.shape[0], -1, 4)"),
    "multiple that an assert states": (((2, 8),), ({0: N, 1: M},), "assert x.shape[1] % 4 == 0\nreturn x.view(x.shape[0], -1, 4)"),
    "multiple that an assert states of a name": (((2, 8),), ({0: N, 1: "k"},), "assert x.shape[1] % 4 == 0\nreturn x + 1"),
    "multiple of a branch": (((2, 8),), ({0: N, 1: torch.export.Dim("k", min=6, max=50)},), "return x + 1 if x.shape[1] % 4 == 0 else x"),
    "only one multiple": (((2, 8),), ({0: N, 1: torch.export.Dim("k", min=6, max=11)},), "return x.view(x.shape[0], -1, 4)"),
    "branch": (((3, 4),), ({0: N},), "return x + 1 if x.shape[0] % 2 == 1 else x"),
    "branches on one line": (((3, 4),), ({0: D},), "return x + 1 if x.shape[0] > 2 and x.shape[0] < 9 else x"),
    "branch on two": (((3, 4), (5, 4)), ({0: N}, {0: M}), "return x + 1 if x.shape[0] < y.shape[0] else y"),
    "branch on one that may be open": (((3, 4), (5, 4)), ({0: A}, {0: N}), "return x + 1 if x.shape[0] < y.shape[0] else x"),
    "branch on int": (((3, 4),), ({0: A},), "return x + 1 if int(x.shape[0]) > 2 else x"),
    "branch on a sum": (((3, 4), (2, 4), (5, 4)), ({0: N}, {0: M}, {0: D}), "return x + 1 if x.shape[0] + y.shape[0] <= z.shape[0] else x"),
    "branch on a product": (((3, 4),), ({0: N, 1: M},), "return x + 1 if x.numel() > 10 else x"),
    "branch on many": (((3, 4),), ({0: N},), "return x + 1 if x.numel() < 2**31 else x"),
    "equal dims": (((3, 4), (3, 4)), ({0: N}, {0: M}), "return x + y"),
    "equal dims that may be open": (((3, 4), (3, 4)), ({0: A}, {0: M}), "return x + y"),
    "sum of dims": (((3, 4), (2, 4), (5, 4)), ({0: N}, {0: M}, {0: D}), "return torch.cat([x, y]) + z"),
    "one of two is fixed": (((3, 4), (3, 4)), ({0: A, 1: A}, {0: A, 1: A}), "return x.view(3, 4).sum() + y"),
    "both are fixed": (((3, 4), (5, 4)), ({0: A, 1: A}, {0: A, 1: A}), "return x.view(3, 4).sum() + y.view(5, 4)"),
    "product is fixed": (((3, 4),), ({0: A, 1: A},), "return x.view(12) + 1"),
    "size 1 that is broadcast": (((1, 4), (3, 4)), ({0: N}, {0: M}), "return x + y"),
    "size 1 that may be open and is broadcast": (((1, 4), (3, 4)), ({0: A}, {0: M}), "return x + y"),
    "size 1 of a branch": (((1, 4),), ({0: N},), "return x + 1 if x.shape[0] == 1 else x"),
    "size 1 of an expand": (((1, 4),), ({0: N},), "return x.expand(3, 4) + 1"),
    "same name": (((3, 4), (3, 4)), ({0: N}, {0: N}), "return x.view(3, 4) + y"),
    "limit of two": (((3, 4), (3, 4)), ({0: N}, {0: N}), "return x + y + torch.ones(9, 4)[: y.shape[0]]"),
    "limit that is promised": (((3, 4),), ({0: torch.export.Dim("k", max=9)},), "return x + torch.ones(9, 4)[: x.shape[0]]"),
    "range": (((3, 4),), ({0: torch.export.Dim("k", min=2, max=8)},), "return x.sum(1).view(-1, 3) + torch.ones(9)[: x.shape[0]].sum()"),
    "no size is left": (((3, 4),), ({0: torch.export.Dim("k", min=3)},), "return x + torch.ones(3, 4)[: x.shape[0]]"),
    "hint with a limit": (((3, 4),), ({0: D},), "return x.sum(1).view(-1, 3)"),
    "name with a limit": (((3, 4),), ({0: "k"},), "return x.sum(1).view(-1, 3)"),
    "divisors": (((3, 4),), ({0: "k"},), "return torch.arange(60.0).view(x.shape[0], -1).sum(1, keepdim=True) + x"),
    "kernel": (((3, 9),), ({1: N},), "return torch.nn.functional.avg_pool1d(x, 4)"),
    "axis from the end": (((3, 4),), ({-1: N, 0: M},), "return x.sum(0).view(4)"),
    "axis from the end with a limit": (((3, 4),), ({-2: torch.export.Dim("k")},), "return x + torch.ones(9, 4)[: x.shape[0]]"),
    **{
        f"last part within {least} and {most}": (
            ((5, 4),),
            ({0: torch.export.Dim("k", min=least, max=most)},),
            "return x.split(3)[-1].sum() + x",
        )
        for least, most in ((2, 6), (2, 7), (3, 9), (4, 9), (4, 6))
    },
    "parts of a large multiple": (((80, 4),), ({0: 2 * torch.export.Dim("k", max=45)},), "return torch.cat(x.split(30)) + 1"),
    "parts of a multiple within": (((80, 4),), ({0: 2 * torch.export.Dim("k", min=31, max=45)},), "return torch.cat(x.split(30)) + 1"),
    "parts of rows": (((4, 4),), ({0: N},), "return torch.stack(x.unbind(1)) + 1"),
    "parts of columns": (((4, 6),), ({1: N},), "a, b, c = torch.ops.aten.tensor_split(x, 3, 1)\nreturn a + b + c"),
    "squeeze of one dim in place": (((3, 4),), ({0: torch.export.Dim("k", min=2)},), "return x.clone().squeeze_(0) * 2"),
    "squeeze of two dims": (((3, 4, 1),), ({0: N, 1: M},), "return x.squeeze((0, 1)) * 2"),
    "squeeze of two larger dims": (
        ((3, 4, 1),),
        ({0: torch.export.Dim("k", min=2), 1: torch.export.Dim("l", min=2)},),
        "return x.squeeze((0, 1)) * 2",
    ),
    "divisors up to the number": (
        ((3, 4),),
        ({0: torch.export.Dim("k", max=60)},),
        "return torch.arange(60.0).view(x.shape[0], -1).sum() + x",
    ),
    "divisors up to one more": (
        ((3, 4),),
        ({0: torch.export.Dim("k", max=61)},),
        "return torch.arange(60.0).view(x.shape[0], -1).sum() + x",
    ),
    "limit and multiple": (
        ((6, 4),),
        ({0: torch.export.Dim("k", max=90)},),
        "return x[:, 0].view(-1, 3).sum() + torch.ones(30)[: x.shape[0]].sum()",
    ),
    "refusal that is caught": (((3, 4),), ({0: N},), "try:\n    return x.view(2, -1)[:, :1]\nexcept RuntimeError:\n    return x * 2"),
    "refusal of all sizes in a range": (
        ((4, 4),),
        ({0: torch.export.Dim("k", min=4, max=5)},),
        "try:\n    return x[:, :3].view(-1, 9)\nexcept RuntimeError:\n    return x * 2",
    ),
    "all dims": (((3, 4),), ({0: N, 1: M},), "for row in x:\n    y = row\nreturn y * x.reshape(3, 4)"),
}

# The strategies, whether the first dim of `x` (shape [3, 4]) is dynamic, and the statements of `forward(self, x)`.
STRATEGIES = {
    "two branches": (
        ("non-strict", "strict", "draft"),
        False,
        "if x.sum() > 0:\n    x = x + 1\nif x.max() > 2:\n    x = x + 2\nreturn x[: x.sum().item()]",
    ),
    "two branches without a survey": (("non-strict",), False, "if x.sum() > 0:\n    x = x + 1\nif x.max() > 2:\n    x = x + 2\nreturn x"),
    "value, then an error": (("non-strict", "draft"), False, "if x.sum().item() > 0:\n    x = x + 1\nraise_in_exports()\nreturn x"),
    "error in both": (("non-strict", "strict"), False, "raise_in_exports()\nreturn x"),
    "error in both, and a survey": (("strict", "draft", "non-strict"), False, "raise_in_exports()\nreturn x"),
    "survey of a healthy model": (("draft",), False, "return x + 1"),
    "survey of a dim": (("draft",), True, "return x.view(3, 4)"),
    "view": (("strict",), True, "return x.view(3, 4)"),
    "branch on a size": (("strict",), True, "return x + 1 if x.shape[0] > 2 else x"),
    "branch on a tensor": (("strict",), False, "if x.sum() > 0:\n    x = x + 1\nreturn x"),
    "value": (("strict",), False, "for i in range(x.sum().long().item()):\n    x = x + i\nreturn x"),
    "view in both": (("non-strict", "strict"), True, "return x.view(3, 4)"),
    "strict only": (("non-strict", "strict"), True, "return x / float(x.abs().max())"),
}

# The call of the export with `dynamic_shapes`, for `x` of shape [3, 4] and a model that fixes the first dim.
SHAPES = {
    "dict": "batch = Dim('batch')\nexport({'x': {0: batch, 1: Dim.AUTO}})",
    "definition inside": "export({'x': {0: torch.export.Dim('batch', max=9)}})",
    "tuple": "batch = Dim('batch')\nexport([(batch, None)])",
    "variable": "shapes = {'x': (Dim('batch'), None)}\nexport(shapes)",
    "wrong name": "export({'y': {0: 'batch'}})",
    "wrong axis": "export(({0: 'batch', 2: 'more'},))",
    "negative axis": "export(({-3: 'batch'},))",
    "above the example": "batch = Dim('batch', min=5)\nexport(({0: batch},))",
    "below the example": "batch = Dim('batch', max=2)\nexport(({0: batch},))",
    "two sizes": "batch = Dim('batch')\nexport(({0: batch, 1: batch},))",
    "two sizes with a range": "batch = Dim('batch', min=2, max=8)\nexport({'x': {0: batch, 1: batch}})",
    "two ranges": "export(({0: Dim('b', max=9), 1: Dim('b', max=10)},))",
    "derived": "half = Dim('half', max=4)\nexport(({1: half * 2},))",
}

# The same for `forward(x, pair)`, with `pair` of two tensors of shape [3, 4], and `options`, a dict with one.
NESTED = (
    "{'x': {0: batch}, 'pair': [{0: other}, None], 'options': {'k': None}}",
    "{'x': (batch, None), 'pair': ({0: other, 1: Dim('k', max=9)}, (None, Dim.AUTO)), 'options': None}",
    "({0: batch}, [{0: other}, None], {'k': {0: other}})",
    "{'x': {0: batch}, 'pair': [None, {0: 'other'}], 'options': {'k': (other, None)}}",
    "{'x': {0: batch}, 'pear': [{0: other}, None], 'options': None}",
    "{'y': {0: batch}, 'options': {'k': None}}",
    "{'x': {0: batch}, 'pair': [{0: other}], 'options': {'k': None}}",
    "{'x': {0: batch}, 'pair': {'a': None}, 'options': {'k': None}}",
    "{'x': (batch,), 'pair': [None, None], 'options': None}",
    "{'x': batch, 'pair': [None, None], 'options': None}",
    "{'x': {0: batch}, 'pair': [None, None], 'options': {'a': {0: other}}}",
    "{'x': {0: batch}, 'pair': [None, {3: other}], 'options': {'k': None}}",
    "{'x': {0: batch, 1: batch}, 'pair': [None, {0: other}], 'options': None}",
    "{'x': {0: other}, 'pair': [{0: other}, {1: other}], 'options': None}",
    "[{0: batch}, None]",
)

# Statements for files of other kinds: without a name for torch, with another name, or of an installed package.
IN_OTHER_FILES = {
    **{case: BRANCHES[case] for case in ("both return", "two variables")},
    **{case: LOOPS[case] for case in ("range", "while", "while on a number", "break")},
    **{
        case: VALUES[case]
        for case in (
            "int",
            "module of a list",
            "branch that sets",
            "choice",
            "assert on a tensor",
            "raise",
            "print",
            "bool",
            "any",
            "max of three tensors",
        )
    },
    "view": "return x.view(3) + torch.ones(int(n))[0]",
}


OPENING = """\
import numpy as np
import onnxplain
import torch
from torch.nn import Module

STRATEGIES = ["non-strict"]
ARGS = (torch.ones(3),)
SHAPES = None


"""
ENDING = """

def go():
    return onnxplain.export(MODEL, ARGS, strategies=STRATEGIES, dynamic_shapes=SHAPES)
"""

# Programs that export `Net` or their `MODEL`, and fail.
FAILURES = {
    "device of the line": """\
class Net(Module):
    def forward(self, x):
        return x @ torch.ones(3, device='meta')
""",
    "device of a line above": """\
class Net(Module):
    def forward(self, x):
        y = torch.ones(3, device='meta')
        z = torch.ones(3, device='cpu')
        return x @ y
""",
    "two devices": """\
class Net(Module):
    def forward(self, x):
        y = torch.ones(3, device='meta')
        y = y + torch.ones(3, device='meta')
        return x @ y
""",
    "device below": """\
class Net(Module):
    def forward(self, x):
        y = self.y
        z = x @ y
        return z + torch.ones(3, device='meta')

    y = torch.ones(3, device='meta')
""",
    "device handed on": """\
def made(size, device):
    return torch.ones(size, device=device)


def product(x, device):
    return x @ made(3, device)


class Net(Module):
    def forward(self, x):
        return product(x, 'meta')
""",
    "device handed on by keyword": """\
def product(x, device):
    return x @ torch.ones(3, device=device)


class Net(Module):
    def forward(self, number, x):
        return product(x, device='meta')


ARGS = (3, torch.ones(3))
""",
    "device without tensors": """\
class Net(Module):
    def forward(self, n):
        y = torch.ones(3, device='meta')
        return torch.ones(3) @ y * n


ARGS = (3,)
""",
    "quantized layer": """\
class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)


def quantized(model):
    return torch.ao.quantization.quantize_dynamic(model)


MODEL = quantized(Net())
ARGS = (torch.ones(2, 3),)
""",
    "two masks in an index": """\
class Net(Module):
    def forward(self, x):
        mask, last = x > 0, torch.tensor(0)
        return x[None, None][last, mask[:1], mask]
""",
    "branches that return their input": """\
class Net(Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x, lambda x: x + 1, (x,))
""",
    "branches that return a part of their input": """\
class Net(Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x[:2], lambda x: (x + 1)[:2], (x,))
""",
    "functions that return their input": """\
class Net(Module):
    def forward(self, x):
        def same(x):
            return x

        return torch.cond(x.sum() > 0, same, lambda x: x + 1, (x,))
""",
    "branches of two dtypes": """\
class Net(Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x > 1, lambda x: x + 1, (x,))
""",
    "functions of two dtypes": """\
def when_true(x):
    return x.int()


def when_false(x):
    return x + 1


class Net(Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, when_true, when_false, (x,))
""",
    "function with two returns": """\
def when_true(x):
    if x.dim() == 1:
        return x.int()
    return x


class Net(Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, when_true, lambda x: x + 1, (x,))
""",
    "gradient of torch.func": """\
class Net(Module):
    def forward(self, x):
        return torch.func.grad(lambda y: (y * x).sum())(x)
""",
    "extractor without a program": """\
class Own(onnxplain.FXGraphExtractor):
    name = 'own'

    def generate_fx(self, model, args, kwargs, dynamic_shapes):
        return model


class Net(Module):
    def forward(self, x):
        return x + 1


STRATEGIES = [Own()]
""",
    "extractor with other inputs": """\
class Own(onnxplain.FXGraphExtractor):
    name = 'own'

    def generate_fx(self, model, args, kwargs, dynamic_shapes):
        return torch.export.export(model, (*args, torch.ones(3)))


class Net(Module):
    def forward(self, x, y=None):
        return x + 1


STRATEGIES = [Own()]
""",
    "extractor that raises": """\
class Own(onnxplain.FXGraphExtractor):
    name = 'own'

    def generate_fx(self, model, args, kwargs, dynamic_shapes):
        raise RuntimeError('no')


class Net(Module):
    def forward(self, x):
        return x + 1


STRATEGIES = [Own()]
""",
    "array": """\
class Net(Module):
    def forward(self, x):
        return torch.ones(3) * x[0]


ARGS = (np.ones(3),)
""",
    "object that holds itself": """\
class Held:
    def __init__(self, x):
        self.x, self.own = x, self


class Net(Module):
    def forward(self, held):
        return held.x + 1


ARGS = (Held(torch.ones(3)),)
""",
    "object of two attributes": """\
class Held:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __reduce__(self):
        raise TypeError


class Net(Module):
    def forward(self, held):
        return held.x + 1


ARGS = (Held(torch.ones(3), 1),)
""",
    "object of other attributes": """\
class Held:
    def __init__(self, x):
        self.y = x

    def __reduce__(self):
        raise TypeError


class Net(Module):
    def forward(self, held):
        return held.y + 1


ARGS = (Held(torch.ones(3)),)
""",
    "scripted model": """\
class Net(Module):
    def forward(self, x):
        return x + 1


MODEL = torch.jit.script(Net())
""",
    "too few arguments": """\
class Net(Module):
    def forward(self, x, y):
        return x + y
""",
    "text of a size": """\
class Net(Module):
    def forward(self, x):
        return {'3': x}[f'{x.sum().long().item()}']
""",
    "numpy within a layer": """\
class Net(Module):
    def forward(self, x):
        return torch.from_numpy(np.sin(x.numpy()))
""",
    "unknown error": """\
class Net(Module):
    def forward(self, x):
        if torch.compiler.is_exporting():
            raise RuntimeError('no')
        return x
""",
    "mask in an index": """\
class Net(Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.arange(100) % 50 == 0)

    def forward(self, x):
        return x[self.rows, torch.tensor([0, 1])]


ARGS = (torch.ones(100, 4),)
""",
    "branches of two dtypes in parentheses": """\
class Net(Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0,
            lambda x: x.int() + 1,
            lambda x: x - 1,
            (x,),
        )
""",
    "dict of a class": """\
class Held(dict):
    def __init__(self, x, y):
        super().__init__(x=x, y=y)

    def __reduce__(self):
        raise TypeError


class Net(Module):
    def forward(self, held):
        return held["x"] + 1


ARGS = (Held(torch.ones(3), 1),)
""",
    "scripted part": """\
class Part(Module):
    def forward(self, x):
        return x + 1


class Net(Module):
    def __init__(self):
        super().__init__()
        self.other = torch.jit.script(Part())
        self.part = torch.jit.script(Part())

    def forward(self, x):
        return self.part(self.other(x))
""",
    "scripted part of a name": """\
script = torch.jit.script


class Part(Module):
    def forward(self, x):
        return x + 1


class Net(Module):
    def __init__(self):
        super().__init__()
        self.part = script(Part())

    def forward(self, x):
        return self.part(x)
""",
    "packed in a helper": """\
from torch.nn.utils.rnn import pack_padded_sequence


def packed(x, lengths):
    return pack_padded_sequence(x, lengths.numpy().clip(1, 2), batch_first=True)


class Net(Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(3, 5, batch_first=True)

    def forward(self, x, lengths):
        return self.rnn(packed(x, lengths))[1]


ARGS = (torch.ones(2, 2, 3), torch.tensor([2, 2]))
""",
}

# Programs that export `Net` or their `MODEL`.
REMARKS = {
    "hooks": """\
def doubled(module, inputs, output):
    y = output * 2
    return y


def seen(module, inputs):
    return None


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.layer.register_forward_hook(doubled)
        self.register_forward_pre_hook(seen)
        self.layer.register_forward_hook(torch.nn.Module.to)
        self.layer._forward_hooks.popitem()

    def forward(self, x):
        return self.layer(x)
""",
    "hook of torch": """\
class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3))

    def forward(self, x):
        return self.layer(x)


MODEL = Net().eval()
""",
    "gradient": """\
class Net(Module):
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad((x * x).sum(), x)
        return slope
""",
    "names like those of gradients": """\
class Net(Module):
    def forward(self, x):
        y = torch.func.vmap(torch.sin)(x)
        gradual = self.grad(y)
        return gradual

    def grad(self, y):
        return y * 2
""",
    "branch for exports": """\
class Net(Module):
    def forward(self, x):
        if torch.compiler.is_exporting():
            return x * 2
        return x
""",
    "symbolic": """\
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(0, 1)
        return y * 2

    @staticmethod
    def symbolic(g, x):
        return g.op("my.domain::Clip", x)


class Narrower(Clip):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(0, 0.5)


class Other(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.abs()


class Net(Module):
    def forward(self, x):
        y = Clip.apply(x) + Other.apply(x)
        return Clip.apply(y) * Narrower.apply(x)
""",
    "clock": """\
import time


class Net(Module):
    def forward(self, x):
        began = time.perf_counter()
        y = x * time.time()
        if self.training is None:
            return x * time.monotonic()
        return y
""",
    "clock without effect": """\
import time


class Net(Module):
    def forward(self, x):
        began = time.time()
        return x * 2
""",
    "random numbers": """\
import random


def drawn():
    number = random.random()
    return number


class Net(Module):
    def forward(self, x):
        y = x * drawn()
        return y + np.random.rand() + random.random()
""",
    "attributes": """\
SEEN = []
LAST = {}


class Part(Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2


class Net(Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.items = [1]
        self.kept = None
        self.same = 3
        self.names = {"a"}

    def forward(self, x):
        y = self.part(x)
        self.items.append(y.shape[0])
        SEEN.append(1)
        LAST["x"] = 2
        self.same = 3
        self.kept = y
        self.names.add("b")
        return y
""",
    "tensors that are read": """\
class Net(Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(2.0)
        self.scales = [torch.tensor(3.0)]

    def forward(self, x):
        y = x * self.scale.item()
        y = y * float(self.scales[0]) + self.scales[0].tolist()
        return y * (self.scale + 1) + x.sum().item()
""",
    "vectors": """\
class Net(Module):
    def forward(self, x):
        y = x[:, None] @ x[None]
        values, vectors = torch.linalg.eigh(y)
        other, _ = torch.linalg.eigh(y + 1)
        u, s, v = torch.linalg.svd(y)
        return vectors, values, other, torch.linalg.svd(y * 2)[1], s, v
""",
    "checks": """\
class Net(Module):
    def forward(self, x):
        n = x.sum().long().item()
        torch._check(n >= 2)
        torch._check(n <= 9)
        torch._check(n * 2 != 6)
        torch._check(n % 2 == 1)
        torch._assert_async(x.max() > 0)
        torch._assert_async(x.max() > 1, "no")
        return x + torch.ones(n).sum()


ARGS = (torch.tensor([1.0, 2.0, 2.0]),)
""",
    "inputs": """\
def kept(function):
    return function


class Net(Module):
    @kept
    def forward(self, x, number, flag, options, batch, text, *, last=None):
        def inner(number):
            return number

        x = x * inner(1)
        if flag:
            x = x * number
        return x * options["k"] * batch[1][0] + len(text)


ARGS = (torch.ones(3), 2, True, {"k": 2.5}, [None, (3,)], "a" * 99)
""",
    "input that nothing reads": """\
class Net(Module):
    def forward(self, x, number):
        return x * 2


ARGS = (torch.ones(3), 2)
""",
    "input of a layer": """\
MODEL = torch.nn.MultiheadAttention(4, 2)
ARGS = (torch.ones(3, 4), torch.ones(3, 4), torch.ones(3, 4), None, False)
""",
    "training": """\
class Net(Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)


MODEL = Net().train()
""",
    "training of a new model that is called": """\
class Net(Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training)


MODEL = Net().requires_grad_(False)
""",
    "training in a layer of torch": """\
MODEL = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
ARGS = (torch.ones(2, 3),)
""",
    "training of a new model": """\
class Net(Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training)


MODEL = Net()
""",
    "training of a part": """\
class Net(Module):
    def forward(self, x):
        y = torch.nn.functional.dropout(x, 0.0, self.training)
        return torch.nn.functional.scaled_dot_product_attention(y, y, y, dropout_p=0.5)


MODEL = Net().to("cpu")
ARGS = (torch.ones(1, 2, 3),)
""",
    "long loops": """\
class Net(Module):
    def forward(self, x):
        for _ in range(99):
            x = x * 2
        for _ in range(100):
            x = x + 1 - 2
        return x
""",
    "sizes of one": """\
class Net(Module):
    def forward(self, x, y, z):
        return x + y.sum() + z.sum()


ARGS = (torch.ones(1, 3), torch.randn((1, 4)), torch.ones(1, 5))
SHAPES = ({0: "n"}, {0: "m"}, {0: "k"})
OTHER = torch.ones(1, 5)
""",
    "random operators": """\
class Net(Module):
    def forward(self, x):
        return x + torch.rand_like(x) + torch.nn.functional.dropout(x, 0.5, False)
""",
}


def exported(model: Any, args: tuple[Any, ...], **options: Any) -> str:
    """What an export tells, with the non-strict strategy unless `options` name others, without a trial of the fixes."""
    try:
        return told(
            onnxplain.export(model, args, **{"strategies": ["non-strict"], "try_fixes": False, **options}).diagnostics.findings, __file__
        )
    except onnxplain.ExportFailed as failed:
        return told(failed.findings, __file__)


def compare(golden: Callable[[str, str], None], name: str, cases: Mapping[str, Callable[[str], str]]) -> None:
    """Compares what all cases tell with a golden file."""
    texts = (f"# {case}\n{tell(f'model_{number}')}" for number, (case, tell) in enumerate(cases.items()))
    golden(f"fixes_{name}.txt", "\n".join(texts))


def forward(parameters: str, statements: str) -> str:
    return f"    def forward(self, {parameters}):\n" + textwrap.indent(statements, " " * 8) + "\n"


def test_branches(load: Load, golden: Callable[[str, str], None]) -> None:
    def tell(statements: str) -> Callable[[str], str]:
        return lambda name: exported(load(HEAD + forward("x", statements), name).Net().eval(), (X,))

    compare(golden, "branches", {case: tell(statements) for case, statements in BRANCHES.items()})


def test_tests(load: Load, golden: Callable[[str, str], None]) -> None:
    def tell(test: str) -> Callable[[str], str]:
        statements = f"flag = x.any()\nk = 1\nreturn x + 1 if {test} else x - 1"
        return lambda name: exported(load(HEAD + forward("x", statements), name).Net().eval(), (X,))

    compare(golden, "tests", {test: tell(test) for test in TESTS})


@pytest.mark.parametrize(("name", "cases"), [("loops", LOOPS), ("values", VALUES)])
def test_loops_and_values(load: Load, golden: Callable[[str, str], None], name: str, cases: Mapping[str, str]) -> None:
    def tell(statements: str) -> Callable[[str], str]:
        return lambda name: exported(load(HEAD + forward("x, n", statements), name).Net().eval(), (X, torch.tensor(2)))

    compare(golden, name, {case: tell(statements) for case, statements in cases.items()})


@of_one_torch
def test_sizes(load: Load, golden: Callable[[str, str], None]) -> None:
    source = "import torch\n\n\ndef helper(y):\n    return y.view(3, 4) * 2\n\n\nclass Net(torch.nn.Module):\n"
    # NOTE: no literal, which a fix would change.
    shapes = dict.fromkeys("x", dict.fromkeys([0], torch.export.Dim("n")))

    def tell(statements: str) -> Callable[[str], str]:
        return lambda name: exported(load(source + forward("x", statements), name).Net(), (torch.ones(3, 4),), dynamic_shapes=shapes)

    compare(golden, "sizes", {case: tell(statements) for case, statements in SIZES.items()})


def test_dynamic_shapes(load: Load, golden: Callable[[str, str], None]) -> None:
    source = (
        "import onnxplain\nimport torch\nfrom torch.export import Dim\n\n\nclass Net(torch.nn.Module):\n"
        f"{forward('x', 'return x.view(3, 4)')}\n\ndef go():\n"
    )

    def tell(statements: str) -> Callable[[str], str]:
        call = "onnxplain.export(Net(), (torch.ones(3, 4),), strategies=['non-strict'], try_fixes=False, dynamic_shapes="
        program = textwrap.indent(statements.replace("export(", call, 1) if statements.startswith("export(") else statements, " " * 4)
        program = program.replace("\n    export(", f"\n    {call}")

        def run(name: str) -> str:
            with pytest.raises(onnxplain.ExportFailed) as failed:
                load(f"{source}{program}\n", name).go()
            return told(failed.value.findings, __file__)

        return run

    compare(golden, "dynamic_shapes", {case: tell(statements) for case, statements in SHAPES.items()})


@of_one_torch
@pytest.mark.falls_back
def test_strategies(load: Load, golden: Callable[[str, str], None]) -> None:
    source = (
        "import torch\n\n\ndef raise_in_exports():\n    if torch.compiler.is_compiling() or torch.compiler.is_exporting():\n"
        "        raise RuntimeError\n\n\nclass Net(torch.nn.Module):\n"
    )

    def tell(strategies: tuple[str, ...], dynamic: bool, statements: str) -> Callable[[str], str]:
        shapes = dict.fromkeys("x", dict.fromkeys([0], N)) if dynamic else None

        def run(name: str) -> str:
            model = load(source + forward("x", statements), name).Net()
            return exported(model, (torch.ones(3, 4),), strategies=strategies, dynamic_shapes=shapes)

        return run

    compare(golden, "strategies", {case: tell(*parts) for case, parts in STRATEGIES.items()})


def test_nested_dynamic_shapes(load: Load, golden: Callable[[str, str], None]) -> None:
    source = (
        "import onnxplain\nimport torch\nfrom torch.export import Dim\n\n\nclass Net(torch.nn.Module):\n"
        f"{forward('x, pair, options', 'return x.view(3, 4) + pair[0].sum() + pair[1].sum() + options[`k`].sum()')}\n\ndef go():\n"
        "    batch, other, x = Dim('batch'), Dim('other', max=9), torch.ones(3, 4)\n    args = (x, [x + 1, x + 2], {'k': x + 3})\n"
        "    onnxplain.export(Net(), args, strategies=['non-strict'], try_fixes=False, dynamic_shapes=SHAPES)\n"
    ).replace("`", '"')

    def tell(shapes: str) -> Callable[[str], str]:
        def run(name: str) -> str:
            with pytest.raises(onnxplain.ExportFailed) as failed:
                load(source.replace("SHAPES", shapes), name).go()
            return told(failed.value.findings, __file__)

        return run

    compare(golden, "nested_dynamic_shapes", {shapes: tell(shapes) for shapes in NESTED})


def test_other_files(load: Load, golden: Callable[[str, str], None], tmp_path: pathlib.Path) -> None:
    (tmp_path / "site-packages").mkdir()

    def tell(statements: str, kind: str) -> Callable[[str], str]:
        source = HEAD + forward("x, n", statements)
        if kind == "without torch":
            source = source.replace("import torch\n", "from torch import nn\n").replace("torch.nn", "nn")
        elif kind == "torch as t":
            source = source.replace("import torch\n", "import torch as t\n").replace("torch.", "t.")
        folder = "site-packages/" if kind == "installed" else ""
        return lambda name: exported(load(source, folder + name).Net().eval(), (X, torch.tensor(2)))

    cases = ((case, kind) for case in IN_OTHER_FILES for kind in ("without torch", "torch as t", "installed"))
    compare(golden, "other_files", {f"{kind}: {case}": tell(IN_OTHER_FILES[case], kind) for case, kind in cases})


def finished(load: Load, source: str) -> Callable[[str], str]:
    """Tells what an export in a file tells, which tries the fixes."""
    made = "" if "MODEL = " in source else "\n\nMODEL = Net()\n"

    def tell(name: str) -> str:
        try:
            return told(load(OPENING + source + made + ENDING, name).go().diagnostics.findings, __file__)
        except onnxplain.ExportFailed as failed:
            return told(failed.findings, __file__)

    return tell


@of_one_torch
@pytest.mark.falls_back
def test_failures(load: Load, golden: Callable[[str, str], None]) -> None:
    compare(golden, "failures", {case: finished(load, source) for case, source in FAILURES.items()})


def test_remarks(load: Load, golden: Callable[[str, str], None]) -> None:
    compare(golden, "remarks", {case: finished(load, source) for case, source in REMARKS.items()})


@of_one_torch
def test_assumptions(load: Load, golden: Callable[[str, str], None]) -> None:
    def tell(sizes: tuple[tuple[int, ...], ...], shapes: tuple[Any, ...], statements: str) -> Callable[[str], str]:
        def run(name: str) -> str:
            parameters = ("x", "y", "z")[: len(sizes)]
            model = load(f"import torch\n\n\nclass Net(torch.nn.Module):\n{forward(', '.join(parameters), statements)}", name).Net()
            wanted = dict(zip(parameters, shapes, strict=True))
            return exported(model, tuple(map(torch.ones, sizes)), dynamic_shapes=wanted)

        return run

    compare(golden, "assumptions", {case: tell(*parts) for case, parts in ASSUMPTIONS.items()})
