"""Addresses of graphs."""

from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.storage.control.uri import GraphRoot

SETTINGS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-1"}
ALL_NAMES = (
    *SETTINGS,
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT",
    "AWS_ALLOW_HTTP",
    "AWS_S3_FORCE_PATH_STYLE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def set_environment(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name in ALL_NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def test_every_spelling_of_a_folder_is_one_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real folder").mkdir()
    (tmp_path / "link").symlink_to("real folder")
    monkeypatch.chdir(tmp_path / "real folder")

    roots = {
        GraphRoot.parse(text)
        for text in (
            "graph",
            "./graph/",
            "../link/graph",
            f"{tmp_path}/real folder/graph",
            f"//{tmp_path}//real folder/./graph",
            f"{tmp_path}/link/graph",
            f"file://{tmp_path}/real%20folder/graph",
            f"FILE://localhost{tmp_path}/link/graph/",
        )
    }

    assert {root.identity for root in roots} == {f"{tmp_path.resolve()}/real folder/graph"}
    assert len(roots) == 1
    assert all(root.is_local for root in roots)


def test_a_graph_that_is_itself_a_link_is_the_one_behind_it(tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir()
    (tmp_path / "alias").symlink_to("graph")

    assert GraphRoot.parse(str(tmp_path / "alias")) == GraphRoot.parse(str(tmp_path / "graph"))


def test_every_spelling_of_a_prefix_is_one_graph() -> None:
    spellings = ("s3://bucket/a/b", "S3://bucket/a/b/", "s3://bucket//a//b")

    assert {GraphRoot.parse(text).uri for text in spellings} == {"s3://bucket/a/b"}


def test_a_root_knows_its_parts() -> None:
    root = GraphRoot.parse("s3://bucket/a/b")
    whole_bucket = GraphRoot.parse("s3://bucket/")

    assert (root.is_local, root.bucket, root.prefix) == (False, "bucket", "a/b")
    assert root.child("nodes/1-2") == "s3://bucket/a/b/nodes/1-2"
    assert (whole_bucket.uri, whole_bucket.bucket, whole_bucket.prefix) == ("s3://bucket", "bucket", "")
    assert whole_bucket.child("__manifest") == "s3://bucket/__manifest"


def test_a_child_of_a_folder_is_a_path(tmp_path: Path) -> None:
    root = GraphRoot.parse(str(tmp_path))

    assert Path(root.child("nodes/1-2")) == tmp_path.resolve() / "nodes" / "1-2"
    assert GraphRoot.parse("/").child("x") == "/x"


def test_special_characters_of_addresses_are_plain_in_paths(tmp_path: Path) -> None:
    root = GraphRoot.parse(f"{tmp_path}/50% off?#1")

    assert root.uri == f"{tmp_path.resolve()}/50% off?#1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\0b",
        "a\nb",
        "a\x7fb",
        "a\x85b",
        "s3://bucket/a\x7fb",
        "file:///a%0Ab",
        "file:///a%7Fb",
        "gs://",
        "az://container/../b",
        "http://host/graph",
        "memory://graph",
        "file://host/graph",
        "file:///graph?x=1",
        "file:///graph#1",
        "file:///a%00b",
        "s3://",
        "s3:///graph",
        "s3://a/../b",
        "s3://bucket/../b",
        "s3://bucket/a%20b",
        "s3://bucket/a?b",
        "s3://bucket/a#b",
        "s3://bucket/a\\b",
    ],
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        GraphRoot.parse(text)


def test_a_refusal_does_not_repeat_a_password() -> None:
    with pytest.raises(BadRequest) as raised:
        GraphRoot.parse("s3://key:hidden@bucket/graph")

    assert "hidden" not in str(raised.value)


def test_a_folder_needs_no_options(tmp_path: Path) -> None:
    assert GraphRoot.parse(str(tmp_path)).storage_options == {}


