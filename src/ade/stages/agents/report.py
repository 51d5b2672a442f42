"""Record what an agent reports of a job: only the agent that holds it, and only what may come next.

Agents of the worker contract send no fence: the job is locked, and its holder is compared with the
sender. An agent that knows fences sends the number of its attempt, which must be the current one.

    what comes                                         what happens
    -------------------------------------------------  --------------------------------------------
    a report of the holder                             recorded; its lease begins anew
    the same report again                              accepted, also after the end
    a report of an agent that does not hold the job    refused: InvalidTransition
    a report that names an earlier attempt, or none    refused: StaleAttempt
    although its agent knows fences
    a report that may not follow                       refused: InvalidTransition
    `finished` although a stop was requested           recorded: what has completed is complete
"""

import json
from dataclasses import dataclass, field
from typing import Any

from ade.domain.agent_reports import check_report
from ade.domain.errors import AdeError, InvalidTransition, NotFound, StaleAttempt
from ade.domain.events import EventType, stop_topic
from ade.domain.job import STOPPED_STATUS, Cause, Status, StopRequest
from ade.domain.outcome import Category, JobError, Outcome, timed_out_error
from ade.domain.vocabulary import AgentStatus, agent_status
from ade.stages import transitions
from ade.stages.kernel_settings import KernelSettings
from ade.stages.operator_actions import change_each
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow, LeaseRef, Move, Renewal, StopRow

ERROR_CHARS_MAX = 2000
# What an agent may say in `details.code` of a failed job, and what kind of failure it is.
AGENT_CODES = {
    "CONTAINER_OUT_OF_MEMORY": Category.RESOURCE_LIMIT,
    "IMAGE_UNAVAILABLE": Category.DEPENDENCY_ERROR,
    "CONTAINER_NOT_STARTED": Category.DEPENDENCY_ERROR,
    "AGENT_RESTARTED": Category.INTERNAL_ERROR,
}


@dataclass(frozen=True, slots=True)
class AgentReport:
    """Hold what an agent says of a job; `facts` are kept, those that are not named stay."""

    ref: JobRef
    agent: str
    status: AgentStatus
    facts: dict[str, Any] = field(default_factory=dict)
    attempt: int | None = None
    result: Any = None


def report_status(
    settings: KernelSettings, tx: Transaction, reports: list[AgentReport]
) -> list[JobRow | AdeError]:
    """Record each report, or return why it is refused."""

    def change(tx: Transaction, job: JobRow, report: AgentReport) -> None:
        _report(settings, tx, job, report)

    return change_each(tx, reports, change)


def status_of(job: JobRow, facts: dict[str, Any]) -> AgentStatus:
    """Return the status of a job in the words of the contract."""
    stopped = facts.get("status") == AgentStatus.STOPPED and facts.get("attempt") == job.fence
    return agent_status(
        Status(job.status),
        started=job.started_at is not None,
        ever_started=job.started_at is not None or stopped,
        stop_request=StopRequest(job.stop_request) if job.stop_request else None,
    )


def _report(settings: KernelSettings, tx: Transaction, job: JobRow, report: AgentReport) -> None:
    known = tx.agent_jobs.find(job.id)
    if known is None:
        raise NotFound("There is no such job for agents.")
    facts = json.loads(known.facts)
    _check_attempt(job, facts, report)
    _check_holder(job, facts, report)
    check_report(status_of(job, facts), report.status)
    if job.status == Status.RUNNING:
        facts |= report.facts | {"worker_id": report.agent, "attempt": job.fence}
        facts["status"] = report.status
        tx.agent_jobs.record(job.id, json.dumps(facts))
        _apply(settings, tx, job, report, facts)


def _check_attempt(job: JobRow, facts: dict[str, Any], report: AgentReport) -> None:
    if report.attempt is not None and report.attempt != job.fence:
        raise StaleAttempt(
            f"Attempt {report.attempt} is over: attempt {job.fence} is the current one."
        )
    if report.attempt is None and facts.get("fenced"):
        raise StaleAttempt(
            "This attempt has a token: send attempt_number and attempt_token with each report."
        )


def _check_holder(job: JobRow, facts: dict[str, Any], report: AgentReport) -> None:
    holder = job.lease_owner if job.status == Status.RUNNING else facts.get("worker_id")
    if holder not in (None, report.agent):
        raise InvalidTransition(f"The job is held by another worker, not by {report.agent}.")


