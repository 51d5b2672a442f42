"""Jobs: submit them, wait for them, follow them, decide about them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from ade.client.aio.artifacts import AsyncArtifact, list_artifacts
from ade.client.aio.driver import AsyncSession
from ade.client.aio.mapping import mapped
from ade.client.answers.jobs import Attempt, Event, JobAnswer, LogPiece, ResultAnswer
from ade.client.core.exchange import call_json, call_text, request_of
from ade.client.core.follow import follow
from ade.client.core.names import segment
from ade.client.core.pages import every, filters
from ade.client.core.submission import creating, given, job_body
from ade.client.core.waiting import until_ended
from ade.client.errors import JobEndedBadly

CONCURRENCY = 8
# Most jobs that are waited for one by one are over within this time.
PREFERRED_WAIT_SECONDS = 10


@dataclass(frozen=True)
class AsyncJob(JobAnswer):
    """One requested execution, as it was when it was read; `refresh` and `wait` read it again."""

    session: AsyncSession = field(repr=False, compare=False, kw_only=True)

    async def refresh(self) -> Self:
        """Read it again."""
        return self._of(await self._call("GET", ""))

    async def wait(self, timeout_seconds: float | None = None) -> Self:
        """Wait for its end, however it ends; a paused job waits for someone to decide.

        Raise WaitTimedOut after `timeout_seconds`; the job goes on then.
        """
        if self.has_ended:
            return self
        path = self._path("")
        call = until_ended(path, path, self.session.policy, timeout_seconds)
        return self._of(await self.session.run(call))

    async def result(self, timeout_seconds: float | None = None) -> ResultAnswer:
        """Wait for its end and read what it left; raise JobEndedBadly if it did not succeed."""
        await self.wait(timeout_seconds)
        result = await self.envelope()
        if result.status != "SUCCEEDED":
            error = None if result.error is None else result.error.raw
            raise JobEndedBadly(self.id, result.status.lower(), error, result.stdout)
        return result

    async def envelope(self) -> ResultAnswer:
        """Read how it ended and what it left, however it ended; NotFinished before its end."""
        return ResultAnswer.of(await self._call("GET", "/result"))

    async def payload(self) -> Mapping[str, Any]:
        """Read what was submitted."""
        found: Mapping[str, Any] = await self._call("GET", "/payload")
        return found

    async def artifacts(self) -> list[AsyncArtifact]:
        """List the files that it left."""
        return await list_artifacts(self.session, self.id)

    async def artifact(self, name: str) -> AsyncArtifact:
        """Return the file of this name; raise KeyError with the names that there are."""
        found = {one.name: one for one in await self.artifacts()}
        if name not in found:
            raise KeyError(f"job {self.id} left no {name!r}; it left: {', '.join(found) or 'none'}")
        return found[name]

    def events(self, after: str = "") -> AsyncIterator[Event]:
        """Follow what happens to it until it has ended; a lost connection is resumed."""
        return self._follow("events", after, Event)

    def logs(self, after: str = "", stream: str | None = None) -> AsyncIterator[LogPiece]:
        """Follow what it writes until it has ended; `stream` is stdout, stderr or step."""
        return self._follow("logs", after, LogPiece, filters(stream=stream))

    def timeline(self, after: str = "") -> AsyncIterator[Event]:
        """Follow events and output together until it has ended."""
        return self._follow("timeline", after, Event)

    async def log_text(self, stream: str = "stdout", tail: int | None = None) -> str:
        """Read what its newest attempt wrote so far, or the last lines of it."""
        query = filters(stream=stream, tail=tail)
        request = request_of("GET", self._path("/logs"), query=query)
        return await self.session.run(call_text(request, self.session.policy))

    async def attempts(self) -> list[Attempt]:
        """List its attempts: which worker, when, and how each ended."""
        return [Attempt.of(one) for one in (await self._call("GET", "/attempts"))["items"]]

    async def cancel(self, reason: str | None = None) -> Self:
        """Cancel it; one that runs stops a little later."""
        return self._of(await self._call("POST", "/cancel", given(reason=reason)))

    async def interrupt(self, reason: str | None = None) -> Self:
        """Pause it; `resume` lets it go on."""
        return self._of(await self._call("POST", "/interrupt", given(reason=reason)))

    async def resume(self) -> Self:
        """Queue it again, after a pause or a failure on its target."""
        request = request_of("POST", self._path("/resume"))
        return self._of(await self.session.run(call_json(request, self.session.policy)))

    async def retry(self, idempotency_key: str | None = None) -> Self:
        """Run the same work again as a new job, and return that."""
        request = creating(self._path("/retry"), None, idempotency_key=idempotency_key)
        made = await self.session.run(call_json(request, self.session.policy))
        return await replace(self, id=made["job_id"]).refresh()

    def _follow(
        self, stream: str, after: str, kind: Any, query: Sequence[tuple[str, str | int]] = ()
    ) -> AsyncIterator[Any]:
        call = follow(
            self._path(""), stream, self.session.policy, after=after, query=query, make=kind.of
        )
        return self.session.iterate(call)

    async def _call(self, method: Any, rest: str, body: Any = None) -> Any:
        """Call a path of this job; these may be called twice without harm."""
        request = request_of(method, self._path(rest), json_body=body, repeatable=True)
        return await self.session.run(call_json(request, self.session.policy))

    def _path(self, rest: str) -> str:
        return self.session.path(f"jobs/{segment(self.id)}{rest}")

    def _of(self, body: Mapping[str, Any]) -> Self:
        return type(self).of(body, session=self.session)


@dataclass(frozen=True)
class MappedResult:
    """What became of one of many: `value` raises why there is none."""

    job_id: str | None
    result: ResultAnswer | None = None
    error: Exception | None = None

    @property
    def value(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return None if self.result is None else self.result.value


class AsyncJobs:
    """The jobs of a workspace."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def submit(
        self,
        job_type: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        document_revision_id: str | None = None,
        target_id: str | None = None,
        output_spec: Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | None = None,
        priority: str | None = None,
        environment: Mapping[str, Any] | None = None,
        dedupe: bool | None = None,
        reuse_failed: bool | None = None,
        not_before: datetime | str | None = None,
        idempotency_key: str | None = None,
        wait_seconds: float = 0,
    ) -> AsyncJob:
        """Submit a job; with `wait_seconds` (at most 60) return when it has ended, if in time.

        A key is made for each submission, so that it is sent again if it or its answer is lost.
        Give `idempotency_key` to make it safe also beyond this program's end. A full queue is
        waited for, as the client's retry policy says.
        """
        body = job_body(
            job_type,
            inputs,
            document_revision_id=document_revision_id,
            target_id=target_id,
            output_spec=output_spec,
            limits=limits,
            priority=priority,
            environment=environment,
            dedupe=dedupe,
            reuse_failed=reuse_failed,
            not_before=not_before,
        )
        request = creating(
            self._session.path("jobs"),
            body,
            idempotency_key=idempotency_key,
            wait_seconds=wait_seconds,
        )
        return self._job(await self._session.run(call_json(request, self._session.policy)))

    async def run(
        self,
        job_type: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        **options: Any,
    ) -> ResultAnswer:
        """Submit a job, wait for it and return its result; raise JobEndedBadly if it fails."""
        wait = PREFERRED_WAIT_SECONDS if timeout_seconds is None else timeout_seconds
        wait = min(wait, PREFERRED_WAIT_SECONDS)
        job = await self.submit(job_type, inputs, wait_seconds=wait, **options)
        return await job.result(timeout_seconds)

    def map(
        self,
        job_type: str,
        inputs: Iterable[Mapping[str, Any]],
        *,
        concurrency: int = CONCURRENCY,
        timeout_seconds: float | None = None,
        **options: Any,
    ) -> AsyncIterator[MappedResult]:
        """Run one job for each of the inputs; yield what became of them, in their order.

        At most `concurrency` jobs are under way, and inputs are taken as results are: an endless
        iterable is fine. Where the queue is full, submissions wait for as long as it takes.
        """

        async def one(item: Mapping[str, Any]) -> MappedResult:
            job_id = None
            try:
                job = await patient.submit(
                    job_type, item, wait_seconds=PREFERRED_WAIT_SECONDS, **options
                )
                job_id = job.id
                return MappedResult(job_id, await job.result(timeout_seconds))
            except Exception as error:
                return MappedResult(job_id, None, error)

        patient = AsyncJobs(self._session.patient())
        return mapped(one, inputs, concurrency)

    async def get(self, job_id: str) -> AsyncJob:
        """Read a job."""
        return await AsyncJob(id=job_id, session=self._session).refresh()

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        job_type: str | Sequence[str] | None = None,
        target_id: str | Sequence[str] | None = None,
        priority: str | Sequence[str] | None = None,
        submitted_after: str | None = None,
        submitted_before: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[AsyncJob]:
        """List jobs that match all filters, newest first."""
        query = filters(
            status=status,
            job_type=job_type,
            target_id=target_id,
            priority=priority,
            submitted_after=submitted_after,
            submitted_before=submitted_before,
        )
        path, policy = self._session.path("jobs"), self._session.policy
        return self._session.iterate(every(path, policy, self._job, query, limit))

    async def counts(self, **filtered: Any) -> Mapping[str, int]:
        """Count the jobs that match the filters of `list`, by status."""
        path = self._session.path("jobs/counts")
        request = request_of("GET", path, query=filters(**filtered))
        found = await self._session.run(call_json(request, self._session.policy))
        counts: Mapping[str, int] = found["counts"]
        return counts

    def artifacts_in(self, result: ResultAnswer) -> tuple[AsyncArtifact, ...]:
        """Return the files that a result names."""
        named = result.raw.get("artifacts") or ()
        return tuple(AsyncArtifact.of(one, session=self._session) for one in named)

    def _job(self, body: Mapping[str, Any]) -> AsyncJob:
        return AsyncJob.of(body, session=self._session)
