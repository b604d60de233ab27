"""The statements of random programs that call one operator: sums of products, layers, sorting, scatters, and those that make tensors."""

from __future__ import annotations

from collections.abc import Callable

from adversary.body import Body, Misfit, has_dims, is_float, is_int, is_number


def _products(body: Body) -> None:
    name = body.pick(lambda value: is_float(value) and value.dim() > 0)
    value = body.of(name)
    other = body.pick(lambda each: each.dtype is value.dtype and each.dim() > 0)
    letters = "abcde"[: value.dim()]
    kept = "".join(body.chance.sample(letters, body.number(0, len(letters))))
    texts = [
        f"torch.einsum('{letters}->{kept}', {name})",
        f"torch.einsum('{letters},{letters}->{kept}', {name}, {name})",
        f"torch.einsum('i,j->ij', {name}.flatten(), {other}.flatten())",
        f"torch.einsum('...i,...i->...', {name}, {name})",
        f"torch.einsum('...i,ij->...j', {name}, torch.ones({name}.shape[-1], 2, dtype={name}.dtype))",
        f"torch.tensordot({name}, {other}, dims=1)",
        f"torch.tensordot({name}, {name}, dims=([0], [0]))",
        f"torch.matmul({name}, {other})",
        f"torch.matmul({name}.unsqueeze(0), {other}.unsqueeze(-1))",
        f"torch.kron({name}, torch.ones(2, dtype={name}.dtype))",
        f"torch.dot({name}.flatten(), {name}.flatten())",
        f"{name}.flatten().vander(3)",
    ]
    if value.dim() > 1:
        texts += [
            f"torch.einsum('...ij,...kj->...ik', {name}, {name})",
            f"torch.einsum('...ii->...i', {name} @ {name}.mT)",
            f"torch.addmm(torch.ones(1, dtype={name}.dtype), {name}, {other}, beta=2)",
            f"torch.bmm({name}.reshape(-1, {name}.shape[-2], {name}.shape[-1]), {name}.reshape(-1, {name}.shape[-2], {name}.shape[-1]).mT)",
            f"torch.baddbmm(torch.ones(1, dtype={name}.dtype), {name}.unsqueeze(0), {name}.mT.unsqueeze(0))",
            f"torch.unsqueeze({name}, 1) @ {other}.mT",
            f"torch.trace({name})",
            f"torch.cdist({name}, {other})",
        ]
    text = body.choose(*texts)
    body.add(f"{{}} = {text}", exact=False)


