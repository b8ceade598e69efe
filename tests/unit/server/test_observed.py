"""What is taken from the headers of a caller."""

import logging

import pytest
from opentelemetry import baggage, trace

from omnigraph.server.observed import trace_of

TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_request_is_in_the_trace_of_its_caller_and_carries_none_of_its_baggage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    headers = [(b"traceparent", TRACE), (b"baggage", b"token=secret, not an entry")]

    with caplog.at_level(logging.DEBUG):
        found = trace_of({"headers": headers})

    assert trace.get_current_span(found).get_span_context().trace_id == int(TRACE[3:35], 16)
    assert not baggage.get_all(found)
    assert "secret" not in caplog.text
    assert "entry" not in caplog.text
