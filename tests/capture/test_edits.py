"""The edits of the user's source at places in all kinds of code, as golden files. Nothing is exported: the edits follow from the source."""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Callable, Sequence

import pytest
from marks import needs_columns
from told import shown

from onnxplain.capture.observe.frames import Site
from onnxplain.capture.rewrite import control_flow, literals, packing, row_loops
from onnxplain.diagnostics import Fix, Location, Region

pytestmark = needs_columns

SITE = Site((), None, asks_truth_of_tensor=True, tensors=frozenset("vwxyz"), numbers=frozenset("kn"))

# The statements of `forward(self, x, k)`, with the place that asks between `«` and `»`. The variables v to z are tensors, k and n integers.
BRANCHES = {
    "in place without spaces": "y = x * 1\nif «x.sum() > 0»:\n    y-=x + 1\n    z = y\nelse:\n    z = y\nreturn y - z",
    "numbers among statements": "if «x.sum() > 0»:\n    n = 3\n    y = x * n\nelse:\n    n = 4\n    y = x + 1\nreturn y * n",
    "text among statements": "if «x.sum() > 0»:\n    s = 'a'\n    y = x + 1\nelse:\n    s = 'b'\n    y = x\nreturn y * len(s)",
    "tensor that is set in one way": "if «x.sum() > 0»:\n    y = x + 1\n    q = x\nelse:\n    y = x\nreturn y + q",
    "new variable in one way": "if «x.sum() > 0»:\n    q = x + 1\nreturn q",
    "choice of a tuple and a name": "y = (x, x)\nreturn (x, x + 1) if «x.sum() > 0» else y",
    "three branches within": (
        "if «x.sum() > 0»:\n    if x.max() > 1:\n        if x.max() > 2:\n            x = x + 2\n    if x.min() > 3:\n        x = x + 3\n"
        "return x"
    ),
    "two branches within another": (
        "if «x.sum() > 0»:\n    if x.max() > 1:\n        if x.max() > 2:\n            x = x + 2\n        x = x * 2\n"
        "    y = x\n    if x.min() > 3:\n        y = x + 3\nelse:\n    y = x\nreturn y"
    ),
    "elif of a chain within": (
        "if self.training:\n    return x\nelse:\n    if x.dim() > 3:\n        return x + 1\n    elif «x.sum() > 3»:\n        return x + 2\n"
        "    x = x * 2\nreturn x"
    ),
    "elif below a statement": "y = x\nz = x\nif self.training:\n    return y\nelif «x.sum() > 3»:\n    return z\nz = y + 1\nreturn z",
    "within a with": "with torch.no_grad():\n    if «x.sum() > 0»:\n        x = x + 1\n    y = x\nreturn y",
    "read in a match": "if «x.sum() > 0»:\n    y = x + 1\nelse:\n    y = x\nmatch k:\n    case 1:\n        x = y\nreturn x",
    "within a match": (
        "match k:\n    case 1:\n        if «x.sum() > 0»:\n            y = x + 1\n        else:\n            y = x\n        x = y\nreturn x"
    ),
    "read in a loop around": "y = x\nfor n in range(k):\n    x = x + y\n    if «x.sum() > 0»:\n        y = x + 1\nreturn x",
    "read below a loop around": "y = x\nfor n in range(k):\n    if «x.sum() > 0»:\n        y = x + 1\nreturn y",
    "exactly as long as a line": f"if «x.sum() > 0»:\n    y = x.{'a' * 22}()\nelse:\n    y = x\nreturn y",
    "longer than a line": f"if «x.sum() > 0»:\n    y = x.{'a' * 23}()\nelse:\n    y = x\nreturn y",
    "comprehension": "return [row for row in x if «row.sum() > 0»]",
    "assert": "assert «x.sum() > 0»\nreturn x",
    "assert on or": "assert «x.sum() > 0 or k»\nreturn x",
    **{
        f"test {test}": f"if «{test}»:\n    x = x + 1\nreturn x"
        for test in (
            "k == 1 == x.sum() or x.any()",
            "k == 1 and torch.add(x, 1)",
            "k == 1 and torch.add(x, *[x])",
            "k == 1 and x.sum(dim=0)",
            "k == 1 and x.sum(**{})",
            "k == 1 and (k > 2 or x.any())",
            "k == 1 or (k > 2 and x.any())",
            "x.any() and (k > 2 or x.all())",
            "not (k > 2 or x.any())",
            "any(k > 2 or row > 0 for row in x)",
            "k == 1 and (x.all() or x.any())",
            "k == 1 and torch.equal(x, y)",
            "k == 1 and x.equal(y)",
            "k == 1 and self.equal(y)",
            "k == 1 and self.allclose(y)",
            "k == 1 and (not x.any()) > 0",
            "k == 1 and x.max(dim=0)",
            "k == 1 and abs(x)",
            "k == 1 and abs(k)",
            "k == 1 and x.T.data",
            "k == 1 and x.shape",
        )
    },
    "no test": "y = «x.sum()»\nreturn y",
    "larger of two": "return «max(x.sum(), x.min())»",
    "larger of three": "return «max(x.sum(), x.min(), x.max())»",
    "larger by a key": "return «max(x.sum(), x.min(), key=abs)»",
    "largest of a list": "return «max([x.sum(), x.min()])»",
    "smaller of two": "return «min(x.sum(), x.min())»",
    "sorted": "return «sorted([x.sum(), x.min()])»",
    "method": "return «self.max(x, x)»",
    "any of a list": "return x * «any([x.sum(), x.min()])»",
    "all of the parts": "return x * «all(row > 0 for row in x)»",
    "continue": "for n in range(3):\n    if «x.sum() > 0»:\n        continue\n    x = x + 1\nreturn x",
    "continue on or": "for n in range(3):\n    if «x.sum() > 0 or x.max() > 1»:\n        continue\n    x = x + 1\nreturn x",
    "break and else": "for n in range(3):\n    if «x.sum() > 0»:\n        break\n    else:\n        x = x + 1\nreturn x",
    "break of a while": "while k:\n    k = k - 1\n    if «x.sum() > 0»:\n        break\n    x = self.parts[0](x)\nreturn x",
}

