"""Where a graph lives: a folder, or a prefix in a store that is S3-compatible, Azure's or Google's.

U1  Every spelling of one root (relative, absolute, through symlinks, `file://`) has one identity.
U2  Secrets are read from the environment when they are needed; a root holds none and shows none.
U3  A setting that the client libraries would panic at is refused before they see it, by the name of its
    variable and never with its value.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.core.limits import FOLDERS_MAX
from omnigraph.core.values import is_text

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PRINTABLE = re.compile(r"[!-~]+")
_NOT_IN_URLS = frozenset('"<>\\^`')
_LIKE_A_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_TEMPORARY = re.compile(r".+#[0-9]+", re.DOTALL)
_TRUE = frozenset({"1", "true", "yes", "on"})
STORES = {"s3": "an S3", "az": "an Azure", "gs": "a Google"}  # by scheme, as messages begin

# Any of these brings credentials of its own, which both client libraries find by themselves.
_CREDENTIAL_SOURCES = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


@dataclass(frozen=True, slots=True)
class GraphRoot:
    """The normalised place of one graph; equal roots are one graph.

    `uri` is an absolute path without symlinks among its existing ancestors, or `s3://bucket/prefix`, or the
    same with `az` (where a bucket is called container) or `gs`.
    """

    uri: str
    is_local: bool

    @staticmethod
    def parse(text: str) -> "GraphRoot":
        """Read a path, or an address that begins with `file://`, `s3://`, `az://` or `gs://` (U1).

        Raises:
            BadRequest: the text is none of these, or parts of the engine would read it differently.
        """
        if not text or not is_text(text) or _has_controls(text):
            known = "file:///path, s3://bucket/prefix, az://container/prefix or gs://bucket/prefix"
            raise BadRequest(f"a graph address is a path, {known}, without control characters")
        scheme = _SCHEME.match(text)
        if scheme is None:
            return GraphRoot(_real_path(text), is_local=True)
        if scheme[1].lower() == "file":
            return GraphRoot(_real_path(_path_of_file_uri(text)), is_local=True)
        if scheme[1].lower() in STORES:
            place = _in_store(scheme[1].lower(), text[scheme.end() :])
            return GraphRoot(place, is_local=False)
        known = "a path, file://, s3://, az:// or gs://"
        way_out = f"use {known}"
        if scheme[1].lower() in {"http", "https"}:
            way_out += "; a graph behind a server is reached by connect, or --server"
        raise BadRequest(f"'{scheme[1]}://' addresses are not supported: {way_out}")

    @property
    def identity(self) -> str:
        """What process-wide registries are keyed by: the same for every spelling (U1)."""
        return self.uri

    @property
    def bucket(self) -> str:
        """The bucket of a root in a store."""
        assert not self.is_local, "a folder has no bucket"
        return split_address(self.uri)[1]

    @property
    def prefix(self) -> str:
        """The prefix of every key of such a root, without slashes around it; empty for a whole bucket."""
        assert not self.is_local, "a folder has no prefix"
        return split_address(self.uri)[2]

    @property
    def scheme(self) -> str:
        """The kind of store: `s3`, `az` or `gs`."""
        assert not self.is_local, "a folder is in no store"
        return split_address(self.uri)[0]

    def child(self, relative: str) -> str:
        """Return the path or address of something inside the graph, as lance takes it."""
        return f"{self.uri.rstrip('/')}/{relative}"

    @property
    def storage_options(self) -> dict[str, str]:
        """The options that lance and obstore need for this root, from the environment (U2); empty on a disk.

        Raises:
            StorageError: settings are missing or malformed; the message names them.
        """
        if self.is_local:
            return {}
        match self.scheme:
            case "az":
                return _azure_options(os.environ)
            case "gs":
                return _google_options(os.environ)
            case _:
                return _s3_options(self.bucket, os.environ)


def is_in_store(uri: str) -> bool:
    """Say whether an address is one in a store, not on a disk."""
    scheme, has_scheme, _ = uri.partition("://")
    return bool(has_scheme) and scheme in STORES


def split_address(uri: str) -> tuple[str, str, str]:
    """Split an address in a store into scheme, bucket and prefix."""
    scheme, _, place = uri.partition("://")
    bucket, _, prefix = place.partition("/")
    return scheme, bucket, prefix


def name_parts(name: str) -> list[str]:
    """Split the name of a control file into its segments.

    Raises:
        BadRequest: it leads out of the graph, or is the name of a temporary file.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} or "\0" in part or is_temporary(part) for part in parts):
        raise BadRequest(f"'{name}' is not a name inside a graph")
    return parts