def _layer(body: Body) -> None:
    name = body.pick(lambda value: is_float(value) and 1 < value.dim() < 5)
    value = body.of(name)
    dtype, size = f"dtype={name}.dtype", body.size(name)
    channels = f"{name}.shape[1]"
    stride, padding, dilation = body.number(1, 2), body.number(0, 2), body.number(1, 2)
    settings = body.choose(f"stride={stride}, padding={padding}", f"padding={padding}, dilation={dilation}", "padding='same'", "")
    scale = body.choose("2", "1.5", "0.5")
    ceil = body.choose("", ", ceil_mode=True")
    texts = [
        f"F.layer_norm({name}, ({value.shape[-1]},))",
        f"F.layer_norm({name}, {name}.shape[-1:])",
        f"F.normalize({name}, dim={body.axis(name)})",
        f"F.cosine_similarity({name}, {name} + 1, dim={body.axis(name)})",
        f"F.conv1d({name}.unsqueeze(1) if {name}.dim() == 2 else {name}.flatten(2), torch.ones(2, 1, 2, {dtype}))",
        f"F.linear({name}, torch.ones(3, {value.shape[-1]}, {dtype}), torch.ones(3, {dtype}))",
        f"F.glu({name}, {body.axis(name)})",
        f"F.rms_norm({name}, ({value.shape[-1]},))",
        f"F.batch_norm({name}, torch.zeros({value.shape[1]}, {dtype}), torch.ones({value.shape[1]}, {dtype}))",
        f"F.scaled_dot_product_attention({name}, {name}, {name})",
        f"F.scaled_dot_product_attention({name}, {name}, {name}, is_causal=True)",
        f"F.mse_loss({name}, {name} * 2, reduction='{body.choose('mean', 'sum', 'none')}')",
        f"F.smooth_l1_loss({name}, {name} * 2)",
        f"F.cross_entropy({name}.reshape(-1, {name}.shape[-1]), torch.zeros({name}.numel() // {name}.shape[-1], dtype=torch.int64))",
    ]
    if value.dim() in (2, 3):
        texts += [
            f"F.conv1d({name}, torch.ones(2, {channels}, 2, {dtype}), {settings})",
            f"F.conv1d({name}, torch.ones(2, {value.shape[-2]}, 2, {dtype}), {settings})",
            f"F.conv_transpose1d({name}, torch.ones({value.shape[-2]}, 2, 2, {dtype}), stride={stride})",
            f"F.max_pool1d({name}, 2, {stride}{ceil})",
            f"F.avg_pool1d({name}, 2, {stride}, {padding % 2}{ceil})",
            f"F.adaptive_avg_pool1d({name}, {body.number(1, 3)})",
            f"F.adaptive_max_pool1d({name}, 1)",
            f"F.pad({name}, (1, 2), mode='circular')",
        ]
    if value.dim() == 3:
        texts += [
            f"F.interpolate({name}, scale_factor={scale}, mode='{body.choose('nearest', 'linear', 'nearest-exact')}')",
            f"F.interpolate({name}, size={body.choose('4', size)}, mode='{body.choose('nearest', 'linear', 'area')}')",
            f"F.interpolate({name}, size={size}, mode='linear', align_corners=True)",
        ]
    image = {2: f"{name}[None, None]", 3: f"{name}[None]", 4: name}.get(value.dim(), name)
    texts += [
        f"F.conv2d({image}, torch.ones(2, {image}.shape[1], 2, 1, {dtype}), {settings})",
        f"F.conv2d({image}, torch.ones({image}.shape[1], 1, 2, 2, {dtype}), padding=1, groups={image}.shape[1])",
        f"F.conv_transpose2d({image}, torch.ones({image}.shape[1], 1, 2, 2, {dtype}), stride={stride})",
        f"F.max_pool2d({image}, 2, {stride}, 1{ceil})",
        f"F.avg_pool2d({image}, (2, 1), {stride}{ceil}, count_include_pad=False)",
        f"F.adaptive_avg_pool2d({image}, {body.choose('1', '(1, 2)', '(None, 1)')})",
        f"F.interpolate({image}, scale_factor={scale}, mode='{body.choose('nearest', 'bilinear', 'bicubic')}')",
        f"F.interpolate({image}, size=({size}, {body.size(name)}), mode='{body.choose('nearest', 'bilinear', 'area')}')",
        f"F.unfold({image}, 2, padding={padding})",
        f"F.group_norm({image}, 1)",
        f"F.instance_norm({image})",
        f"F.pixel_shuffle({image}.expand(1, 4, -1, -1), 2)" if value.dim() == 2 else f"F.pixel_unshuffle({image}, 2)",
        f"F.upsample({image}, scale_factor=2)",
        f"F.grid_sample({image}, torch.zeros(1, 2, 2, 2, {dtype}))",
    ]
    text = body.choose(*texts)
    body.add(f"{{}} = {text}", exact=False)


