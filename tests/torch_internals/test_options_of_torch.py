"""Options of torch that an export switches."""

from __future__ import annotations

import importlib

from onnxplain.torch_internals import config

OPTION = config.COLLECTION


def value() -> object:
    """What the option is now."""
    module, _, name = OPTION.path.partition(":")
    return getattr(importlib.import_module(module), name)


def test_an_option_is_switched_until_the_end_and_left_alone_until_the_end() -> None:
    before = value()
    for switched, wanted in ((config.switched_on, True), (config.switched_off, False)):
        with switched(OPTION):
            assert value() is wanted
            with config.left_alone(OPTION), config.switched_on(OPTION), config.switched_off(OPTION):
                assert value() is wanted
            with config.switched_on(OPTION), config.switched_off(OPTION):
                assert value() is False
            with config.left_alone(config.SIZE_ONE), config.switched_on(OPTION), config.switched_off(OPTION):
                assert value() is False
            assert value() is wanted
        assert value() is before
