"""Output on its way to the store: live, in few calls, and not lost while the store is away."""

import asyncio
from dataclasses import replace

import pytest
from tests.processes import aeventually
from tests.unit.worker.bench import LIMITS, Bench, ref

from ade.domain.errors import LeaseLost, Unavailable
from ade.domain.events import EventType
from ade.domain.job import StopRequest
from ade.domain.output import BATCH_BYTES_MAX, PieceBatch, pieces_of
from ade.events.output_log import LogPiece, follow_output, read_pieces
from ade.stages.output import OutputAppend
from ade.store.rows import JobRow, LeaseRef
from ade.worker.attempt_output import AttemptOutput

LEASE = LeaseRef("w", "j", 1)
PATIENCE_SECONDS = 20


class Calls:
    """Be the store of one attempt: hold what it was sent, or be away."""

    def __init__(self) -> None:
        self.sent: list[OutputAppend] = []
        self.kept: dict[int, PieceBatch] = {}
        self.error: Exception | None = None
        self.called = asyncio.Event()

    async def store(self, append: OutputAppend) -> None:
        """Keep output, each batch once."""
        self.sent.append(append)
        self.called.set()
        if self.error is not None:
            raise self.error
        self.keep(append)

    def keep(self, append: OutputAppend | None) -> None:
        """Keep what was sent."""
        for batch in append.batches if append else ():
            self.kept[batch.starts] = batch

    @property
    def text(self) -> str:
        """Return all that was kept."""
        batches = [self.kept[starts] for starts in sorted(self.kept)]
        return "".join(piece.text for batch in batches for piece in pieces_of(batch.pieces))

    async def called_again(self) -> None:
        """Wait for the next call."""
        self.called.clear()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.called.wait()


async def test_who_writes_nothing_calls_nothing() -> None:
    calls = Calls()
    output = AttemptOutput(LEASE, 256, calls.store)
    assert await output.close() is None
    assert calls.sent == []


async def test_many_small_writes_are_one_call() -> None:
    calls = Calls()
    output = AttemptOutput(LEASE, 256, calls.store)
    for number in range(100):
        output.take("stdout", f"{number}\n".encode())
    await calls.called_again()
    assert len(calls.sent) == 1
    assert calls.text == "".join(f"{number}\n" for number in range(100))
    assert await output.close() is None


async def test_what_is_short_goes_with_the_end() -> None:
    calls = Calls()
    output = AttemptOutput(LEASE, 256, calls.store)
    output.take("stdout", b"hello")
    left = await output.close()
    assert left is not None
    assert [pieces_of(batch.pieces)[0].text for batch in left.batches] == ["hello"]
    assert calls.sent == []


async def test_a_whole_batch_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ade.worker.attempt_output.FLUSH_SECONDS", 3600)
    calls = Calls()
    output = AttemptOutput(LEASE, 256, calls.store)
    output.take("stdout", b"x" * BATCH_BYTES_MAX)
    await calls.called_again()
    assert len(calls.text) == BATCH_BYTES_MAX
    await output.close()


async def test_output_waits_while_the_store_is_away() -> None:
    calls = Calls()
    calls.error = Unavailable("It is a test.")
    output = AttemptOutput(LEASE, 256, calls.store)
    output.take("stdout", b"one ")
    await calls.called_again()
    output.take("stdout", b"two")
    calls.keep(await output.close())
    assert calls.text == "one two"


async def test_who_lost_the_lease_sends_no_more() -> None:
    calls = Calls()
    calls.error = LeaseLost("It is a test.")
    output = AttemptOutput(LEASE, 256, calls.store)
    output.take("stdout", b"one")
    await calls.called_again()
    await aeventually(lambda: output._storing is None or output._storing.done())
    assert len(calls.sent) == 1


