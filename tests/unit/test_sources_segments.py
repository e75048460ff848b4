"""The cache of decoded segments: one pass for rows in order, bounded memory, no thread that waits in vain."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mmbu_async.sources import segments
from mmbu_async.sources.segments import Segments


class Segment:
    """Stands for an Arrow array."""

    nbytes = 10

    def __init__(self, number: int) -> None:
        self.number = number


class Column:
    """Counts what is decoded."""

    def __init__(self, count: int = 10) -> None:
        self.count = count
        self.decoded: list[int] = []

    def __call__(self) -> Iterator[Segment]:
        for number in range(self.count):
            self.decoded.append(number)
            yield Segment(number)


def test_rows_in_order_take_one_pass() -> None:
    cache, column = Segments(kept_bytes=30), Column()
    for number in (0, 0, 1, 0, 1, 2, 4, 3, 2, 5, 5, 9):
        assert cache.get("c", number, column).number == number
    assert column.decoded == list(range(10))


def test_a_segment_that_was_given_up_takes_another_pass() -> None:
    cache, column = Segments(kept_bytes=30), Column()
    for number in (5, 0):
        assert cache.get("c", number, column).number == number
    assert column.decoded == [0, 1, 2, 3, 4, 5, 0]


def test_memory_is_bounded_and_what_was_used_last_stays() -> None:
    cache, columns = Segments(kept_bytes=30), {name: Column() for name in "abc"}
    for name in "abc":
        cache.get(name, 0, columns[name])
    cache.get("a", 0, columns["a"])
    cache.get("c", 1, columns["c"])
    assert cache._bytes == 30
    cache.get("a", 0, columns["a"])
    assert columns["a"].decoded == [0]
    cache.get("b", 0, columns["b"])
    assert columns["b"].decoded == [0, 0]


def test_one_segment_is_kept_though_it_is_too_large() -> None:
    cache, column = Segments(kept_bytes=5), Column()
    for _ in range(3):
        cache.get("c", 1, column)
    assert column.decoded == [0, 1]


def test_few_columns_stay_open() -> None:
    cache, columns = Segments(kept_bytes=0, cursors=2), {name: Column() for name in "abc"}
    for name in "abca":
        cache.get(name, 1, columns[name])
    assert len(cache._cursors) == 2
    assert columns["a"].decoded == [0, 1, 0, 1]


def test_behind_the_last_segment_there_is_none() -> None:
    cache, column = Segments(), Column(2)
    with pytest.raises(IndexError):
        cache.get("c", 2, column)
    assert cache.get("c", 1, column).number == 1


def test_a_failure_is_not_kept() -> None:
    cache, column = Segments(), Column(3)

    def broken() -> Iterator[Segment]:
        yield Segment(0)
        raise OSError("damaged")

    for _ in range(2):
        with pytest.raises(OSError, match="damaged"):
            cache.get("c", 2, broken)
    assert cache.get("c", 2, column).number == 2


class NoticedLock:
    """Tells when somebody comes to it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.comers = threading.Semaphore(0)

    def __enter__(self) -> None:
        self.comers.release()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_threads_that_want_the_same_segment_decode_it_once() -> None:
    cache, column, go_on = Segments(), Column(), threading.Event()
    cache._cursors["c"] = cursor = segments._Cursor()
    cursor.lock = noticed = NoticedLock()  # type: ignore[assignment]

    def slow() -> Iterator[Segment]:
        assert go_on.wait(30)
        yield from column()

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(cache.get, "c", 6, slow) for _ in range(8)]
        for _ in waiting:
            assert noticed.comers.acquire(timeout=30)
        go_on.set()
        assert [each.result(30).number for each in waiting] == [6] * 8
    assert column.decoded == list(range(7))


def test_a_column_that_is_being_decoded_does_not_hold_up_another() -> None:
    cache, other = Segments(), Column()
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Segment]:
        entered.set()
        assert go_on.wait(30)
        yield Segment(0)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.get, "slow", 0, slow)
        assert entered.wait(30)
        assert cache.get("other", 3, other).number == 3
        go_on.set()
        assert waiting.result(30).number == 0
