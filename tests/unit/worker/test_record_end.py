"""The end of an attempt is sent until it is answered, and never against a clear refusal."""

import pytest

from ade.domain.errors import (
    AdeError,
    Forbidden,
    InvalidRequest,
    LeaseLost,
    StorageFull,
    Unauthenticated,
    Unavailable,
)
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.stages.finish import Finish, Finished
from ade.store.rows import Claim
from ade.worker import record_end as module
from ade.worker.record_end import record_end

CLAIM = Claim("w", "j", "echo", 1, 0, None, 0, None, "{}", "")
DONE = Outcome(Status.SUCCEEDED, {"outputs": {}})


class Answers:
    """Answer each end as the test says, and note how it was sent."""

    def __init__(self, *answers: AdeError | None) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[str, Finish]] = []

    async def together(self, end: Finish) -> Finished:
        """Take an end that is recorded with others."""
        return self._answer("together", end)

    async def alone(self, end: Finish) -> Finished:
        """Take an end that is recorded by itself."""
        return self._answer("alone", end)

    def _answer(self, how: str, end: Finish) -> Finished:
        self.sent.append((how, end))
        answer = self._answers.pop(0)
        if answer is not None:
            raise answer
        return Finished(Status.SUCCEEDED)

    async def record(self) -> list[str]:
        """Record an end while the lease is trusted, which it is until the answers are used up."""
        await record_end(Finish(CLAIM, DONE), self.together, self.alone, lambda: True)
        assert not self._answers
        return [how for how, _ in self.sent]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not pause between tries."""
    monkeypatch.setattr(module, "FINISH_AGAIN_SECONDS", 0.0)


@pytest.mark.parametrize("error", [LeaseLost("x"), Unauthenticated("x"), Forbidden("x")])
async def test_what_is_over_is_not_said_again(error: AdeError) -> None:
    assert await Answers(error).record() == ["together"]


async def test_without_an_answer_it_is_said_again() -> None:
    answers = Answers(Unavailable("x"), Unavailable("x"), None)
    assert await answers.record() == ["together", "alone", "alone"]
    assert all(end.outcome is DONE for _, end in answers.sent)


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidRequest("no"), "RESULT_REFUSED"), (StorageFull("no"), "STORAGE_FULL")],
)
async def test_a_refused_result_becomes_a_failure(error: AdeError, code: str) -> None:
    answers = Answers(error, None)
    assert await answers.record() == ["together", "alone"]
    outcome = answers.sent[1][1].outcome
    assert outcome is not None
    assert outcome.error is not None
    assert (outcome.status, outcome.error.code) == (Status.FAILED, code)


async def test_what_is_refused_twice_is_given_up() -> None:
    assert await Answers(InvalidRequest("no"), InvalidRequest("no")).record() == [
        "together",
        "alone",
    ]


async def test_without_trust_nothing_is_sent() -> None:
    answers = Answers()
    await record_end(Finish(CLAIM, DONE), answers.together, answers.alone, lambda: False)
    assert answers.sent == []
