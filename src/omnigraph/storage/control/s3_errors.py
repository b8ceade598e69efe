"""What an S3-compatible server answered, as both client libraries quote it.

R1  A message says what is wrong and what to do; it never repeats the answer itself or the endpoint.
"""

import re
from dataclasses import dataclass

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_REQUEST = re.compile(r"Error performing \w+ (?=https?://)|https?://\S+|, after \d+ retries.*?(?= - |$)")
_ACCESS_REFUSED = frozenset({"401", "403"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What went wrong, and its kind; `kind` is `None` where the status does not decide it."""

    says: str
    kind: str | None = None


def is_missing_bucket(text: str) -> bool:
    """Say whether the server has no such bucket: then nothing inside it can be called missing."""
    return "<Code>NoSuchBucket</Code>" in text or "<Code>ContainerNotFound</Code>" in text


def read_answer(text: str, bucket: str | None = None) -> Answer:
    """Return what the error text of a client library says about the server's answer (R1)."""
    named = "the bucket" if bucket is None else f"bucket '{bucket}'"
    if is_missing_bucket(text):
        return Answer(f"{named} does not exist: create it, or correct the address", "configuration")
    status, code = _STATUS.search(text), _CODE.search(text)
    reason = f" ({code[1]})" if code else ""
    if status is None:
        return Answer(_without_request(text))
    if status[1] in _ACCESS_REFUSED:
        remedy = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and what they allow"
        return Answer(f"access to {named} was refused{reason}: {remedy}", "configuration")
    return Answer(f"{named} answered {status[1]}{reason}")


def _without_request(text: str) -> str:
    """Cut the request out of a failure that no server answered."""
    first = text.partition("\n")[0]
    return " ".join(_REQUEST.sub("", first).split())
