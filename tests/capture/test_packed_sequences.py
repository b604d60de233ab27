"""Packed sequences, whose shapes depend on data: the exported model runs recurrent layers on the padded batch and its lengths."""

from __future__ import annotations

import textwrap
import types
from collections.abc import Callable

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import onnxplain

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

NET = """
    import torch
    from torch.nn.utils import rnn
    from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(5, 7, batch_first=True)
            self.gru = torch.nn.GRU(5, 3, 2, batch_first=True, bidirectional=True, dropout=0.5)
            self.relu = torch.nn.RNN(5, 4, nonlinearity="relu", bias=False)
            self.projected = torch.nn.LSTM(5, 7, proj_size=3, bidirectional=True)
            self.fc = torch.nn.Linear(7, 5)

        def forward(self, {}):
{}
"""

OF_BATCH = {
    "all steps": """
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
    """,
    "last states": """
        packed = pack_padded_sequence(x, lengths.cpu(), True, False)
        return self.lstm(packed)[1]
    """,
    "steps first": """
        packed = rnn.pack_padded_sequence(x.transpose(0, 1), lengths, enforce_sorted=False)
        out, state = self.relu(packed)
        return rnn.pad_packed_sequence(out)[0], state
    """,
    "two layers in both directions": """
        out, state = self.gru(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return pad_packed_sequence(out, batch_first=True, padding_value=-9.0)[0], torch.cat([state[-2], state[-1]], 1)
    """,
    "projections": """
        out, (state, cell) = self.projected(pack_padded_sequence(x.transpose(0, 1), lengths, enforce_sorted=False))
        return pad_packed_sequence(out)[0], state, cell
    """,
    "sorted by the model": """
        lengths, order = lengths.sort(descending=True)
        out, _ = self.lstm(pack_padded_sequence(x[order], lengths, batch_first=True))
        return pad_packed_sequence(out, batch_first=True)[0][order.argsort()]
    """,
    "first states": """
        state = x.mean(1) @ x.new_ones(5, 7)
        out, last = self.lstm(pack_padded_sequence(x, lengths, True, False), (state[None], state[None] * 2))
        return pad_packed_sequence(out, True)[0], *last
    """,
    "total length of the batch": """
        out, _ = self.lstm(pack_padded_sequence(x, lengths, True, False))
        return self.fc(pad_packed_sequence(out, True, total_length=x.shape[1])[0]) + x
    """,
    "longer total length": """
        out, _ = self.lstm(pack_padded_sequence(x, lengths, True, False))
        return pad_packed_sequence(out, True, padding_value=2.0, total_length=12)[0]
    """,
    "layer on the elements": """
        packed = pack_padded_sequence(x, lengths, True, False)
        packed = PackedSequence(torch.relu(packed.data), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        out, _ = self.lstm(packed)
        return pad_packed_sequence(out._replace(data=self.fc(out.data)), batch_first=True)[0]
    """,
    "parts of it": """
        data, batch_sizes, order, _ = pack_padded_sequence(x, lengths, True, False)
        return data * 2, batch_sizes, order
    """,
    "not run": """
        return pad_packed_sequence(pack_padded_sequence(x, lengths, True, False), batch_first=True)
    """,
    "attention": """
        out, _ = self.lstm(pack_padded_sequence(x, lengths, True, False))
        out, known = pad_packed_sequence(out, True)
        inside = torch.arange(out.shape[1]) < known[:, None]
        return (out.sum(-1).masked_fill(~inside, -1e9).softmax(1)[..., None] * out).sum(1)
    """,
    "elements that are written to": """
        packed = pack_padded_sequence(x, lengths, True, False)
        torch.relu_(packed.data)
        out, _ = self.lstm(packed)
        out.data[0] = 3.0
        return pad_packed_sequence(out, batch_first=True)
    """,
    "batch and lengths that are written to": """
        batch, known = x * 1, lengths.sort(descending=True).values
        packed = pack_padded_sequence(batch, known, batch_first=True)
        batch.zero_(), known.fill_(1)
        first, found = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])
        first.zero_(), found.zero_()
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
    """,
    "shorter from layer to layer": """
        for _ in range(2):
            out, _ = self.lstm(pack_padded_sequence(x, lengths, True, False))
            out, lengths = pad_packed_sequence(out, True)
            x, lengths = self.fc(out)[:, ::2], (lengths + 1) // 2
        return x, lengths
    """,
}

LENGTHS = {
    "list": "packed = pack_padded_sequence(x, lengths.cpu().tolist(), True, False)  # HERE",
    "list of tensors": "packed = pack_padded_sequence(x, lengths=list(lengths), batch_first=True, enforce_sorted=False)  # HERE",
    "array": "packed = pack_padded_sequence(x, lengths.numpy(), True, False)  # HERE",
    "numbers": "packed = pack_padded_sequence(x, [int(n) for n in lengths], True, False)  # HERE",
    "list with a name": "known = lengths.tolist()  # HERE\npacked = pack_padded_sequence(x, known, True, False)",
    "array with the name of the tensor": (
        "lengths, order = lengths.sort(descending=True)\nlengths = lengths.cpu().numpy()  # HERE\n"
        "packed = pack_padded_sequence(x[order], lengths, batch_first=True)"
    ),
}

SHAPES = {"x": {0: "batch", 1: "steps"}, "lengths": {0: "batch"}}


