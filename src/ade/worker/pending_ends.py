"""The ends of attempts, gathered for the worker's next claim.

The model. A worker that has ends to record and slots to fill does both in one transaction. While it
is about to claim, it *holds* the ends of its attempts here, and the claim takes all of them along.
Otherwise it *releases* them: each attempt then records its own end, and group commit puts together
those that come together.

    what happens                            what becomes of the ends
    --------------------------------------  -------------------------------------------------------
    the claim finds fewer jobs than slots   released: there is nothing to claim with them
    the transaction fails                   each attempt hears of it and tries again on its own, so
                                            that an end that cannot be recorded stops no other end
                                            and no claim
    a lease was lost                        that attempt alone hears of it
    the worker drains                       released; ends that are on their way are waited for
"""

import asyncio
from dataclasses import dataclass

from ade.domain.errors import LeaseLost, Unavailable
from ade.stages.finish import Finish, Finished
from ade.stages.finish_and_claim import FinishedAndClaimed
from ade.worker.worker_kernel import WorkerKernel


@dataclass(frozen=True, slots=True)
class PendingEnd:
    """Hold an end, and the future that its attempt waits for; None means: record it yourself."""

    end: Finish
    answer: "asyncio.Future[Finished | None]"


class PendingEnds:
    """Gather the ends of attempts while their worker is about to claim."""

    def __init__(self, kernel: WorkerKernel, arrived: asyncio.Event) -> None:
        self._kernel = kernel
        self._arrived = arrived
        self._holding = False
        self._pending: list[PendingEnd] = []

    def __len__(self) -> int:
        return len(self._pending)

    async def record(self, end: Finish) -> Finished:
        """Record an end, with the worker's next claim if it is about to make one."""
        if self._holding:
            pending = PendingEnd(end, asyncio.get_running_loop().create_future())
            self._pending.append(pending)
            self._arrived.set()
            finished = await pending.answer
            if finished is not None:
                return finished
        return await self._kernel.finish(end)

    def hold(self) -> None:
        """Gather ends from now on."""
        self._holding = True

    def release(self) -> None:
        """Let attempts record their own ends from now on, also those that wait here."""
        self._holding = False
        for pending in self.take():
            if not pending.answer.done():
                pending.answer.set_result(None)

    def take(self) -> list[PendingEnd]:
        """Take all that were gathered; the caller answers them."""
        taken, self._pending = self._pending, []
        return taken


def answer_all(pending: list[PendingEnd], call: "asyncio.Future[FinishedAndClaimed]") -> None:
    """Tell attempts what became of their ends, once the call that recorded them is done."""
    if call.cancelled():
        error: BaseException | None = Unavailable("The worker no longer waits for the database.")
    else:
        error = call.exception()
    answers: list[Finished | LeaseLost | BaseException]
    answers = [error] * len(pending) if error is not None else [*call.result().finished]
    for one, answer in zip(pending, answers, strict=True):
        if one.answer.done():
            continue
        if isinstance(answer, BaseException):
            one.answer.set_exception(answer)
        else:
            one.answer.set_result(answer)
