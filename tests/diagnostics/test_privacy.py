"""What texts of a log tell of the machine."""

from __future__ import annotations

import base64
import json
import pathlib
import tempfile
import urllib.parse

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


@pytest.mark.parametrize(
    "secret",
    [
        "a\\b\\c-12345",
        "a/b+c=-12345",
        "a b c-12345",
        "it's-12345",
        'say-"12345"',
        "both'\"12345",
        "gr\xfc\xdfe-12345",
        "tab\t12345",
        "gr\xfc\x08-12345",
    ],
)
def test_a_secret_is_hidden_however_it_is_quoted(secret: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", secret)
    privacy = privacy_of(tmp_path)
    forms = [str(KeyError(secret)), repr(KeyError(secret)), ascii(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False)]
    data = secret.encode()
    coded = [base64.b64encode(before + data).decode() for before in (b"", b"a:", b"ad:", b"ada:")]
    coded += [base64.urlsafe_b64encode(data).decode(), base64.b64encode(data).decode().rstrip("="), f"Basic {coded[-1]}"]
    quoted = [urllib.parse.quote(secret, safe) for safe in ("", "/", "!'()*")]
    quoted += [
        urllib.parse.quote_plus(secret),
        urllib.parse.quote(quoted[0]),
        urllib.parse.quote_plus(urllib.parse.quote_plus(secret)),
        urllib.parse.quote(coded[0], ""),
        quoted[0].replace("%C3%BC", "%c3%bc"),
        f"https://u:{quoted[0]}@host/",
    ]
    for text in (secret, *forms, *map(repr, forms), *map(json.dumps, forms), repr(data), repr(repr(data)), *coded, *quoted):
        shown = privacy.text(f"got {text}.")
        assert "12345" not in shown, shown
        assert "$API_TOKEN" in shown


def test_the_password_of_an_address_is_hidden_as_drivers_quote_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://ada:pear%2Fpie@host/base")
    assert privacy_of(tmp_path).text("refused pear/pie and pear%2fpie") == "refused $DATABASE_URL and $DATABASE_URL"


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-IHERE/include -LHERE/lib -isystemHERE", "-Iinclude -Llib -isystem%SRCROOT%"),
        ("s3://bucketHERE/net.pt", "s3://bucket%SRCROOT%/net.pt"),
        ("FILE://HERE/net.py", "net.py"),
        ("file://localhostHERE/net.py", "net.py"),
        ("file:HERE/net.py", "net.py"),
        ("//HERE/net.py", "net.py"),
        ("PYTHONPATH=HERE:HERE/src:/people/ada/x", "PYTHONPATH=%SRCROOT%:src:<home>/x"),
        ("(HERE). 'HERE', [HERE]; HERE:7: x", "(%SRCROOT%). '%SRCROOT%', [%SRCROOT%]; %SRCROOT%:7: x"),
        ("zip:HERE/a.zip!/b", "zip:a.zip!/b"),
        ("https://h/?at=%2fwork%2Fteam%2fcheckout%2Fa%20b", "https://h/?at=a%20b"),
        ("https://h/?to=%252Fwork%252Fteam%252Fcheckout", "https://h/?to=%SRCROOT%"),
        ("a/work/team/x and -I/work/x", "a%SRCROOT%/../x and -I../../x"),
        # A folder right below that of the system may be a word of another path.
        ("https://work/x net/work/x %work/x a%2Fwork", "https://work/x net/work/x %work/x a%2Fwork"),
        ("/opt/v/site-packages/torch/a.py and /opt/v/dist-packages/b.py", "torch/a.py and b.py"),
        ("%add_1 = %be 100% %2 %ff %C3", "%add_1 = %be 100% %2 %ff %C3"),
    ],
)
def test_folders_are_hidden_whatever_stands_before_them(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/ada")
    monkeypatch.setenv("LOGNAME", "root")
    root = "/work/team/checkout"
    assert privacy_of(pathlib.Path(root)).text(text.replace("HERE", root)) == shown


def test_folders_are_hidden_however_their_names_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    root = "/work/gr\xfc\xdfe 'of' ada/checkout"
    privacy = privacy_of(pathlib.Path(root))
    for text in (root, ascii(root)[1:-1], json.dumps(root)[1:-1], repr(root.encode())[2:-1], urllib.parse.quote(root)):
        assert privacy.text(f"in {text}/net.py") == "in net.py", text


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
