"""Checkpoints that are read lazily: where each tensor lies in which file."""

from __future__ import annotations

import dataclasses
import json
import math
import mmap
import os
import pathlib
import pickle
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, TypeGuard

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from onnxplain.diagnostics import InvalidArgument

_BLOCK = 2**22
"""Bytes that are copied at once."""

_LARGEST_HEADER = 100_000_000
"""Bytes that the header of a safetensors file may have, as its own library has it."""

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
"""The dtypes of safetensors as torch's (huggingface/safetensors, README, Format)."""


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file.

    Attributes:
        path: The file.
        offset: Where its first element begins, in bytes.
        dtype: Its dtype.
        shape: Its sizes.
        stride: Elements between neighbours along each dim.
        version: The file's size and time when it was looked at: it must be the same when the data is read.
    """

    path: pathlib.Path
    offset: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    version: tuple[int, int]

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in the file in their order."""
        return self.like.is_contiguous()

    @property
    def like(self) -> torch.Tensor:
        """A tensor on the meta device with its dtype and layout."""
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device="meta")

    @property
    def nbytes(self) -> int:
        """Bytes from its first element to the end of its last."""
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True))
        return 0 if 0 in self.shape else (last + 1) * self.dtype.itemsize

    def tensor(self) -> torch.Tensor:
        """The data, mapped from the file: it takes memory where and while it is used."""
        if self.nbytes == 0:
            return torch.empty(self.shape, dtype=self.dtype)
        before = self.offset % mmap.ALLOCATIONGRANULARITY
        with self._open() as file:
            mapped = mmap.mmap(file.fileno(), before + self.nbytes, offset=self.offset - before, access=mmap.ACCESS_COPY)
        data = torch.frombuffer(mapped, dtype=torch.uint8, offset=before, count=self.nbytes)
        if before % self.dtype.itemsize:
            # NOTE: torch reads no tensor that is not aligned; a map begins at a page.
            data = data.clone()
        return data.view(self.dtype).as_strided(self.shape, self.stride)

    def write_to(self, file: BinaryIO) -> None:
        """Copies the data, which has to be contiguous, into another file, block by block."""
        left = self.nbytes
        with self._open() as source:
            source.seek(self.offset)
            while left:
                block = source.read(min(left, _BLOCK))
                if not block:
                    raise _changed(self.path, "a shorter one")
                file.write(block)
                left -= len(block)

    def as_real(self) -> Stored:
        """Complex numbers as pairs along a last dim; itself for all else."""
        if not self.dtype.is_complex:
            return self
        stride = (*(2 * each for each in self.stride), 1)
        return dataclasses.replace(self, dtype=self.dtype.to_real(), shape=(*self.shape, 2), stride=stride)

    def check(self) -> None:
        """Raises `InvalidArgument` if the file is not as it was when it was looked at."""
        self._open().close()

    def _open(self) -> BinaryIO:
        if not self.path.is_file():
            raise _changed(self.path, "none")
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise _changed(self.path, f"none ({error.strerror})") from error
        if _version(file) != self.version:
            file.close()
            raise _changed(self.path, "another one")
        return file


