"""Submit work: the one way in for every route that creates jobs.

A route parses its body into a `Submission` and says how the accepted job is shown (a `View`). The
service does the rest: idempotency, deduplication and admission (in the kernel's transaction), the
wait for a client that prefers to wait, and the metrics.

    the client sends          the service does
    ------------------------  --------------------------------------------------------------
    Idempotency-Key           stores the answer in the transaction that creates the job, so a
                              repetition gets the same answer (`stages.submit.idempotency`)
    Prefer: wait=n            answers when the job has ended, or as it is after n seconds
    both                      stores the answer when it is given; a repetition before that is
                              refused (409)

When the server begins to drain, requests that wait are answered at once, as if their time were up:
the job is accepted, and another server tells how it ends.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from pydantic_core import from_json, to_json

from ade.app.build_requests import BuildRequests
from ade.app.job_requests import Caller, JobRequests
from ade.app.request_schemas import JobRequest, RunRequest, is_run
from ade.app.run_requests import RunRequests
from ade.domain.errors import AdeError, InvalidRequest
from ade.domain.job import TERMINAL
from ade.domain.keys import digest
from ade.events.notifier import EVERYTHING
from ade.events.stream import wait_until_ended
from ade.kernel import Kernel
from ade.stages.submit.model import Accepted, Idempotency, Submission
from ade.store.rows import IdempotencyRow, JobRow
from ade.telemetry import metrics

# The jobs of a batch share its key, each with its index appended.
BATCH_KEY_CHARS_MAX = 190
ENDPOINT_CHARS_MAX = 200
_ENDED = frozenset(status.value for status in TERMINAL)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """Hold the sender of a request that creates work, its path, and how it should be answered.

    `body` tells repetitions of a request from others with the same key. A batch leaves it empty:
    its items are compared one by one.
    """

    caller: Caller
    endpoint: str
    body: bytes = b""
    idempotency_key: str | None = None
    wait_seconds: int = 0
    wants_result: bool = False


class View(Protocol):
    """Show an accepted job to the client that submitted it."""

    def location(self, accepted: Accepted) -> str:
        """Return the path of what was requested."""
        ...

    def body(self, accepted: Accepted) -> str:
        """Write the job as a JSON object; this runs in the transaction that creates the job."""
        ...

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the job as a JSON object after a wait."""
        ...

    async def result(self, job: JobRow) -> str:
        """Write the result of an ended job as JSON."""
        ...


class PreparedSubmission(NamedTuple):
    """Hold what is to be submitted, and how it is shown once it is accepted."""

    submission: Submission
    view: View


class Answer(NamedTuple):
    """Hold the answer to a request that created work, or that repeats one that did."""

    status: int
    body: str
    location: str
    is_replayed: bool = False
    has_waited: bool = False