LOOPS = {
    "appended twice": "y = []\nfor v in x:\n    y.append(v)\n    y.append(v + 1)\nreturn torch.stack(y)",
    "appended in a branch": "y = []\nfor v in x:\n    if k:\n        y.append(v)\nreturn torch.stack(y)",
    "list that is made below": "for v in x:\n    q.append(v)\nq = []\nreturn torch.stack(q)",
    "list that is made twice": "q = []\nq = []\nfor v in x:\n    q.append(v)\nreturn torch.stack(q)",
    "list with a first part": "q = [x]\nfor v in x:\n    q.append(v)\nreturn torch.stack(q)",
    "list that is read before": "q = []\nw = torch.stack(q)\nfor v in x:\n    q.append(v)\nreturn torch.stack(q)",
    "list that is read within": "q = []\nfor v in x:\n    w = torch.stack(q)\n    q.append(v)\nreturn torch.stack(q)",
    "list that nothing reads": "q = []\nfor v in x:\n    q.append(v)\nreturn x",
    "list that is read twice": "q = []\nfor v in x:\n    q.append(v)\nreturn torch.stack(q) + torch.cat(q, dim=-1)",
    "two lists": (
        "q, r = [], []\nq = []\nr = []\nfor v in x:\n    q.append(v)\n    r.append(v * 2)\nreturn torch.stack(q, 1) + torch.cat(r, 1)"
    ),
    "two lists, one after the other": (
        "q = []\nr = []\nfor v in x:\n    q.append(v)\n    r.append(v * 2)\nreturn torch.stack(q, -1), torch.cat(r, -2)"
    ),
    "another argument": "q = []\nfor v in x:\n    q.append(v)\nreturn torch.stack(q, out=x)",
    "dim by position and by name": "q = []\nfor v in x:\n    q.append(v)\nreturn torch.stack(q, 1, dim=1)",
    "dim of a variable": "q = []\nfor v in x:\n    q.append(v)\nreturn torch.stack(q, k)",
    "dim of True": "q = []\nfor v in x:\n    q.append(v)\nreturn torch.stack(q, True)",
    "axis": "q = []\nfor v in x:\n    q.append(v)\nreturn torch.cat(q, axis=2)",
    "list and a change in place": "q = []\nfor v in x:\n    y += v\n    q.append(y)\nreturn torch.stack(q) + y",
    "list and an end": "q = []\nfor v in x:\n    q.append(v)\n    if v.sum() > 0:\n        break\nreturn torch.stack(q)",
    "list of items": "q = []\nfor n in range(len(x)):\n    q.append(x[n] + y[:, n] + w[..., n, 1:])\nreturn torch.stack(q)",
    "list of items of a list": "q = []\nfor n in range(len(x)):\n    q.append(self.parts[n](x))\nreturn torch.stack(q)",
    "list of items within items": "q = []\nfor n in range(len(x)):\n    q.append(x[y[n]])\nreturn torch.stack(q)",
    "list of items of items": "q = []\nfor n in range(len(x)):\n    q.append(x[n][n])\nreturn torch.stack(q)",
    "list and items that are set": (
        "q = []\nfor n in range(len(x)):\n    y[n] = x[n]\n    w[n, 1:] += 2\n    q.append(y)\nreturn torch.stack(q) + w"
    ),
    "list of a diagonal": "q = []\nfor n in range(len(x)):\n    q.append(x[n, n])\nreturn torch.stack(q)",
    "list of slices": "q = []\nfor n in range(len(x)):\n    q.append(x[n:])\nreturn torch.stack(q)",
    "list behind a mask": "q = []\nfor n in range(len(x)):\n    q.append(x[y, n])\nreturn torch.stack(q)",
    "items by columns": "for n in range(len(x)):\n    y[:, n] = x[:, n] + x[n]\nreturn y",
    "items that are set by two": "for n in range(len(x)):\n    y[n, n] = 0\nreturn y",
    "item within the index that is set": "for n in range(len(x)):\n    y[z[:, n], n] = 0\nreturn y",
    "items by another index": "for v in x:\n    y[0] = y[0] + v\nreturn y",
    "slices that are set": "for n in range(len(x)):\n    y[n:] = 0\nreturn y",
    "items of an attribute": "for n in range(len(x)):\n    self.y[n] = 0\nreturn x",
    "items over two lines": "for n in range(len(x)):\n    y[n, 1:] = (x +\n                1)\nreturn y",
    "one of two targets is read": "for n, v in enumerate(x):\n    y = y + v\nreturn y * n",
    "starred among others": "for n in range(0, *k):\n    x = x + n\nreturn x",
    "target of a list": "for [n, v] in enumerate(x):\n    y = y + v\nreturn y",
    "zip of three": "for v, w, z in zip(x, y, x.T):\n    x = x + v * w + z\nreturn x",
    "zip and numbers": "for n, (v, w) in enumerate(zip(x, y)):\n    x = x + v * w * n\nreturn x",
    "zip of a list": "for v, w in zip(x, self.parts):\n    x = w(x) + v\nreturn x",
    "zip of another number": "for v in zip(x, y):\n    x = x + v[0]\nreturn x",
    "reversed of two bounds": "for n in reversed(range(1, k)):\n    x = x + n\nreturn x",
    "step downwards": "for n in range(k, 1, -2):\n    x = x + n\nreturn x",
    "unbind of a dim": "for v in torch.unbind(x, dim=1):\n    y = y + v\nreturn y",
    "unbind by position": "for v in x.unbind(1):\n    y = y + v\nreturn y",
    "function within": "for v in x:\n    def inner():\n        return v\n    y = y + inner()\nreturn y",
    "item of an unknown name": "for v in x:\n    q[0] = v\nreturn q",
    "two targets at once": "for v in x:\n    y = self.q = v\nreturn y",
    "branch that is not plain": "for v in x:\n    if k:\n        self.q = v\n    else:\n        y = v\nreturn y",
    "other way that is not plain": "for v in x:\n    if k:\n        y = v\n    else:\n        self.q = v\nreturn y",
    "variable from before in a branch": "for v in x:\n    if k:\n        w = y + v\n        y = w\n    z = v\nreturn y + z",
    "variable from before in a test": "for v in x:\n    if y.dim() > 1:\n        z = v\n    y = v * 2\nreturn y",
    "variable from before in place": "for v in x:\n    z = v * 2\n    y += z\nreturn y",
    "variable from before by its own name": "for v in x:\n    y += v\n    y = v + y\nreturn y",
    "variable in its own value": "for v in x:\n    z *= z\n    y = z + v\n    z = v\nreturn y",
    "variable from before in a loop within": "for v in x:\n    for n in range(2):\n        y = y + v\n    z = y\nreturn z",
    "loop within over a variable": "for v in x:\n    for z in y:\n        w = z + v\n    y = w\nreturn y",
    "else of a loop within": "for v in x:\n    for n in range(2):\n        y = y + v\n    else:\n        y = y * 2\nreturn y",
    "item of an item of a tensor": "for v in x:\n    y = v[0] + v.T[k]\nreturn y",
}

