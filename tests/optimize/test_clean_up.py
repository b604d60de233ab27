"""The clean-up of ONNX models as others may write them: chains of layouts and pads, with every form of their arguments."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from onnxplain.optimize import clean_up

SIZES = ({"N": 2, "M": 5}, {"N": 3, "M": 1})
"""What dynamic dims are when the model runs."""


def ran(model: ir.Model, sizes: Mapping[str, int]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.inputs:
        assert value.shape is not None
        assert value.dtype is not None
        shape = [dim if isinstance(dim, int) else sizes.get(str(dim), 3) for dim in value.shape]
        feeds[value.name] = generator.normal(size=shape).astype(value.dtype.numpy())
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)  # type: ignore[no-any-return]


def cleaned(inputs: str, nodes: str, values: str = "", outputs: str = "float[*] y") -> ir.Model:
    """A model, cleaned up, whose outputs stay the same.

    Args:
        inputs: The inputs, in ONNX's textual syntax.
        nodes: The nodes.
        values: Initializers, and the types of inner values.
        outputs: The outputs.
    """
    opsets = '"": 20, "custom": 1'
    text = f"<ir_version: 10, opset_import: [{opsets}]> g ({inputs}) => ({outputs.replace('[*]', '')}) <{values}> {{ {nodes} }}"
    before, model = ir.from_onnx_text(text), ir.from_onnx_text(text)
    clean_up(model)
    if "custom." not in nodes:
        for sizes in SIZES:
            for got, want in zip(ran(model, sizes), ran(before, sizes), strict=True):
                np.testing.assert_array_equal(got, want)
    return model


def operators(model: ir.Model) -> str:
    """The types of the nodes that rearrange, in order."""
    return " ".join(node.op_type for node in model.graph if node.op_type != "Abs")


def ints(name: str, *numbers: int) -> str:
    return f"int64[{len(numbers)}] {name} = {{{', '.join(map(str, numbers))}}}"


S = "float[4,6] x"
D = "float[N,6,8] x"
TWO = "float[N,M,6] x"
CHAINS: dict[str, tuple[str, str, str, str]] = {
    # name: inputs, nodes, values, what is left
    "flatten": (D, "a = Flatten(x) b = Flatten<axis=0>(a) y = Abs(b)", "", "Reshape"),
    "flatten by default": (D, "a = Flatten(x) b = Reshape(a, s) y = Abs(b)", ints("s", -1, 6, 8), ""),
    "flatten from the end": (D, "a = Flatten<axis=-1>(x) b = Reshape(a, s) y = Abs(b)", ints("s", -1, 6, 8), ""),
    "flatten all but two": (D, "a = Flatten<axis=2>(x) b = Reshape(a, s) y = Abs(b)", ints("s", -1, 6, 4, 2), "Reshape"),
    "transposed twice": (D, "a = Transpose(x) b = Transpose(a) y = Abs(b)", "", ""),
    "transposed thrice": (D, "a = Transpose(x) b = Transpose(a) c = Transpose(b) y = Abs(c)", "", "Transpose"),
    "squeezed": ("float[N,1,6,1] x", "a = Squeeze(x, s) b = Unsqueeze(a, t) y = Abs(b)", f"{ints('s', -1, 1)}, {ints('t', 1, 3)}", ""),
    "squeezed without axes": ("float[N,1,6] x", "a = Squeeze(x) b = Transpose(a) y = Abs(b)", "", "Squeeze Transpose"),
    "squeezed by an input": (
        "float[N,1,6] x",
        "s = Shape<start=1, end=2>(x) a = Squeeze(x, s) b = Transpose(a) y = Abs(b)",
        "",
        "Shape Squeeze Transpose",
    ),
    "unsqueezed": (D, "a = Unsqueeze(x, s) b = Unsqueeze(a, t) y = Abs(b)", f"{ints('s', -1, 0)}, {ints('t', -3)}", "Reshape"),
    "kept dims": (D, "a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)", f"{ints('s', 0, 0, 2, 4)}, {ints('t', 0, -1, 4)}", "Reshape"),
    "kept dim that is another": (
        D,
        "a = Transpose<perm=[1,0,2]>(x) b = Reshape(a, s) y = Abs(b)",
        ints("s", 0, 0, 2, 4),
        "Transpose Reshape",
    ),
    "kept dim of two factors": (D, "a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)", f"{ints('s', -1, 48)}, {ints('t', 0, -1, 8)}", ""),
    "kept dim behind a free one": (
        D,
        "a = Transpose<perm=[0,2,1]>(x) b = Reshape(a, s) y = Abs(b)",
        ints("s", -1, 4, 0),
        "Transpose Reshape",
    ),
    "zero is a size": (
        "float[4,0] x",
        "a = Reshape<allowzero=1>(x, s) b = Reshape<allowzero=1>(a, s) y = Abs(b)",
        ints("s", 0, 4),
        "Reshape Reshape",
    ),
    "zero is no size": (S, "a = Reshape<allowzero=0>(x, s) b = Transpose(a) c = Transpose(b) y = Abs(c)", ints("s", 0, 6), ""),
    "no zero among sizes": (S, "a = Reshape<allowzero=1>(x, s) b = Transpose(a) c = Transpose(b) y = Abs(c)", ints("s", 24), "Reshape"),
    "free size first": (D, "a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)", f"{ints('s', -1)}, {ints('t', -1, 3, 8)}", "Reshape"),
    "free size between": (
        "float[4,N,6] x",
        "a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)",
        f"{ints('s', 4, -1)}, {ints('t', 2, -1, 3)}",
        "Reshape",
    ),
    "sizes that share no factors": (
        S,
        "a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)",
        f"{ints('s', 3, 8)}, {ints('t', 4, 6)}",
        "Reshape Reshape",
    ),
    "sizes that share a factor": (
        "float[4,9] x",
        "a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)",
        f"{ints('s', 6, 6)}, {ints('t', 36)}",
        "Reshape Reshape",
    ),
    "factors from the back": (
        "float[N,12] x",
        "a = Reshape(x, s) b = Transpose<perm=[0,2,1]>(a) c = Transpose<perm=[0,2,1]>(b) y = Abs(c)",
        ints("s", -1, 3, 4),
        "Reshape",
    ),
    "factors from the front": (
        "float[12,N] x",
        "a = Reshape(x, s) b = Transpose<perm=[1,0,2]>(a) c = Reshape(b, t) y = Abs(c)",
        f"{ints('s', 3, 4, -1)}, {ints('t', 12, -1)}",
        "Reshape Transpose Reshape",
    ),
    "windows": (
        "float[N,4,6,5] x",
        "a = Reshape(x, s) b = Transpose<perm=[0,1,3,2,4,5]>(a) c = Reshape(b, t) d = Reshape(c, u) y = Abs(d)",
        f"{ints('s', -1, 2, 2, 3, 2, 5)}, {ints('t', -1, 2, 2, 5)}, {ints('u', -1, 4, 5)}",
        "Reshape Transpose Reshape",
    ),
    "two dynamic dims": (
        TWO,
        "a = Transpose<perm=[1,0,2]>(x) b = Reshape(a, s) c = Reshape(b, t) y = Abs(c)",
        f"{ints('s', 0, 0, 2, 3)}, {ints('t', 0, 0, 6)}",
        "Transpose",
    ),
    "both dynamic dims joined": (
        TWO,
        "a = Transpose<perm=[1,0,2]>(x) b = Reshape(a, s) c = Reshape(b, t) y = Abs(c)",
        f"{ints('s', -1, 6)}, {ints('t', -1, 3, 2)}",
        "Transpose Reshape",
    ),
    "a computed shape": (D, "s = Shape(z) a = Reshape(x, s) y = Abs(a)", "float[N,48] a", "Reshape"),
    "a computed shape of the same dims": (
        D,
        "s = Shape(z) a = Reshape(x, s) b = Reshape(a, t) y = Abs(b)",
        f"float[N,48] a, {ints('t', 0, 6, 8)}",
        "",
    ),
    "a computed shape, not known": (D, "s = Shape(z) a = Reshape(x, s) y = Abs(a)", "", "Shape Reshape"),
    "a computed shape without a name": (D, "s = Shape(z) a = Reshape(x, s) y = Abs(a)", "float[?,48] a", "Shape Reshape"),
    "a computed shape with a new name": (D, "s = Shape(z) a = Reshape(x, s) y = Abs(a)", "float[K,48] a", "Shape Reshape"),
    "a computed shape that does not fit": (D, "s = Shape(z) a = Reshape(x, s) y = Abs(a)", "float[N,24] a", "Shape Reshape"),
    "two free sizes": (
        "float[4,N,M] x",
        "s = Shape(w) a = Reshape(x, s) b = Transpose<perm=[1,0,2,3]>(a) y = Abs(b)",
        "float[2,2,N,M] a",
        "Shape Reshape Transpose",
    ),
    "a dim without elements": ("float[0,6] x", "a = Transpose(x) b = Transpose(a) y = Abs(b)", "", "Transpose Transpose"),
    "a dim without a name": ("float[?,6] x", "a = Transpose(x) b = Transpose(a) y = Abs(b)", "", "Transpose Transpose"),
    "a value of unknown rank": (
        D,
        "s = Shape(z) r = Expand(x, e) a = Transpose(r) b = Transpose(a) y = Abs(b)",
        "int64[1] e = {1}",
        "Expand Transpose Transpose",
    ),
    "ones that move": (
        "float[N,1,6,1,8] x",
        "a = Transpose<perm=[0,3,2,1,4]>(x) b = Reshape(a, s) y = Abs(b)",
        ints("s", -1, 6, 8),
        "Reshape",
    ),
    "ones that change places": ("float[N,1,6] x", "a = Transpose<perm=[1,0,2]>(x) b = Unsqueeze(a, s) y = Abs(b)", ints("s", 3), "Reshape"),
    "ones and an exchange": (
        "float[N,1,6] x",
        "a = Unsqueeze(x, s) b = Transpose<perm=[3,2,1,0]>(a) y = Abs(b)",
        ints("s", 1),
        "Unsqueeze Transpose",
    ),
    "ones go first": ("float[N,6] x", "a = Transpose(x) b = Unsqueeze(a, s) y = Abs(b)", ints("s", 0, 3), "Transpose Unsqueeze"),
    "the model's output": (D, "a = Transpose(x) b = Transpose(a) y = Transpose(b)", "", "Transpose"),
    "an input cannot be an output": (D, "a = Transpose(x) y = Transpose(a)", "", "Transpose Transpose"),
    "an output in between": (D, "a = Transpose(x) y = Transpose(a) c = Transpose(y) z2 = Abs(c)", "", "Transpose Transpose Transpose"),
    "used twice": (D, "a = Transpose(x) b = Transpose(a) c = Transpose(b) d = Abs(b) y = Add(d, b)", "", "Add"),
    "of another domain": (D, "a = custom.Transpose(x) b = custom.Transpose(a) y = Abs(b)", "", "Transpose Transpose"),
    "one node": (D, "a = Flatten(x) y = Abs(a)", "", "Flatten"),
}


@pytest.mark.parametrize(("inputs", "nodes", "values", "left"), CHAINS.values(), ids=CHAINS)
def test_chains(inputs: str, nodes: str, values: str, left: str) -> None:
    more = {"Shape(z)": ", float[N,48] z", "Shape(w)": ", float[2,2,N,M] w"}
    inputs += "".join(text for use, text in more.items() if use in nodes)
    outputs = "float[*] y" + (", float[*] z2" if "z2" in nodes else "")
    model = cleaned(inputs, nodes, values, outputs)
    assert operators(model) == left


def test_a_shape_as_data_ends_a_chain() -> None:
    """The second Reshape continues no chain of its shape, which Reshapes make as well."""
    model = cleaned(
        "int64[2,1] s, float[4,6] x",
        "zero = Sub(s, s) minus = Sub(zero, one) a = Transpose(minus) b = Reshape(a, all) c = Slice(b, first, second) y = Reshape(x, c)",
        "int64[2,1] minus, int64[1] all = {-1}, int64[1] one = {1}, int64[1] first = {0}, int64[1] second = {1}",
    )
    assert operators(model) == "Sub Sub Reshape Slice Reshape"


def test_equal_shapes_are_one_constant() -> None:
    nodes = """
        a = Transpose<perm=[0,2,1]>(x) b = Reshape(a, s) c = Reshape(b, t) d = Abs(c)
        e = Transpose<perm=[0,2,1]>(d) f = Reshape(e, s) g = Reshape(f, u) h = Abs(g)
        i = Reshape(h, s) j = Reshape(i, v) y = Abs(j)
    """
    constants = {"s": (-1, 48), "t": (-1, 4, 12), "u": (-1, 12, 4), "v": (0, 4, 12)}
    shapes = "float[N,4,12] d, float[N,12,4] h, "
    model = cleaned(D, nodes, shapes + ", ".join(ints(name, *numbers) for name, numbers in constants.items()))
    known = {name: tuple(value.const_value.numpy().tolist()) for name, value in model.graph.initializers.items() if value.const_value}
    assert len({*known.values()}) == len([name for name, value in model.graph.initializers.items() if value.uses()])
    assert [node.op_type for node in model.graph] == ["Transpose", "Reshape", "Abs", "Transpose", "Abs", "Reshape", "Abs"]


def random_chain(draw: random.Random) -> tuple[str, str, int]:
    """The nodes of a chain that only splits, reorders and joins dims, its values, and how many nodes there are."""
    dims: list[int | str] = ["N", 6, 4, 1]
    nodes, values, names = [], [], iter(f"v{index}" for index in range(99))
    last, count = "x", draw.randint(2, 5)
    for _ in range(count):
        name, constant = next(names), next(names)
        rank = len(dims)
        axis = draw.randrange(rank)
        match draw.choice(["Transpose", "Unsqueeze", "Squeeze", "split", "join"]):
            case "Squeeze" if 1 in dims:
                axis = dims.index(1)
                del dims[axis]
                text, numbers = f"Squeeze({last}, {constant})", [draw.choice([axis, axis - rank])]
            case "Unsqueeze":
                dims.insert(axis, 1)
                text, numbers = f"Unsqueeze({last}, {constant})", [draw.choice([axis, axis - rank - 1])]
            case "split" if dims[axis] in (4, 6, 24):
                first = 2
                dims[axis : axis + 1] = [first, int(dims[axis]) // first]
                text, numbers = f"Reshape({last}, {constant})", [-1 if isinstance(dim, str) else dim for dim in dims]
            case "join" if axis + 1 < rank and all(isinstance(dim, int) for dim in dims[axis : axis + 2]):
                dims[axis : axis + 2] = [int(dims[axis]) * int(dims[axis + 1])]
                text, numbers = f"Reshape({last}, {constant})", [-1 if isinstance(dim, str) else dim for dim in dims]
            case _:
                order = draw.sample(range(rank), rank)
                dims = [dims[each] for each in order]
                text, numbers = f"Transpose<perm={order}>({last})", []
        nodes.append(f"{name} = {text}")
        values += [ints(constant, *numbers)] if numbers else []
        last = name
    return "\n".join([*nodes, f"y = Abs({last})"]), ", ".join(values), count


def test_random_chains() -> None:
    """At most a Reshape, a Transpose and a Reshape are left, and never more than there were."""
    draw = random.Random(7)
    left = Counter[int]()
    for _ in range(100):
        nodes, values, count = random_chain(draw)
        remaining = operators(cleaned("float[N,6,4,1] x", nodes, values)).split()
        assert len(remaining) <= min(count, 3)
        assert remaining.count("Transpose") <= 1
        left[len(remaining)] += 1
    assert sum(length * times for length, times in left.items()) <= 180


IMAGE = "float[N,2,5,6] x, float[3,2,3,3] w"
PADS = ints("p", 0, 0, 1, 2, 0, 0, 3, 0)
PADDED: dict[str, tuple[str, str, str, Sequence[int] | None]] = {
    # name: inputs, nodes, values, the pads of the convolution that is left alone
    "zeros": (IMAGE, "a = Pad(x, p) y = Conv(a, w)", PADS, (1, 2, 3, 0)),
    "added to those of the convolution": (IMAGE, "a = Pad(x, p) y = Conv<pads=[1,0,0,4]>(a, w)", PADS, (2, 2, 3, 4)),
    "of a mode": (IMAGE, 'a = Pad<mode="constant">(x, p) y = Conv(a, w)', PADS, (1, 2, 3, 0)),
    "of another mode": (IMAGE, 'a = Pad<mode="edge">(x, p) y = Conv(a, w)', PADS, None),
    "a zero": (IMAGE, "a = Pad(x, p, v) y = Conv(a, w)", f"{PADS}, float v = {{0}}", (1, 2, 3, 0)),
    "another number": (IMAGE, "a = Pad(x, p, v) y = Conv(a, w)", f"{PADS}, float v = {{1}}", None),
    "a number that is computed": (f"{IMAGE}, float v", "a = Pad(x, p, v) y = Conv(a, w)", PADS, None),
    "axes": (IMAGE, "a = Pad(x, p, , axes) y = Conv(a, w)", f"{ints('p', 1, 2, 3, 0)}, {ints('axes', 2, 3)}", None),
    "computed": (f"{IMAGE}, float[0,0,1,2,0,0,3,0] s", "p = Shape(s) a = Pad(x, p) y = Conv(a, w)", "", None),
    "of the first dim": (IMAGE, "a = Pad(x, p) y = Conv(a, w)", ints("p", 1, 0, 0, 0, 0, 0, 0, 0), None),
    "of channels": ("float[N,1,5,6] x, float[3,2,3,3] w", "a = Pad(x, p) y = Conv(a, w)", ints("p", 0, 0, 0, 0, 0, 1, 0, 0), None),
    "negative": (IMAGE, "a = Pad(x, p) y = Conv(a, w)", ints("p", 0, 0, -1, 2, 0, 0, 3, 0), None),
    "automatic pads": (IMAGE, 'a = Pad(x, p) y = Conv<auto_pad="SAME_UPPER">(a, w)', PADS, None),
    "used twice": (IMAGE, "a = Pad(x, p) b = Conv(a, w) c = ReduceSum(a) y = Add(b, c)", PADS, None),
    "an output": (IMAGE, "a = Pad(x, p) z2 = Conv(a, w) y = Identity(a)", PADS, None),
    "the kernel": ("float[N,2,5,6] x, float[3,2,1,2] w", "a = Pad(w, p) y = Conv(x, a)", ints("p", 0, 0, 1, 0, 0, 0, 1, 0), None),
    "something else": (IMAGE, "a = Pad(x, p) y = Abs(a)", PADS, None),
    "of another domain": (IMAGE, "a = Pad(x, p) y = custom.Conv(a, w)", PADS, None),
    "by another domain": (IMAGE, "a = custom.Pad(x, p) y = Conv(a, w)", PADS, None),
    "transposed": ("float[N,2,5,6] x, float[2,3,3,3] w", "a = Pad(x, p) y = ConvTranspose(a, w)", PADS, None),
}


@pytest.mark.parametrize(("inputs", "nodes", "values", "pads"), PADDED.values(), ids=PADDED)
def test_pads(inputs: str, nodes: str, values: str, pads: Sequence[int] | None) -> None:
    model = cleaned(inputs, nodes, values, "float[*] y" + (", float[*] z2" if "z2" in nodes else ""))
    assert ("Pad" in operators(model).split()) == (pads is None)
    if pads is not None:
        (conv,) = model.graph
        assert [*conv.attributes["pads"].as_ints()] == [*pads]


def test_each_pad_is_looked_at() -> None:
    nodes = """
        a = Pad(x, p) b = Abs(a) c = Pad(b, p) d = ReduceSum(c) e = Add(c, d)
        f = Pad<mode="edge">(e, p) g = Conv(f, w) h = Pad(g, p) y = Conv(h, u)
    """
    model = cleaned(f"{IMAGE}, float[2,3,3,3] u", nodes, PADS)
    assert operators(model) == "Pad Pad ReduceSum Add Pad Conv Conv"
