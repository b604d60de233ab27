"""Writes the model to files.

`export_stages` and `program_saving` decide what an export and `ONNXProgram.save` write, `model_file` writes it into a folder of `staging`,
and `staging` moves it to its place.
"""

from .export_stages import check, open_destination, save, serialize
from .model_file import write
from .paths import checked_folder, checked_path, current_folder_exists, data_file, not_written
from .program_saving import save_program
from .staging import Staging

__all__ = [
    "Staging",
    "check",
    "checked_folder",
    "checked_path",
    "current_folder_exists",
    "data_file",
    "not_written",
    "open_destination",
    "save",
    "save_program",
    "serialize",
    "write",
]