# As `LOOPS`, for the test of the `break` that ends them.
ENDS = {
    "two statements": "for v in x:\n    y = y + v\n    z = y * 2\n    if «y.sum() > 0»:\n        break\nreturn y + z",
    "number of the iteration": "for n in range(len(x)):\n    y = y + 1\n    if «y.sum() > n»:\n        break\nreturn y",
    "rows and a test on a number": "for v in x:\n    y = y + v\n    if «k > 3»:\n        break\nreturn y",
    "endless": "while True:\n    y = y + 1\n    if «y.sum() > 3»:\n        break\nreturn y",
    "modules": "for part in self.parts:\n    x = part(x)\n    y = x + 1\n    z = y * 2\n    if «x.sum() > 3»:\n        break\nreturn y + z",
    "modules and a change in place": "for part in self.parts:\n    x += 1\n    y = part(x)\n    if «x.sum() > 3»:\n        break\nreturn y",
    "modules and a change in place below": (
        "for part in self.parts:\n    y = part(x)\n    x += y\n    if «x.sum() > 3»:\n        break\nreturn x"
    ),
    "modules and else": "for part in self.parts:\n    x = part(x)\n    if «x.sum() > 3»:\n        break\nelse:\n    x = x + 1\nreturn x",
    "modules and return": (
        "for part in self.parts:\n    if k:\n        return x\n    x = part(x)\n    if «x.sum() > 3»:\n        break\nreturn x"
    ),
    "modules and another statement": (
        "for part in self.parts:\n    print(part)\n    x = part(x)\n    if «x.sum() > 3»:\n        break\nreturn x"
    ),
    "modules and a number": "for part in self.parts:\n    k = k + 1\n    x = part(x)\n    if «x.sum() > 3»:\n        break\nreturn x + k",
    "modules that set nothing": "for part in self.parts:\n    y = part(x)\n    if «y.sum() > 3»:\n        break\nreturn x",
    "modules and a number that decides": "for part in self.parts:\n    x = part(x)\n    if «len(x) > 3»:\n        break\nreturn x",
}

