"""A worker records what ended and claims what comes next, in one transaction."""

from tests.store.acts import Acts, success

from ade.domain.errors import LeaseLost
from ade.domain.job import Status
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish, Finished
from ade.stages.finish_and_claim import FinishAndClaim


def test_what_ended_frees_what_is_claimed(acts: Acts) -> None:
    first = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    request = FinishAndClaim([Finish(first, success(n=1))], ClaimRequest("worker", 1))
    answer = acts.kernel.now.finish_and_claim(request)
    assert answer.finished == [Finished(Status.SUCCEEDED)]
    assert [claim.id for claim in answer.claims] == [behind.id]
    assert acts.result(first) == {"n": 1}


def test_each_of_many_workers_gets_its_own_answer(acts: Acts) -> None:
    ended = [acts.start() for _ in range(3)]
    waiting = [acts.submit() for _ in range(2)]
    answers = acts.kernel.now.many(
        "finish_and_claim",
        [
            FinishAndClaim([Finish(ended[0], success())], ClaimRequest("one", 1)),
            FinishAndClaim([], ClaimRequest("two", 1)),
            FinishAndClaim(
                [Finish(claim, success()) for claim in ended[1:]], ClaimRequest("three", 1)
            ),
        ],
    )
    assert [len(answer.finished) for answer in answers] == [1, 0, 2]
    taken = [[claim.id for claim in answer.claims] for answer in answers]
    assert taken == [[waiting[0].id], [waiting[1].id], []]


def test_a_lost_lease_does_not_keep_a_worker_from_claiming(acts: Acts) -> None:
    claim = acts.start()
    acts.lose(claim)
    request = FinishAndClaim([Finish(claim, success())], ClaimRequest("worker", 1))
    answer = acts.kernel.now.finish_and_claim(request)
    assert [type(one) for one in answer.finished] == [LeaseLost]
    assert [(again.id, again.fence) for again in answer.claims] == [(claim.id, 2)]
