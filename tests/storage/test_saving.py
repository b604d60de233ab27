"""`ONNXProgram.save`: the files that it writes, the arguments that it refuses, and that no file is half-written."""

from __future__ import annotations

import errno
import io
import itertools
import os
import pathlib
from typing import Any

import onnx
import pytest
import torch
from safetensors.torch import save_file
from weighted_net import IDS, close, exported, ran, real

import onnxplain
from onnxplain.storage import checked_folder


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("as_inputs", [True, False])
@pytest.mark.parametrize("external", [None, True, False])
def test_saved_with_weights(tmp_path: pathlib.Path, optimize: bool, as_inputs: bool, external: bool | None) -> None:
    program, net = exported(optimize=optimize), real()
    program.apply_weights(net.state_dict())
    program.save(tmp_path / "m.onnx", keep_initializers_as_inputs=as_inputs, external_data=external)
    assert (tmp_path / "m.onnx.data").exists() == (external is True)
    close(ran(tmp_path / "m.onnx"), net(IDS))
    graph = onnx.load(tmp_path / "m.onnx").graph
    inputs = {each.name for each in graph.input}
    # Whoever gives the weights has the original ones; only then does the graph compute the merged ones from them.
    assert (len(graph.node) > len(program.model.graph)) == (as_inputs and optimize)
    other = real(1).state_dict()
    if as_inputs:
        assert set(other) - inputs == {"out.weight", "unused.weight", "unused.bias", "norm.num_batches_tracked"}
        close(ran(tmp_path / "m.onnx", **other), real(1)(IDS))
    else:
        assert inputs == {"ids"}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("make", [exported, lambda **options: onnxplain.export(real(2), (IDS,), **options)], ids=["fake", "real"])
def test_saved_without_weights(tmp_path: pathlib.Path, make: Any, optimize: bool) -> None:
    program = make(optimize=optimize)
    before = [node.op_type for node in program.model.graph]
    program.save(tmp_path / "hollow.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    program.save(tmp_path / "bare.onnx", include_initializers=False)
    close(ran(tmp_path / "hollow.onnx", **real().state_dict()), real()(IDS))
    inputs, bare = ({each.name for each in onnx.load(tmp_path / name).graph.input} for name in ("hollow.onnx", "bare.onnx"))
    assert inputs >= {"ids", "table.weight", "conv.weight", "norm.running_mean", "scale"}
    assert "steps" not in inputs
    assert bare == {"ids"}
    assert before == [node.op_type for node in program.model.graph]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("destination", 3),
        ("destination", "."),
        ("destination", "no_such_folder/m.onnx"),
        ("destination", None),
        ("destination", "a\0b"),
        ("destination", "a" * 300),
        ("include_initializers", "no"),
        ("keep_initializers_as_inputs", None),
        ("external_data", "m.data"),
        ("weights", "move"),
    ],
)
def test_bad_arguments_of_save(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, argument: str, value: Any) -> None:
    monkeypatch.chdir(tmp_path)
    program = onnxplain.export(real(), (IDS,))
    with pytest.raises(onnxplain.InvalidArgument, match=argument) as refused:
        program.save(**{"destination": "m.onnx", argument: value})
    assert isinstance(refused.value, TypeError)
    assert not list(tmp_path.iterdir())


def test_to_a_file_that_is_open(tmp_path: pathlib.Path) -> None:
    program, net = onnxplain.export(real(), (IDS,)), real()
    with (tmp_path / "m.onnx").open("wb") as file:
        program.save(file)
    close(ran(tmp_path / "m.onnx"), net(IDS))
    memory = io.BytesIO()
    with pytest.raises(TypeError, match="destination"):
        program.save(memory, external_data=True)
    with pytest.raises(TypeError, match="destination"):
        program.save(io.StringIO())  # type: ignore[arg-type]
    with (tmp_path / "m.onnx").open("rb") as unwritable, pytest.raises(onnxplain.InvalidArgument, match="destination"):
        program.save(unwritable)
    assert not memory.getvalue()


class Refusing(io.BytesIO):
    def write(self, _: object) -> int:
        raise ValueError("not today")


