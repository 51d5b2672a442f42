"""The log of what jobs write: in one order, nothing twice, and nothing by an old fence."""

import pytest
from tests.store.acts import Acts, batches, failure, held, ref, success

from ade.domain.errors import LeaseLost
from ade.domain.events import output_topic
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.domain.output import Piece, batch_of, pieces_of
from ade.kernel import Kernel
from ade.stages.finish import Finish
from ade.stages.output import ATTEMPTS_KEPT, OutputAppend
from ade.store.port import Store
from ade.store.rows import Claim, OutputBatch


def texts(log: list[OutputBatch]) -> list[tuple[int, str]]:
    """Read which attempt wrote what."""
    return [(batch.attempt, piece.text) for batch in log for piece in pieces_of(batch.pieces)]


def finish(acts: Acts, claim: Claim, outcome: Outcome | None, *last: str) -> None:
    """Record an end together with the last output."""
    stored = acts.output(claim)
    starts = stored[-1].ends if stored and stored[-1].attempt == claim.fence else 0
    output = OutputAppend(held(claim), batches(*last, starts=starts))
    acts.kernel.now.finish(Finish(claim, outcome, output))


def test_output_is_read_while_the_job_runs(acts: Acts) -> None:
    claim = acts.start()
    assert acts.output(claim) == []
    acts.write(claim, "one\n")
    acts.write(claim, "two\n", starts=4)
    assert texts(acts.output(claim)) == [(1, "one\n"), (1, "two\n")]
    assert [batch.seq for batch in acts.output(claim)] == [1, 2]


def test_places_count_pieces_over_all_streams(acts: Acts) -> None:
    claim = acts.start()
    both = batch_of([Piece("stdout", 0, "a"), Piece("stderr", 1, "b"), Piece("stdout", 2, "c")])
    acts.kernel.now.append_output(OutputAppend(held(claim), (both, *batches("d", starts=3))))
    assert [batch.seq for batch in acts.output(claim)] == [3, 4]


def test_any_character_is_kept(acts: Acts) -> None:
    claim = acts.start()
    text = "\0 \x1b[1m é 漢 🎈 '\" \\ \r\n\u2028{NULL}"
    acts.write(claim, text)
    assert texts(acts.output(claim)) == [(1, text)]


def test_the_log_is_read_after_a_place_up_to_a_number(acts: Acts) -> None:
    claim = acts.start()
    acts.write(claim, *"abcdef")
    found = acts.kernel.now.read(lambda reading: reading.read_output(ref(claim), 2, 3))
    assert [batch.seq for batch in found] == [3, 4, 5]


def test_a_batch_that_is_sent_again_is_stored_once(acts: Acts) -> None:
    claim = acts.start()
    acts.write(claim, "one", "two")
    acts.write(claim, "one", "two", "three")
    assert texts(acts.output(claim)) == [(1, "one"), (1, "two"), (1, "three")]


def test_an_old_fence_writes_nothing(acts: Acts) -> None:
    first = acts.start(retries=2)
    acts.write(first, "before")
    acts.lose(first)
    with pytest.raises(LeaseLost):
        acts.write(first, "while queued", starts=6)
    (second,) = acts.claim()
    with pytest.raises(LeaseLost):
        acts.write(first, "late", starts=6)
    acts.write(second, "after")
    assert texts(acts.output(first)) == [(1, "before"), (2, "after")]
    assert [batch.seq for batch in acts.output(first)] == [1, 2]


def test_an_ended_job_gets_no_more_output(acts: Acts) -> None:
    claim = acts.start()
    acts.succeed(claim)
    with pytest.raises(LeaseLost):
        acts.write(claim, "late")
    assert acts.output(claim) == []


@pytest.mark.parametrize(
    "outcome",
    [
        success(),
        failure(),
        Outcome(Status.TIMED_OUT),
        Outcome(Status.CANCELLED),
        Outcome(Status.PAUSED),
        None,
    ],
    ids=lambda outcome: outcome.status.value if outcome else "released",
)
def test_the_last_output_is_stored_with_the_end(acts: Acts, outcome: Outcome | None) -> None:
    claim = acts.start()
    acts.write(claim, "first ")
    finish(acts, claim, outcome, "last")
    assert texts(acts.output(claim)) == [(1, "first "), (1, "last")]


def test_an_end_with_an_old_fence_stores_no_output(acts: Acts) -> None:
    first = acts.start(retries=2)
    acts.lose(first)
    acts.claim()
    with pytest.raises(LeaseLost):
        finish(acts, first, success(), "late")
    assert acts.output(first) == []


def test_the_middle_is_dropped(acts: Acts) -> None:
    claim = acts.start()
    acts.write(claim, *"abcdef")
    more = batches("g", starts=6)
    acts.kernel.now.append_output(OutputAppend(held(claim), more, dropped=(2, 4)))
    assert "".join(text for _, text in texts(acts.output(claim))) == "abefg"
    assert [batch.seq for batch in acts.output(claim)] == [1, 2, 5, 6, 7]


def test_the_middle_of_one_attempt_is_not_that_of_another(acts: Acts) -> None:
    first = acts.start(retries=2)
    acts.write(first, *"abc")
    acts.lose(first)
    (second,) = acts.claim()
    acts.kernel.now.append_output(OutputAppend(held(second), batches(*"xyz"), dropped=(1, 2)))
    assert texts(acts.output(first)) == [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (2, "z")]


def test_only_the_newest_attempts_keep_their_output(acts: Acts) -> None:
    job = acts.submit()
    for _ in range(ATTEMPTS_KEPT + 2):
        (claim,) = acts.claim()
        acts.write(claim, "x")
        acts.release(claim)
    assert [attempt for attempt, _ in texts(acts.output(job))] == list(range(3, ATTEMPTS_KEPT + 3))


def test_output_of_many_jobs_is_stored_at_once(acts: Acts) -> None:
    claims = [acts.start() for _ in range(3)]
    appends = [OutputAppend(held(claim), batches(claim.id, "!")) for claim in claims]
    acts.succeed(claims[1])
    answers = acts.kernel.now.many("append_output", appends)
    assert [isinstance(answer, LeaseLost) for answer in answers] == [False, True, False]
    assert [texts(acts.output(claim)) for claim in claims] == [
        [(1, claims[0].id), (1, "!")],
        [],
        [(1, claims[2].id), (1, "!")],
    ]


def test_followers_are_notified(store: Store, kernel: Kernel, acts: Acts) -> None:
    claim = acts.start()
    topics: list[str] = []
    store.on_commit = topics.extend
    acts.write(claim, "x")
    assert topics == [output_topic(claim.id)]