async def test_a_step_is_said_once() -> None:
    calls = Calls()
    output = AttemptOutput(LEASE, 256, calls.store)
    for message in ("reading", "writing", "writing", "", "writing"):
        output.take_step(message)
    calls.keep(await output.close())
    assert calls.text == "reading\nwriting\n"


# --- a worker over a real store -------------------------------------------------------------------


async def pieces(bench: Bench, job: JobRow) -> list[LogPiece]:
    """Read the log of a job."""
    return await bench.kernel.read(lambda reading: read_pieces(reading, ref(job)))


async def written(bench: Bench, job: JobRow, text: str) -> LogPiece:
    """Wait until a job has written something."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for found in follow_output(bench.kernel, ref(job), 0):
            for piece in found:
                if text in piece.text:
                    return piece
    raise AssertionError(f"the job ended without {text!r}")


async def test_output_is_there_before_the_job_ends(bench: Bench) -> None:
    job = await bench.submit(do="print_and_stay", text="hello")
    async with bench.working():
        await written(bench, job, "hello\n")
        assert (await bench.job(job)).status == "running"


@pytest.mark.parametrize(
    ("request_", "event"),
    [(StopRequest.CANCEL, EventType.CANCELLED), (StopRequest.PAUSE, EventType.PAUSED)],
)
async def test_a_stopped_job_keeps_its_output_in_log_and_result(
    bench: Bench, request_: StopRequest, event: EventType
) -> None:
    job = await bench.submit(do="print_and_stay", text="hello")
    async with bench.working():
        await written(bench, job, "hello\n")
        await bench.stop(job, request_)
        await bench.event(job, event)
    assert (await bench.result(job))["outputs"]["stdout"] == "hello\n"
    assert [piece.text for piece in await pieces(bench, job) if piece.stream == "stdout"] == [
        "hello\n"
    ]


async def test_a_stopped_job_whose_files_cannot_be_kept_is_stopped_and_says_so(
    bench: Bench,
) -> None:
    """The worker of the bench has nowhere to keep files."""
    limits = replace(LIMITS, max_artifacts=5)
    job = await bench.submit(do="print_and_stay", text="hello", file="a.txt", limits=limits)
    async with bench.working():
        await written(bench, job, "hello\n")
        await bench.stop(job, StopRequest.CANCEL)
        ended = await bench.ended(job)
    assert (ended.status, ended.error) == ("cancelled", None)
    result = await bench.result(job)
    assert result["outputs"]["stdout"] == "hello\n"
    assert result["logs"][-1]["message"].startswith("The job's files were not kept: ")


async def test_a_job_that_prints_nothing_costs_no_call(bench: Bench) -> None:
    job = await bench.submit(value=1)
    async with bench.working():
        await bench.ended(job)
    assert "append_output" not in bench.store.asked
    assert await pieces(bench, job) == []


async def test_short_output_costs_no_call_either(bench: Bench) -> None:
    job = await bench.submit(value=1, print="hello")
    async with bench.working():
        await bench.ended(job)
    assert "append_output" not in bench.store.asked
    assert [piece.text for piece in await pieces(bench, job)] == ["hello\n"]


async def test_output_survives_a_store_that_was_away(bench: Bench) -> None:
    bench.store.trouble("fails", "append_output")
    job = await bench.submit(do="print_and_stay", text="hello", seconds=1.5)
    async with bench.working():
        await bench.ended(job)
    assert "append_output" in bench.store.asked
    assert [piece.text for piece in await pieces(bench, job) if piece.stream == "stdout"] == [
        "hello\n"
    ]


async def test_an_answer_that_does_not_come_does_not_hold_up_the_end(bench: Bench) -> None:
    bench.store.trouble("hangs", "append_output")
    job = await bench.submit(do="print_and_stay", text="hello", seconds=1.5)
    async with bench.working():
        assert (await bench.ended(job)).status == "succeeded"
    assert [piece.text for piece in await pieces(bench, job) if piece.stream == "stdout"] == [
        "hello\n"
    ]
