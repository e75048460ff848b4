"""Server-sent events, however the network cuts them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mmbu_async.endpoints.sse import EventSplitter


def parsed(chunks: Iterable[bytes]) -> list[bytes]:
    splitter = EventSplitter()
    return [event for chunk in chunks for event in splitter.feed(chunk)] + splitter.end()


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"", []),
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a \n\n", [b" a "]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"event: x\ndata: a\nid: 1\nretry: 3\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": keep-alive\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n", [b"a"]),
        (b"data:\n\ndata: \n\ndata: a\n\n", [b"a"]),
        (b"database: a\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\n\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b'data: {"t":"\xe2\x80\xa8 \xc2\x85"}\n\n', [b'{"t":"\xe2\x80\xa8 \xc2\x85"}']),
        # No blank line, no line end at all, half a line end.
        (b"data: a\n\ndata: [DONE]\n", [b"a", b"[DONE]"]),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"data: a\n\ndata: [DONE]\r", [b"a", b"[DONE]"]),
    ],
)
def test_events(body: bytes, data: list[bytes]) -> None:
    assert parsed([body]) == data
    assert parsed([body[at : at + 1] for at in range(len(body))]) == data


LINES = st.sampled_from([b"data: one", b"data:two", b"data: ", b": note", b"", b"", b"\xef\xbb\xbf"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
BODY = st.lists(st.tuples(LINES, ENDS), max_size=12).map(lambda lines: b"".join(a + b for a, b in lines))


@example(body=b"data: a\r\n\r\ndata: b", cuts=[8])
@given(body=BODY, cuts=st.lists(st.integers(0, 120), max_size=8))
def test_where_the_network_cuts_changes_nothing(body: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[low:high] for low, high in pairwise(edges)]
    assert parsed(chunks) == parsed([body])