VALUES = {
    "whole call of a module of a list": "return «self.parts[k](x)»",
    "whole call of a module of a dict": "return «self.named[str(int(k.item()))](x)»",
    "module by another call": "return «self.parts[len(x)](x)»",
    "module of a part": "return self.parts[«k»].one(x)",
    "keyword": "return «self.parts[k](x=x)»",
    "number of a product": "return x * «int(x.sum() * 2)»",
    "float of a name": "return x * «float(y)»",
    "int with a base": "return x * «int(y, 2)»",
    "int of another value": "return x * «int(self.y)»",
    "print": "«print(k)»\nreturn x",
    "print behind another": "x = x; «print(k)»\nreturn x",
    "print at a column": "if k:\n    «print(k)»\nreturn x",
    "result of print": "y = «print(k)»\nreturn x",
    "logger": "«self.logger.info(k)»\nreturn x",
    "writer": "«writer.add_scalar('a', k)»\nreturn x",
    "catalog": "«catalog.add(k)»\nreturn x",
    "while": "while «k > 3»:\n    k = k - 1\nreturn x * k",
    "while of an attribute": "while «k > 3»:\n    self.y = k\nreturn x",
    "if of a number": "if «k > 3»:\n    x = x + 1\nreturn x",
    "if of a name": "if «k»:\n    x = x + 1\nreturn x",
    "if of not": "if «not k»:\n    x = x + 1\nreturn x",
    "if behind a statement": "y = x; z = x + 1 if «k > 3» else self.one(x)\nreturn z",
    "break": "for n in range(3):\n    if «k > 3»:\n        break\n    x = x + 1\nreturn x",
}

