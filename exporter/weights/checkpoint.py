"""Reads checkpoints lazily: in which file each tensor lies, and where."""

from __future__ import annotations

import json
import math
import pathlib
import pickle
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import torch

from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals.fake_tensors import FakeTensorMode, checkpoint_offset

from .stored import Stored, version_of

_LARGEST_HEADER = 100_000_000
"""The largest header of a safetensors file, in bytes; the limit of the safetensors library."""

_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "U16": torch.uint16,
    "I16": torch.int16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "U32": torch.uint32,
    "I32": torch.int32,
    "F32": torch.float32,
    "U64": torch.uint64,
    "I64": torch.int64,
    "F64": torch.float64,
    "C64": torch.complex64,
}
"""The torch dtype for each dtype of safetensors (huggingface/safetensors, README, Format)."""


def read(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    """The tensors of a checkpoint by their names.

    Args:
        argument: The argument that `path` was given for; exceptions name it.
        path: A safetensors file, the index of several, or a state dict that `torch.save` wrote.

    Raises:
        InvalidArgument: The file does not exist, is none of these, or is damaged.
    """
    try:
        # NOTE: the data is read later, perhaps when the current folder is another one.
        whole = path.absolute()
        if path.suffix == ".json":
            return _of_index(argument, whole)
        if path.suffix == ".safetensors":
            return _of_safetensors(argument, whole)
        return _of_torch(argument, whole)
    except (OSError, ValueError) as error:
        # NOTE: InvalidArgument is a ValueError. Any other ValueError comes from a path that no file can have.
        if isinstance(error, InvalidArgument):
            raise
        shown, reason = getattr(error, "filename", None) or path, getattr(error, "strerror", None) or error
        raise InvalidArgument(f"{argument}: expected a file with weights, got {str(shown)!r} ({reason})") from error


def _of_index(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    index = _json(argument, path, path.read_bytes())
    places = index.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(each, str) for each in places.values()):
        raise _damaged(argument, path, "its 'weight_map' does not name a file for each weight")
    folder = path.parent
    shards: dict[str, Mapping[str, Stored]] = {}
    for file in dict.fromkeys(places.values()):
        # NOTE: the index may come from somebody else. It must not lead out of its folder.
        if pathlib.PurePath(file).name != file:
            raise _damaged(argument, path, f"{file!r} is not the name of a file beside it")
        shards[file] = _of_safetensors(argument, folder / file)
    missing = [name for name, file in places.items() if name not in shards[file]]
    if missing:
        raise _damaged(argument, path, f"{places[missing[0]]!r} has no {missing[0]!r}")
    return {name: shards[file][name] for name, file in places.items()}


def _of_safetensors(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    with path.open("rb") as file:
        version = version_of(file)
        length = int.from_bytes(file.read(8), "little")
        # NOTE: the length is checked before the header is read, because a damaged file may ask for any number of bytes.
        if length > min(_LARGEST_HEADER, version[0] - 8):
            raise _damaged(argument, path, "its header is longer than the file")
        header = _json(argument, path, file.read(length))
    header.pop("__metadata__", None)
    stored = {name: _entry(argument, path, version, 8 + length, name, entry) for name, entry in header.items()}
    end = 8 + length
    for name, each in sorted(stored.items(), key=lambda item: (item[1].offset, item[1].nbytes)):
        if each.offset < end:
            raise _damaged(argument, path, f"the data of {name!r} overlaps that of another tensor")
        end = each.offset + each.nbytes
    return stored


def _entry(argument: str, path: pathlib.Path, version: tuple[int, int], start: int, name: str, entry: Any) -> Stored:
    """One tensor of a safetensors file. The entry may be wrong: the file's size decides what can be there."""
    described = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = _DTYPES.get(str(described.get("dtype"))), described.get("shape"), described.get("data_offsets")
    if dtype is None:
        raise _damaged(argument, path, f"{name!r} has the dtype {described.get('dtype')!r}, which torch does not have")
    if not _sizes(shape) or not _sizes(offsets) or len(offsets) != 2:
        raise _damaged(argument, path, f"{name!r} has no valid shape or offsets")
    begin, end = offsets
    size = math.prod(shape) * dtype.itemsize
    if end - begin != size:
        raise _damaged(argument, path, f"{name!r} has {end - begin} bytes, but its dtype and shape need {size}")
    if start + end > version[0]:
        raise _damaged(argument, path, f"it ends within {name!r}: it has {version[0]} bytes instead of at least {start + end}")
    return Stored(path, start + begin, dtype, tuple(shape), _stride(shape), version)


def _of_torch(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    with path.open("rb") as file:
        version = version_of(file)
        if not zipfile.is_zipfile(file):
            raise _damaged(argument, path, "it is neither a safetensors file, nor an index of such files, nor a zip file of torch.save")
        file.seek(0)
        try:
            # NOTE: torch.load gives fake tensors their place in the file and reads no data.
            with FakeTensorMode():
                state = torch.load(file, weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError) as error:
            # NOTE: torch colours its messages about pickles. Tensors of other layouts raise NotImplementedError, a RuntimeError.
            first = re.sub(r"\x1b\[\d*m", "", str(error)).strip().partition("\n")[0]
            raise _damaged(argument, path, first or type(error).__name__) from error
    if not isinstance(state, Mapping):
        raise _damaged(argument, path, f"it contains a {type(state).__name__} instead of a state dict")
    other = next((name for name, each in state.items() if not isinstance(each, torch.Tensor)), None)
    if other is not None:
        raise _damaged(argument, path, f"{other!r} is a {type(state[other]).__name__} instead of a tensor, so this is no state dict")
    stored = {}
    for name, each in state.items():
        plain = each.layout is torch.strided and not each.is_nested
        start = checkpoint_offset(each) if plain else None
        if start is None:
            raise _damaged(argument, path, f"{name!r} is not stored as plain numbers")
        offset = start + int(each.storage_offset()) * each.element_size()
        stored[name] = Stored(path, offset, each.dtype, tuple(each.shape), tuple(each.stride()), version)
        if offset + stored[name].nbytes > version[0]:
            raise _damaged(argument, path, f"it ends within {name!r}")
    return stored


def _json(argument: str, path: pathlib.Path, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(argument, path, "it contains invalid JSON") from error
    if not isinstance(content, dict):
        raise _damaged(argument, path, "its JSON is not an object")
    return content


def _sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def _stride(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _damaged(argument: str, path: pathlib.Path, why: str) -> InvalidArgument:
    return InvalidArgument(f"{argument}: expected a file with weights, got {str(path)!r}: {why}")
