"""The statements of random programs that are arithmetic, views, indexing, writes, reductions and control flow."""

from __future__ import annotations

from collections.abc import Callable

import torch
from adversary.body import FLOATS, INTS, Body, Misfit, has_dims, is_float, is_number


def _exact_unary(body: Body) -> None:
    name = body.pick(is_number)
    number = body.number(1, 3)
    texts = ["-{0}", "{0}.abs()", "torch.relu({0})", "{0}.clamp(-1, 2)", "{0} * 2", "{0} + {1}", "{1} - {0}", "{0} == {1}", "{0} > 0"]
    if name in body.exact:
        texts += ["torch.sign({0})", "{0} // {1}", "{0} % {1}", "{0}.clamp(min=0)", "{0} <= {1}", "torch.where({0} > 0, {0}, {1})"]
        texts += ["{0}.floor()", "{0}.round()", "{0}.trunc()", "{0}.masked_fill({0} > 0, {1})"]
    body.add(f"{{}} = {body.choose(*texts).format(name, number)}", exact=name in body.exact)


def _inexact_unary(body: Body) -> None:
    name = body.pick(is_number)
    texts = ("torch.sigmoid({})", "torch.tanh({})", "{}.abs().sqrt()", "torch.exp({}.clamp(-4, 4))", "{} / 3", "{}.cos()", "F.silu({})")
    more = (
        "torch.log1p({}.abs())",
        "torch.rsqrt({}.abs() + 1)",
        "F.gelu({})",
        "torch.softmax({}, -1)",
        "F.leaky_relu({})",
        "1 / ({} + 20)",
    )
    text = body.choose(*texts, *more)
    if not is_float(body.of(name)) and "F." in text:
        raise Misfit
    body.add(f"{{}} = {text.replace('{}', name)}", exact=False)


def _logic(body: Body) -> None:
    one = body.pick(lambda value: not value.is_floating_point() and not value.is_complex())
    other = body.like(one)
    text = body.choose(
        f"~{one}",
        f"{one} & {other}",
        f"{one} | {other}",
        f"{one} ^ {other}",
        f"torch.logical_and({one}, {other})",
        f"torch.logical_not({one})",
    )
    body.add(f"{{}} = {text}", exact=True)


def _binary(body: Body) -> None:
    one = body.pick()
    other = body.like(one)
    exact = {one, other} <= body.exact
    texts = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "torch.maximum({0}, {1})", "torch.minimum({0}, {1})", "torch.add({0}, {1}, alpha=2)"]
    if exact:
        texts += [
            "{0} < {1}",
            "{0} == {1}",
            "torch.where({0} > {1}, {0}, {1})",
            "torch.where({0} != 0, {1}, 0)",
            "torch.where({0} > 0, {1}, {0})",
        ]
        texts += ["{0} // ({1}.abs() + 1)", "{0} % ({1}.abs() + 1)"]
    body.add(f"{{}} = {body.choose(*texts).format(one, other)}", exact=exact)


def _division(body: Body) -> None:
    one = body.pick()
    body.add(f"{{}} = {one} / ({body.like(one)}.abs() + 1)", exact=False)


def _with_size(body: Body) -> None:
    name, size = body.pick(), body.size()
    operator = body.choose("+", "-", "*", "%", "//", "<", "==") if name in body.exact else body.choose("+", "*")
    text = body.choose(
        f"{name} {operator} {size}",
        f"{size} {operator} {name}",
        f"{name} * int({size} > 2)",
        f"{name} / {size}",
        f"{name} * math.sqrt({size})",
    )
    body.add(f"{{}} = {text}", exact=name in body.exact and "/ " not in text and "sqrt" not in text)


def _cast(body: Body) -> None:
    name = body.pick(lambda value: not value.is_complex())
    source, target = body.of(name).dtype, body.choose(*FLOATS, *INTS, torch.bool)
    if target.is_floating_point or not source.is_floating_point:
        text = body.choose(f"{name}.to({target})", f"{name}.to({target})", f"{name}.type_as({body.pick()})")
        body.add(f"{{}} = {text}", exact=name in body.exact)
    elif name in body.exact:
        # NOTE: what a number outside of the range becomes is not defined.
        body.add(f"{{}} = {name}.nan_to_num(0, 9, 0).clamp(0, 99).to({target})", exact=True)