def test_the_environment_gives_the_options_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(
        monkeypatch,
        {
            **SETTINGS,
            "AWS_SESSION_TOKEN": "token",
            "AWS_ENDPOINT_URL": "http://ignored",
            "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000",
            "AWS_ALLOW_HTTP": "true",
            "AWS_S3_FORCE_PATH_STYLE": "true",
        },
    )

    assert GraphRoot.parse("s3://bucket/graph").storage_options == {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_session_token": "token",
        "aws_region": "eu-west-1",
        "aws_endpoint": "http://127.0.0.1:9000",
        "allow_http": "true",
    }


def test_a_bucket_may_be_part_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(
        monkeypatch,
        {**SETTINGS, "AWS_ENDPOINT_URL": "https://store.example:9000", "AWS_S3_FORCE_PATH_STYLE": "false"},
    )

    options = GraphRoot.parse("s3://bucket/graph").storage_options

    assert options["aws_virtual_hosted_style_request"] == "true"
    assert options["aws_endpoint"] == "https://bucket.store.example:9000"


@pytest.mark.parametrize("missing", list(SETTINGS))
def test_a_missing_setting_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    set_environment(monkeypatch, {name: value for name, value in SETTINGS.items() if name != missing})

    with pytest.raises(StorageError, match=missing) as raised:
        _ = GraphRoot.parse("s3://bucket/graph").storage_options

    assert raised.value.kind == "configuration"


def test_credentials_may_come_from_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, {"AWS_REGION": "eu-west-1", "AWS_WEB_IDENTITY_TOKEN_FILE": "token-file"})

    assert GraphRoot.parse("s3://bucket/graph").storage_options == {"aws_region": "eu-west-1"}


