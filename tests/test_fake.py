"""Models without data: built in fake mode, exported, given their weights, saved."""

from __future__ import annotations

import copy
import pathlib
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from benchmarks import llama
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from weighted_net import IDS, Net, close, exported, real

import onnxplain

MiB = 2**20


def test_parameters_have_no_data_and_what_is_in_no_state_dict_has() -> None:
    with onnxplain.enable_fake_mode() as context:
        net = Net()
        large = nn.Linear(2**16, 2**16, dtype=torch.bfloat16)
        assert isinstance(torch.randn(2**14, 2**13), FakeTensor)
    assert isinstance(context, onnxplain.ONNXFakeContext)
    for tensor in (*net.parameters(), *large.parameters(), *net.state_dict().values()):
        assert isinstance(tensor, FakeTensor)
    assert net.out.weight is net.table.weight
    assert large.weight.nbytes == 2**33
    assert torch.equal(net.steps, torch.arange(8.0) / 8)
    after = nn.Linear(2, 2)
    assert not isinstance(after.weight, FakeTensor)


def test_models_that_other_threads_build_keep_their_data() -> None:
    begun, go_on, built = threading.Event(), threading.Event(), list[nn.Module]()

    def build() -> None:
        begun.wait(60)
        built.append(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
        go_on.set()

    thread = threading.Thread(target=build)
    thread.start()
    with onnxplain.enable_fake_mode():
        before = nn.Linear(2, 2)
        begun.set()
        assert go_on.wait(60)
        after = nn.Linear(2, 2)
    thread.join()
    assert [isinstance(each.weight, FakeTensor) for each in (before, after)] == [True, True]
    tensors = [*built[0].parameters(), *built[0].buffers()]
    assert len(tensors) == 7
    assert not any(isinstance(each, FakeTensor) for each in tensors)
    assert built[0](torch.ones(3, 2)).shape == (3, 2)


def test_a_buffer_that_is_made_of_parameters_has_no_data() -> None:
    class Derived(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.register_buffer("twice", torch.zeros(3), persistent=False)
            self.twice.copy_(self.weight.detach() * 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.twice + self.weight

    with onnxplain.enable_fake_mode():
        net = Derived()
    program = onnxplain.export(net, (torch.ones(3),))
    with pytest.raises(onnxplain.InvalidArgument, match="twice"):
        program.apply_weights({"weight": torch.ones(3)})
    program.apply_weights({"weight": torch.ones(3), "twice": torch.full((3,), 2.0)})
    close(program(torch.ones(3))[0], torch.full((3,), 3.0))


CONVERSIONS: dict[str, tuple[Any, torch.dtype]] = {
    "half": (lambda net: net.half(), torch.float16),
    "to": (lambda net: net.to(torch.bfloat16), torch.bfloat16),
    "double": (lambda net: net.double(), torch.float64),
    "float": (lambda net: net.float(), torch.float32),
    "cpu": (lambda net: net.to("cpu"), torch.float32),
}


@pytest.mark.parametrize(("convert", "dtype"), CONVERSIONS.values(), ids=CONVERSIONS)
@pytest.mark.parametrize("again", [False, True])
def test_converted_parameters_have_no_data(convert: Any, dtype: torch.dtype, again: bool) -> None:
    """Twice, as torch answers from a cache the second time."""
    with onnxplain.enable_fake_mode():
        net = convert(nn.Sequential(Net(), *(copy.deepcopy(nn.Sequential(nn.LSTM(3, 3), nn.BatchNorm1d(3))) for _ in range(2))))
    assert {name for name, each in net.state_dict().items() if not isinstance(each, FakeTensor)} == set()
    assert {each.dtype for each in net.parameters()} == {dtype}
    assert net[0].out.weight is net[0].table.weight
    assert torch.equal(net[0].steps, torch.arange(8.0).to(dtype) / 8)
    program = onnxplain.export(net[0].eval(), (IDS,))
    with pytest.raises(onnxplain.InvalidArgument, match="include_initializers"):
        program.save("never.onnx", include_initializers=True)
    if dtype in (torch.float32, torch.float64):
        other = convert(real())
        program.apply_weights(other.state_dict())
        close(program.call_reference(IDS)[0], other(IDS))


def test_layers_that_are_copies() -> None:
    """`TransformerEncoder` copies the layer that it is given."""

    def made() -> nn.Module:
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval()

    with onnxplain.enable_fake_mode():
        fake = made()
    program = onnxplain.export(fake, (torch.randn(2, 5, 16),), dynamic_shapes=({0: "batch", 1: "length"},))
    eager, x = made(), torch.randn(3, 7, 16)
    program.apply_weights(eager.state_dict())
    close(program(x)[0], eager(x))


def test_inputs_may_be_made_inside_and_the_export_too() -> None:
    with onnxplain.enable_fake_mode():
        net = nn.Linear(4, 2)
        program = onnxplain.export(net, (torch.randn(3, 4),))
        other = onnxplain.export(net, (torch.empty(2**23, 4),))
    weights = {"weight": torch.randn(2, 4), "bias": torch.randn(2)}
    x = torch.randn(3, 4)
    for each in (program, other):
        each.apply_weights(weights)
        if each is program:
            close(each(x)[0], nn.functional.linear(x, **weights))


def test_what_documentation_shows(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    class MyModel(torch.nn.Module):  # Model with a parameter
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(42.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.weight + x

    with onnxplain.enable_fake_mode():
        # When initialized in fake mode, the model's parameters are fake tensors
        # They do not take up memory so we can initialize large models
        my_nn_module = MyModel()
        arg1 = torch.randn(2, 2, 2)
    onnx_program = onnxplain.export(my_nn_module, (arg1,), dynamo=True, optimize=False)
    # Saving model WITHOUT initializers (only the architecture)
    onnx_program.save(
        "my_model_without_initializers.onnx",
        include_initializers=False,
        keep_initializers_as_inputs=True,
    )
    # Saving model WITH initializers after applying concrete weights
    onnx_program.apply_weights({"weight": torch.tensor(42.0)})
    onnx_program.save("my_model_with_initializers.onnx")

    hollow, whole = (onnx.load(f"my_model_{kind}_initializers.onnx") for kind in ("without", "with"))
    assert [each.name for each in hollow.graph.input] == ["x", "weight"]
    assert not hollow.graph.initializer
    assert [(each.name, onnx.numpy_helper.to_array(each)) for each in whole.graph.initializer] == [("weight", 42.0)]
    assert onnx_program(torch.ones(2, 2, 2))[0].unique() == torch.tensor([43.0])


def test_without_data_nothing_is_written_or_run(tmp_path: pathlib.Path) -> None:
    program = exported(verify=True)
    assert [finding.rule.id for finding in program.diagnostics.findings] == ["OXP6005"]
    for use in (lambda: program.save(tmp_path / "m.onnx", include_initializers=True), lambda: program(IDS), lambda: program.model_proto):
        with pytest.raises(onnxplain.InvalidArgument, match=r"conv\.weight"):
            use()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(nn.Linear(2, 2, device="meta"), (torch.ones(1, 2, device="meta"),), tmp_path / "m.onnx")
    assert [finding.rule.id for finding in failed.value.log.findings] == ["OXP5004"]
    assert not list(tmp_path.iterdir())


def test_one_file_of_a_large_model_is_refused_without_a_path() -> None:
    with onnxplain.enable_fake_mode():
        net = nn.Linear(30_000, 20_000, bias=False)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(net, (torch.ones(1, 30_000),), external_data=False)
    assert [finding.rule.id for finding in failed.value.log.findings] == ["OXP5001"]


def test_llama_in_shards(tmp_path: pathlib.Path) -> None:
    """Rotary frequencies are in no state dict; weights are in several files."""
    import onnxruntime as ort
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=300,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    eager = LlamaForCausalLM(config).eval()
    eager.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    with onnxplain.enable_fake_mode():
        model = LlamaForCausalLM(config).eval()
    shapes = {"input_ids": {0: "batch", 1: "length"}, "use_cache": None}
    example = {"input_ids": torch.ones(2, 8, dtype=torch.int64), "use_cache": False}
    program = onnxplain.export(model, kwargs=example, dynamic_shapes=shapes)
    program.apply_weights(tmp_path / "model.safetensors.index.json")
    ids = torch.randint(0, 300, (3, 11))
    want = eager(input_ids=ids, use_cache=False).logits
    close(program(input_ids=ids, use_cache=False)[0], want)
    for name in ("reference", "copy"):
        program.save(tmp_path / f"{name}.onnx", weights=name)  # type: ignore[arg-type]
        onnx.checker.check_model(tmp_path / f"{name}.onnx", full_check=True)
        session = ort.InferenceSession(tmp_path / f"{name}.onnx", providers=["CPUExecutionProvider"])
        close(torch.from_numpy(session.run(None, {"input_ids": ids.numpy()})[0]), want)
    weights = sum(each.numel() * 4 for each in eager.parameters())
    assert (tmp_path / "reference.onnx").stat().st_size < weights < (tmp_path / "copy.onnx").stat().st_size


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="peak memory is read as Linux tells it")
def test_a_large_llama(tmp_path: pathlib.Path) -> None:
    # NOTE: a tenth of the layers of the one with 70 B parameters, which `python -m benchmarks.llama` exports.
    steps = llama.export(tmp_path, layers=8)
    assert any(step.startswith("8.9 B parameters") for step in steps)
    assert max(peak for _, _, peak in steps.values()) < 3000
    hollow, referring = (onnx.load(tmp_path / name, load_external_data=False).graph for name in ("llama.onnx", "referring.onnx"))
    weights = {each.name: each.type.tensor_type for each in hollow.input}
    assert len(weights) == 1 + 3 + 8 * 9
    assert [dim.dim_value for dim in weights["lm_head.weight"].shape.dim] == [128256, 8192]
    outside = {each.name: {entry.key: entry.value for entry in each.external_data} for each in referring.initializer if each.external_data}
    assert outside.keys() == weights.keys() - {"input_ids"}
    assert sum(int(each["length"]) for each in outside.values()) > 17 * 10**9
    assert {each["location"] for each in outside.values()} == {"llama.safetensors"}


_STREAM = """
import pathlib, re, sys
import torch
from torch import nn
import onnxplain

layers = int(sys.argv[1])

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2048, 2048) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return x

def peak():
    return int(re.search("VmHWM:\\\\s+(\\\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024

with onnxplain.enable_fake_mode():
    net = Net().eval()
program = onnxplain.export(net, (torch.ones(1, 2, 2048),))
for how in ("reference", "copy"):
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    program.apply_weights(f"{layers}.safetensors")
    program.save(f"{layers}.{how}.onnx", weights=how)
    print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc/self/clear_refs").exists(), reason="peak memory is read as Linux tells it")
def test_memory_does_not_grow_with_the_weights(tmp_path: pathlib.Path) -> None:
    import onnxruntime as ort
    from safetensors.torch import save_file

    grown: dict[tuple[int, str], float] = {}
    for layers in (2, 14):
        state = {}
        for index in range(layers):
            state[f"layers.{index}.weight"] = torch.randn(2048, 2048) / 45
            state[f"layers.{index}.bias"] = torch.randn(2048) / 45
        save_file(state, tmp_path / f"{layers}.safetensors")
        x = want = torch.randn(1, 2, 2048)
        for index in range(layers):
            want = nn.functional.linear(want, state[f"layers.{index}.weight"], state[f"layers.{index}.bias"]).tanh()
        command = [sys.executable, "-c", _STREAM, str(layers)]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True).stdout
        for how, growth in zip(("reference", "copy"), shown.split(), strict=True):
            grown[layers, how] = float(growth)
            saved = tmp_path / f"{layers}.{how}.onnx"
            got = ort.InferenceSession(saved, providers=["CPUExecutionProvider"]).run(None, {"x": x.numpy()})[0]
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
        size = (tmp_path / f"{layers}.safetensors").stat().st_size
        assert (tmp_path / f"{layers}.reference.onnx").stat().st_size < MiB
        assert (tmp_path / f"{layers}.copy.onnx").stat().st_size > 0.99 * size
    # The large one has 224 MiB of weights, 192 more than the small one.
    assert all(each < 100 for each in grown.values()), grown
    assert grown[14, "copy"] - grown[2, "copy"] < 40, grown


class Packs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 6, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.layer(rows)[0], batch_first=True)[0]


class Spectra(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        signal = self.layer(x).flatten(1)
        return torch.stft(signal, 8, window=torch.hann_window(8), return_complex=True).abs().sum((1, 2)) + lengths


@pytest.mark.parametrize("model", [Packs, Spectra])
def test_dynamic_sizes_within_the_mode(model: type[nn.Module], tmp_path: pathlib.Path) -> None:
    with onnxplain.enable_fake_mode():
        dims = ({0: "batch", 1: "times"}, {0: "batch"})
        program = onnxplain.export(model(), (torch.randn(2, 5, 8), torch.tensor([5, 3])), dynamic_shapes=dims)
    known = model()
    program.save(tmp_path / "model.onnx", model_state=known.state_dict())
    given = (torch.randn(3, 7, 8), torch.tensor([2, 7, 4]))
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (got,) = session.run(None, {each.name: value.numpy() for each, value in zip(session.get_inputs(), given, strict=True)})
    close(torch.from_numpy(got), known(*given))


class Truncated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        nn.init.trunc_normal_(self.layer.weight, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def test_weights_without_data_are_not_drawn_again_until_they_fit() -> None:
    with onnxplain.enable_fake_mode():
        model, real = Truncated(), nn.init.trunc_normal_(torch.full((100,), 9.0))
    assert isinstance(model.layer.weight, FakeTensor)
    assert bool((real.abs() <= 2).all())
    assert bool((nn.init.trunc_normal_(torch.full((100,), 9.0)).abs() <= 2).all())


class Written(nn.Module):
    """Writes to a view of a view, for which the program is traced once more."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        y.as_strided((2, 2), (8, 1)).add_(1)
        return y


def test_a_program_that_is_traced_again_within_the_mode(tmp_path: pathlib.Path) -> None:
    with onnxplain.enable_fake_mode():
        program = onnxplain.export(Written(), (torch.randn(2, 8),))
        assert isinstance(nn.Linear(2, 2).weight, FakeTensor)
    known, x = Written(), torch.randn(2, 8)
    program.save(tmp_path / "model.onnx", model_state=known.state_dict())
    (got,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {program.model.graph.inputs[0].name: x.numpy()})
    close(torch.from_numpy(got), known(x))