def test_to_a_file_that_takes_nothing(tmp_path: pathlib.Path) -> None:
    program = onnxplain.export(real(), (IDS,))
    with (tmp_path / "m.onnx").open("wb") as closed:
        pass
    for file in (closed, Refusing()):
        with pytest.raises(onnxplain.InvalidArgument, match=r"^destination:"):
            program.save(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_only_files_are_replaced(tmp_path: pathlib.Path) -> None:
    program = onnxplain.export(real(), (IDS,))
    os.mkfifo(tmp_path / "pipe")
    for write in (program.save, program.save_diagnostics):
        with pytest.raises(onnxplain.InvalidArgument, match=r"^destination:"):
            write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_what_a_link_leads_to_is_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "older.onnx").write_text("older")
    (tmp_path / "m.onnx").symlink_to("older.onnx")
    onnxplain.export(real(), (IDS,)).save(tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx").is_symlink()
    close(ran(tmp_path / "older.onnx"), real()(IDS))
    close(ran(tmp_path / "m.onnx"), real()(IDS))


def test_no_external_data_without_weights(tmp_path: pathlib.Path) -> None:
    onnxplain.export(real(), (IDS,)).save(tmp_path / "m.onnx", include_initializers=False, external_data=True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_the_longest_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / f"{'a' * 250}.onnx"
    onnxplain.export(real(), (IDS,)).save(path)
    close(ran(path), real()(IDS))
    for name in ("a\0b", "a" * 300):
        with pytest.raises(onnxplain.InvalidArgument, match=r"^destination:"):
            onnxplain.export(real(), (IDS,)).save_diagnostics(tmp_path / name)


@pytest.mark.parametrize("external", [None, True])
def test_a_full_disk_leaves_what_was_there(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, external: bool | None) -> None:
    program = onnxplain.export(real(), (IDS,))
    (tmp_path / "m.onnx").write_text("older")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("onnxplain.weights.Weight.tofile", full)
        patch.setattr("onnxplain.weights.Computed.tofile", full)
        with pytest.raises(onnxplain.InvalidArgument, match=r"destination.*No space left"):
            program.save(tmp_path / "m.onnx", external_data=external)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert (tmp_path / "m.onnx").read_text() == "older"


@pytest.mark.skipif(not pathlib.Path("/sys").is_dir(), reason="the folder that nobody may write to is Linux's")
def test_a_folder_that_is_read_only() -> None:
    program = onnxplain.export(real(), (IDS,))
    with pytest.raises(onnxplain.InvalidArgument, match="destination"):
        program.save("/sys/m.onnx")
    with pytest.raises(onnxplain.InvalidArgument, match="destination"):
        program.save_diagnostics("/sys/m.sarif")


@pytest.mark.parametrize("external", [False, True])
def test_files_reach_the_disk_before_they_get_their_names(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, external: bool) -> None:
    done: list[tuple[str, str]] = []
    sync, replace = os.fsync, pathlib.Path.replace

    def synced(file: Any) -> None:
        done.append(("sync", pathlib.Path(f"/proc/self/fd/{file if isinstance(file, int) else file.fileno()}").resolve().name))
        sync(file)

    def replaced(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        done.append(("replace", target.name))
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(pathlib.Path, "replace", replaced)
    onnxplain.export(real(), (IDS,), tmp_path / "m.onnx", external_data=external)
    files = ["m.onnx.data", "m.onnx"] if external else ["m.onnx"]
    assert done == [*(("sync", name) for name in files), *(("replace", name) for name in files), ("sync", tmp_path.name)]


def test_a_folder_that_cannot_be_synced(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refuse(path: Any, *more: Any, **options: Any) -> int:
        if pathlib.Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_open(path, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    onnxplain.export(real(), (IDS,)).save(tmp_path / "m.onnx")
    close(ran(tmp_path / "m.onnx"), real()(IDS))


def test_external_data_comes_first_and_nothing_else_stays(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file of the weights cannot be renamed, the model's file is not renamed either."""
    replace = pathlib.Path.replace

    def refuse(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        if target.suffix == ".data":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return replace(source, target)

    (tmp_path / "m.onnx").write_text("older")
    monkeypatch.setattr(pathlib.Path, "replace", refuse)
    with pytest.raises(onnxplain.InvalidArgument, match="destination"):
        onnxplain.export(real(), (IDS,)).save(tmp_path / "m.onnx", external_data=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m.onnx", "older")]


class Mixed(torch.nn.Module):
    """Weights of 64, 65 and 300 elements of 4 bytes."""

    def __init__(self) -> None:
        super().__init__()
        for size in (64, 65, 300):
            self.register_buffer(f"of_{size}", torch.randn(size))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x + buffer.sum() for buffer in self.buffers()]


def test_only_weights_above_256_bytes_are_external(tmp_path: pathlib.Path) -> None:
    onnxplain.export(Mixed(), (torch.zeros(1),)).save(tmp_path / "m.onnx", external_data=True)
    saved = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert {each.name: bool(each.external_data) for each in saved.graph.initializer if each.name.startswith("of_")} == {
        "of_64": False,
        "of_65": True,
        "of_300": True,
    }


def test_a_model_of_small_weights_has_no_external_data(tmp_path: pathlib.Path) -> None:
    onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).save(tmp_path / "m.onnx", external_data=True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize(("limit", "external"), [(0, False), (-1, True)], ids=["at the limit", "above"])
def test_external_data_above_the_limit_of_a_message(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, limit: int, external: bool
) -> None:
    program = onnxplain.export(torch.nn.Linear(80, 4), (torch.ones(1, 80),))
    monkeypatch.setattr("onnxplain.weights.PROTOBUF_LIMIT", 4 * (80 * 4 + 4) + limit)
    if external:
        with pytest.raises(onnxplain.InvalidArgument, match="external_data"):
            program.save(tmp_path / "m.onnx", external_data=False)
        with pytest.raises(onnxplain.InvalidArgument, match="destination"):
            program.save(io.BytesIO())
        program.save(tmp_path / "bare.onnx", external_data=False, include_initializers=False)
        (tmp_path / "bare.onnx").unlink()
    else:
        program.save(io.BytesIO(), external_data=False)
    program.save(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").exists() == external


def test_a_model_is_saved_many_times(tmp_path: pathlib.Path) -> None:
    """Saving restores every change that it makes to the model."""
    program = onnxplain.export(real(), (IDS,))
    before = program.model_proto.SerializeToString()
    for include, as_inputs, external in itertools.product((True, False), (True, False), (True, False)):
        options = {"include_initializers": include, "keep_initializers_as_inputs": as_inputs, "external_data": external}
        program.save(tmp_path / "m.onnx", **options)  # type: ignore[arg-type]
        assert program.model_proto.SerializeToString() == before
        inputs = {each.name for each in onnx.load(tmp_path / "m.onnx").graph.input}
        assert ("conv.weight" in inputs) == as_inputs


def test_what_has_no_state_in_a_model_without_weights(tmp_path: pathlib.Path) -> None:
    """Constants of the code stay in the file, the weights of the state dict do not."""
    program = onnxplain.export(real(), (IDS,))
    program.save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert "steps" in {each.name for each in graph.initializer}
    assert not {each.name for each in graph.initializer} & set(real().state_dict())
    names = [each.name for each in graph.input][1:]
    state = [name for name, _ in (*real().named_parameters(), *real().named_buffers())]
    assert names == [name for name in state if name in names]


def test_weights_stay_in_the_checkpoint(tmp_path: pathlib.Path) -> None:
    checkpoint = tmp_path / "weights" / "net.safetensors"
    checkpoint.parent.mkdir()
    save_file({name: tensor.clone() for name, tensor in real().state_dict().items()}, checkpoint)
    program = exported()
    program.apply_weights(checkpoint)
    program.save(tmp_path / "m.onnx", weights="reference")
    stored = {each.name: each for each in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer}
    places = {entry.value for entry in stored["table.weight"].external_data if entry.key == "location"}
    assert places == {"weights/net.safetensors"}
    close(ran(tmp_path / "m.onnx"), real()(IDS))
    (tmp_path / "second.safetensors").hardlink_to(checkpoint)
    with pytest.raises(onnxplain.InvalidArgument):
        program.save(tmp_path / "m.onnx", weights="reference")


def test_a_folder_is_made(tmp_path: pathlib.Path) -> None:
    assert checked_folder("artifacts_dir", str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(onnxplain.InvalidArgument, match="artifacts_dir"):
        checked_folder("artifacts_dir", 3)
    (tmp_path / "file").write_text("a file")
    for path in (tmp_path / "file", tmp_path / "file" / "within", tmp_path / "a\0b", "/sys/folder"):
        with pytest.raises(onnxplain.InvalidArgument, match="artifacts_dir"):
            checked_folder("artifacts_dir", path)


def test_weights_that_lie_in_no_file_stay_in_the_model(tmp_path: pathlib.Path) -> None:
    layers = [torch.nn.Linear(8, 8) for _ in range(2)]
    checkpoint = tmp_path / "second.safetensors"
    save_file({f"1.{name}": tensor for name, tensor in layers[1].state_dict().items()}, checkpoint)
    with onnxplain.enable_fake_mode():
        model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(2)))
    program = onnxplain.export(model, (torch.ones(1, 8),))
    program.apply_weights({f"0.{name}": tensor for name, tensor in layers[0].state_dict().items()}, strict=False)
    program.apply_weights(checkpoint, strict=False)
    program.save(tmp_path / "m.onnx", weights="reference")
    stored = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
    assert {each.name for each in stored if each.external_data} == {"1.weight", "1.bias"}
    assert {each.name for each in stored if not each.external_data} == {"0.weight", "0.bias"}
    x = torch.randn(1, 8)
    close(ran(tmp_path / "m.onnx", input=x), torch.nn.Sequential(*layers)(x))


class Bytes(torch.nn.Module):
    """Weights of 60 to 300 bytes: fields of a message have lengths of one byte up to 127 bytes, and of two from 128 on."""

    def __init__(self) -> None:
        super().__init__()
        for size in (*range(60, 132), 300, 70_000):
            self.register_buffer(f"of_{size}", torch.full((size,), size % 256, dtype=torch.uint8))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x + buffer[-1] for buffer in self.buffers()]


def test_a_file_is_the_message_that_protobuf_writes(tmp_path: pathlib.Path) -> None:
    onnxplain.export(Bytes(), (torch.zeros(1, dtype=torch.uint8),), optimize=False).save(tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size == model.ByteSize()
    stored = {each.name: each.raw_data for each in model.graph.initializer if each.name.startswith("of_")}
    assert stored == {name: bytes(buffer.tolist()) for name, buffer in Bytes().named_buffers()}


class Nothing(torch.nn.Module):
    """A weight without elements, and two that are stored as views."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = torch.nn.Parameter(torch.zeros(0, 4))
        self.square = torch.nn.Parameter(torch.randn(4, 4))
        self.parts = torch.nn.Parameter(torch.randn(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.nothing, x @ self.square]) * self.parts.sum()


def test_which_weights_a_model_can_refer_to(tmp_path: pathlib.Path) -> None:
    net, x = Nothing(), torch.randn(1, 4)
    with onnxplain.enable_fake_mode():
        fake = Nothing()
    program = onnxplain.export(fake, (x,), optimize=False)
    with pytest.raises(onnxplain.InvalidArgument, match="weights"):
        program.save(tmp_path / "m.onnx", weights="reference")
    torch.save(net.state_dict(), tmp_path / "net.pt")
    program.apply_weights(tmp_path / "net.pt")
    program.save(tmp_path / "m.onnx", weights="reference")
    stored = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
    assert {each.name for each in stored if each.external_data} == {"square", "parts"}
    close(ran(tmp_path / "m.onnx", x=x), net(x))
    with pytest.raises(onnxplain.InvalidArgument, match="external_data"):
        program.save(tmp_path / "m.onnx", weights="reference", external_data=False)
    with pytest.raises(onnxplain.InvalidArgument, match="destination"):
        program.save(io.BytesIO(), weights="reference")
    (tmp_path / "within").mkdir()
    with pytest.raises(onnxplain.InvalidArgument, match=r"weights.*net\.pt"):
        program.save(tmp_path / "within" / "m.onnx", weights="reference")
    with torch.no_grad():
        turned = net.square.clone().T
    torch.save({**net.state_dict(), "square": turned}, tmp_path / "turned.pt")
    program.apply_weights(tmp_path / "turned.pt")
    with pytest.raises(onnxplain.InvalidArgument, match=r"weights.*square"):
        program.save(tmp_path / "m.onnx", weights="reference")
    # Leaving out the weights refers to none.
    program.save(tmp_path / "bare.onnx", weights="reference", include_initializers=False)
    assert {each.name for each in onnx.load(tmp_path / "bare.onnx").graph.initializer}.isdisjoint(net.state_dict())


def test_a_model_without_data_keeps_its_weights_as_inputs(tmp_path: pathlib.Path) -> None:
    program = exported()
    program.save(tmp_path / "m.onnx")
    close(ran(tmp_path / "m.onnx", **real().state_dict()), real()(IDS))
    with pytest.raises(onnxplain.InvalidArgument, match=r"include_initializers.*conv\.weight"):
        program.save(tmp_path / "other.onnx", include_initializers=True)
    program.apply_weights({"scale": torch.ones(8)}, strict=False)
    with pytest.raises(onnxplain.InvalidArgument, match=r"include_initializers.*conv\.weight"):
        program.save(tmp_path / "other.onnx")
    assert [each.name for each in tmp_path.iterdir()] == ["m.onnx"]


def test_a_file_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(onnxplain.InvalidArgument, match=r"destination.*No space left"):
        onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).save(Full())


def test_the_checkpoint_is_not_overwritten(tmp_path: pathlib.Path) -> None:
    checkpoint = tmp_path / "net.safetensors"
    save_file({name: tensor.clone() for name, tensor in real().state_dict().items()}, checkpoint)
    before = checkpoint.read_bytes()
    (tmp_path / "link.onnx.data").symlink_to(checkpoint)
    program = exported()
    program.apply_weights(checkpoint)
    for path in (checkpoint, tmp_path / "link.onnx"):
        with pytest.raises(onnxplain.InvalidArgument, match="destination"):
            program.save(path)
    assert checkpoint.read_bytes() == before