def is_temporary(segment: str) -> bool:
    """Say whether a file of this name is still being written: `name#<digits>`."""
    return _TEMPORARY.fullmatch(segment) is not None


def _has_controls(text: str) -> bool:
    return any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text)


def _real_path(text: str) -> str:
    path = os.path.realpath(text)
    if path.count("/") > FOLDERS_MAX:
        raise BadRequest(f"a graph lies in at most {FOLDERS_MAX} folders: choose a shorter path")
    # POSIX distinguishes two leading slashes from one; no system that we support does.
    return "/" + path.lstrip("/")


def _path_of_file_uri(text: str) -> str:
    parts = urlsplit(text)
    if parts.netloc not in {"", "localhost"}:
        raise BadRequest(f"'{text}' names another host: write file:///path, with three slashes")
    if parts.query or parts.fragment:
        raise BadRequest(f"'{text}' is not a plain file address: write '?' as %3F and '#' as %23")
    path = unquote(parts.path)
    if not path.startswith("/") or _has_controls(path):
        raise BadRequest(f"'{text}' has no absolute path without control characters: write file:///path")
    return path


def _in_store(scheme: str, text: str) -> str:
    bucket, _, key = text.partition("/")
    # The text is not quoted here: it may have a password before an '@'.
    if not _BUCKET.fullmatch(bucket):
        name = STORES[scheme]
        raise BadRequest(f"{name} address is {scheme}://bucket/prefix, with credentials in the environment")
    segments = [segment for segment in key.split("/") if segment]
    if any(segment in {".", ".."} or set(segment) & set("%?#\\") for segment in segments):
        name = STORES[scheme]
        raise BadRequest(f"{name} prefix must not contain '.' or '..' segments, '%', '?', '#' or backslashes")
    return "/".join([f"{scheme}:/", bucket, *segments])


