"""What an agent may report about a job, as a table: the transitions of the worker contract.

The words are those of the contract (`ade.domain.vocabulary.agent_status`). A report of the status
that the job already has changes nothing and is accepted. Everything else that is not in the table
is refused. `finished` is accepted from `dispatched`, too: the report that the job runs may be lost,
and its result must not be lost with it.
"""

from ade.domain.errors import InvalidRequest, InvalidTransition
from ade.domain.vocabulary import AgentStatus

_S = AgentStatus
REPORTS: dict[AgentStatus, frozenset[AgentStatus]] = {
    _S.DISPATCHED: frozenset({_S.RUNNING, _S.STOP_REQUESTED, _S.FINISHED, _S.FAILED, _S.QUEUED}),
    _S.RUNNING: frozenset({_S.STOP_REQUESTED, _S.FINISHED, _S.FAILED}),
    _S.STOP_REQUESTED: frozenset({_S.STOPPED, _S.FINISHED, _S.FAILED}),
}


def parse_status(word: str) -> AgentStatus:
    """Return the status of this name, or raise InvalidRequest."""
    try:
        return AgentStatus(word)
    except ValueError:
        known = ", ".join(AgentStatus)
        raise InvalidRequest(f"status: {word[:40]!r} is not one of {known}.") from None


def check_report(now: AgentStatus, reported: AgentStatus) -> None:
    """Raise InvalidTransition if a job may not be reported as this."""
    # A running job whose stop was requested is still reported as running until it ends.
    beats = now is _S.STOP_REQUESTED and reported is _S.RUNNING
    if reported is now or beats or reported in REPORTS.get(now, frozenset()):
        return
    raise InvalidTransition(f"A job that is {now} cannot be reported as {reported}.")
