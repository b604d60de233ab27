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
            module = sys.modules[name]
            file = getattr(module, "__file__", None)
            if files is not None and isinstance(file, str):
                files.add(file)
            # NOTE: a package without an `__init__.py` has no file. It may have several folders.
            folders = getattr(getattr(module, "__spec__", None), "submodule_search_locations", None) or ()
            places = [file] if isinstance(file, str) else [*folders]
            if places and all(_lies_in(folder, name, place) for place in places):
                del sys.modules[name]


def _lies_in(folder: pathlib.Path, module: str, place: str) -> bool:
    """Whether a module was found in the folder itself. Packages that are installed below the folder, such as in `.venv`, were not."""
    if not pathlib.Path(place).is_relative_to(folder):
        return False
    inside = pathlib.Path(place).relative_to(folder).parts
    return len(inside) == 1 or inside[:1] == (module.partition(".")[0],)
