"""Architectures by family: a sample whose exports are timed, and the longer list of the coverage."""

from . import diffusers_models, language, networks, sampled, sight_and_sound, vision_libraries
from .architecture import Architecture, Family, Given
from .sampled import FAMILIES

__all__ = ["COVERAGE", "FAMILIES", "Architecture", "Family", "Given"]

COVERAGE: dict[str, Family] = {}
"""All architectures by family and name, those of the sample included."""
for _families in (sampled, language, sight_and_sound, diffusers_models, networks, vision_libraries):
    for _family, _architectures in _families.FAMILIES.items():
        COVERAGE.setdefault(_family, {}).update(_architectures)
