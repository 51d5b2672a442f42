"""What a child writes is taken without blocking it and without growing past its bound."""

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.processes import aeventually

from ade.sandbox.streams import CHUNK_BYTES, BoundedOutput, LineSplitter, PipeReader


def test_bounded_keeps_what_fits() -> None:
    kept = BoundedOutput(5)
    kept.take(b"abc")
    kept.take(b"de")
    assert kept.text() == "abcde"
    assert kept.dropped_bytes == 0


def test_bounded_says_how_much_it_dropped() -> None:
    kept = BoundedOutput(5)
    kept.take(b"abcd")
    kept.take(b"efgh")
    kept.take(b"ij")
    assert kept.dropped_bytes == 5
    assert kept.text() == "ab\n[output cut: 5 bytes were dropped here]\nhij"


def test_bounded_survives_a_character_that_was_cut_in_two() -> None:
    kept = BoundedOutput(6)
    kept.take("aé€€€€".encode())
    assert kept.text().startswith("aé\n")
    assert kept.text().endswith("]\n€")


@given(st.lists(st.binary(max_size=40)), st.integers(0, 100))
def test_bounded_counts_every_byte(pieces: list[bytes], bytes_max: int) -> None:
    kept = BoundedOutput(bytes_max)
    for piece in pieces:
        kept.take(piece)
    assert kept.dropped_bytes == max(0, sum(map(len, pieces)) - bytes_max)


@given(
    st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b".")), max_size=10), st.data()
)
def test_lines_are_the_same_however_the_stream_is_cut(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    heard: list[bytes] = []
    taken = LineSplitter(1000, heard.append)
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        taken.take(stream[:size])
        stream = stream[size:]
    assert heard == lines
    assert not taken.overflowed


def test_a_line_without_an_end_is_not_heard() -> None:
    heard: list[bytes] = []
    LineSplitter(100, heard.append).take(b"whole\nhalf")
    assert heard == [b"whole"]


@pytest.mark.parametrize("piece", [b"x" * 11, b"x" * 11 + b"\n", b"ok\n" + b"x" * 11])
def test_a_line_that_is_too_long_ends_the_intake(piece: bytes) -> None:
    heard: list[bytes] = []
    taken = LineSplitter(10, heard.append)
    taken.take(piece)
    taken.take(b"later\n")
    assert taken.overflowed
    assert set(heard) <= {b"ok"}


async def test_intake_reads_a_pipe_to_its_end() -> None:
    reading, writing = os.pipe()
    pieces: list[bytes] = []
    intake = PipeReader(reading, pieces.append)
    sent = os.urandom(3 * CHUNK_BYTES)
    await asyncio.to_thread(_write_all, writing, sent)  # more than a pipe holds: it is being read
    async with asyncio.timeout(10):
        await intake.ended.wait()
    assert b"".join(pieces) == sent


async def test_intake_closes_its_end_once() -> None:
    reading, writing = os.pipe()
    intake = PipeReader(reading, lambda piece: None)
    intake.close()
    intake.close()
    assert intake.ended.is_set()
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"x")
    os.close(writing)


async def test_the_reader_does_not_wait_for_a_process_that_keeps_the_pipe_open() -> None:
    reading, writing = os.pipe()
    heard: list[bytes] = []
    intake = PipeReader(reading, heard.append)
    os.write(writing, b"said")
    await aeventually(lambda: heard)
    assert not intake.ended.is_set()
    intake.close()
    os.close(writing)


def _write_all(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
