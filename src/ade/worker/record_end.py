"""Record the end of an attempt, for as long as its lease is trusted.

answer                               what happens
-----------------------------------  ---------------------------------------------------------
recorded                             done
the lease is lost                    the result is discarded; nothing more is sent
the key is not valid any more        the same: this worker may not speak for the attempt
the result is refused                the attempt ends as failed, with the reason, and without
                                     its files
that end is refused too              the attempt is given up: its lease ends by itself
no answer                            the end is sent again, until the trust in the lease is over
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from ade.domain.errors import (
    AdeError,
    Forbidden,
    InvalidRequest,
    LeaseLost,
    PayloadTooLarge,
    StorageFull,
    Unauthenticated,
    UnsafePath,
)
from ade.domain.job import Status
from ade.domain.outcome import Category, JobError, Outcome
from ade.stages.finish import Finish, Finished
from ade.telemetry import metrics

FINISH_AGAIN_SECONDS = 0.5
log = structlog.get_logger()
Record = Callable[[Finish], Awaitable[Finished]]


async def record_end(
    end: Finish, together: Record, alone: Record, is_trusted: Callable[[], bool]
) -> None:
    """Record an end: `together` with what else the worker records, then `alone`."""
    record, is_refused = together, False
    while is_trusted():
        try:
            finished = await record(end)
        except (LeaseLost, Unauthenticated, Forbidden) as error:
            metrics.fence_rejected("finish")
            log.warning("result discarded", reason=error.detail)
            return
        except (InvalidRequest, PayloadTooLarge, StorageFull, UnsafePath) as error:
            if is_refused:
                log.error("end refused twice", reason=error.detail)
                return
            # Said again, it would be refused again: the job must not wait for its lease to end.
            log.warning("end refused", reason=error.detail)
            record, is_refused = alone, True
            end = end._replace(outcome=_failed_because(error), output=None)
        except Exception as error:
            log.warning("end not recorded yet", reason=type(error).__name__)
            record = alone  # apart from others, in case it is this end that fails
            await asyncio.sleep(FINISH_AGAIN_SECONDS)
        else:
            metrics.finished(end.claim.kind, finished.status.value)
            log.info("attempt ended", status=finished.status.value)
            return
    metrics.fence_rejected("trust_over")
    log.warning("result discarded", reason="lease no longer trusted")


def _failed_because(error: AdeError) -> Outcome:
    """Say that the server refused the result, and why."""
    if isinstance(error, StorageFull | PayloadTooLarge):
        reason = JobError(Category.RESOURCE_LIMIT, error.code.upper(), error.detail)
    else:
        message = f"The result was refused: {error.detail}"
        reason = JobError(Category.INTERNAL_ERROR, "RESULT_REFUSED", message)
    return Outcome(Status.FAILED, error=reason)
