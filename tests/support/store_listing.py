"""Listings of the store of the tests, made as fast as a store makes them.

The server looks through every object of a bucket for each listing, and takes a tenth of a second to describe
a thousand of them: with that a commit would seem to cost more the more versions there are.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from moto import settings
from moto.s3.models import FakeKey, S3Backend

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

NAMES_MAX = 1_000  # of one answer, in every store
_KNOWN = frozenset({"list-type", "prefix", "delimiter", "continuation-token", "start-after", "max-keys"})


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which names a listing is to have."""

    prefix: str
    delimiter: str
    after: str
    names_max: int


def with_quick_listings(application: "WSGIApplication", backend: S3Backend) -> "WSGIApplication":
    """Return an application that answers listings as clients make them, and passes on the rest."""

    def answer(environ: "WSGIEnvironment", respond: "StartResponse") -> Iterable[bytes]:
        bucket, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        is_listing = environ["REQUEST_METHOD"] == "GET" and query.get("list-type") == ["2"] and not key
        is_open = float("inf") == settings.INITIAL_NO_AUTH_ACTION_COUNT  # it refuses nobody
        if not is_listing or not is_open or not query.keys() <= _KNOWN or bucket not in backend.buckets:
            return application(environ, respond)
        content = _listed(backend.buckets[bucket].keys, _asked(query))
        respond("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
        return [content]

    return answer


def _asked(query: dict[str, list[str]]) -> _Asked:
    first = {name: values[0] for name, values in query.items()}
    token = first.get("continuation-token", "")
    after = base64.urlsafe_b64decode(token).decode() if token else first.get("start-after", "")
    names_max = min(int(first.get("max-keys", NAMES_MAX)), NAMES_MAX)
    return _Asked(first.get("prefix", ""), first.get("delimiter", ""), after, names_max)


def _listed(objects: dict[str, FakeKey], asked: _Asked) -> bytes:
    names, last = list(objects), ""
    shown: list[str] = []
    for name in sorted(name for name in names if name.startswith(asked.prefix) and name > asked.after):
        folder = _folder(name, asked)
        if folder and folder in {last, asked.after}:
            continue
        if len(shown) == asked.names_max:
            break
        found = None if folder else objects.get(name)
        if folder:
            shown.append(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>")
        elif found is not None:  # it may have been removed since
            shown.append(_described(name, found))
        last = folder or name
    else:
        return _document(shown, token="")
    return _document(shown, token=base64.urlsafe_b64encode(last.encode()).decode())


def _folder(name: str, asked: _Asked) -> str:
    """Return the folder that stands for a name, if the listing is not of all that lies below."""
    if not asked.delimiter:
        return ""
    rest, found, _ = name[len(asked.prefix) :].partition(asked.delimiter)
    return f"{asked.prefix}{rest}{found}" if found else ""


def _described(name: str, found: FakeKey) -> str:
    return (
        f"<Contents><Key>{escape(name)}</Key><LastModified>{found.last_modified_ISO8601}</LastModified>"
        f"<ETag>{escape(found.etag)}</ETag><Size>{found.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def _document(shown: list[str], *, token: str) -> bytes:
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>{'true' if token else 'false'}</IsTruncated><KeyCount>{len(shown)}</KeyCount>"
        f"{''.join(shown)}{more}</ListBucketResult>"
    ).encode()