def _order(body: Body) -> None:
    """Sorting and searching. Only the order of different numbers is defined, so each index finds a value."""
    name = body.pick(lambda value: has_dims(value) and is_number(value), exact=True)
    axis, size, down = body.axis(name), body.size(name), body.choose("", ", descending=True")
    flag = body.choose("True", "False")
    text = body.choose(
        f"torch.sort({name}, {axis}{down}).values",
        f"torch.sort({name}, dim={axis}, stable=True{down}).indices",
        f"torch.argsort({name}, {axis}{down}, stable=True)",
        f"torch.gather({name}, {axis}, torch.argsort({name}, {axis}{down}))",
        f"{name}.topk(min(2, {name}.shape[{axis}]), {axis}, largest={flag}).values",
        f"{name}.topk({name}.shape[{axis}] // 2, {axis}).values",
        f"{name}.topk({size}, {axis}).values",
        f"{name}.kthvalue(1, {axis}).values",
        f"{name}.kthvalue({name}.shape[{axis}], {axis}).values",
        # NOTE: eager mode takes the elements of another dim for those of an expanded one (seen in torch 2.13).
        f"{name}.contiguous().median({axis}).values",
        f"{name}.median()",
        f"{name}.mode({axis}).values",
        f"torch.searchsorted({name}.flatten().sort().values, {body.pick(is_number, exact=True)}, right={flag})",
        f"torch.bucketize({name}, torch.tensor([-1, 0, 2]), right={flag})",
        f"{name}.unique()",
        f"{name}.flatten().unique(return_counts=True)[1]",
        f"{name}.unique_consecutive()",
        f"torch.isin({name}, torch.tensor([0, 1, 2]))",
        f"torch.cummax({name}, {axis}).values",
        f"torch.cummin({name}, {axis}).values",
        f"{name}.aminmax(dim={axis}).max",
        f"torch.flip({name}.sort({axis}).values, [{axis}, 0])" if axis % body.of(name).dim() else f"torch.flip({name}, [{axis}])",
        f"{name}.nanmedian()",
        f"torch.histc({name}.float(), 4, -3, 3)",
        f"torch.bincount({name}.flatten().abs().long())",
        f"F.one_hot({name}.long() % 3)",
        f"F.one_hot({name}.long() % 3, 3)",
    )
    body.add(f"{{}} = {text}", exact=True)


def _scatter(body: Body) -> None:
    name = body.pick(has_dims)
    value, axis = body.of(name), body.axis(name)
    source = body.pick(lambda each: each.dtype is value.dtype and each.dim() == value.dim())
    integers = [each for each in body.names if is_int(body.of(each)) and body.of(each).dim() == value.dim() and each in body.exact]
    plain = f"torch.zeros_like({source}, dtype=torch.int64)"
    index = f"({body.choose(*integers)}.long() % {name}.shape[{axis}])" if integers else plain
    positions = f"(torch.arange({source}.shape[{axis}]) % {name}.shape[{axis}])"
    number, flag = body.number(0, 3), body.choose("True", "False")
    text = body.choose(
        f"{name}.gather({axis}, {index})",
        f"{name}.scatter({axis}, {plain}, 2)",
        f"{name}.scatter_add({axis}, {index}, {source})",
        f"{name}.scatter_reduce({axis}, {plain}, {source}, '{body.choose('sum', 'amax', 'amin', 'prod')}', include_self={flag})",
        f"{name}.index_add({axis}, {positions}, {source}, alpha=2)",
        f"{name}.index_copy({axis}, torch.arange({source}.shape[{axis}]), {source})",
        f"{name}.index_reduce({axis}, {positions}, {source}, 'amax')",
        f"{name}.index_put((torch.arange({name}.shape[0]),), torch.ones((), dtype={name}.dtype), accumulate={flag})",
        f"{name}.index_select({axis}, torch.arange({name}.shape[{axis}] - 1, -1, -1))",
        f"{name}.index_select({axis}, torch.arange(0, {name}.shape[{axis}], 2))",
        f"torch.take_along_dim({name}, {index}, {axis})",
        f"{name}.masked_fill({name} {body.choose('>', '<')} 0, {body.choose('0', '2', 'True', '1.0')})",
        f"{name}.masked_fill(torch.ones({name}.shape[-1], dtype=torch.bool).tril(), {number})",
        f"{name}.masked_fill(torch.arange({name}.shape[-1]) >= {body.size(name)}, {number})",
        f"{name}.masked_scatter({name} > 0, {name} * 2)",
        f"torch.where({name} > 0, {name}, {body.choose('1.5', '0', 'torch.tensor(1.5)', 'torch.tensor(2)', source)})",
        f"torch.select_scatter({name}, {name}.select({axis}, 0) * 2, {axis}, -1)",
        f"torch.slice_scatter({name}, {name}.narrow({axis}, 0, 1) * 2, {axis}, {name}.shape[{axis}] - 1)",
        f"torch.diagonal_scatter({name}, {name}.diagonal() * 2)",
        f"torch.embedding({name}, torch.arange({name}.shape[0]) % 2)",
        f"F.embedding(torch.arange({name}.shape[0]), {name})",
    )
    if ("> 0" in text or "< 0" in text) and name not in body.exact:
        raise Misfit
    body.add(f"{{}} = {text}", exact={name, source} <= body.exact and "reduce" not in text)


