"""Output on its way from the agent's disk: all of it, in order, once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ade.agents.containers.attempt_folder import OutputSpool
from ade.agents.containers.delivery import PIECE_BYTES, OutputDelivery, SharedOutput
from ade.domain.errors import OutputGap, StaleAttempt, Unavailable
from ade.storage.attempt_logs import CUT_LINE, AttemptLogs, LogState

JOB = "01900000-0000-7000-8000-00000000000a"


class Sink(SharedOutput):
    """A shared folder that fails as it is told, before or after it has kept a piece."""

    def __init__(self, logs: AttemptLogs) -> None:
        super().__init__(logs, JOB, 1)
        self.logs = logs
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.calls = 0
        self.saw_last = False
        self.taken = asyncio.Event()

    async def append(self, offset_bytes: int, piece: bytes, *, is_last: bool) -> LogState:
        self.calls += 1
        if self.before:
            raise self.before.pop(0)
        state = await super().append(offset_bytes, piece, is_last=is_last)
        self.saw_last = self.saw_last or is_last
        self.taken.set()
        if self.after:
            raise self.after.pop(0)
        return state

    @property
    def kept(self) -> bytes:
        return self.logs.read(JOB, 0, 10**8)


@pytest.fixture
def output(tmp_path: Path) -> Iterator[OutputSpool]:
    made = OutputSpool(tmp_path / "output", 10**8)
    yield made
    made.close()


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    (tmp_path / "shared").mkdir()
    return Sink(AttemptLogs(tmp_path / "shared"))


async def test_output_is_delivered_while_it_grows(output: OutputSpool, sink: Sink) -> None:
    delivering = asyncio.create_task(OutputDelivery(output, sink, is_new=True).run())
    text = bytes(range(256)) * 4096
    for start in range(0, len(text), 100_000):
        await asyncio.to_thread(output.append, text[start : start + 100_000])
    async with asyncio.timeout(60):
        while len(sink.kept) < len(text) - PIECE_BYTES:
            sink.taken.clear()
            await sink.taken.wait()
    assert not sink.saw_last
    await asyncio.to_thread(output.complete)
    assert await delivering
    assert sink.kept == text
    assert sink.saw_last


async def test_what_is_kept_already_is_not_sent_again(output: OutputSpool, sink: Sink) -> None:
    output.append(b"one two three")
    sink.logs.append(JOB, 1, 0, b"one two")
    output.complete()
    assert await OutputDelivery(output, sink).run()
    assert (sink.kept, sink.calls) == (b"one two three", 1)


async def test_a_failure_before_or_after_a_piece_costs_and_doubles_nothing(
    output: OutputSpool, sink: Sink
) -> None:
    output.append(b"x" * PIECE_BYTES + b"y" * 10)
    output.complete()
    sink.before = [Unavailable("away")]
    sink.after = [Unavailable("the answer is lost")]
    assert await OutputDelivery(output, sink, is_new=True).run()
    assert sink.kept == b"x" * PIECE_BYTES + b"y" * 10


async def test_a_gap_goes_on_from_where_the_server_is(output: OutputSpool, sink: Sink) -> None:
    output.append(b"x" * PIECE_BYTES + b"tail")
    output.complete()
    sink.before = [OutputGap("it lost some", held_bytes=0)]
    assert await OutputDelivery(output, sink, is_new=True).run()
    assert sink.kept == b"x" * PIECE_BYTES + b"tail"


async def test_an_attempt_that_is_over_gets_no_more(output: OutputSpool, sink: Sink) -> None:
    output.append(b"late")
    output.complete()
    sink.before = [StaleAttempt("over")]
    assert not await OutputDelivery(output, sink).run()
    assert (sink.kept, sink.calls) == (b"", 1)


async def test_a_server_that_takes_no_more_gets_no_more(
    output: OutputSpool, tmp_path: Path
) -> None:
    sink = Sink(AttemptLogs(tmp_path, bytes_max=4))
    output.append(b"123456")
    delivering = asyncio.create_task(OutputDelivery(output, sink, is_new=True).run())
    async with asyncio.timeout(60):
        await sink.taken.wait()
    output.append(b"78")
    output.complete()
    assert await delivering
    assert (sink.kept, sink.calls) == (b"1234" + CUT_LINE, 1)
