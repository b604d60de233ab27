"""Weights from files: which are read, which are refused, and how saved models refer to them."""

from __future__ import annotations

import io
import json
import os
import pathlib
import struct
import zipfile
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import weighted_net
from safetensors.torch import save_file
from torch import nn

import onnxplain


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


X = torch.randn(2, 3, 6)


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def program() -> onnxplain.ONNXProgram:
    with onnxplain.enable_fake_mode():
        fake = Net().eval()
    return onnxplain.export(fake, (X,))


def as_safetensors(net: nn.Module, folder: pathlib.Path) -> pathlib.Path:
    save_file(net.state_dict(), folder / "net.safetensors")
    return folder / "net.safetensors"


def as_shards(net: nn.Module, folder: pathlib.Path) -> pathlib.Path:
    places = {}
    for index, (name, tensor) in enumerate(net.state_dict().items()):
        places[name] = f"net-{index}.safetensors"
        save_file({name: tensor}, folder / places[name])
    index_path = folder / "net.safetensors.index.json"
    index_path.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index_path


def as_torch(net: nn.Module, folder: pathlib.Path) -> pathlib.Path:
    torch.save(net.state_dict(), folder / "net.pt")
    return folder / "net.pt"


FORMATS = {"safetensors": as_safetensors, "shards": as_shards, "torch": as_torch}


def run(path: pathlib.Path) -> torch.Tensor:
    import onnxruntime as ort

    onnx.checker.check_model(path, full_check=True)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"x": X.numpy()})[0])


