"""Take jobs in: the hot routes `POST .../jobs` and `POST .../jobs/batch`.

Both read the raw body, check it against a compiled schema, and write the answer by hand; nothing of
FastAPI's machinery runs. What arrives together is committed together (`ade.store.group_commit`).
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from pydantic_core import to_json
from starlette.types import Receive, Scope
from typing_extensions import TypeIs

from ade.domain.errors import AdeError, InvalidRequest
from ade.domain.keys import digest
from ade.events.stream import wait_until_ended
from ade.http.auth import Grant, Role
from ade.http.body import read_body
from ade.http.contract import JobRequest, RunRequest
from ade.http.door import Door
from ade.http.edge import trace_id_in
from ade.http.intake import body_digest
from ade.http.job_json import ENDED, Mould, job_path, job_text
from ade.http.problems import problem
from ade.http.reply import Reply
from ade.http.result_json import result_envelope
from ade.http.runs import Runs
from ade.stages.submit.submission import Accepted, Idempotency, Submission
from ade.store.rows import IdempotencyRow, JobRef, JobRow
from ade.telemetry import metrics

WAIT_SECONDS_MAX = 60
BATCH_BODIES_MAX = 32
KEY_CHARS_MAX = 200
# The jobs of a batch share its key, each with its place behind it.
BATCH_KEY_CHARS_MAX = 190
ENDPOINT_CHARS_MAX = 200
_WAIT = re.compile(rb"(?:^|[,;\s])wait=(\d{1,9})(?:$|[,;\s])", re.IGNORECASE)
_REPRESENTATION = re.compile(rb"(?:^|[,;\s])return=representation(?:$|[,;\s])", re.IGNORECASE)
_KEY = re.compile(r"[ -~]{1,200}")


class Wishes(NamedTuple):
    """Hold what a client would like (RFC 7240), and the name that it gave its request."""

    wait_seconds: int = 0
    result: bool = False
    key: str | None = None


NO_WISHES = Wishes()


class Submitting:
    """Accept jobs for one workspace after the other."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._runs = Runs(door)
        self._body_bytes_max = door.settings.payload_max_kb * 1024

    async def one(self, scope: Scope, receive: Receive, workspace: str) -> Reply:
        """Take one job."""
        grant = await self._door.gatekeeper.grant(scope, workspace, Role.EDITOR)
        return await self.take(scope, receive, grant)

    async def take(
        self, scope: Scope, receive: Receive, grant: Grant, target_id: str | None = None
    ) -> Reply:
        """Take one job of someone who may, on a target if one is named."""
        door, user_id = self._door, grant.user_id
        body = await read_body(scope, receive, self._body_bytes_max)
        wishes = _wishes(scope)
        key, waits = wishes.key, wishes.wait_seconds > 0
        try:
            asked = door.intake.read_job(body)
            if is_run(asked):
                submission, _ = await self._runs.of_version(grant, asked)
                named = self._named(grant, submission, key, body, waits=waits)
                return await self.submit(grant, named, wishes)
            idempotency = None
            if key is not None:
                endpoint = "POST jobs" if target_id is None else f"POST targets/{target_id}/jobs"
                idempotency = self._idempotency(
                    grant, endpoint, key, body_digest(body), answered_later=waits
                )
            submission = door.intake.submission(
                asked, grant.workspace.id, user_id, target_id=target_id, idempotency=idempotency
            )
        except AdeError as error:
            metrics.submitted(error.code)
            raise
        return await self.submit(grant, submission, wishes)

    def _named(
        self, grant: Grant, submission: Submission, key: str | None, body: bytes, *, waits: bool
    ) -> Submission:
        if key is None:
            return submission
        named = self._idempotency(grant, "POST jobs", key, body_digest(body), answered_later=waits)
        return submission._replace(idempotency=named)

    async def submit(
        self, grant: Grant, submission: Submission, wishes: Wishes = NO_WISHES
    ) -> Reply:
        """Hand a submission to the kernel and answer, at once or when the job has ended."""
        door = self._door
        try:
            accepted = await door.kernel.submit(submission)
        except AdeError as error:
            metrics.submitted(error.code)
            raise
        metrics.submitted(_outcome(accepted))
        slug = grant.workspace.slug
        location = (b"location", job_path(slug, accepted.job.id).encode())
        if accepted.replayed is not None:
            status, text = accepted.replayed
            return Reply(status, text.encode(), (location, (b"idempotency-replayed", b"true")))
        if not wishes.wait_seconds:
            return Reply(_status(accepted.job), self._text(accepted, slug).encode(), (location,))
        job = await wait_until_ended(door.kernel, accepted.job, wishes.wait_seconds)
        status, text = _status(job), self._text(Accepted(job, accepted.deduplicated), slug)
        if wishes.result and status == 200:
            text = f'{text[:-1]}, "result": {await self._result_text(job)}}}'
        if submission.idempotency is not None:
            await self._remember(submission, job, status, text)
        if status == 202:
            return Reply(status, text.encode(), (location,))
        applied = b"wait=%d" % wishes.wait_seconds
        if wishes.result:
            applied += b", return=representation"
        return Reply(status, text.encode(), (location, (b"preference-applied", applied)))

    async def _result_text(self, job: JobRow) -> str:
        ref = JobRef(job.workspace_id, job.id)
        body = await self._door.kernel.read(lambda reading: reading.read_result(ref))
        return json.dumps(result_envelope(job, body, self._door.intake.env_version(job.kind)))

    async def many(self, scope: Scope, receive: Receive, workspace: str) -> Reply:
        """Take many jobs in one transaction; each is accepted or refused for itself."""
        door = self._door
        grant = await door.gatekeeper.grant(scope, workspace, Role.EDITOR)
        body = await read_body(scope, receive, self._body_bytes_max * BATCH_BODIES_MAX)
        key = _wishes(scope).key
        if key is not None and len(key) > BATCH_KEY_CHARS_MAX:
            raise InvalidRequest(
                f"The Idempotency-Key of a batch has at most {BATCH_KEY_CHARS_MAX} characters."
            )
        submissions, outcomes = self._submissions(grant, door.intake.read_batch(body), key)
        del body  # megabytes that the next request can have while this one waits
        accepted = iter(await door.kernel.submit_many(submissions))
        trace_id, slug = trace_id_in(scope), grant.workspace.slug
        words: list[str] = []
        texts, mould = [], Mould(slug, safe_mode=door.safe_mode)
        for refused in outcomes:
            outcome = refused or next(accepted)
            if isinstance(outcome, AdeError):
                words.append(outcome.code)
                told = json.dumps(problem(outcome, trace_id))
                texts.append(f'{{"status": {outcome.status}, "problem": {told}}}')
                continue
            words.append(_outcome(outcome))
            status, text = outcome.replayed or (
                _status(outcome.job),
                mould.text(outcome.job, deduplicated=outcome.deduplicated),
            )
            texts.append(f'{{"status": {status}, "job": {text}}}')
        for word, jobs in Counter(words).items():
            metrics.submitted(word, jobs)
        metrics.batched(len(outcomes))
        return Reply(207, f'{{"items": [{", ".join(texts)}]}}'.encode())

    def _submissions(
        self, grant: Grant, items: list[JobRequest | AdeError], key: str | None
    ) -> tuple[list[Submission], list[AdeError | None]]:
        """Make submissions of a batch; what cannot be one stands as its error in its place."""
        make, workspace_id, user_id = (
            self._door.intake.submission,
            grant.workspace.id,
            grant.user_id,
        )
        submissions: list[Submission] = []
        outcomes: list[AdeError | None] = []
        for place, item in enumerate(items):
            if isinstance(item, AdeError):
                outcomes.append(item)
                continue
            idempotency = None
            try:
                if key is not None:
                    told = body_digest(to_json(item))
                    idempotency = self._idempotency(
                        grant, "POST jobs/batch", f"{key}#{place}", told
                    )
                submissions.append(make(item, workspace_id, user_id, idempotency=idempotency))
                outcomes.append(None)
            except AdeError as error:
                outcomes.append(error)
        return submissions, outcomes

    def _text(self, accepted: Accepted, slug: str) -> str:
        return job_text(
            accepted.job,
            slug,
            deduplicated=accepted.deduplicated,
            safe_mode=self._door.safe_mode,
        )

    def _idempotency(
        self, grant: Grant, endpoint: str, key: str, told: str, *, answered_later: bool = False
    ) -> Idempotency:
        def answer(accepted: Accepted) -> tuple[int, str]:
            return _status(accepted.job), self._text(accepted, grant.workspace.slug)

        return idempotency_of(grant, endpoint, key, told, None if answered_later else answer)

    async def _remember(self, submission: Submission, job: JobRow, status: int, text: str) -> None:
        """Record the answer of a request that waited, for its repetitions."""
        asked = submission.idempotency
        assert asked is not None
        await self._door.kernel.record_response(
            IdempotencyRow(
                submission.workspace_id,
                asked.principal,
                asked.endpoint,
                asked.key,
                asked.body_digest,
                status,
                text,
                job.id,
                job.submitted_at,
            )
        )