def _cumulation(body: Body) -> None:
    name = body.pick(lambda value: has_dims(value) and is_number(value))
    axis, other = body.axis(name), body.axis(name)
    text = body.choose(
        f"{name}.cumsum({axis})",
        f"{name}.cumsum({axis}, dtype=torch.float64)",
        f"{name}.cumsum({axis}).flip({axis})",
        f"torch.cumulative_trapezoid({name}, dim={axis})",
        f"torch.trapezoid({name}, dim={axis})",
        f"{name}.diff(2, {axis})",
        f"{name}.diff(dim={axis}, prepend={name}.narrow({axis}, 0, 1))",
        f"{name}.roll(({body.number(-2, 2)}, 1), ({axis}, {other}))",
        f"{name}.roll({body.size(name)}, {axis})",
        f"{name}.roll(1)",
        f"{name}.flip(({axis},))",
        f"{name}.rot90()",
        f"{name}.flipud()",
        f"{name}.sum(({axis}, {other}), keepdim=True)",
        f"{name}.sum({axis}, dtype=torch.int64)",
        f"{name}.nansum({axis})",
        f"{name}.amax(({axis}, {other}))",
        f"{name}.sum_to_size({name}.shape[-1])",
        f"torch.cat([{name}.cumsum({axis}), {name}], {axis})",
        f"{name}.sum({axis}) / {name}.shape[{axis}]",
        f"{name}.float().std({axis}, correction={body.number(0, 1)})",
        f"{name}.float().var_mean({axis})[0]",
    )
    body.add(f"{{}} = {text}", exact=name in body.exact and not any(each in text for each in ("trapezoid", "float()", " / ")))


def _shape(body: Body) -> None:
    name = body.pick(has_dims)
    value = body.of(name)
    axis, size, other = body.axis(name), body.size(name), body.size()
    ones = ", ".join(["1"] * value.dim())
    sizes = ", ".join(body.choose(f"{name}.shape[{index}]", "-1", str(number)) for index, number in enumerate(value.shape))
    text = body.choose(
        f"{name}.repeat({body.number(1, 2)}, {ones})",
        f"{name}.repeat({size}, {ones})",
        f"{name}.expand({body.number(1, 2)}, {sizes})",
        f"{name}.unsqueeze({axis}).expand_as(torch.stack([{name}, {name}], {axis}))",
        f"{name}.unfold({axis}, {name}.shape[{axis}] // 2, 1)",
        f"{name}.unfold({axis}, {body.number(1, 3)}, {body.number(1, 3)})",
        f"{name}.as_strided(({name}.shape[0],), ({name}.stride(0),))",
        f"{name}.reshape({name}.shape[0], {name}.numel() // {name}.shape[0])",
        f"{name}.reshape({size}, -1)",
        f"{name}.view({name}.shape[0], 1, -1)",
        f"{name}.flatten().view({sizes})",
        f"{name}.swapaxes(0, {axis})",
        f"{name}.diag_embed()",
        f"torch.diag({name})",
        f"torch.block_diag({name}, {name})",
        f"torch.cartesian_prod({name}.flatten(), {name}.flatten())",
        f"torch.combinations({name}.flatten())",
        f"torch.meshgrid({name}.flatten(), torch.arange({size}), indexing='{body.choose('ij', 'xy')}')[{body.number(0, 1)}]",
        f"torch.broadcast_to({name}, (2, {sizes}))",
        f"torch.atleast_2d({name}).hsplit(1)[0]",
        f"{name}.squeeze({axis}).unsqueeze({axis})",
        f"{name}.narrow({axis}, 0, min({other}, {name}.shape[{axis}])).squeeze()",
        f"{name}[tuple(slice(0, size - 1) for size in {name}.shape)]",
        f"{name}.repeat_interleave({size}, {axis})",
        f"{name}.repeat_interleave(torch.arange({name}.shape[{axis}]), {axis})",
        f"{name}.tensor_split({size}, {axis})[0]",
        f"{name}.view({name}.shape).mT" if value.dim() > 1 else f"{name}.view(1, -1)",
        f"{name}.tril({size})",
        f"{name}.view(torch.uint8)",
        f"torch.channel_shuffle({name}[None, None], 1)" if value.dim() == 2 else f"{name}.ravel()",
    )
    body.add(f"{{}} = {text}", exact=name in body.exact)