def _s3_options(bucket: str, environment: Mapping[str, str]) -> dict[str, str]:
    def read(*names: str) -> str:
        return _read(environment, *names)

    endpoint_names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    options = {
        "aws_access_key_id": read("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": read("AWS_SECRET_ACCESS_KEY"),
        "aws_session_token": read("AWS_SESSION_TOKEN"),
        "aws_region": read("AWS_REGION", "AWS_DEFAULT_REGION"),
        "aws_endpoint": read(*endpoint_names),
    }
    if options["aws_region"] and not _NAME.fullmatch(options["aws_region"]):
        name = "AWS_REGION" if environment.get("AWS_REGION") else "AWS_DEFAULT_REGION"
        raise _malformed(name, "is not the name of a region, such as eu-west-1")
    if options["aws_endpoint"] and not options["aws_region"]:
        options["aws_region"] = "us-east-1"  # other servers sign with it and do not look at it
    _refuse_missing(options, has_other_credentials=bool(read(*_CREDENTIAL_SOURCES)))
    endpoint_name = next((name for name in endpoint_names if environment.get(name)), "")
    has_address = bool(endpoint_name) and _is_address(_host_of(endpoint_name, options["aws_endpoint"]))
    if options["aws_endpoint"].startswith("http://"):
        if read("AWS_ALLOW_HTTP").lower() not in _TRUE:
            raise StorageError("the S3 endpoint is plain http: set AWS_ALLOW_HTTP=true", kind="configuration")
        options["allow_http"] = "true"
    path_style = read("AWS_S3_FORCE_PATH_STYLE").lower()
    if path_style and path_style not in _TRUE:
        if has_address:
            reason = f"puts the bucket into a host name, and {endpoint_name} has an address: leave it out"
            raise _malformed("AWS_S3_FORCE_PATH_STYLE=false", reason)
        options["aws_virtual_hosted_style_request"] = "true"
        scheme, _, host = options["aws_endpoint"].partition("://")
        if host:  # the client libraries want the bucket in the endpoint then
            options["aws_endpoint"] = f"{scheme}://{bucket}.{host}"
    return {name: value for name, value in options.items() if value}


def _azure_options(environment: Mapping[str, str]) -> dict[str, str]:
    options = {
        "azure_storage_account_name": _read(environment, "AZURE_STORAGE_ACCOUNT_NAME"),
        "azure_storage_account_key": _read(environment, "AZURE_STORAGE_ACCOUNT_KEY"),
        "azure_storage_sas_key": _read(environment, "AZURE_STORAGE_SAS_KEY"),
        "azure_storage_client_id": _read(environment, "AZURE_CLIENT_ID"),
        "azure_storage_client_secret": _read(environment, "AZURE_CLIENT_SECRET"),
        "azure_storage_tenant_id": _read(environment, "AZURE_TENANT_ID"),
        "azure_storage_endpoint": _read(environment, "AZURE_STORAGE_ENDPOINT"),
    }
    if not options["azure_storage_account_name"]:
        raise StorageError(
            "an az:// address needs AZURE_STORAGE_ACCOUNT_NAME in the environment", kind="configuration"
        )
    if not _NAME.fullmatch(options["azure_storage_account_name"]):
        raise _malformed("AZURE_STORAGE_ACCOUNT_NAME", "is not the name of an account")
    if options["azure_storage_endpoint"]:
        _host_of("AZURE_STORAGE_ENDPOINT", options["azure_storage_endpoint"])
    if options["azure_storage_endpoint"].startswith("http://"):
        if environment.get("AZURE_ALLOW_HTTP", "").lower() not in _TRUE:
            raise StorageError(
                "the Azure endpoint is plain http: set AZURE_ALLOW_HTTP=true", kind="configuration"
            )
        options["allow_http"] = "true"
    return {name: value for name, value in options.items() if value}


def _google_options(environment: Mapping[str, str]) -> dict[str, str]:
    options = {
        "google_service_account": environment.get("GOOGLE_SERVICE_ACCOUNT", ""),
        "google_service_account_key": environment.get("GOOGLE_SERVICE_ACCOUNT_KEY", ""),
        "google_application_credentials": environment.get("GOOGLE_APPLICATION_CREDENTIALS", ""),
    }
    return {name: value for name, value in options.items() if value}


def _read(environment: Mapping[str, str], *names: str) -> str:
    """Return the first of several settings that is there; empty without any (U3)."""
    name = next((name for name in names if environment.get(name)), None)
    if name is None:
        return ""
    value = environment[name]
    # Typically the line break at the end of a file that a secret was read from.
    if not name.endswith("_FILE") and not _PRINTABLE.fullmatch(value):
        raise _malformed(
            name, "has a blank, a line break or another character that no request carries: set it without"
        )
    return value


def _host_of(name: str, endpoint: str) -> str:
    """Return the host of an endpoint (U3)."""
    if not endpoint.startswith(("http://", "https://")):
        raise _malformed(name, "does not begin with https:// or http://: write https://host:port")
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname or "", parts.port  # which is refused if it is no number of a port
        host.encode().decode("idna")
    except ValueError:  # the text of it may have a part of the value
        raise _malformed(name, "has a host or a port that is none: write https://host:port") from None
    if parts.username is not None or parts.query or parts.fragment or _NOT_IN_URLS & set(endpoint):
        raise _malformed(
            name, "is more than scheme, host, port and path: credentials have variables of their own"
        )
    # What ends in a number is an address or nothing for the client libraries.
    is_name = _NAME.fullmatch(host) and not _LIKE_A_NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])
    if not is_name and not _is_address(host):
        raise _malformed(name, "has a host that is none: write https://host:port")
    return host


def _is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host)) and "%" not in host
    except ValueError:
        return False


def _malformed(name: str, reason: str) -> StorageError:
    return StorageError(f"{name} in the environment {reason}", kind="configuration")


def _refuse_missing(options: Mapping[str, str], *, has_other_credentials: bool) -> None:
    missing = [] if options["aws_region"] else ["AWS_REGION"]
    if not has_other_credentials:
        keys = ("aws_access_key_id", "aws_secret_access_key")
        missing += [name.upper() for name in keys if not options[name]]
    if missing:
        raise StorageError(
            f"an s3:// address needs {', '.join(missing)} in the environment", kind="configuration"
        )


def refuse_file(root: GraphRoot) -> None:
    """Refuse a place on a disk that cannot be a folder.

    Raises:
        BadRequest: it is a file, a pipe or a device, or is below one.
    """
    if not root.is_local:
        return
    place = Path(root.uri)
    try:
        first = next((path for path in (place, *place.parents) if path.exists()), None)
        if first is None or first.is_dir():
            return
        kind = "a file" if first.is_file() else "a pipe or a device"
    except OSError:
        return  # the next step meets it too, and says what it is
    what = f"is {kind}" if first == place else f"is below {first}, which is {kind}"
    raise BadRequest(f"{place} {what}: a graph is a folder")
