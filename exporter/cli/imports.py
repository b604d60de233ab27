"""What the target of `onnxplain export` imports."""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def imports_beside(folder: pathlib.Path, files: set[str] | None = None) -> Iterator[None]:
    """Lets the targets of a folder import what lies beside them. Afterwards, those of another folder import what lies beside them.

    Adds the files of all modules that were imported meanwhile to `files`, if given.
    """
    path, before = [*sys.path], {*sys.modules}
    try:
        yield
    finally:
        sys.path[:] = path
        for name in {*sys.modules} - before:
            file = getattr(sys.modules[name], "__file__", None)
            if files is not None and isinstance(file, str):
                files.add(file)
            if _lies_in(folder, name, file):
                del sys.modules[name]


def _lies_in(folder: pathlib.Path, module: str, file: str | None) -> bool:
    """Whether a module was found in the folder itself. Packages that are installed below the folder, such as in `.venv`, were not."""
    if file is None or not pathlib.Path(file).is_relative_to(folder):
        return False
    inside = pathlib.Path(file).relative_to(folder).parts
    return len(inside) == 1 or inside[0] == module.partition(".")[0]
