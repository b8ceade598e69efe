"""References to bytes elsewhere: which bases a schema may name, and which URIs lie below them.

X1  A reference is compared with its bases letter by letter, as written: nothing is decoded, folded or
    resolved to make it fit. So scheme, host and port have one spelling.
X2  What some reader could take for another host, a folder above the base or a second line is refused, never
    repaired: dots, slashes and control characters behind `%`, also those that Unicode folds to them.
X3  There are no credentials in it: no user info, and no parameter of a query that is named like one.
X4  Nothing is looked up. Whether there is something at a URI is the business of whoever follows it.
"""

import re
import unicodedata
from collections.abc import Sequence
from ipaddress import IPv6Address
from urllib.parse import unquote_to_bytes

from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX, EXTERNAL_URI_BYTES_MAX

SCHEMES = ("az", "file", "gs", "http", "https", "s3")
CREDENTIAL_WORDS = (  # a parameter whose name, without marks and case, has one of these may be a credential
    *("auth", "cred", "hdnts", "hmac", "jwt", "key", "pass", "pwd", "sas", "secret", "session", "sig"),
    *("ticket", "token"),
)
_WEB = frozenset({"http", "https"})
_PORT_MAX = 65_535
_BASES_SHOWN = 3
_FOREIGN = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")  # RFC 3986 has no other character
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)(/[^?]*)?(\?.*)?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_HOST = re.compile(rf"({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::([1-9][0-9]{{0,4}}))?")
_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._~-]*")  # means the same to everybody
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control, format, surrogate, line and paragraph


class _Unfit(Exception):
    """Why a text is no base, or no reference."""


def base_fault(text: str) -> str | None:
    """Return why a text is no base of references, or `None` if it is one."""
    try:
        _, path, query = _checked(text)
        if query is not None:
            raise _Unfit("a base has no query")
        if not path.endswith("/"):
            raise _Unfit("a base ends with '/'")
    except _Unfit as unfit:
        return str(unfit)
    return None


def form_fault(text: str) -> str | None:
    """Return why a text is a reference below no base at all, or `None` if it can be one (X2, X3)."""
    try:
        _checked(text)
    except _Unfit as unfit:
        return str(unfit)
    return None


def reference_fault(text: str, bases: Sequence[str]) -> str | None:
    """Return why a text is no reference below one of these bases, or `None` if it is one."""
    return form_fault(text) or outside_fault(text, bases)


def outside_fault(text: str, bases: Sequence[str]) -> str | None:
    """Return why a reference is below none of these bases, or `None` if it is below one (X1)."""
    if any(_is_below(text, base) for base in bases):
        return None
    shown = ", ".join(bases[:_BASES_SHOWN])
    more = len(bases) - _BASES_SHOWN
    return f"it is not below {shown}{f' or {more} more' if more > 0 else ''}"


def _is_below(text: str, base: str) -> bool:
    """Return whether something follows the base; a query alone names the base itself."""
    return text.startswith(base) and len(text) > len(base) and text[len(base)] != "?"


def _checked(text: str) -> tuple[str, str, str | None]:
    """Return scheme, path and query of a URI that everybody reads alike (X2, X3)."""
    if not text:
        raise _Unfit("it is empty")
    if len(text) > EXTERNAL_URI_BYTES_MAX:
        raise _Unfit(f"it has {len(text)} characters, and a URI has at most {EXTERNAL_URI_BYTES_MAX}")
    foreign = _FOREIGN.search(text)
    if foreign:
        found = f"U+{ord(foreign.group()):04X}"
        raise _Unfit(f"a URI has no character {found}, as at position {foreign.start()}: encode it with '%'")
    if _BARE_PERCENT.search(text):
        raise _Unfit("behind a '%' are two hexadecimal digits")
    if "#" in text:
        raise _Unfit("it has a fragment: a '#' of a name is written %23")
    parts = _URI.fullmatch(text)
    if parts is None:
        raise _Unfit("it is not absolute: it begins with a scheme and '://', as in s3://bucket/")
    scheme, authority, path, query = parts.groups()
    _check_scheme(scheme)
    _check_authority(scheme, authority)
    if path is None:
        raise _Unfit("there is no path behind its host")
    *folders, last = path[1:].split("/")
    for segment in folders:
        _check_segment(segment)
    if last:
        _check_segment(last)
    if query is not None:
        _check_query(scheme, query[1:])
    return scheme, path, query