def _view(body: Body) -> None:
    name = body.pick(has_dims)
    axis, other, size = body.axis(name), body.axis(name), body.size(name)
    value = body.of(name)
    shape = [f"{name}.shape[{index}]" for index in range(value.dim())]
    open_shape = list(shape)
    open_shape[axis] = "-1"
    order = body.chance.sample(range(value.dim()), value.dim())
    flat = body.choose("reshape", "view")
    numbers = ", ".join(map(str, value.shape))
    splits = [each for each in (2, 3, 4) if value.shape[axis] % each == 0] or [1]
    part = body.choose(*splits)
    text = body.choose(
        f".transpose({axis}, {other})",
        f".permute({', '.join(map(str, order))})",
        f".unsqueeze({axis})",
        f".squeeze({axis})",
        ".squeeze()",
        ".flatten()",
        f".flatten({min(axis % value.dim(), other % value.dim())}, {max(axis % value.dim(), other % value.dim())})",
        f".{flat}(-1)",
        f".{flat}({', '.join(open_shape)})",
        f".{flat}({', '.join(shape)})",
        f".{flat}({numbers})",
        f".{flat}({part}, -1)",
        f".{flat}(-1, {part})",
        f".unflatten({axis}, ({part}, -1))",
        f".movedim({axis}, {other})",
        f".flip({axis})",
        f".roll({body.number(-2, 3)}, {axis})",
        f".narrow({axis}, 0, {size})",
        f".narrow({axis}, {body.number(0, 1)}, {name}.shape[{axis}] - 1)",
        f".select({axis}, {body.number(-2, 1)})",
        f".unsqueeze(0).expand({body.number(1, 3)}, {', '.join(['-1'] * value.dim())})",
        f".unsqueeze(0).expand({size}, {', '.join(['-1'] * value.dim())})",
        f".unfold({axis}, 2, {body.number(1, 2)})",
        f".repeat({', '.join(['1'] * (value.dim() - 1) + [str(body.number(1, 2))])})",
        f".repeat_interleave({body.number(1, 2)}, {axis})",
        f".tile({body.number(1, 2)})",
        ".T" if value.dim() == 2 else ".mT",
        f".diagonal({body.number(-1, 1)})",
        ".triu()",
        f".tril({body.number(-1, 1)})",
        ".contiguous()",
        f".view_as({name})",
        f".expand_as({name})",
    )
    body.add(f"{{}} = {name}{text}", exact=name in body.exact)


def _index(body: Body, name: str) -> str:
    """What stands between the brackets of an index of a value."""
    rank, size = body.of(name).dim(), body.size(name)
    first = body.choose(
        "0", "-1", "1:", ":-1", "::2", f":{size}", f"{size}:", "None", "...", "1:3", f"-{body.number(1, 3)}:", f":{body.number(1, 3)}"
    )
    device = body.choose("[0, 1]", "torch.tensor([1, 0, -1])", "[0, 0]", f"torch.arange({name}.shape[0] - 1, -1, -1)", "torch.tensor(0)")
    basic = body.choose("0", "-1", ":", "1:", "::2", f":{size}", "[0, -1]", "None", f"{body.number(0, 2)}")
    masks = [
        each
        for each in body.names
        if each in body.exact
        and body.of(each).dtype is torch.bool
        and 0 < body.of(each).dim() <= rank
        and body.of(each).shape == body.of(name).shape[: body.of(each).dim()]
    ]
    mask = body.choose(*masks) if masks else f"{name} > 0" if name in body.exact and is_number(body.of(name)) else "0"
    choices = [first, device, mask, f"{first}, {device}" if first != "..." else "..., 0"]
    if rank > 1:
        choices += [f"{first}, {basic}", f":, {basic}", f"..., {basic}", f":, {device}", f"{device}, {basic}"]
    return str(body.choose(*choices))