def _promotion(body: Body) -> None:
    """Operands of different categories: tensors, tensors without dims, Python numbers."""
    name = body.pick()
    operator = body.choose("+", "-", "*") if name not in body.exact else body.choose("+", "-", "*", "<", "==", ">=")
    scalar = body.choose(
        "torch.tensor(2)",
        "torch.tensor(1.5)",
        "torch.tensor(True)",
        "torch.tensor(2.0, dtype=torch.float64)",
        "torch.tensor(3, dtype=torch.int8)",
    )
    scalar = body.choose(scalar, "2", "1.5", "True", "2j", f"torch.tensor({body.size()})", f"{body.pick()}.sum()")
    text = body.choose(
        f"{name} {operator} {scalar}",
        f"{scalar} {operator} {name}",
        f"torch.add({name}, {scalar}, alpha=2)",
        f"torch.sub({scalar}, {name})" if scalar.startswith("torch") else f"torch.rsub({name}, {scalar})",
        f"torch.result_type({name}, {scalar}) is torch.float32 and {name} + 1 or {name} - 1",
        f"torch.stack([{name}, {name} * {scalar}])" if name in body.exact else f"{name} * 1",
        f"torch.cat([{name}.flatten(), torch.ones(2, dtype={body.choose('torch.int64', 'torch.float64', 'torch.float16')})])",
        f"torch.where({name} == {name}, {name}, {scalar})",
        f"torch.maximum({name}, torch.as_tensor({scalar}))",
        f"{name}.clamp(max={body.choose('1', '1.5')})",
        f"torch.clamp({name}, min=torch.tensor(0), max=torch.tensor(2.5))",
        f"{name} ** {body.choose('2', '2.0', '3', '0')}",
        f"2 ** {name}.clamp(-3, 3)",
        f"torch.lerp({name}, {name} + 1, 0.5)",
        f"torch.addcmul({name}, {name}, {name}, value={body.choose('2', '0.5')})",
        f"{name}.new_tensor([1, 2])",
        f"torch.float_power({name}, 2)",
        f"{name}.to({body.pick()})",
    )
    body.add(f"{{}} = {text}", exact=name in body.exact and "0.5" not in text and "**" not in text and "power" not in text)


def _integers(body: Body) -> None:
    """Division and remainder of tensors and of sizes, with signs."""
    name = body.pick(is_number, exact=True)
    size, other = body.size(), body.size()
    rounding = body.choose("'floor'", "'trunc'")
    text = body.choose(
        f"torch.div({name}, {size}, rounding_mode={rounding})",
        f"torch.div({name}, -2, rounding_mode={rounding})",
        f"torch.remainder({name}, {body.choose('3', '-3', size)})",
        f"torch.fmod({name}, {body.choose('3', '-3', size)})",
        f"{name} % (-{size})",
        f"{name} // (-{size})",
        f"{size} % ({name}.abs() + 1)",
        f"{size} // ({name}.abs() + 1)",
        f"torch.floor_divide({name}, {size})",
        f"{name} * (-(-{size} // 2))",
        f"{name} * ({size} // -2)",
        f"{name} * ({size} % -3)",
        f"{name} * divmod({size}, 2)[1]",
        f"{name} * ({size} ** 2)",
        f"{name} * max({size}, {other}, 2)",
        f"{name} * (({size} + 7) // 8 * 8 - {size})",
        f"{name} * int({size} / 2)",
        f"{name} * math.ceil({size} / 2)",
        f"{name} * int({size} * 0.5)",
        f"{name} * round({size} / 3)",
        f"{name} * abs({size} - 3)",
        f"{name} * bool({size})",
        f"{name} * sum([{size}, {other}])",
        f"{name} + ({size} and 2)",
        f"{name} * torch.Size([{size}, {other}]).numel()",
        f"{name} * ({size} == {other})",
        f"{name} * math.gcd({size}, 4)",
        f"torch.bitwise_left_shift({name}.long(), 1)",
        f"{name}.long() & {size}",
        f"torch.gcd({name}.long(), torch.tensor(4))",
    )
    body.add(f"{{}} = {text}", exact=True)


