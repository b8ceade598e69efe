"""What the server of a store answered, as both client libraries quote it.

R1  A message says what is wrong and what to do; it never repeats the answer itself or the endpoint.
"""

import re
from dataclasses import dataclass

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://"
_REQUEST = re.compile(rf"Error performing \w+ (?={_URL})|{_URL}\S+|, after \d+ retries.*?(?= - |$)")
_ACCESS_REFUSED = frozenset({"401", "403"})
_BEYOND_THE_END = "416"
_WORDS = {"s3": ("s3://",), "az": ("az://", "MicrosoftAzure"), "gs": ("gs://", "GCS")}  # tell the store
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY (or _SAS_KEY, or AZURE_CLIENT_SECRET)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT or GOOGLE_SERVICE_ACCOUNT_KEY",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What went wrong, and its kind; `kind` is `None` where the status does not decide it."""

    says: str
    kind: str | None = None


def is_missing_bucket(text: str) -> bool:
    """Say whether the server has no such bucket: then nothing inside it can be called missing."""
    return "<Code>NoSuchBucket</Code>" in text or "<Code>ContainerNotFound</Code>" in text


def scheme_of(text: str) -> str:
    """Return the scheme of the store that a text is about."""
    return next((scheme for scheme, words in _WORDS.items() if any(word in text for word in words)), "s3")


def read_answer(text: str, scheme: str, bucket: str | None = None) -> Answer:
    """Return what the error text of a client library says about the server's answer (R1)."""
    noun = "container" if scheme == "az" else "bucket"
    named = f"the {noun}" if bucket is None else f"{noun} '{bucket}'"
    if is_missing_bucket(text):
        return Answer(f"{named} does not exist: create it, or correct the address", "configuration")
    status, code = _STATUS.search(text), _CODE.search(text)
    reason = f" ({code[1]})" if code else ""
    if status is None:
        return Answer(_without_request(text))
    if status[1] in _ACCESS_REFUSED:
        remedy = f"check {_CREDENTIALS[scheme]}, and what they allow"
        return Answer(f"access to {named} was refused{reason}: {remedy}", "configuration")
    if status[1] == _BEYOND_THE_END:  # we ask for bytes that an object had when it was written
        return Answer(f"{named} holds fewer bytes of it than are asked for", "permanent")
    return Answer(f"{named} answered {status[1]}{reason}")


def _without_request(text: str) -> str:
    """Cut the request out of a failure that no server answered."""
    first = text.partition("\n")[0]
    return " ".join(_REQUEST.sub("", first).split())
