"""The user's options for ONNX Runtime."""

from __future__ import annotations

from typing import Any

import onnxruntime as ort
import pytest
import torch

import onnxplain
from onnxplain.diagnostics import InvalidArgument
from onnxplain.runtime import ONNXRuntimeOptions

CPU = "CPUExecutionProvider"
WITH_OPTIONS = (CPU, {"use_arena": "0"})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"session_options": ort.SessionOptions()},
        {"session_options": [ort.SessionOptions()]},
        {"session_options": ()},
        {"execution_providers": [CPU]},
        {"execution_providers": (WITH_OPTIONS,)},
        {"execution_providers": []},
        {"execution_providers": [CPU], "execution_provider_options": [{"use_arena": "0"}]},
        {"execution_providers": [CPU], "execution_provider_options": ({},)},
    ],
)
def test_a_model_runs_with_them(options: dict[str, Any]) -> None:
    program = onnxplain.export(torch.nn.ReLU(), (torch.ones(2),))
    assert program(torch.tensor([-1.0, 2.0]), options=ONNXRuntimeOptions(**options))[0].tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"session_options": 3}, "session_options"),
        ({"session_options": [ort.SessionOptions(), ort.SessionOptions()]}, "session_options"),
        ({"session_options": [None]}, "session_options"),
        ({"execution_providers": CPU}, "execution_providers"),
        ({"execution_providers": ["NoSuchExecutionProvider"]}, "execution_providers"),
        ({"execution_providers": [CPU, 3]}, "execution_providers"),
        ({"execution_providers": [(CPU, "options")]}, "execution_providers"),
        ({"execution_providers": [("NoSuchExecutionProvider", {})]}, "execution_providers"),
        ({"execution_providers": [WITH_OPTIONS], "execution_provider_options": [{}]}, "execution_provider_options"),
        ({"execution_providers": [CPU], "execution_provider_options": {}}, "execution_provider_options"),
        ({"execution_providers": [CPU], "execution_provider_options": ["use_arena"]}, "execution_provider_options"),
        ({"execution_providers": [CPU], "execution_provider_options": []}, "execution_provider_options"),
        ({"execution_provider_options": [{}]}, "execution_provider_options"),
    ],
)
def test_the_wrong_option_is_named(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument}: "):
        ONNXRuntimeOptions(**options)


def test_the_session_gets_them(capfd: pytest.CaptureFixture[str]) -> None:
    saved = onnxplain.export(torch.nn.ReLU(), (torch.ones(2),)).model_proto.SerializeToString()
    given = ort.SessionOptions()
    given.log_severity_level = 3
    given.add_session_config_entry("session.set_denormal_as_zero", "1")
    for options in (given, [given]):
        session = ONNXRuntimeOptions(session_options=options, execution_providers=[WITH_OPTIONS]).make(saved)
        assert session.get_session_options().get_session_config_entry("session.set_denormal_as_zero") == "1"
        assert session.get_provider_options()[CPU] == ort.InferenceSession(saved, providers=[WITH_OPTIONS]).get_provider_options()[CPU]
    quiet = ONNXRuntimeOptions().make(saved)
    assert quiet.get_session_options().log_severity_level == 4
    assert quiet.get_session_options().get_session_config_entry("session.force_spinning_stop") == "1"
    assert quiet.get_providers() == [CPU]
    assert capfd.readouterr().err == ""