def _check_scheme(scheme: str) -> None:
    if scheme.lower() not in SCHEMES:
        raise _Unfit(f"its scheme is none of {', '.join(SCHEMES)}")
    if scheme != scheme.lower():
        raise _Unfit("its scheme is written in small letters")


def _check_authority(scheme: str, authority: str) -> None:
    if "@" in authority:
        raise _Unfit("it has user info before a '@': credentials are kept out of a graph")
    if scheme == "file":
        if authority:
            raise _Unfit("a file has no host: it is written file:///folder/name")
        return
    if not authority:
        raise _Unfit("it has no host")
    if authority != authority.lower():
        raise _Unfit("its host is written in small letters")
    found = _HOST.fullmatch(authority)
    if found is None:
        raise _Unfit(f"'{_cut(authority)}' is no name of a host or bucket")
    host, port = found.groups()
    if scheme not in _WEB and (port is not None or host.startswith("[")):
        raise _Unfit(f"'{_cut(authority)}' is no name of a bucket")
    if port is not None and int(port) > _PORT_MAX:
        raise _Unfit(f"there is no port {port}")
    if host.startswith("["):
        _check_address(host[1:-1])


def _check_address(address: str) -> None:
    try:
        known = str(IPv6Address(address))
    except ValueError:
        raise _Unfit(f"[{_cut(address)}] is no address of a host") from None
    if known != address:  # one host has one spelling (X1)
        raise _Unfit(f"its host is written [{known}]")


def _check_segment(segment: str) -> None:
    """Refuse a part of a path that some reader does not take for one plain name (X2)."""
    if _PLAIN_SEGMENT.fullmatch(segment):
        return
    if not segment:
        raise _Unfit("it has an empty name in its path ('//')")
    name = _unescaped(segment, f"'{_cut(segment)}'")
    if "/" in name or "\\" in name:
        raise _Unfit(f"'{_cut(segment)}' has a slash behind '%'")
    if "[" in segment or "]" in segment:
        raise _Unfit(f"'{_cut(segment)}' has a bracket, which is written %5B or %5D")
    # Some servers cut what follows a ';' from a name, others the blanks at its ends.
    if not name.partition(";")[0].strip().strip("."):
        raise _Unfit(f"'{_cut(segment)}' can lead to another folder")


def _check_query(scheme: str, query: str) -> None:
    """Refuse a query that may hold a credential (X3)."""
    if scheme not in _WEB:
        raise _Unfit(f"{scheme} has no query: a '?' of a name is written %3F")
    for parameter in re.split("[&;]", query):
        said = _unescaped(parameter, "its query")
        name = re.sub("[^a-z0-9]", "", said.partition("=")[0].lower())
        word = next((word for word in CREDENTIAL_WORDS if word in name), None)
        if word is not None:
            raise _Unfit(
                f"its query may hold a credential: the name of a parameter has '{word}' in it, and"
                " credentials are kept out of a graph"
            )


def _unescaped(text: str, part: str) -> str:
    """Return what a part of a URI says, folded as lenient readers fold it (X2)."""
    try:
        said = unicodedata.normalize("NFKC", unquote_to_bytes(text).decode())
    except UnicodeDecodeError:
        raise _Unfit(f"{part} is not UTF-8 behind its '%'") from None
    if any(unicodedata.category(character) in _UNSEEN for character in said):
        raise _Unfit(f"{part} has a control character behind '%'")
    if _ESCAPE.search(said):
        raise _Unfit(f"{part} is encoded twice")
    return said


def _cut(text: str) -> str:
    return text if len(text) <= DIAGNOSTIC_EXCERPT_MAX else f"{text[:DIAGNOSTIC_EXCERPT_MAX]}…"
