"""The output of an attempt: all of it below the limit, its two ends above it, whole characters."""

from hypothesis import given
from hypothesis import strategies as st

from ade.domain.output import BATCH_BYTES_MAX, Piece, PieceBatch, pieces_of
from ade.worker.output_buffer import PENDING_PIECES_MAX, OutputBuffer

LARGE = 10**6
STREAMS = st.sampled_from(["stdout", "stderr"])
WRITES = st.lists(st.tuples(STREAMS, st.binary(max_size=12)), max_size=40)
TEXTS = st.text(st.sampled_from("aé漢🎈\n"), max_size=60)


class Stored:
    """Be the store: hold the batches of one attempt, and drop what need not be kept."""

    def __init__(self, buffer: OutputBuffer) -> None:
        self.buffer = buffer
        self.batches: list[PieceBatch] = []

    def store(self) -> None:
        """Store what there is, as the stage does."""
        batches, dropped = self.buffer.unstored()
        ends = self.batches[-1].ends if self.batches else 0
        self.batches += [batch for batch in batches if batch.starts >= ends]
        if dropped is not None:
            starts, ends = dropped
            self.batches = [b for b in self.batches if b.starts < starts or b.ends > ends]
        self.buffer.stored(batches)
        assert self.buffer.is_empty

    @property
    def pieces(self) -> list[Piece]:
        """Return what is stored."""
        return [piece for batch in self.batches for piece in pieces_of(batch.pieces)]

    def text(self, stream: str) -> str:
        """Return what is stored of a stream."""
        return "".join(piece.text for piece in self.pieces if piece.stream == stream)


def written(writes: list[tuple[str, bytes]], bytes_max: int = LARGE, every: int = 3) -> Stored:
    """Write, and store now and then."""
    stored = Stored(OutputBuffer(bytes_max))
    for number, (stream, data) in enumerate(writes):
        stored.buffer.take(stream, data)
        if number % every == 0:
            stored.store()
    stored.buffer.end()
    stored.store()
    return stored


@given(WRITES, st.integers(1, 5))
def test_below_the_limit_each_stream_is_whole_however_it_was_read(
    writes: list[tuple[str, bytes]], every: int
) -> None:
    stored = written(writes, every=every)
    for stream in ("stdout", "stderr"):
        whole = b"".join(data for name, data in writes if name == stream)
        assert stored.text(stream) == whole.decode("utf-8", "replace")


@given(TEXTS, st.data())
def test_characters_are_whole_wherever_the_stream_is_cut(text: str, data: st.DataObject) -> None:
    stream, writes = text.encode(), list[tuple[str, bytes]]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        writes.append(("stdout", stream[:size]))
        stream = stream[size:]
    stored = written(writes, every=2)
    assert stored.text("stdout") == text
    assert "\ufffd" not in "".join(piece.text for piece in stored.pieces)


@given(WRITES)
def test_below_the_limit_pieces_follow_each_other(writes: list[tuple[str, bytes]]) -> None:
    pieces = written(writes).pieces
    assert [piece.starts for piece in pieces] == [0, *[piece.ends for piece in pieces]][:-1]


@given(TEXTS, st.integers(0, 100), st.integers(1, 4), st.data())
def test_above_the_limit_both_ends_are_kept(
    text: str, bytes_max: int, every: int, data: st.DataObject
) -> None:
    whole = text.encode()
    rest, writes = whole, list[tuple[str, bytes]]()
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        writes.append(("stdout", rest[:size]))
        rest = rest[size:]
    pieces = written(writes, bytes_max, every).pieces
    kept = b"".join(piece.text.encode() for piece in pieces)
    for piece in pieces:
        assert whole[piece.starts : piece.ends].decode() == piece.text
    head_max, tail_max = bytes_max // 2, bytes_max - bytes_max // 2
    if len(whole) <= bytes_max:
        assert kept == whole
    else:
        # Each end may lack a part of the character at which it was cut.
        assert len(kept) >= bytes_max - 2 * 3
        begins = max((piece.ends for piece in pieces if piece.starts < head_max), default=0)
        assert begins >= head_max - 3
        if tail_max > 3:
            assert pieces[-1].ends == len(whole)


def test_a_job_that_prints_without_end_has_a_log_of_limited_size() -> None:
    bytes_max = 8 * BATCH_BYTES_MAX
    stored = Stored(OutputBuffer(bytes_max))
    line = b"x" * 1000
    for number in range(5000):
        stored.buffer.take("stdout", line)
        if number % 7 == 0:
            stored.store()
    stored.store()
    kept = sum(len(piece.text) for piece in stored.pieces)
    assert bytes_max <= kept <= bytes_max + BATCH_BYTES_MAX
    first, *_, last = stored.pieces
    assert (first.starts, last.ends) == (0, 5000 * len(line))
    (gap,) = [
        after.starts - before.ends
        for before, after in zip(stored.pieces, stored.pieces[1:], strict=False)
        if after.starts != before.ends
    ]
    assert gap == 5000 * len(line) - kept


def test_what_is_not_stored_is_limited_too() -> None:
    buffer = OutputBuffer(4 * BATCH_BYTES_MAX)
    for _ in range(20):
        buffer.take("stdout", b"x" * BATCH_BYTES_MAX)
        batches, _ = buffer.unstored()  # the database is away: nothing is stored
    assert sum(batch.ends - batch.starts for batch in batches) <= 5 * BATCH_BYTES_MAX


def test_a_batch_is_limited_in_bytes_and_pieces() -> None:
    buffer = OutputBuffer(LARGE)
    for _ in range(PENDING_PIECES_MAX + 500):
        buffer.take("stdout", b"o")
        buffer.take("stderr", b"e")
    buffer.take("stdout", "é".encode() * BATCH_BYTES_MAX)
    batches, _ = buffer.unstored()
    assert max(batch.piece_count for batch in batches) <= 1000
    assert max(batch.ends - batch.starts for batch in batches) <= BATCH_BYTES_MAX
    assert len(batches) > 4


def test_the_same_batches_are_sent_until_they_are_stored() -> None:
    buffer = OutputBuffer(LARGE)
    buffer.take("stdout", b"one")
    first, _ = buffer.unstored()
    buffer.take("stdout", b"two")
    again, _ = buffer.unstored()
    assert again[: len(first)] == first
    buffer.stored(first)
    rest, _ = buffer.unstored()
    assert [pieces_of(batch.pieces) for batch in rest] == [[Piece("stdout", 3, "two")]]


def test_a_first_batch_is_due_before_its_time() -> None:
    buffer = OutputBuffer(LARGE)
    buffer.take("stdout", b"x")
    assert not buffer.is_due
    buffer.take("stdout", b"x" * BATCH_BYTES_MAX)
    assert buffer.is_due