def test_plain_http_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, {**SETTINGS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9000"})

    with pytest.raises(StorageError, match="AWS_ALLOW_HTTP") as raised:
        _ = GraphRoot.parse("s3://bucket/graph").storage_options

    assert raised.value.kind == "configuration"


REFUSED_ENDPOINTS = [
    "hidden.example:9000",
    "ftp://hidden.example",
    "HTTP://hidden.example",
    "http:/hidden.example",
    "http://",
    "http://:9000",
    "http://hidden.example:99999",
    "http://hidden.example:port",
    "http://[::1",
    "http://[::1%25hidden]:9000",
    "http://256.1.1.1",
    "http://hidden.1",
    "http://hidden.0x1",
    "http://hidden^example",
    "http://xn--hidden99999",
    "http://%zz.hidden",
    "http://user:hidden@host",
    "http://host?hidden",
    "http://host#hidden",
    "http://host/<hidden>",
    "http://hidden host",
    "http://hidden/a\nb",
    "http://hidden.example\n",
    "http://hidden\x7f",
    "http://hidd\u00ebn",
]


@pytest.mark.parametrize("endpoint", REFUSED_ENDPOINTS)
@pytest.mark.parametrize(
    ("address", "name"),
    [("s3://bucket/graph", "AWS_ENDPOINT_URL"), ("az://container/graph", "AZURE_STORAGE_ENDPOINT")],
)
def test_an_endpoint_that_is_none_is_refused_and_not_repeated(
    endpoint: str, address: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client libraries panic at most of these, with an exception that no handler catches."""
    set_environment(monkeypatch, {**SETTINGS, "AWS_ALLOW_HTTP": "true", name: endpoint})
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "lab")

    with pytest.raises(StorageError, match=f"^{name} in the environment ") as raised:
        _ = GraphRoot.parse(address).storage_options

    assert raised.value.kind == "configuration"
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://store.example",
        "https://store.example./path/",
        "http://127.0.0.1:9000",
        "http://[::1]:9000",
        "http://my_store:9000",
        "https://xn--bcher-kva.example",
    ],
)
def test_an_endpoint_is_a_host_with_scheme_port_and_path(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, {**SETTINGS, "AWS_ALLOW_HTTP": "true", "AWS_ENDPOINT": endpoint})

    assert GraphRoot.parse("s3://bucket/graph").storage_options["aws_endpoint"] == endpoint


@pytest.mark.parametrize("value", ["hidden\n", "hid\nden", "hidden ", "hidden\x7f", "hidd\u00ebn"])
@pytest.mark.parametrize(
    "name",
    [
        *SETTINGS,
        "AWS_SESSION_TOKEN",
        "AWS_S3_FORCE_PATH_STYLE",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_TENANT_ID",
    ],
)
def test_a_setting_that_no_request_can_carry_is_refused_and_not_repeated(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, {**SETTINGS, "AZURE_STORAGE_ACCOUNT_NAME": "lab", name: value})
    scheme = "az" if name.startswith("AZURE") else "s3"

    with pytest.raises(StorageError, match=f"^{name} in the environment has a blank, a line break") as raised:
        _ = GraphRoot.parse(f"{scheme}://bucket/graph").storage_options

    assert raised.value.kind == "configuration"
    assert "hid" not in str(raised.value)


@pytest.mark.parametrize("region", ["a:b", "a%b", "a[b", "a/b"])
def test_a_region_is_a_name(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, {**SETTINGS, "AWS_REGION": region})

    with pytest.raises(StorageError, match="AWS_REGION in the environment is not the name of a region"):
        _ = GraphRoot.parse("s3://bucket/graph").storage_options


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9000", "http://[::1]:9000"])
def test_a_bucket_is_no_part_of_an_address(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(
        monkeypatch,
        {
            **SETTINGS,
            "AWS_ALLOW_HTTP": "true",
            "AWS_S3_FORCE_PATH_STYLE": "false",
            "AWS_ENDPOINT_URL": endpoint,
        },
    )

    with pytest.raises(
        StorageError, match=r"AWS_S3_FORCE_PATH_STYLE=false .* AWS_ENDPOINT_URL has an address"
    ):
        _ = GraphRoot.parse("s3://bucket/graph").storage_options


def test_the_addresses_of_roles_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
    set_environment(monkeypatch, {"AWS_REGION": "eu-west-1", name: "/hidden\n"})

    with pytest.raises(StorageError, match=name):
        _ = GraphRoot.parse("s3://bucket/graph").storage_options


def test_a_root_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, SETTINGS)
    root = GraphRoot.parse("s3://bucket/graph")

    assert root.storage_options["aws_secret_access_key"] == "secret"
    assert "secret" not in repr(root)


@pytest.mark.case("engine", 471)
@pytest.mark.parametrize("scheme", ["s3", "az", "gs"])
def test_an_address_in_a_store_has_a_scheme_a_bucket_and_a_prefix(scheme: str) -> None:
    root = GraphRoot.parse(f"{scheme.upper()}://bucket//some/graph/")

    assert (root.uri, root.is_local) == (f"{scheme}://bucket/some/graph", False)
    assert (root.scheme, root.bucket, root.prefix) == (scheme, "bucket", "some/graph")


@pytest.mark.case("engine", 471)
def test_an_unknown_scheme_is_told_the_known_ones() -> None:
    with pytest.raises(BadRequest, match="use a path, file://, s3://, az:// or gs://"):
        GraphRoot.parse("ftp://host/graph")


@pytest.mark.case("engine", 471)
def test_azure_and_google_have_settings_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    azure, google = GraphRoot.parse("az://container/graph"), GraphRoot.parse("gs://bucket/graph")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StorageError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        _ = azure.storage_options
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "lab")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://host")
    with pytest.raises(StorageError, match="AZURE_ALLOW_HTTP"):
        _ = azure.storage_options
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "key.json")

    assert azure.storage_options == {
        "azure_storage_account_name": "lab",
        "azure_storage_endpoint": "http://host",
        "allow_http": "true",
    }
    assert google.storage_options["google_service_account"] == "key.json"
