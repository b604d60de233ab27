"""What targets stand for."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest
from fleets import triage

from onnxplain.triage import Options, TriageError, libraries, models, targets

BUILDERS = """\
import torch


def build(): ...


def build_large(size=3): ...


def build_other(size): ...


def _build_hidden(): ...


class Net(torch.nn.Module): ...


net = Net()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets" / ".hidden").mkdir(parents=True)
    for name in ("a.py", "nets/b.py", "nets/we ird;ü.py", "nets/.hidden/c.py"):
        (tmp_path / name).write_text(BUILDERS, encoding="utf-8")
    (tmp_path / "nets" / "empty.py").write_text("", encoding="utf-8")
    (tmp_path / "nets" / "broken.py").write_text("def build(:", encoding="utf-8")
    return tmp_path


def names_in(library: str, pattern: str) -> Mapping[str, str]:
    return {f"{library}-{pattern}-{number}": "likes" for number in (1, 2)}


def found(*texts: str) -> list[str]:
    return [str(target) for target in targets(texts, names_in)]


def test_files_and_folders_stand_for_their_builders() -> None:
    assert found("a.py") == ["a.py:build", "a.py:build_large"]
    assert found("nets") == ["nets/b.py:build", "nets/b.py:build_large", "nets/we ird;ü.py:build", "nets/we ird;ü.py:build_large"]
    assert found("a.py", "a.py:build") == ["a.py:build", "a.py:build_large"]


def test_names_and_patterns() -> None:
    assert found("a.py:anything") == ["a.py:anything"]
    assert found("a.py:*") == ["a.py:build", "a.py:build_large", "a.py:Net", "a.py:net"]
    assert found("nets/*.py:build") == ["nets/b.py:build", "nets/we ird;ü.py:build"]
    assert found("**/b.py:net") == ["nets/b.py:net"]
    assert found("package.module:name") == ["package.module:name"]
    assert found("timm:res*") == ["timm:timm-res*-1", "timm:timm-res*-2"]


@pytest.mark.parametrize("text", ["nothing.py", "nets/*.txt", "nets/empty.py", "nets:nothing", "missing.toml", "nothing", "a.py:x*", ""])
def test_what_stands_for_no_model_is_refused(text: str) -> None:
    with pytest.raises(TriageError):
        found(text)
    assert triage(text).exit_code == 2


@pytest.mark.parametrize("form", ["toml", "yaml"])
def test_a_list(here: pathlib.Path, form: str) -> None:
    lists = {
        "toml": """
        [[models]]
        target = "b.py:build_other"
        name = "odd / | name"
        arguments = { size = 3 }
        dynamic = true
        [[models]]
        target = "hf:Llama*"
        [[models]]
        target = "b.py:build_large"
        arguments = { size = 5 }
        """,
        "yaml": """
        models:
        - target: b.py:build_other
          name: odd / | name
          arguments: {size: 3}
          dynamic: true
        - target: hf:Llama*
        - {target: "b.py:build_large", arguments: {size: 5}}
        """,
    }
    (here / "nets" / f"list.{form}").write_text(lists[form], encoding="utf-8")
    assert found(f"nets/list.{form}") == ["nets/b.py:build_other", "hf:hf-Llama*-1", "hf:hf-Llama*-2", "nets/b.py:build_large"]
    made = models(targets([f"nets/list.{form}"], names_in), lambda _: Options(), dynamic=True)
    assert [(each.name, each.file, each.dynamic, dict(each.arguments)) for each in made] == [
        ("odd _ | name", "odd_name", True, {"size": 3}),
        ("hf:hf-Llama*-1", "hf_hf-Llama_-1", False, {}),
        ("hf:hf-Llama*-1 dynamic", "hf_hf-Llama_-1_dynamic", True, {}),
        ("hf:hf-Llama*-2", "hf_hf-Llama_-2", False, {}),
        ("hf:hf-Llama*-2 dynamic", "hf_hf-Llama_-2_dynamic", True, {}),
        ("nets.b:build_large size=5", "nets.b_build_large_size_5", False, {"size": 5}),
        ("nets.b:build_large size=5 dynamic", "nets.b_build_large_size_5_dynamic", True, {"size": 5}),
    ]
    assert [each.family for each in made] == ["nets.b", *["hf:likes"] * 4, "nets.b", "nets.b"]


def test_a_list_in_another_folder_names_modules_and_paths_beside_it(here: pathlib.Path) -> None:
    (here / "nets" / "list.yaml").write_text("models: [target: package.module:name, target: ../a.py]", encoding="utf-8")
    assert found("nets/list.yaml") == ["package.module:name", "a.py:build", "a.py:build_large"]
    (here / "nets" / "list.yaml").write_text("models: [target: a.py:build]", encoding="utf-8")
    with pytest.raises(TriageError, match=r"nets/a\.py"):
        found("nets/list.yaml")


@pytest.mark.parametrize("text", ["", "models: 3", "- target: b.py", "models:\n- target: [", "models:\n- target: 3", "a: !!python/none"])
def test_a_list_in_yaml_with_mistakes_is_refused(here: pathlib.Path, text: str) -> None:
    (here / "nets" / "list.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(TriageError, match=r"list\.yaml"):
        found("nets/list.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "models = 3",
        "[[models]]\nname = 'a'",
        "[[models]]\ntarget = 'b.py'\nargument = {}",
        "[[models]]\ntarget = 'b.py'\nname = 'two models'",
        "[[models]]\ntarget = 3",
        "[[models]]\ntarget = 'b.py:build'\narguments = {day = 2020-01-01}",
        "[[models]]\ntarget = 'list.toml'",
        "no toml",
    ],
)
def test_a_list_with_mistakes_is_refused(here: pathlib.Path, text: str) -> None:
    (here / "nets" / "list.toml").write_text(text, encoding="utf-8")
    with pytest.raises(TriageError, match=r"list\.toml"):
        found("nets/list.toml")


def test_names_of_models_and_files_differ() -> None:
    chosen = targets(["a.py:Net", "a.py:net", "./a.py:net", "a.py:n+t"], names_in)
    made = models(chosen, lambda _: Options(), dynamic=False)
    assert len({each.name for each in made}) == len({each.file.casefold() for each in made}) == 3


def test_a_name_tells_one_folder_of_a_path_from_elsewhere(here: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here / "nets" / ".hidden")
    made = models(targets([f"{here}/nets/b.py:net", "../../nets/b.py:build"], names_in), lambda _: Options(), dynamic=False)
    assert [each.name for each in made] == ["nets.b:net", "nets.b:build"]


def test_the_smallest_of_a_family_is_told_by_its_name() -> None:
    assert libraries.smallest(["net101", "net50", "net18d"]) == "net18d"
    assert libraries.smallest(["vit_base_patch16", "vit_tiny_patch16", "vit_small_patch8", "test_vit"]) == "vit_tiny_patch16"
    assert libraries.smallest(["b", "a_xl"]) == "b"


def test_a_library_that_is_missing_is_named() -> None:
    pytest.importorskip("click")
    result = triage("timm:resnet18")
    if "timm" not in result.output or result.exit_code != 2:
        pytest.skip("timm is installed")
    assert "pip install timm" in result.output


def test_two_stars_stand_for_folders(here: pathlib.Path) -> None:
    (here / "deep" / "one" / "two").mkdir(parents=True)
    (here / "deep" / "one" / "two" / "d.py").write_text(BUILDERS, encoding="utf-8")
    assert found("deep/**/d.py:net") == ["deep/one/two/d.py:net"]