def read(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    """The tensors of a checkpoint by their names: a safetensors file, the index of several, or a state dict of `torch.save`.

    Raises:
        InvalidArgument: There is no such file, or it is none of these, or damaged; names `argument`.
    """
    try:
        # NOTE: files are read later, maybe from within another folder.
        whole = path.absolute()
        if path.suffix == ".json":
            return _of_index(argument, whole)
        if path.suffix == ".safetensors":
            return _of_safetensors(argument, whole)
        return _of_torch(argument, whole)
    except (OSError, ValueError) as error:
        # NOTE: an InvalidArgument is a ValueError; another one comes from a path that no file can have.
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
        # NOTE: an index is data of others; it must not lead out of its folder.
        if pathlib.PurePath(file).name != file:
            raise _damaged(argument, path, f"{file!r} is not the name of a file beside it")
        shards[file] = _of_safetensors(argument, folder / file)
    missing = [name for name, file in places.items() if name not in shards[file]]
    if missing:
        raise _damaged(argument, path, f"{places[missing[0]]!r} has no {missing[0]!r}")
    return {name: shards[file][name] for name, file in places.items()}


def _of_safetensors(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    with path.open("rb") as file:
        version = _version(file)
        length = int.from_bytes(file.read(8), "little")
        # NOTE: checked before it is read, as a damaged file may ask for any number of bytes.
        if version[0] < 8 or length > min(_LARGEST_HEADER, version[0] - 8):
            raise _damaged(argument, path, "its header does not fit in")
        header = _json(argument, path, file.read(length))
    header.pop("__metadata__", None)
    stored = {name: _entry(argument, path, version, 8 + length, name, entry) for name, entry in header.items()}
    end = 8 + length
    for name, each in sorted(stored.items(), key=lambda item: (item[1].offset, item[1].nbytes)):
        if each.offset < end:
            raise _damaged(argument, path, f"the data of {name!r} lies over that of others")
        end = each.offset + each.nbytes
    return stored


def _entry(argument: str, path: pathlib.Path, version: tuple[int, int], start: int, name: str, entry: Any) -> Stored:
    """One tensor of a safetensors file, which is what a file says of itself and is not to be believed."""
    described = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = _DTYPES.get(str(described.get("dtype"))), described.get("shape"), described.get("data_offsets")
    if dtype is None:
        raise _damaged(argument, path, f"{name!r} has the dtype {described.get('dtype')!r}, which torch has not")
    if not _sizes(shape) or not _sizes(offsets) or len(offsets) != 2:
        raise _damaged(argument, path, f"{name!r} has no shape or no offsets")
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise _damaged(
            argument, path, f"{name!r} has {end - begin} bytes, but its dtype and shape ask for {math.prod(shape) * dtype.itemsize}"
        )
    if start + end > version[0]:
        raise _damaged(argument, path, f"it ends within {name!r}: {version[0]} bytes of at least {start + end}")
    return Stored(path, start + begin, dtype, tuple(shape), _stride(shape), version)


def _of_torch(argument: str, path: pathlib.Path) -> Mapping[str, Stored]:
    with path.open("rb") as file:
        version = _version(file)
        if not zipfile.is_zipfile(file):
            raise _damaged(argument, path, "it is no safetensors file, no index of them and no zip file of torch.save")
        file.seek(0)
        try:
            # NOTE: fake tensors know where in the file their data is (torch 2.11 to 2.15, serialization.py).
            with FakeTensorMode():
                state = torch.load(file, weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError) as error:
            # NOTE: torch colours what it says of pickles. NotImplementedError, which tensors of other layouts raise, is a RuntimeError.
            first = re.sub(r"\x1b\[\d*m", "", str(error)).strip().partition("\n")[0]
            raise _damaged(argument, path, first or type(error).__name__) from error
    if not isinstance(state, Mapping):
        raise _damaged(argument, path, f"it holds no state dict, but a {type(state).__name__}")
    other = next((name for name, each in state.items() if not isinstance(each, torch.Tensor)), None)
    if other is not None:
        raise _damaged(argument, path, f"{other!r} is no tensor, but a {type(state[other]).__name__}: expected a state dict")
    stored = {}
    for name, each in state.items():
        plain = each.layout is torch.strided and not each.is_nested
        start = getattr(each.untyped_storage(), "_checkpoint_offset", None) if plain else None
        if start is None:
            raise _damaged(argument, path, f"{name!r} is not stored as plain numbers")
        offset = start + int(each.storage_offset()) * each.element_size()
        stored[name] = Stored(path, offset, each.dtype, tuple(each.shape), tuple(each.stride()), version)
        if offset + stored[name].nbytes > version[0]:
            raise _damaged(argument, path, f"it ends within {name!r}")
    return stored


def _version(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _json(argument: str, path: pathlib.Path, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(argument, path, "it holds no JSON where there should be") from error
    if not isinstance(content, dict):
        raise _damaged(argument, path, "its JSON is no object")
    return content


def _sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def _stride(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _changed(path: pathlib.Path, got: str) -> InvalidArgument:
    return InvalidArgument(f"state_dict: expected the file {str(path)!r} as it was at apply_weights, got {got}")


def _damaged(argument: str, path: pathlib.Path, why: str) -> InvalidArgument:
    return InvalidArgument(f"{argument}: expected a file with weights, got {str(path)!r}: {why}")