def _loops(body: Body) -> None:
    name = body.pick(has_dims)
    size, axis = body.size(), body.axis(name)
    text = body.choose(
        f"{{}} = torch.stack([{name} * index for index in range({size})])",
        f"{{}} = torch.cat([{name}[:index + 1] for index in range(2)])",
        f"{{}} = torch.stack([row * index for index, row in enumerate({name})])",
        f"{{}} = torch.stack([part.sum() for part in {name}.split(2, {axis})])",
        f"{{}} = {name}.clone()\nfor index in range(2):\n    {{}}[index] = {{}}[index] * index",
        f"{{}} = {name}.clone()\nfor index in range({name}.shape[0]):\n    {{}}[index] += index",
        f"parts = []\nfor index in range(0, {name}.shape[{axis}], 2):\n    parts.append({name}.narrow({axis}, index, 1))\n"
        f"{{}} = torch.cat(parts, {axis})",
        f"{{}} = torch.vmap(lambda row: row * 2 + row.sum())({name})",
        f"{{}} = torch.vmap(lambda row: row.flip(0), in_dims={axis})({name})",
        f"def inner(value, scale={size}):\n    return value * scale\n{{}} = inner({name})",
        f"{{}} = (lambda value: value + {size})({name})",
        f"with torch.no_grad():\n    {{}} = {name} * 2",
        f"try:\n    {{}} = {name}.view({size})\nexcept RuntimeError:\n    {{}} = {name}",
        f"{{}} = {name}\nassert {{}}.shape[{axis}] > 0, 'empty'\n{{}} = {{}} + 1",
        f"first, *rest = {name}\n{{}} = first + len(rest)",
        f"count = {size}\nwhile count > 2:\n    count //= 2\n{{}} = {name} * count",
        f"match {name}.dim():\n    case 2:\n        {{}} = {name} * 2\n    case _:\n        {{}} = {name} * 3",
        f"{{}} = {name}.new_zeros({name}.shape)\n{{}}[..., :{size}] = {name}[..., :{size}]",
        f"{{}} = {name}.flatten()\n{{}} = {{}}.view({name}.shape).add_(1)",
        f"{{}} = {name}.clone()\nalias = {{}}.view(-1)\nalias[0] = 5\n{{}} = {{}} + alias[0]",
        f"{{}} = {name}.clone()\n{{}}.view(-1)[::2].mul_(2)",
        f"{{}} = {name}.clone()\none, two = {{}}.unbind(0)[0], {{}}[-1]\none.add_(1)\ntwo.mul_(2)",
        f"{{}} = torch.empty_like({name})\n{{}}.copy_({name})",
        f"{{}} = {name}.clone()\n{{}}.transpose(0, -1).masked_fill_({{}}.transpose(0, -1) == 0, 3)",
        f"{{}} = {name}.expand(2, *{name}.shape).clone()\n{{}}[1].zero_()",
    )
    body.add(text, exact=name in body.exact)


KINDS: tuple[Callable[[Body], None], ...] = (
    *(_products, _products, _layer, _layer, _layer, _order, _order, _scatter, _scatter, _cumulation, _shape, _shape),
    *(_promotion, _promotion, _integers, _integers, _loops, _loops),
)
"""One for each share of a draw."""
