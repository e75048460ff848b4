"""Ctrl-C once, Ctrl-C twice, and no handler left behind."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from mmbu_async.errors import InterruptedRunError
from mmbu_async.pipeline.signals import draining_signals
from mmbu_async.pipeline.stop import Stop


async def turn() -> None:
    """Let the loop take in a signal."""
    for _ in range(3):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_the_first_signal_asks_to_drain(number: signal.Signals) -> None:
    stop = Stop()
    with draining_signals(stop, "`mmbu resume night`"):
        os.kill(os.getpid(), number)
        await turn()
    assert isinstance(stop.reason, InterruptedRunError)
    assert number.name in str(stop.reason)
    assert str(stop.reason).endswith("`mmbu resume night` continues.")


async def test_the_second_signal_aborts() -> None:
    stop = Stop()

    async def work() -> None:
        with draining_signals(stop, "`mmbu resume night`"):
            os.kill(os.getpid(), signal.SIGTERM)
            await turn()
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.create_task(work()), 10)


async def test_no_handler_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with draining_signals(Stop(), "night"):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) in (before, signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