SIZES = {
    "loop over rows": "for v in «x»:\n    y = y + v\nreturn y",
    "no loop": "return «x.shape[0]»",
    "loop body": "for v in self.parts:\n    y = «x.shape[0]»\nreturn y",
    "int of a product": "return x[: «int(x.shape[0] / 2)»]",
    "int of a size": "return x[: «int(x.shape[0])»]",
    "int of a comparison": "return x * «int(x.shape[0] > 2)»",
    "int of two": "return x * «int('2', 3)»",
    "int by name": "return x * «int(x=2)»",
    "len": "return x * «len(x)»",
    "repeated in a list": "return torch.stack(«[y] * len(x)», 1)",
    "number before the list": "return torch.cat(tensors=1) + torch.cat(«k * [y]», dim=-1)",
    "two items": "return torch.stack(«[y, z] * k»)",
    "numbers in a list": "return torch.tensor(«[[k, 1]] * x.size(0)», dtype=torch.float32)",
    "the same for each number": "return torch.cat([y for _ in «range(x.size(0))»])",
    "dim that is computed": "return torch.stack(«[y] * len(x)», dim=k)",
    "another function": "return torch.block_diag(«[y] * len(x)»)",
    "comprehension": "y = z + torch.stack([x[n] * n\n    + y for n in «range(x.shape[0])»], dim=1)\nreturn y",
    "comprehension over rows": "return torch.cat([v[None] for v in «x»])",
    "comprehension over pairs": "return torch.concat([v * w + n for n, (v, w) in enumerate(zip(«x», y.T))])",
    "list with a name": "parts = [v + 1 for v in «x»]\nreturn torch.stack(parts) + torch.cat(parts)",
    "list that gives its name away": "y = [v + 1 for v in «x»]\ny = torch.stack(y)\nreturn y + len(y)",
    "list that gives its name away below": "q = [v for v in «x»]\nif k:\n    q = torch.stack(q)\nreturn q",
    "list that is read": "parts = [v + 1 for v in «x»]\nreturn torch.stack(parts) + len(parts)",
    "list in a choice": "return torch.stack([v + 1 for v in «x»]) if k else y",
    "list behind a statement": "y = 1; z = torch.stack([v + 1 for v in «x»])\nreturn z",
    "list with a condition": "return torch.stack([v + 1 for v in «x» if k])",
    "list of lists": "return torch.stack([v + w for v in «x» for w in y])",
    "list that names a value": "return torch.stack([(q := v) + 1 for v in «x»]) + q",
    "list that changes a tensor": "return torch.stack([y.add_(v) for v in «x»])",
    "list and repeated item": "return torch.cat([y] + «[z] * k» + [z], 1)",
    "repeated item in a list": "return torch.cat([y, *(«[z] * k»), z])",
    "list and repeated item that are stacked": "return torch.stack([y] + «[z] * k»)",
    "rows": "return torch.stack(list(«x»)) + torch.cat(tuple(x.unbind(0)), dim=-1)",
    "rows of another dim": "return torch.stack(«x.unbind(1)»)",
    "rows of something": "return torch.stack(list(«k»))",
    "rows in a list": "return torch.cat([*«x»])",
    "sum of rows": "return sum(«x») + sum(x.unbind())",
    "sum of results": "return sum(v * w for v, w in zip(«x», y))",
    "sum of a function's own": "sum = self.sum\nreturn sum(v * 2 for v in «x»)",
    "sum with a start": "return sum([v * 2 for v in «x»], y)",
    "rows side by side": "return torch.hstack([v * 2 for v in «x»]) + torch.vstack(tuple(v * 2 for v in x))",
    "range in a tensor": "return torch.tensor(«range(k)») + torch.as_tensor(list(range(1, k, 2)), dtype=torch.float32)",
    "range in an index": "return x[«list(range(k))[::-1]»] + x[list(reversed(range(k)))] + x[[n for n in range(k)]]",
    "range beside another index": "return x[:, «list(range(k))[::-1]»] + x[..., range(1, k)] + x[range(k), 0]",
    "range with a name": "q = «list(range(k))»\nreturn x[q] + x[:, q]",
    "range with a name that is read": "q = «list(range(k))»\nreturn x[q] + len(q)",
    "range that is set by": "q = «list(range(k))»\nx[q] = y\nreturn x",
    "range in another call": "return torch.rand(«range(k)»)",
    "rows by a step": "return x[«list(range(k))[::2]»]",
    "windows": "return torch.stack([x[n : n + k].sum(0) * x[:, n] for n in «range(len(x) - k)»])",
    "windows of other lengths": "return torch.stack([x[n : 2 * n] for n in «range(len(x))»])",
    "windows that are set": "for n in «range(len(x))»:\n    y[n : n + 1] = x[n : n + 1]\nreturn y",
    "while": "n = 0\nwhile «n < x.shape[0]»:\n    y = y + x[n]\n    n = n + 1\nreturn y",
    "two lists": ("p, q = [], []\nfor v in «x»:\n    p.append(v * 2)\n    q.append(v + 1)\nreturn torch.stack(p) + torch.stack(q)"),
    "branch on the number": "for n in «range(len(x))»:\n    if n % 2 == 0:\n        y = y + x[n]\nreturn y",
    "choice in a list": "return torch.stack([v * 2 if v.sum() > 0 else v - 1 for v in «x»])",
    "choice of items in a list": "return torch.stack([x[n] if n > 0 else -x[n] for n in «range(len(x))»])",
    "loop that gives its name away": "y = []\nfor v in «x»:\n    y.append(v + 1)\ny = torch.stack(y)\nreturn y + 1",
}

