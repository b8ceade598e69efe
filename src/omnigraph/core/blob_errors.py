"""What can be wrong with the bytes of a Blob, beside the graph they are in."""

from omnigraph.core.errors import OmnigraphError

NOT_FOLLOWED = "is a reference to bytes elsewhere, which a graph does not follow: read them from there"


class ExternalBlobError(OmnigraphError):
    """A value is a reference to bytes elsewhere, which a graph never follows, or is no reference at all."""

    code = None
    detail = "external_blob_source"
    status = 424

    def __init__(self, *, uri: str, reason: str) -> None:
        """Take the reference, and why its bytes are not given."""
        super().__init__(f"'{uri}' {reason}")
        self.uri, self.reason = uri, reason


class BlobRangeError(OmnigraphError):
    """A value does not have the bytes that were asked for."""

    code = "bad_request"
    detail = "blob_range"
    status = 416

    def __init__(self, *, start: int, end: int | None, length: int) -> None:
        """Take the range, whose end may be open, and how long the value is."""
        until = "" if end is None else end
        super().__init__(f"range [{start}, {until}) outside a value of length {length}")
        self.start, self.end, self.length = start, end, length