def inputs(steps: int, *lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(steps)
    return torch.randn(len(lengths), steps, 5, generator=generator), torch.tensor(lengths)


OTHERS = [inputs(6, 4, 6, 2), inputs(6, 3, 1, 2), inputs(9, 2, 9), inputs(4, 4), inputs(5, 1, 1, 1, 1)]


def net(load: Load, statements: str, parameters: str = "x, lengths") -> torch.nn.Module:
    torch.manual_seed(2)
    body = textwrap.indent(textwrap.dedent(statements).strip("\n"), " " * 12)
    model: torch.nn.Module = load(NET.format(parameters, body)).Net().eval()
    return model


def check(program: onnxplain.ONNXProgram, model: torch.nn.Module, *args: torch.Tensor) -> None:
    expected = model(*args)
    torch.testing.assert_close(tuple(program(*args)), expected if isinstance(expected, tuple) else (expected,), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OF_BATCH)
def test_batches_of_other_lengths(load: Load, name: str, dtype: torch.dtype) -> None:
    model = net(load, OF_BATCH[name]).to(dtype)
    x, lengths = OTHERS[0]
    program = onnxplain.export(model, (x.to(dtype), lengths), dynamic_shapes=SHAPES)
    assert {each.rule.id for each in program.diagnostics.findings} <= {"OXP1040"}
    for x, lengths in OTHERS:
        check(program, model, x.to(dtype), lengths)


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_that_are_no_tensor_become_one(load: Load, marked: Marked, name: str) -> None:
    rest = "\nout, state = self.lstm(packed)\nreturn pad_packed_sequence(out, batch_first=True)[0], *state"
    model = net(load, LENGTHS[name] + rest)
    program = onnxplain.export(model, inputs(6, 6, 4, 2), dynamic_shapes=SHAPES)
    assert [(each.rule.id, each.location and each.location.line) for each in program.diagnostics.findings] == [("OXP1037", *marked("HERE"))]
    for args in OTHERS:
        check(program, model, *args)


def test_lengths_that_python_computes_are_refused(load: Load, marked: Marked) -> None:
    model = net(load, "packed = pack_padded_sequence(x, lengths.numpy().clip(1, 5), True, False)  # HERE\nreturn self.lstm(packed)[1]")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, OTHERS[0])
    assert [(each.rule.id, each.location and each.location.line) for each in failed.value.findings] == [("OXP1030", *marked("HERE"))]


def test_sequences_of_dynamic_lengths(load: Load) -> None:
    model = net(load, "return pad_packed_sequence(self.lstm(pack_sequence([x, y], enforce_sorted=False))[0], True)[0]", "x, y")
    program = onnxplain.export(model, (torch.randn(4, 5), torch.randn(6, 5)), dynamic_shapes={"x": {0: "n"}, "y": {0: "m"}})
    check(program, model, torch.randn(7, 5), torch.randn(3, 5))


def test_sequences_apart_again(load: Load) -> None:
    model = net(load, "return tuple(unpack_sequence(self.lstm(pack_sequence([x, y]))[0]))", "x, y")
    program = onnxplain.export(model, (torch.randn(6, 5), torch.randn(4, 5)))
    check(program, model, torch.randn(6, 5), torch.randn(4, 5))


def test_elements_that_were_packed_elsewhere(load: Load) -> None:
    model = net(load, "out, last = self.lstm(PackedSequence(x, sizes))\nreturn pad_packed_sequence(out, True)[0], *last", "x, sizes")
    packed = pack_padded_sequence(*OTHERS[0], True, False)
    program = onnxplain.export(model, (packed.data, packed.batch_sizes), dynamic_shapes={"x": {0: "n"}, "sizes": {0: "steps"}})
    for args in OTHERS:
        packed = pack_padded_sequence(*args, True, False)
        check(program, model, packed.data, packed.batch_sizes)


def test_only_the_batch_and_the_steps_are_dynamic(load: Load) -> None:
    statements = "out, last = self.lstm(pack_padded_sequence(x, lengths, True), (h, h))\nreturn pad_packed_sequence(out, True)[0], *last"
    program = onnxplain.export(net(load, statements, "x, lengths, h"), (*inputs(6, 6, 4, 2), torch.zeros(1, 3, 7)), dynamic_shapes=True)
    x, lengths, h = ([dim if isinstance(dim, int) else str(dim) for dim in value.shape or ()] for value in program.model.graph.inputs)
    batch, steps = x[:2]
    assert isinstance(batch, str)
    assert isinstance(steps, str)
    assert (x[2:], lengths, h) == ([5], [batch], [1, batch, 7])


def test_padding_is_never_computed_with(load: Load) -> None:
    model = net(load, OF_BATCH["two layers in both directions"])
    x, lengths = inputs(6, 4, 6, 2)
    program = onnxplain.export(model, (x, lengths))
    for row, length in enumerate(lengths):
        x[row, length:] = torch.nan
    check(program, model, x, lengths)


def test_a_layer_gets_the_batch_as_it_is(load: Load) -> None:
    model = net(load, OF_BATCH["last states"])
    program = onnxplain.export(model, inputs(6, 6, 4, 2), dynamic_shapes=SHAPES)
    operators = [node.op_type for node in program.model.graph]
    assert operators.count("LSTM") == 1
    assert not {"Where", "NonZero", "Compress", "Loop", "Scan"} & set(operators)