def _indexing(body: Body) -> None:
    name = body.pick(has_dims)
    body.add(f"{{}} = {name}[{_index(body, name)}]", exact=name in body.exact)


def _gather(body: Body) -> None:
    name = body.pick(has_dims)
    axis = body.axis(name)
    text = body.choose(
        f"{name}.index_select({axis}, torch.tensor([0, 1]))",
        f"torch.gather({name}, {axis}, torch.zeros_like({name}, dtype=torch.int64))",
        f"torch.take_along_dim({name}, torch.zeros_like({name}, dtype=torch.int64), {axis})",
        f"{name}.scatter({axis}, torch.zeros_like({name}, dtype=torch.int64)[..., :1], 1)",
        f"{name}.index_add({axis}, torch.tensor([0]), {name}.narrow({axis}, 0, 1))",
        f"torch.masked_select({name}, {name} > 0)",
        f"torch.nonzero({name} > 0)",
        f"torch.where({name} > 0)[0]",
        f"torch.take({name}, torch.tensor([0, 1]))",
        f"{name}.index_fill({axis}, torch.tensor([0]), 1)",
    )
    if "> 0" in text and name not in body.exact:
        raise Misfit
    body.add(f"{{}} = {text}", exact=name in body.exact)


def _write(body: Body) -> None:
    """A write in place: to a copy, to a view of it, or to a value that others may share memory with."""
    choices = [name for name in body.names if name not in body.inputs and body.of(name).dim() > 0]
    if not choices or body.number(0, 2):
        source = body.pick(has_dims)
        body.add(f"{{}} = {source}.clone()", exact=source in body.exact)
        choices = [body.names[-1]]
    elif body.number(0, 9) == 0:
        choices = [name for name in body.inputs if body.of(name).dim() > 0]
    name = body.choose(*choices)
    value, axis = body.of(name), body.axis(name)
    part = body.choose(
        "",
        f"[{_index(body, name)}]",
        f"[{_index(body, name)}]",
        f".select({axis}, 0)",
        f".narrow({axis}, 0, 2)",
        ".diagonal()",
        ".view(-1)",
        ".transpose(0, -1)",
        ".T",
        "[0]",
        "[1:]",
        f".unbind({axis})[0]",
        f".chunk(2, {axis})[-1]",
        f".flatten()[{body.number(0, 2)}:]",
        ".detach()",
    )
    other = body.like(name)
    number = body.number(0, 3)
    texts = [
        f"{name}{part}.add_({number})",
        f"{name}{part}.mul_(2)",
        f"{name}{part}.fill_({number})",
        f"{name}{part}.zero_()",
        f"{name}{part}.copy_({other})",
        f"{name}{part}.clamp_(0, 1)",
        f"{name}{part}.add_({other})",
        f"{name}{part}.masked_fill_({name}{part} > 0, {number})",
    ]
    if part.endswith("]"):
        texts += [
            f"{name}{part} = {number}",
            f"{name}{part} += {number}",
            f"{name}{part} = {other}",
            f"{name}{part} = {name}{part} * 2",
            f"{name}{part} *= {other}",
            f"{name}{part} = {body.size()}",
        ]
    texts += [
        f"{name} += {other}",
        f"{name}.index_fill_({axis}, torch.tensor([0]), {number})",
        f"{name}.neg_()",
        f"{name}.squeeze_()",
        f"{name}.unsqueeze_(0)",
        f"{name}.t_()" if value.dim() == 2 else f"{name}.abs_()",
        f"{name}.index_put_((torch.tensor([0, 1]),), {name}[0] * 1, accumulate=True)",
    ]
    text = body.choose(*texts)
    body.add(text, exact={name, other} <= body.exact, inplace=True)