def is_run(asked: JobRequest | RunRequest) -> TypeIs[RunRequest]:
    """Tell the short form for runs from a job of the execution contract."""
    return "config_version_id" in asked


def idempotency_of(
    grant: Grant,
    endpoint: str,
    key: str,
    told: str,
    answer: Callable[[Accepted], tuple[int, str]] | None,
) -> Idempotency:
    """Name a request: who, where, which key, and what it said."""
    if len(endpoint) > ENDPOINT_CHARS_MAX:
        endpoint = digest(endpoint)
    return Idempotency(grant.user_id, endpoint, key, told, answer)


def idempotency_key(scope: Scope) -> str | None:
    """Return the name that the client gave its request, if any."""
    return _wishes(scope).key


def _wishes(scope: Scope) -> Wishes:
    """Read how long the client would wait and for what, and the name that it gave the request."""
    wait_seconds, result, key = 0, False, None
    for name, value in scope["headers"]:
        if name == b"prefer":
            found = _WAIT.search(value)
            if found is not None:
                wait_seconds = min(int(found[1]), WAIT_SECONDS_MAX)
            result = result or _REPRESENTATION.search(value) is not None
        elif name == b"idempotency-key":
            key = value.decode("latin-1")
            if not _KEY.fullmatch(key):
                raise InvalidRequest(
                    f"Idempotency-Key has 1 to {KEY_CHARS_MAX} printable ASCII characters.",
                    errors=[{"field": "Idempotency-Key", "message": "not allowed"}],
                )
    return Wishes(wait_seconds, result, key)


def _status(job: JobRow) -> int:
    return 200 if job.status in ENDED else 202


def _outcome(accepted: Accepted) -> str:
    if accepted.replayed is not None:
        return "replayed"
    return "deduplicated" if accepted.deduplicated else "accepted"
