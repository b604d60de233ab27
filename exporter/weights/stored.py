"""A tensor in a file: where its data is, read when it is needed."""

from __future__ import annotations

import dataclasses
import mmap
import os
import pathlib
from typing import BinaryIO

import torch

from onnxplain.diagnostics import InvalidArgument

_BLOCK = 2**22
"""Bytes that are copied at once."""


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
        if version_of(file) != self.version:
            file.close()
            raise _changed(self.path, "another one")
        return file


def version_of(file: BinaryIO) -> tuple[int, int]:
    """Size and time of an open file: both are others when it has changed."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _changed(path: pathlib.Path, got: str) -> InvalidArgument:
    return InvalidArgument(f"state_dict: expected the file {str(path)!r} as it was at apply_weights, got {got}")