def _reduction(body: Body) -> None:
    name = body.pick(lambda value: value.dim() > 0 and not value.is_complex())
    axis, keep = body.axis(name), body.choose("", ", keepdim=True")
    exact = name in body.exact
    texts = [
        f".sum({axis}{keep})",
        ".sum()",
        f".amax({axis}{keep})",
        f".amin({axis}{keep})",
        f".cumsum({axis})",
        f".max({axis}{keep}).values",
        f".min({axis}{keep})[0]",
        ".max()",
        f".sum((0, -1){keep})",
    ]
    if exact:
        texts += [
            f".any({axis}{keep})",
            f".all({axis})",
            f".argmax({axis}{keep})",
            f".argmin({axis})",
            f".max({axis}).indices",
            f".count_nonzero({axis})",
            f".sort({axis}).values",
            f".topk(1, {axis}).values",
            f".min({axis}{keep}).indices",
            ".argmax()",
            f".cummax({axis}).values",
            f".prod({axis})",
            f".diff(dim={axis})",
        ]
    texts += [
        ".mean()",
        f".mean({axis}{keep})",
        f".mean((0, -1){keep})",
        f".var({axis}{keep})",
        f".std({axis})",
        f".norm(dim={axis})",
        f".logsumexp({axis})",
        f".softmax({axis})",
        f".log_softmax({axis})",
    ]
    text = body.choose(*texts)
    body.add(f"{{}} = {name}{text}", exact=exact and texts.index(text) < len(texts) - 9)


def _joined(body: Body) -> None:
    one = body.pick(has_dims)
    axis = body.axis(one)
    value = body.of(one)
    other = body.pick(lambda each: each.dim() == value.dim())
    text = body.choose(
        f"torch.cat([{one}, {other}], {axis})",
        f"torch.cat(({one}, {one}), dim={axis})",
        f"torch.stack([{one}, {other}], {axis})",
        f"torch.hstack([{one}, {other}])",
        f"torch.cat([{one}, {other}.to({one}.dtype)], {axis})",
        f"torch.stack((({one}), {one} * 2), -1)",
    )
    body.add(f"{{}} = {text}", exact={one, other} <= body.exact)


def _parts(body: Body) -> None:
    name = body.pick(has_dims)
    axis, count, at = body.axis(name), body.number(1, 4), body.choose("0", "-1", "1")
    size = body.size(name)
    parts = body.choose(
        f"{name}.chunk({count}, {axis})",
        f"{name}.split({count}, {axis})",
        f"torch.tensor_split({name}, {count}, {axis})",
        f"{name}.unbind({axis})",
        f"{name}.split({size}, {axis})",
        f"{name}.split([1, {name}.shape[{axis}] - 1], {axis})",
        f"torch.tensor_split({name}, (1, {count}), {axis})",
        f"{name}.chunk({size}, {axis})",
    )
    text = body.choose(
        f"{parts}[{at}]",
        f"{parts}[{at}]",
        f"{parts}[{at}]",
        f"torch.cat({parts}[::-1], {axis})",
        f"sum({parts})",
        f"torch.stack({parts})",
        f"torch.cat([part * index for index, part in enumerate({parts})], {axis})",
        f"{parts}[0] + {parts}[-1]",
        f"{name} * len({parts})",
    )
    body.add(f"{{}} = {text}", exact=name in body.exact)


def _pad(body: Body) -> None:
    name = body.pick(has_dims)
    size = body.size(name)
    one, other = body.number(-1, 3), body.number(0, 2)
    text = body.choose(
        f"F.pad({name}, ({one}, {other}))",
        f"F.pad({name}, (0, {size}))",
        f"F.pad({name}, (0, 8 - {name}.shape[-1]))",
        f"F.pad({name}, (0, 0, {one}, {other}), value={one})",
        f"F.pad({name}, (1, {other}), mode='replicate')",
        f"F.pad({name}, (1, 1), mode='reflect')",
        f"F.pad({name}, (0, {size} % 2))",
    )
    body.add(f"{{}} = {text}", exact=name in body.exact)


def _matmul(body: Body) -> None:
    name = body.pick(lambda value: is_float(value) and value.dim() > 1)
    other = body.pick(lambda value: value.dtype is body.of(name).dtype and value.dim() > 1)
    last = f"{name}.shape[-1]"
    text = body.choose(
        f"{name} @ {other}",
        f"{name} @ {other}.mT",
        f"{name} @ {name}.mT",
        f"torch.einsum('...ij,...kj->...ik', {name}, {other})",
        f"F.linear({name}, torch.ones(2, {last}, dtype={name}.dtype))",
        f"{name} @ torch.ones({last}, dtype={name}.dtype)",
        f"torch.eye({last}, dtype={name}.dtype) @ {name}.mT",
        f"torch.outer({name}.flatten()[:3], {other}.flatten()[:2])",
    )
    body.add(f"{{}} = {text}", exact={name, other} <= body.exact and body.of(name).dtype is not torch.float16)