NUMBERS = {
    "view": "return «x.view(3, 4)»",
    "view with -1": "return «x.view(3, -1)»",
    "list": "return «torch.zeros([3, 4])»",
    "negative": "return «x.view(-3, 4)»",
    "another function": "return «self.made(3)»",
    "made on the line itself": "y = torch.ones(3); return «x + y»",
    "made above": "y = torch.ones(3, 4)\nz = torch.ones(3, 1)\nreturn «x + y»",
    "made above by two": "y = torch.ones(3, 4)\nz = torch.ones(3, 1)\nreturn «x + y + z»",
    "made below": "w = «x + y»\ny = torch.ones(3, 4)\nreturn w",
    "x is set": "x = x + 1\nreturn «x + torch.ones(3, 4)»",
    "size of another": "return «y.view(k, -1)»",
    "size of another by an item": "return «y.view(x.shape[0], -1)»",
    "function of torch": "return «torch.reshape(y, k)»",
    "another method": "return «y.sum(k)»",
    "number": "return «y.view(3, -1)»",
    "rows": "return torch.stack([«row * 2» for row in x])",
    "rows of a call": "return torch.stack([torch.relu(«row») for row in x])",
    "rows of an expression": "return torch.stack([«row» for row in x * 2])",
    "rows by two": "return torch.stack([row + other for row in x for other in «y»])",
    "rows of a call of two": "return torch.stack([torch.add(«row», row) for row in x])",
    "rows of a call of another": "return torch.stack([torch.relu(«y») for row in x])",
}