class SubmissionService:
    """Submit work for every route."""

    def __init__(
        self, kernel: Kernel, jobs: JobRequests, runs: RunRequests, builds: BuildRequests
    ) -> None:
        self._kernel = kernel
        self._jobs = jobs
        self._runs = runs
        self._builds = builds
        self._is_draining = False

    def drain(self) -> None:
        """Answer the requests that wait for their jobs at once, from now on."""
        self._is_draining = True
        self._kernel.notifier.publish([EVERYTHING])

    async def submission_of(
        self, caller: Caller, request: JobRequest | RunRequest, target_id: str | None = None
    ) -> Submission:
        """Turn a parsed body of `POST .../jobs` into a submission."""
        if not is_run(request):
            return self._jobs.submission(request, caller, target_id=target_id)
        if target_id is not None:
            raise InvalidRequest("A run waits for its build, so it cannot be put on a target.")
        return await self._runs.of_version(caller, request)

    async def submit(
        self, request: ClientRequest, prepare: Callable[[], Awaitable[PreparedSubmission]]
    ) -> Answer:
        """Prepare and submit one job, and answer at once or when it has ended.

        Raises why it is refused; a refusal is counted by its code, also one by `prepare`.
        """
        try:
            submission, view = await prepare()
            if request.idempotency_key is not None:
                submission = submission._replace(idempotency=_idempotency(request, view))
            accepted = await self._kernel.submit(submission)
        except AdeError as error:
            metrics.submitted(error.code)
            raise
        metrics.submitted(outcome_of(accepted))
        if submission.required is not None and accepted.replayed is None:
            # The server that was to answer the first request died: look up what its job uses.
            accepted = await self._builds.with_build(accepted)
        location = view.location(accepted)
        if accepted.replayed is not None:
            status, body = accepted.replayed
            return Answer(status, body, location, is_replayed=True)
        if not request.wait_seconds:
            return Answer(status_of(accepted.job), view.body(accepted), location)
        return await self._answer_after_wait(request, submission, view, accepted)

    async def _answer_after_wait(
        self, request: ClientRequest, submission: Submission, view: View, accepted: Accepted
    ) -> Answer:
        job = await wait_until_ended(
            self._kernel, accepted.job, request.wait_seconds, gave_up=lambda: self._is_draining
        )
        status = status_of(job)
        accepted = accepted._replace(job=job)
        body = await view.body_after_wait(accepted)
        has_ended = status == 200
        if request.wants_result and has_ended:
            body = f'{body[:-1]}, "result": {await view.result(job)}}}'
        if submission.idempotency is not None:
            await self._store_answer(submission, submission.idempotency, job, status, body)
        return Answer(status, body, view.location(accepted), has_waited=has_ended)

    async def _store_answer(
        self, submission: Submission, named: Idempotency, job: JobRow, status: int, body: str
    ) -> None:
        """Store the answer of a request that waited, for its repetitions."""
        await self._kernel.record_response(
            IdempotencyRow(
                submission.workspace_id,
                named.principal,
                named.endpoint,
                named.key,
                named.body_digest,
                status,
                body,
                job.id,
                job.submitted_at,
            )
        )

    async def submit_batch(
        self,
        request: ClientRequest,
        items: Sequence[JobRequest | RunRequest | AdeError],
        view: View,
    ) -> Sequence[Accepted | AdeError]:
        """Submit many jobs in one transaction; each is accepted or refused by itself, in order.

        A batch is answered at once: a preference to wait is ignored.
        """
        key = request.idempotency_key
        if key is not None and len(key) > BATCH_KEY_CHARS_MAX:
            raise InvalidRequest(
                f"The Idempotency-Key of a batch has at most {BATCH_KEY_CHARS_MAX} characters."
            )
        prepared = await self._prepare_batch(request, items, view)
        submissions = [item for item in prepared if isinstance(item, Submission)]
        accepted = iter(await self._kernel.submit_many(submissions))
        outcomes = [item if isinstance(item, AdeError) else next(accepted) for item in prepared]
        for outcome, jobs in Counter(map(outcome_of, outcomes)).items():
            metrics.submitted(outcome, jobs)
        metrics.batched(len(outcomes))
        return outcomes

    async def _prepare_batch(
        self,
        request: ClientRequest,
        items: Sequence[JobRequest | RunRequest | AdeError],
        view: View,
    ) -> list[Submission | AdeError]:
        """Turn the items of a batch into submissions; one that cannot be is replaced by its error.

        Only a run is awaited: most batches hold jobs, and a coroutine for each would cost more
        than its submission.
        """
        caller, key = request.caller, request.idempotency_key
        prepared: list[Submission | AdeError] = []
        for index, item in enumerate(items):
            if isinstance(item, AdeError):
                prepared.append(item)
                continue
            try:
                if is_run(item):
                    submission = await self._runs.of_version(caller, item)
                else:
                    submission = self._jobs.submission(item, caller)
                if key is not None:
                    named = _named(request, f"{key}#{index}", to_json(item), view)
                    submission = submission._replace(idempotency=named)
                prepared.append(submission)
            except AdeError as error:
                prepared.append(error)
        return prepared


def status_of(job: JobRow) -> int:
    """Return the HTTP status of an answer with a job: 200 if it has ended."""
    return 200 if job.status in _ENDED else 202


def outcome_of(outcome: Accepted | AdeError) -> str:
    """Return what the metrics call the outcome of a submission: its kind, or the refusal's code."""
    if isinstance(outcome, AdeError):
        return outcome.code
    if outcome.replayed is not None:
        return "replayed"
    return "deduplicated" if outcome.deduplicated else "accepted"


def _idempotency(request: ClientRequest, view: View) -> Idempotency:
    """Name a request that is answered at once, or after a wait by `_store_answer`."""
    assert request.idempotency_key is not None
    named = _named(request, request.idempotency_key, request.body, view)
    return replace(named, answer=None) if request.wait_seconds else named


def _named(request: ClientRequest, key: str, body: bytes, view: View) -> Idempotency:
    """Name one submission: its sender, endpoint, key and body."""

    def answer(accepted: Accepted) -> tuple[int, str]:
        return status_of(accepted.job), view.body(accepted)

    endpoint = request.endpoint
    if len(endpoint) > ENDPOINT_CHARS_MAX:
        endpoint = digest(endpoint)
    return Idempotency(request.caller.user_id, endpoint, key, _body_digest(body), answer)


def _body_digest(body: bytes) -> str:
    """Name a body by its value, so that white space and the order of fields do not matter."""
    try:
        return digest(from_json(body or b"null"))
    except ValueError:
        return digest(body.decode("latin-1"))
