"""A tensor in a file: where its data lies. The data is read when it is needed."""

from __future__ import annotations

import dataclasses
import mmap
import os
import pathlib
from typing import BinaryIO

import torch

from onnxplain.diagnostics import InvalidArgument

_BLOCK = 2**22
"""How many bytes are copied at a time."""


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file.

    Attributes:
        path: The file.
        offset: Where the first element begins, in bytes.
        dtype: The dtype.
        shape: The size of each dim.
        stride: For each dim, the distance between neighbours, in elements.
        version: The size and the modification time of the file when it was examined. They must be the same when the data is read.
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
        """A tensor on the meta device with the same dtype and layout."""
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device="meta")

    @property
    def nbytes(self) -> int:
        """The number of bytes from the beginning of the first element to the end of the last."""
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True))
        return 0 if 0 in self.shape else (last + 1) * self.dtype.itemsize

    def tensor(self) -> torch.Tensor:
        """The data, mapped from the file: it takes memory only where and while it is used.

        Raises:
            InvalidArgument: The file has changed since it was examined.
        """
        if self.nbytes == 0:
            return torch.empty(self.shape, dtype=self.dtype)
        before = self.offset % mmap.ALLOCATIONGRANULARITY
        with self._open() as file:
            mapped = mmap.mmap(file.fileno(), before + self.nbytes, offset=self.offset - before, access=mmap.ACCESS_COPY)
        data = torch.frombuffer(mapped, dtype=torch.uint8, offset=before, count=self.nbytes)
        if before % self.dtype.itemsize:
            # NOTE: torch reads only aligned tensors, and a map begins at a page.
            data = data.clone()
        return data.view(self.dtype).as_strided(self.shape, self.stride)

    def write_to(self, file: BinaryIO) -> None:
        """Copies the data, which has to be contiguous, into another file, block by block.

        Raises:
            InvalidArgument: The file has changed since it was examined.
        """
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
        """Complex numbers as pairs along a last dim of size 2; the same object for other dtypes."""
        if not self.dtype.is_complex:
            return self
        stride = (*(2 * each for each in self.stride), 1)
        return dataclasses.replace(self, dtype=self.dtype.to_real(), shape=(*self.shape, 2), stride=stride)

    def check(self) -> None:
        """Raises `InvalidArgument` if the file has changed since it was examined."""
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
    """The size and the modification time of an open file. A change of the file changes at least one of them."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _changed(path: pathlib.Path, got: str) -> InvalidArgument:
    return InvalidArgument(f"state_dict: expected the file {str(path)!r} as it was at apply_weights, got {got}")