PACKED = {
    "list": "return pack_padded_sequence(x, «y.tolist()»)",
    "list on the CPU": "return pack_padded_sequence(x, «y.cpu().tolist()», batch_first=True)",
    "array": "return «pack_padded_sequence(x, y.cpu().numpy())»",
    "list of an array": "return pack_padded_sequence(x, «y.numpy().tolist()»)",
    "tensor in a list": "return pack_padded_sequence(x, lengths=«list(y)»)",
    "numbers": "return pack_padded_sequence(x, [«int(n)» for n in y])",
    "items": "return pack_padded_sequence(x, [«n.item()» for n in y])",
    "other numbers": "return pack_padded_sequence(x, [«int(n)» + 1 for n in y])",
    "some numbers": "return pack_padded_sequence(x, [«int(n)» for n in y if n])",
    "numbers of another": "return pack_padded_sequence(x, [«int(k)» for n in y])",
    "with a name": "n = «y.tolist()»\nreturn pack_padded_sequence(x, n)",
    "with the name of the tensor": "y = «y.cpu().numpy()»\nx = pack_padded_sequence(x, y, batch_first=True)\nreturn x",
    "with a name that is read": "n = «y.tolist()»\nx = pack_padded_sequence(x, n)\nreturn x, max(n)",
    "with a name of two": "n = y.tolist()\nif k:\n    n = «y.tolist()»\nreturn pack_padded_sequence(x, n)",
    "tensor": "return «pack_padded_sequence(x, y)»",
    "without lengths": "return «pack_padded_sequence(x)»",
    "other place": "z = «y.tolist()»\nreturn pack_padded_sequence(x, y.tolist()), z",
    "other call": "return «self.rnn(x, y.tolist())»",
}

HEAD = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x, k):\n"


def written(folder: pathlib.Path, statements: str, head: str = HEAD, name: str = "model.py") -> Location:
    """The place between the marks, in a file without them."""
    text = head + textwrap.indent(statements, " " * 8 if head else "") + "\n"
    before, inside, after = text.partition("«")[0], text.partition("«")[2].partition("»")[0], text.partition("»")[2]
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(before + inside + after, encoding="utf-8")
    first, last = before.split("\n"), (before + inside).split("\n")
    return Location(str(folder / name), Region(len(first), len(first[-1]) + 1, len(last), len(last[-1]) + 1), "forward")


def text_of(fixes: Sequence[Fix]) -> str:
    return "".join(f"{shown(fix)}\n" for fix in fixes) or "  nothing\n"


def for_value(place: Location) -> list[Fix]:
    return control_flow.for_value(place, SITE, lambda *_: None)


def for_sizes(place: Location) -> list[Fix]:
    return [*control_flow.for_size(place, SITE), *control_flow.for_int_of_size(place)]


def for_numbers(place: Location) -> list[Fix]:
    above = literals.upstream(place, "x.shape[0]", 3)
    found = [*literals.fixes(place, "x.shape[0]", 3), *literals.own_size(place), *row_loops.fixes(place)]
    return found if above is None else [*found, *above[1]]


TABLES: dict[str, tuple[dict[str, str], Callable[[Location], Sequence[Fix]]]] = {
    "branches": (BRANCHES, lambda place: control_flow.for_branch(place, SITE)),
    "loops": (LOOPS, lambda place: control_flow.for_size(place, SITE)),
    "ends": (ENDS, lambda place: control_flow.for_branch(place, SITE)),
    "values": (VALUES, for_value),
    "sizes": (SIZES, for_sizes),
    "numbers": (NUMBERS, for_numbers),
    "packed": (PACKED, packing.fixes),
}


def marked(statements: str) -> str:
    """With marks around what the first loop iterates over, unless there are marks."""
    if "«" in statements:
        return statements
    start = statements.index(" in ", statements.index("for ")) + 4
    end = statements.index(":\n", start)
    return f"{statements[:start]}«{statements[start:end]}»{statements[end:]}"


@pytest.mark.parametrize("table", TABLES)
def test_edits(table: str, tmp_path: pathlib.Path, golden: Callable[[str, str], None]) -> None:
    cases, tell = TABLES[table]
    texts = (
        f"# {case}\n{text_of(tell(written(tmp_path, marked(cases[case]), name=f'model_{number}.py')))}" for number, case in enumerate(cases)
    )
    golden(f"edits_{table}.txt", "\n".join(texts))


BRANCH = "if «x.sum() > 0»:\n    x = x + 1\nreturn x"