def _apply(
    settings: KernelSettings,
    tx: Transaction,
    job: JobRow,
    report: AgentReport,
    facts: dict[str, Any],
) -> None:
    """Change a job that the sender holds."""
    lease = LeaseRef(job.workspace_id, job.id, job.fence)
    reported = report.status
    runs = reported in (AgentStatus.RUNNING, AgentStatus.STOP_REQUESTED, AgentStatus.DISPATCHED)
    if job.started_at is None and reported in (AgentStatus.RUNNING, AgentStatus.FINISHED):
        begun = tx.report_started(lease, tx.now_us)
        transitions.log(tx, begun, EventType.RUNNING, {"attempt": job.fence})
        job = job._replace(started_at=tx.now_us)
    if reported is AgentStatus.STOP_REQUESTED and job.stop_request is None:
        asked = tx.request_stop([StopRow(*lease, StopRequest.CANCEL.value)])
        data = {"attempt": job.fence, "stop": StopRequest.CANCEL.value, "by": report.agent}
        transitions.log(tx, asked, EventType.STOP_REQUESTED, data)
        tx.notify(stop_topic(report.agent))
    if runs:
        rule, is_claim = settings.staleness, reported is AgentStatus.DISPATCHED
        expires = rule.claim_expires_at if is_claim else rule.status_expires_at
        tx.renew([Renewal(*lease, expires(tx.now_us))])
        return
    move = _end(job, report, facts, tx.now_us)
    transitions.apply(tx, [move])
    transitions.notify_claimers(tx, [move], [job])
    transitions.promote(tx, transitions.lanes_of([job]))


def _end(job: JobRow, report: AgentReport, facts: dict[str, Any], now_us: int) -> Move:
    outputs: dict[str, Any] = {
        name: facts[name]
        for name in ("worker_id", "container_id", "container_name", "exit_code")
        if name in facts
    }
    if report.result is not None:
        outputs["result_json"] = report.result
    result = {"outputs": outputs}
    data = {"worker": report.agent}
    if report.status is AgentStatus.QUEUED:
        return transitions.move(
            job, Status.QUEUED, Cause.RELEASED, now_us, data=data, eligible=True
        )
    if report.status is AgentStatus.STOPPED:
        stopped = STOPPED_STATUS[StopRequest(job.stop_request or StopRequest.CANCEL)]
        return transitions.move(job, stopped, Cause.STOPPED, now_us, data=data, result=result)
    if report.status is AgentStatus.FINISHED:
        done = Outcome(Status.SUCCEEDED, result=result)
        return transitions.move(
            job, Status.SUCCEEDED, Cause.FINISHED, now_us, data=data, outcome=done
        )
    error = _error(job, facts)
    if error.code == "TIMED_OUT":
        failed = Outcome(Status.TIMED_OUT, result=result, error=error)
        return transitions.move(
            job, Status.TIMED_OUT, Cause.TIMEOUT, now_us, data=data, outcome=failed
        )
    failed = Outcome(Status.FAILED, result=result, error=error)
    return transitions.move(job, Status.FAILED, Cause.FINISHED, now_us, data=data, outcome=failed)


def _error(job: JobRow, facts: dict[str, Any]) -> JobError:
    """Say why a job failed, as far as its agent said."""
    details = facts.get("details")
    code = details.get("code") if isinstance(details, dict) else None
    code = code if isinstance(code, str) else None  # `details` is anything that an agent says
    if code == "TIMED_OUT":
        return timed_out_error(job.timeout_ms)
    exit_code, said = facts.get("exit_code"), facts.get("error")
    message = str(said)[:ERROR_CHARS_MAX] if said else None
    about = {"worker_id": facts.get("worker_id"), "exit_code": exit_code}
    if code in AGENT_CODES:
        message = message or "The container could not be run."
        return JobError(AGENT_CODES[code], code, message, about)
    if exit_code is not None:
        ended = f"The container ended with exit code {exit_code}."
        message = f"{ended} {message}" if message else ended
        return JobError(Category.USER_CODE_ERROR, "CONTAINER_FAILED", message, about)
    said_nothing = "The agent reported that the job failed, and did not say why."
    return JobError(Category.INTERNAL_ERROR, "AGENT_FAILED", message or said_nothing, about)
