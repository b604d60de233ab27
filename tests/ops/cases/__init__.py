"""What translations are tested with, by subject: each file has a table of cases by title.

A new translation needs a case here whose graph uses it; test_parity.py finds the tables by itself.
"""

from __future__ import annotations

import importlib
import pkgutil

from .case import Case

CASES: dict[str, Case] = {
    f"{module.name}: {title}": case
    for module in pkgutil.iter_modules(__path__)
    if module.name != "case"
    for title, case in importlib.import_module(f"{__name__}.{module.name}").CASES.items()
}
"""Every case, by its file and title."""