# For code in other places: the text of a whole file, and what each function offers there, by the confidence and the code of each fix.
PLACES = {
    "outside of a function": "import torch\n\nx = torch.ones(3)\nif «x.sum() > 0»:\n    x = x + 1\n",
    "value outside of a function": "import torch\n\nk = 1\ny = «self.parts[k](k)»\n",
    "test of a number outside of a function": "import torch\n\nk = 1\nx = 1 if «k > 2» else 2\n",
    "class": "import torch\n\n\nclass Net:\n    «x = torch.ones(3, 4)»\n",
    "function": "import torch\n\n\n«def forward(x):\n    return x.view(3, 4)»\n",
    "no call": "import torch\n\n\ndef forward(x, k):\n    return «x + 3»\n",
    "larger outside of a function": "import torch\n\nx = «max(a, b)»\n",
    "call of a lambda": "import torch\n\n\ndef forward(x, k):\n    return «(lambda x: x)(x)»\n",
    "without torch": "def forward(x, k):\n    «print(k)»\n    return x\n",
    "size without torch": "def forward(x, k):\n    return x[: «int(x.shape[0])»]\n",
    "rows without torch": "def forward(x, k):\n    return None.stack([«row * 2» for row in x])\n",
    "packed without torch": "def forward(x, y):\n    p = «pack_padded_sequence(x, y.tolist())»\n    return p\n",
    "larger without torch": "def forward(x, k):\n    return «max(x.sum(), x.min())»\n",
    "check without torch": "def forward(x, k):\n    assert «x.sum() > 0»\n    return x\n",
    "shortcut without torch": (
        "def forward(x, k):\n    for n in range(3):\n        if «x.sum() > 0»:\n            continue\n        x = x + 1\n"
    ),
    "broken file": "def forward(x, k):\n    return «x[»\n",
}

LIBRARY = {
    "message": "«print(k)»\nreturn x",
    "number": "return «x.view(3, 4)»",
    "own size": "return «y.view(k, -1)»",
    "rows": "return torch.stack([«row * 2» for row in x])",
    "packed": "packed = «pack_padded_sequence(x, y)»\n_, w = self.rnn(packed)\nreturn w",
    "larger": "return «max(x.sum(), x.min())»",
    "check": "assert «x.sum() > 0»\nreturn x",
    "shortcut": "for n in range(3):\n    if «x.sum() > 0»:\n        continue\n    x = x + 1\nreturn x",
    "branch": BRANCH,
    "test of a number": "if «k > 3»:\n    x = self.one(x)\nreturn x",
}


def everything(place: Location) -> str:
    """What each function offers at a place."""
    offers = {
        "branch": control_flow.for_branch(place, SITE),
        "value": for_value(place),
        "size": for_sizes(place),
        "message": control_flow.for_message(place),
        "number": for_numbers(place),
        "packed": packing.fixes(place),
    }
    return "".join(f"{name}\n{text_of(fixes)}" for name, fixes in offers.items() if [*fixes]) or "nothing\n"


def test_edits_in_other_places(tmp_path: pathlib.Path, golden: Callable[[str, str], None]) -> None:
    known = {case: written(tmp_path, text, "", f"place_{number}.py") for number, (case, text) in enumerate(PLACES.items())}
    known |= {f"library: {case}": written(tmp_path, text, name=f"site-packages/{case}.py") for case, text in LIBRARY.items()}
    whole = written(tmp_path, "return «x.view(3, 4) + int(x.shape[0])»", name="whole.py")
    assert whole.region is not None
    known |= {"file without a place": Location(whole.file), "line without columns": Location(whole.file, Region(whole.region.line))}
    known |= {"file that is gone": Location(str(tmp_path / "gone.py"), Region(1, 1, 1, 2))}
    golden("edits_elsewhere.txt", "\n".join(f"# {case}\n{everything(place)}" for case, place in known.items()))


def test_calls_that_pack(tmp_path: pathlib.Path) -> None:
    place = written(tmp_path, "packed = pack_sequence([x])\n_, w = self.rnn(«packed»)\nreturn pack_padded_sequence(x, k)")
    assert [call.lineno for call in packing.calls_in(place)] == [6, 8]
    assert packing.call_at(place) is None
    call = packing.call_at(written(tmp_path, "return self.rnn(pack_sequence([«x»]))", name="other.py"))
    assert call is not None
    assert (call.lineno, call.col_offset) == (6, 24)
    for nowhere in (Location(place.file), written(tmp_path, "«x» = 1", head="import torch\n\n", name="plain.py")):
        assert packing.call_at(nowhere) is None
        assert packing.calls_in(nowhere) == []