def _made(body: Body) -> None:
    size, other = body.size(), body.size()
    like = body.pick()
    text = body.choose(
        f"torch.arange({size})",
        f"torch.zeros({size}, {other})",
        f"torch.full(({size}, 2), 1.5)",
        f"torch.ones({size}, dtype=torch.int32)",
        f"{like}.new_ones({size})",
        f"torch.tensor({size})",
        f"torch.arange(0, {size}, 2)",
        f"torch.zeros_like({like})",
        f"torch.eye({size})",
        f"torch.linspace(0, 1, {size})",
        f"torch.full_like({like}, 2)",
        f"torch.tensor([{size}, {other}])",
        f"torch.arange({size}, dtype=torch.float32) + {other}",
    )
    body.add(f"{{}} = {text}", exact="linspace" not in text)


def _control_flow(body: Body) -> None:
    name = body.pick(has_dims)
    size, number, axis = body.size(), body.number(0, 5), body.axis(name)
    test = body.choose(
        f"{size} > {number}",
        f"{size} == {number}",
        f"{size} % 2 == 0",
        f"{size} >= {body.size()}",
        f"{size} < {number} or {size} > 3",
        f"{name}.dim() > 1",
    )
    one, other = (
        body.choose(f"{name} + 1", f"{name} * 2", f"-{name}"),
        body.choose(f"{name} * 3", f"{name}[:1]", f"{name}.sum({axis})", f"{name} + {size}"),
    )
    text = body.choose(
        f"if {test}:\n    {{}} = {one}\nelse:\n    {{}} = {other}",
        f"{{}} = {one} if {test} else {other}",
        f"{{}} = {name}\nif {test}:\n    {{}} = {one}",
        f"{{}} = {name}\nfor index in range({size}):\n    {{}} = {{}} + index",
        f"{{}} = {name}\nfor row in {name}:\n    {{}} = {{}} + row",
        f"{{}} = {name} + int({test})",
        f"{{}} = {name}\nwhile {{}}.shape[{axis}] > {number + 1}:\n    {{}} = {{}}.narrow({axis}, 0, {{}}.shape[{axis}] // 2)",
        f"assert {test}\n{{}} = {one}",
    )
    body.add(text, exact=name in body.exact)


def _complex(body: Body) -> None:
    name = body.pick(lambda value: value.is_complex() or value.dtype in (torch.float32, torch.float64))
    value = body.of(name)
    if value.is_complex():
        other = body.pick(lambda each: each.shape == value.shape and each.dtype is value.dtype)
        text = body.choose(
            f"{name}.real",
            f"{name}.imag",
            f"{name} * {other}",
            f"{name} + {other}",
            f"torch.view_as_real({name})",
            f"{name}.conj()",
            f"{name} * 2j",
            f"({name} * {name}.conj()).real",
        )
        body.add(f"{{}} = {text}", exact=name in body.exact)
    else:
        body.add(
            f"{{}} = torch.complex({name}, {body.pick(lambda each: each.shape == value.shape and each.dtype is value.dtype)})",
            exact=name in body.exact,
        )


KINDS: tuple[Callable[[Body], None], ...] = (
    *(
        _exact_unary,
        _inexact_unary,
        _logic,
        _binary,
        _binary,
        _division,
        _with_size,
        _with_size,
        _cast,
        _view,
        _view,
        _view,
        _indexing,
        _indexing,
    ),
    *(
        _indexing,
        _gather,
        _write,
        _write,
        _write,
        _reduction,
        _reduction,
        _joined,
        _parts,
        _parts,
        _pad,
        _matmul,
        _made,
        _control_flow,
        _complex,
    ),
)
