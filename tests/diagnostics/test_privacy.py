"""What texts of a log tell of the machine."""

from __future__ import annotations

import json
import pathlib
import tempfile

import pytest

from onnxplain.diagnostics import message_of, privacy_of


@pytest.mark.parametrize(("user", "shown"), [("ada", "/data/<user>/model.pt"), ("root", "/data/root/model.pt")])
def test_the_name_of_the_user_is_hidden_unless_everybody_has_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, user: str, shown: str
) -> None:
    monkeypatch.setenv("LOGNAME", user)
    assert privacy_of(tmp_path).text(f"cannot open /data/{user}/model.pt") == f"cannot open {shown}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/mnt/alice is full", "/mnt/<user> is full"),
        ("'/mnt/alice'", "'/mnt/<user>'"),
        ("see ~alice/models", "see ~<user>/models"),
        ("alice@host refused", "<user>@host refused"),
        (
            "malice@host, /mnt/alice-2, /mnt/alices, alice, net/alice.weight",
            "malice@host, /mnt/alice-2, /mnt/alices, alice, net/alice.weight",
        ),
    ],
)
def test_the_name_of_the_user_is_hidden_in_paths_and_addresses(
    text: str, shown: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "alice")
    assert privacy_of(tmp_path).text(text) == shown


@pytest.mark.parametrize("secret", ["a\\b\\c-12345", "it's-12345", 'say-"12345"', "both'\"12345", "gr\xfc\xdfe-12345", "tab\t12345"])
def test_a_secret_is_hidden_however_it_is_quoted(secret: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", secret)
    privacy = privacy_of(tmp_path)
    forms = [str(KeyError(secret)), repr(KeyError(secret)), ascii(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False)]
    for text in (secret, *forms, *map(repr, forms), *map(json.dumps, forms)):
        shown = privacy.text(f"got {text}.")
        assert "12345" not in shown, shown
        assert "$API_TOKEN" in shown


def test_a_folder_of_work_is_no_password(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tempfile.gettempdir()
    monkeypatch.setenv("START_PWD", f"{folder}/.")
    assert "$START_PWD" not in privacy_of(tmp_path).text(f"in {folder}/.")


def test_folders_are_hidden_in_addresses(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "telling parent" / "checkout"
    root.mkdir(parents=True)
    for text in (f"file://{root}/model.py", (root / "model.py").as_uri(), (root / "model.py").as_uri().replace("/", "%2F")):
        shown = privacy_of(root).text(f"at {text}")
        assert "telling" not in shown
        assert "model.py" in shown


def test_folders_around_the_root_are_named_by_their_way_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/ada")
    monkeypatch.setenv("LOGNAME", "root")
    for root, shown in (
        ("/work/team/checkout", "a.py ../b.py ../../c.py /people/d.py <home>/e.py"),
        # A folder that holds the home as well is no secret of the checkout.
        ("/people/ada/checkout", "/work/team/checkout/a.py /work/team/b.py /work/c.py /people/d.py <home>/e.py"),
    ):
        texts = "/work/team/checkout/a.py /work/team/b.py /work/c.py /people/d.py /people/ada/e.py"
        assert privacy_of(pathlib.Path(root)).text(texts) == shown


@pytest.mark.parametrize("kept", [4, 8, 15])
@pytest.mark.parametrize("is_end", [False, True])
def test_a_secret_is_hidden_where_a_long_text_was_cut(
    kept: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, *, is_end: bool
) -> None:
    secret = "s3cretQWERTYuiop"
    monkeypatch.setenv("API_TOKEN", secret)
    half, other = "x" * (9_999 - kept) + " ", "y " * 20_000
    text = other + secret + half[::-1] if is_end else half + secret + other
    shown = privacy_of(tmp_path).text(message_of(ValueError(text)))
    left = secret[-kept:] if is_end else secret[:kept]
    assert left in message_of(ValueError(text))
    assert left not in shown
    assert "$API_TOKEN" in shown