@pytest.mark.parametrize("how", ["copy", "reference"])
@pytest.mark.parametrize("save", FORMATS.values(), ids=FORMATS)
def test_formats(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram, save: Any, how: Any) -> None:
    source = save(net, tmp_path)
    program.apply_weights(source)
    (tmp_path / "older.onnx").write_text("older")
    program.save(tmp_path / "older.onnx", weights=how)
    torch.testing.assert_close(run(tmp_path / "older.onnx"), net(X).detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(program(X)[0], net(X).detach(), rtol=1e-5, atol=1e-5)
    saved = onnx.load(tmp_path / "older.onnx", load_external_data=False)
    outside = [each for each in saved.graph.initializer if each.external_data]
    assert len(outside) == (3 if how == "reference" else 0)
    for each in outside:
        facts = {entry.key: entry.value for entry in each.external_data}
        assert sorted(facts) == ["length", "location", "offset"]
        with (tmp_path / facts["location"]).open("rb") as file:
            file.seek(int(facts["offset"]))
            data = np.frombuffer(file.read(int(facts["length"])), np.float32)
        np.testing.assert_array_equal(data, net.state_dict()[each.name].numpy().reshape(-1))


def test_views_of_one_storage(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram) -> None:
    """A view that torch.save wrote is read as a view, but is not contiguous in the file."""
    state = net.state_dict()
    state["second.weight"] = state["second.weight"].T.contiguous().T
    both = torch.cat([torch.zeros(5), state["first.bias"]])
    state["first.bias"] = both[5:]
    torch.save(state, tmp_path / "net.pt")
    program.apply_weights(tmp_path / "net.pt")
    torch.testing.assert_close(program(X)[0], net(X).detach(), rtol=1e-5, atol=1e-5)
    program.save(tmp_path / "m.onnx")
    torch.testing.assert_close(run(tmp_path / "m.onnx"), net(X).detach(), rtol=1e-5, atol=1e-5)
    with pytest.raises(onnxplain.InvalidArgument, match=r"second\.weight"):
        program.save(tmp_path / "other.onnx", weights="reference")
    assert not (tmp_path / "other.onnx").exists()


def test_dtypes(tmp_path: pathlib.Path) -> None:
    dtypes = [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool]

    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for index, dtype in enumerate([*dtypes, torch.complex64]):
                self.register_buffer(f"b{index}", torch.zeros(3, 2, dtype=dtype))

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [x + (each.real if each.is_complex() else each.float()) for each in self.buffers()]

    with onnxplain.enable_fake_mode():
        net = Sum()
    state = {f"b{index}": torch.randint(0, 2, (3, 2)).to(dtype) for index, dtype in enumerate(dtypes)}
    state["b9"] = torch.randn(3, 2, dtype=torch.complex64)
    program = onnxplain.export(net, (torch.zeros(3, 2),))
    torch.save(state, tmp_path / "net.pt")
    save_file(state, tmp_path / "net.safetensors")
    for source in (state, tmp_path / "net.pt", tmp_path / "net.safetensors"):
        program.apply_weights({name: torch.zeros_like(each) for name, each in state.items()})
        program.apply_weights(source)
        for got, want in zip(program(torch.zeros(3, 2)), state.values(), strict=True):
            torch.testing.assert_close(got, want.real.float())


class Empty(nn.Module):
    """A weight without elements, and others."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(0, 6))
        self.weight = nn.Parameter(torch.randn(6))
        self.scalar = nn.Parameter(torch.tensor(2.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.nothing, x[0] * self.weight]) * self.scalar


@pytest.mark.parametrize("external", [True, False])
@pytest.mark.parametrize("save", [as_safetensors, as_torch])
def test_weights_without_elements_and_dims(tmp_path: pathlib.Path, save: Any, external: bool) -> None:
    net = Empty()
    with onnxplain.enable_fake_mode():
        fake = Empty()
    program = onnxplain.export(fake, (X,))
    program.apply_weights(save(net, tmp_path))
    torch.testing.assert_close(program(X)[0], net(X).detach())
    program.save(tmp_path / "m.onnx", external_data=external)
    torch.testing.assert_close(run(tmp_path / "m.onnx"), net(X).detach())


def test_weights_from_memory(tmp_path: pathlib.Path) -> None:
    net = Empty()
    with onnxplain.enable_fake_mode():
        fake = Empty()
    program = onnxplain.export(fake, (X,))
    program.save(tmp_path / "hollow.onnx")
    assert [each.name for each in onnx.load(tmp_path / "hollow.onnx").graph.input] == ["x", "nothing", "weight", "scalar"]
    program.apply_weights(net.state_dict())
    program.save(tmp_path / "m.onnx")
    torch.testing.assert_close(run(tmp_path / "m.onnx"), net(X).detach())


@pytest.mark.parametrize("padding", range(4))
def test_data_may_begin_anywhere(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram, padding: int) -> None:
    """Only the safetensors library aligns the data."""
    path = as_safetensors(net, tmp_path)
    header(path, lambda all_: all_.update(__metadata__={"padding": " " * padding}))
    program.apply_weights(path)
    torch.testing.assert_close(program(X)[0], net(X).detach(), rtol=1e-5, atol=1e-5)
    program.save(tmp_path / "m.onnx")
    torch.testing.assert_close(run(tmp_path / "m.onnx"), net(X).detach(), rtol=1e-5, atol=1e-5)


def test_tied_weights_of_a_file(tmp_path: pathlib.Path) -> None:
    net = weighted_net.real(1)
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    other = {**state, "out.weight": state["out.weight"] + 1}
    program = weighted_net.exported()
    torch.save(net.state_dict(), tmp_path / "one.pt")
    for name, entries in {"equal": state, "different": other}.items():
        torch.save(entries, tmp_path / f"{name}.pt")
        save_file(entries, tmp_path / f"{name}.safetensors")
    for name in ("different.pt", "different.safetensors"):
        with pytest.raises(onnxplain.InvalidArgument, match=r"out\.weight"):
            program.apply_weights(tmp_path / name)
    for name in ("one.pt", "equal.pt", "equal.safetensors"):
        program.apply_weights(tmp_path / name)
        weighted_net.close(program(weighted_net.IDS)[0], net(weighted_net.IDS))


class Short(io.FileIO):
    """A file whose data is gone when it is read."""

    def read(self, size: int | None = -1) -> bytes:
        return b""


def test_a_file_that_changes_while_it_is_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, net: Net, program: onnxplain.ONNXProgram
) -> None:
    path = as_safetensors(net, tmp_path)
    program.apply_weights(path)
    real_open = pathlib.Path.open

    def shortened(file: pathlib.Path, *args: Any, **options: Any) -> Any:
        return Short(file) if file == path else real_open(file, *args, **options)

    def refused(file: pathlib.Path, *args: Any, **options: Any) -> Any:
        if file == path:
            raise PermissionError(13, "Permission denied")
        return real_open(file, *args, **options)

    for opened in (shortened, refused):
        with monkeypatch.context() as patch:
            patch.setattr(pathlib.Path, "open", opened)
            with pytest.raises(onnxplain.InvalidArgument, match=r"state_dict.*net\.safetensors"):
                program.save(tmp_path / "m.onnx", external_data=True)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_large_weights_are_copied_from_their_file(tmp_path: pathlib.Path) -> None:
    """In blocks of 4 MiB, the last of which is shorter."""
    net = nn.Linear(1100, 1000, bias=False)
    with onnxplain.enable_fake_mode():
        fake = nn.Linear(1100, 1000, bias=False)
    program = onnxplain.export(fake, (torch.ones(1, 1100),), optimize=False)
    program.apply_weights(as_safetensors(net, tmp_path))
    program.save(tmp_path / "m.onnx")
    (stored,) = (each for each in onnx.load(tmp_path / "m.onnx").graph.initializer if each.name == "weight")
    assert stored.raw_data == net.weight.detach().numpy().tobytes()


Spoiled = Callable[[pathlib.Path], object]


def header(path: pathlib.Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the header of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    content = json.loads(data[8 : 8 + length])
    change(content)
    text = json.dumps(content).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def cut(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


BROKEN: dict[str, tuple[str, Spoiled]] = {
    "no file": ("net.safetensors", lambda path: path.unlink()),
    "a folder": ("net.safetensors", lambda path: (path.unlink(), path.mkdir())),
    "empty": ("net.safetensors", lambda path: path.write_bytes(b"")),
    "no header": ("net.safetensors", lambda path: path.write_bytes(b"PK\3\4" + bytes(60))),
    "a header of an exabyte": ("net.safetensors", lambda path: path.write_bytes(struct.pack("<Q", 2**60) + bytes(60))),
    "a header that is no object": ("net.safetensors", lambda path: path.write_bytes(struct.pack("<Q", 2) + b"[]")),
    "deeply nested": ("net.safetensors", lambda path: path.write_bytes(struct.pack("<Q", 200_000) + b"[" * 200_000)),
    "truncated": ("net.safetensors", cut),
    "negative offsets": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(data_offsets=[-32, 0]))),
    "overlapping": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(data_offsets=[4, 36]))),
    "too short for its shape": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(shape=[9]))),
    "negative sizes": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(shape=[-8]))),
    "sizes that are no numbers": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(shape="8"))),
    "another dtype": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(dtype="I32"))),
    "no dtype of torch": ("net.safetensors", lambda path: header(path, lambda all_: all_["first.bias"].update(dtype="F6"))),
    "entries that are no objects": ("net.safetensors", lambda path: header(path, lambda all_: all_.update({"first.bias": 3}))),
    "no torch file": ("net.pt", lambda path: path.write_bytes(bytes(100))),
    "a truncated torch file": ("net.pt", cut),
    "a view beyond its storage": ("net.pt", lambda path: lengthen(path)),
    "a list": ("net.pt", lambda path: torch.save([torch.ones(1)], path)),
    "a training checkpoint": ("net.pt", lambda path: torch.save({"epoch": 3, "model": {}}, path)),
    "a whole module": ("net.pt", lambda path: torch.save(Net(), path)),
    "an index of nothing": ("net.safetensors.index.json", lambda path: path.write_text("{}")),
    "an index that is no JSON": ("net.safetensors.index.json", lambda path: path.write_text("{")),
    "a place that is no name": ("net.safetensors.index.json", lambda path: place(path, 3)),
    "no places": ("net.safetensors.index.json", lambda path: path.write_text(json.dumps({"weight_map": ["net-0.safetensors"]}))),
    "a shard that is not there": ("net.safetensors.index.json", lambda path: (path.parent / "net-1.safetensors").unlink()),
    "a shard without its weight": (
        "net.safetensors.index.json",
        lambda path: save_file({"other": torch.ones(1)}, path.parent / "net-1.safetensors"),
    ),
    "a shard elsewhere": ("net.safetensors.index.json", lambda path: move_shard(path)),
}


def lengthen(path: pathlib.Path) -> None:
    """Claims that a weight of a torch file has more elements than the file."""
    torch.save({**Net().state_dict(), "first.bias": torch.zeros(300)}, path)
    with zipfile.ZipFile(path) as file:
        content = {entry.filename: file.read(entry) for entry in file.infolist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in content.items():
            file.writestr(
                name, data.replace(struct.pack("<cH", b"M", 300), struct.pack("<cH", b"M", 60_000)) if name.endswith(".pkl") else data
            )


def place(index: pathlib.Path, where: object) -> None:
    """Names another place for one of the weights."""
    content = json.loads(index.read_text())
    content["weight_map"]["first.bias"] = where
    index.write_text(json.dumps(content))


def move_shard(index: pathlib.Path) -> None:
    """To the folder above, where an index must not lead."""
    shard = index.parent / "net-1.safetensors"
    shard.replace(index.parent.parent / shard.name)
    index.write_text(index.read_text().replace("net-1", "../net-1"))


@pytest.mark.parametrize(("name", "spoil"), BROKEN.values(), ids=BROKEN)
def test_broken_files(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram, name: str, spoil: Spoiled) -> None:
    save = {".pt": as_torch, ".json": as_shards, ".safetensors": as_safetensors}[pathlib.Path(name).suffix]
    path = save(net, tmp_path)
    assert path.name == name
    spoil(path)
    with pytest.raises(onnxplain.InvalidArgument, match="state_dict"):
        program.apply_weights(path)
    with pytest.raises(onnxplain.InvalidArgument, match="no data"):
        program(X)


@pytest.mark.parametrize(
    ("error", "reason"), [(RuntimeError("a reason, injected\nand more"), "a reason, injected"), (EOFError(), "EOFError")]
)
def test_why_torch_does_not_load_a_file_is_told(
    tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setattr(torch, "load", mock.Mock(side_effect=error))
    with pytest.raises(onnxplain.InvalidArgument, match=reason):
        program.apply_weights(as_torch(net, tmp_path))


def test_a_header_ends_within_its_file(tmp_path: pathlib.Path, program: onnxplain.ONNXProgram) -> None:
    path = tmp_path / "net.safetensors"
    for length, fits in ((8, True), (9, False)):
        path.write_bytes(struct.pack("<Q", length) + b"{}      ")
        if fits:
            program.apply_weights(path, strict=False)
        else:
            with pytest.raises(onnxplain.InvalidArgument, match="state_dict"):
                program.apply_weights(path, strict=False)


@pytest.mark.parametrize("change", ["shorter", "other", "gone", "pipe"])
def test_files_that_change_are_not_believed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, net: Net, program: onnxplain.ONNXProgram, change: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = as_safetensors(net, tmp_path)
    program.apply_weights(path.name)
    (tmp_path / "within").mkdir()
    monkeypatch.chdir(tmp_path / "within")
    torch.testing.assert_close(program(X)[0], net(X).detach(), rtol=1e-5, atol=1e-5)
    program.release()
    if change == "shorter":
        cut(path)
    elif change == "other":
        save_file({**net.state_dict(), "more": torch.ones(3)}, path)
    else:
        path.unlink()
        if change == "pipe":
            os.mkfifo(path)
    uses: list[Callable[[], object]] = [
        lambda: program.save(tmp_path / "m.onnx"),
        lambda: program.save(tmp_path / "m.onnx", weights="reference"),
        lambda: program(X),
        lambda: program.call_reference(X),
        lambda: program.model_proto,
        lambda: program.initialize_inference_session(),
    ]
    for use in uses:
        with pytest.raises(onnxplain.InvalidArgument, match=r"net\.safetensors"):
            use()
    program.save(tmp_path / "hollow.onnx", include_initializers=False)
    assert not (tmp_path / "m.onnx").exists()
    program.apply_weights(net.state_dict())
    torch.testing.assert_close(program(X)[0], net(X).detach(), rtol=1e-5, atol=1e-5)


def test_a_missing_shard_is_named(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram) -> None:
    path = as_shards(net, tmp_path)
    (tmp_path / "net-1.safetensors").unlink()
    with pytest.raises(onnxplain.InvalidArgument, match=r"net-1\.safetensors"):
        program.apply_weights(path)


@pytest.mark.parametrize("path", ["a\0b.safetensors", "a" * 300 + ".safetensors", "a\0b.pt", "a\0b.json"])
def test_paths_that_no_file_has(program: onnxplain.ONNXProgram, path: str) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match="state_dict") as caught:
        program.apply_weights(path)
    cause = caught.value.__cause__
    assert str(getattr(cause, "strerror", None) or cause) in str(caught.value)


@pytest.mark.parametrize("kind", ["sparse", "nested"])
def test_tensors_of_other_layouts(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram, kind: str) -> None:
    state: dict[str, Any] = dict(net.state_dict())
    weight = state["second.weight"]
    state["second.weight"] = weight.to_sparse() if kind == "sparse" else torch.nested.nested_tensor([weight[0], weight[1]])
    torch.save(state, tmp_path / "net.pt")
    with pytest.raises(onnxplain.InvalidArgument, match="state_dict"):
        program.apply_weights(tmp_path / "net.pt")


def test_strict_is_a_bool(net: Net, program: onnxplain.ONNXProgram) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match="strict"):
        program.apply_weights(net.state_dict(), strict="no")  # type: ignore[arg-type]


def test_weights_are_not_overwritten(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram) -> None:
    path = as_safetensors(net, tmp_path)
    program.apply_weights(path)
    before = path.read_bytes()
    with pytest.raises(onnxplain.InvalidArgument, match="destination"):
        program.save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["beside", "within", "elsewhere", "symbolic link", "hard link"])
def test_where_a_model_may_refer_to(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram, place: str) -> None:
    folder = tmp_path / "model"
    (folder / "weights").mkdir(parents=True)
    source = as_safetensors(net, {"beside": folder, "within": folder / "weights"}.get(place, tmp_path))
    if place == "symbolic link":
        (folder / "linked.safetensors").symlink_to(source)
        source = folder / "linked.safetensors"
    elif place == "hard link":
        os.link(source, folder / "linked.safetensors")
        source = folder / "linked.safetensors"
    program.apply_weights(source)
    if place in ("beside", "within"):
        program.save(folder / "m.onnx", weights="reference")
        torch.testing.assert_close(run(folder / "m.onnx"), net(X).detach(), rtol=1e-5, atol=1e-5)
        return
    with pytest.raises(onnxplain.InvalidArgument, match="weights"):
        program.save(folder / "m.onnx", weights="reference")
    assert not (folder / "m.onnx").exists()
    program.save(folder / "m.onnx")
    torch.testing.assert_close(run(folder / "m.onnx"), net(X).detach(), rtol=1e-5, atol=1e-5)


def test_referring_with_weights_from_memory(tmp_path: pathlib.Path, net: Net, program: onnxplain.ONNXProgram) -> None:
    """Weights that are in no file are written into the model, or beside it."""
    program.apply_weights(net.state_dict())
    with pytest.raises(onnxplain.InvalidArgument, match="weights"):
        program.save(tmp_path / "m.onnx", weights="reference")
    program.apply_weights(as_safetensors(net, tmp_path))
    net.second.weight = nn.Parameter(torch.ones(4, 8) * 3)
    program.apply_weights({"second.weight": net.second.weight}, strict=False)
    for external in (None, True):
        program.save(tmp_path / "m.onnx", weights="reference", external_data=external)
        torch.testing.assert_close(run(tmp_path / "m.onnx"), net(X).detach(), rtol=1e-5, atol=1e-5)
    with pytest.raises(onnxplain.InvalidArgument, match="external_data"):
        program.save(tmp_path / "m.onnx", weights="reference", external_data=False)


def test_referring_to_a_part_of_what_a_weight_is_computed_from(tmp_path: pathlib.Path) -> None:
    """The graph computes the weight then, and the part that a file has is not copied."""
    net, x = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).eval(), torch.randn(1, 2, 4, 4)
    program = onnxplain.export(net, (x,))
    program.apply_weights(as_safetensors(net, tmp_path))
    net[1].weight = nn.Parameter(torch.tensor([2.0, 3.0, 4.0]))
    program.apply_weights({"1.weight": net[1].weight}, strict=False)
    program.save(tmp_path / "m.onnx", weights="reference")
    stored = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
    assert "0.weight" in {each.name for each in stored if each.external_data}
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), net(x).detach(), rtol=1e-5, atol=1e-5)


class Buffers(nn.Module):
    """A weight, a buffer that state dicts have, and one that they do not have."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6))
        self.register_buffer("kept", torch.randn(6))
        self.register_buffer("derived", torch.arange(6.0), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.kept * self.derived


def test_a_model_without_weights_keeps_what_no_state_dict_has(tmp_path: pathlib.Path) -> None:
    net = Buffers()
    program = onnxplain.export(net, (X,), optimize=False)
    program.save(tmp_path / "hollow.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    graph = onnx.load(tmp_path / "hollow.onnx").graph
    assert [each.name for each in graph.input] == ["x", "weight", "kept"]
    assert "derived" in [each.name for each in graph.initializer]
    torch.testing.assert_close(program(X)[0], net(X).detach())


def test_a_model_without_weights_leaves_out_what_has_no_data(tmp_path: pathlib.Path) -> None:
    with onnxplain.enable_fake_mode():
        net = Buffers()
        net.register_buffer("derived", torch.arange(6.0) + net.weight.detach(), persistent=False)
    program = onnxplain.export(net, (X,), optimize=False)
    program.save(tmp_path / "hollow.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    assert [each.name for each in onnx.load(tmp_path / "hollow.onnx").graph.input] == ["x", "weight", "kept", "derived"]
