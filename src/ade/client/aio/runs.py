"""Runs: start them on a file, wait for them, save what they wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Self

from ade.client.aio.artifacts import AsyncArtifact, list_artifacts
from ade.client.aio.configurations import AsyncConfiguration, AsyncConfigurations
from ade.client.aio.documents import AsyncDocument, AsyncDocuments
from ade.client.aio.driver import AsyncSession
from ade.client.aio.jobs import AsyncJob
from ade.client.answers.jobs import Event, LogPiece, RunAnswer
from ade.client.core.downloads import download
from ade.client.core.exchange import call_json, request_of
from ade.client.core.names import is_id, local_file, segment
from ade.client.core.pages import every, filters
from ade.client.core.submission import creating, given
from ade.client.core.uploads import Progress
from ade.client.core.waiting import until_ended
from ade.client.errors import JobEndedBadly, NotFound
from ade.client.saved_files import place_for, written_whole

OUTPUT = "normalized.xlsx"
# The artifacts that hold rows, the most exact first.
ROW_FORMATS = ("parquet", "jsonl", "csv")


@dataclass(frozen=True)
class AsyncRun(RunAnswer):
    """One execution of a configuration on one document, as it was when it was read."""

    session: AsyncSession = field(repr=False, compare=False, kw_only=True)

    @property
    def job(self) -> AsyncJob:
        """Return the run as a job, which has the same id; only that is filled in."""
        return AsyncJob(id=self.id, status=self.status, session=self.session)

    async def refresh(self) -> Self:
        """Read it again."""
        return self._of(await self._call("GET", self._path("")))

    async def wait(self, timeout_seconds: float | None = None) -> Self:
        """Wait for its end, however it ends; raise WaitTimedOut after `timeout_seconds`."""
        if self.has_ended:
            return self
        job_path = self.session.path(f"jobs/{self.id}")
        call = until_ended(self._path(""), job_path, self.session.policy, timeout_seconds)
        return self._of(await self.session.run(call))

    def raise_unless_succeeded(self) -> Self:
        """Return the run, or raise JobEndedBadly if it has ended in another way."""
        if self.has_ended and not self.succeeded:
            raise JobEndedBadly(self.id, self.status, self.error.raw if self.error else None)
        return self

    async def output(self, path: str | PathLike[str] | None = None) -> Path:
        """Save `normalized.xlsx`; raise JobEndedBadly if the run failed and left none.

        A run that failed because of its data (`EVALUATION_FAILED`) left one.
        """
        place = place_for(path, OUTPUT)
        try:
            with written_whole(place) as file:
                async for piece in self._bytes("output"):
                    file.write(piece)
        except NotFound:
            self.raise_unless_succeeded()
            raise
        return place

    async def explanation(self) -> Mapping[str, Any]:
        """Read `artifact.json`: what was decided about every column, and why."""
        path = self.session.path(f"jobs/{self.id}/artifact")
        found: Mapping[str, Any] = await self._call("GET", path)
        return found

    async def artifacts(self) -> list[AsyncArtifact]:
        """List the files that it left."""
        return await list_artifacts(self.session, self.id)

    async def frame(self, library: str | None = None) -> Any:
        """Read its rows as a dataframe; start it with `outputs=["parquet"]` for that.

        Raise KeyError if it left no rows, or those of several tables: read its artifacts then.
        """
        found = await self.artifacts()
        for format in ROW_FORMATS:
            tables = [one for one in found if one.format == format]
            if len(tables) == 1:
                return await tables[0].frame(library)
            if tables:
                names = ", ".join(one.name for one in tables)
                raise KeyError(f"run {self.id} left several tables; read one of: {names}")
        raise KeyError(f'run {self.id} left no rows to read; start it with outputs=["parquet"]')

    def events(self, after: str = "") -> AsyncIterator[Event]:
        """Follow what happens to it until it has ended."""
        return self.job.events(after)

    def logs(self, after: str = "") -> AsyncIterator[LogPiece]:
        """Follow what it and its build write until it has ended."""
        return self.job.logs(after)

    async def cancel(self, reason: str | None = None) -> Self:
        """Cancel it; one that runs stops a little later."""
        return self._of(await self._call("POST", self._path("/cancel"), given(reason=reason)))

    async def rerun(self, idempotency_key: str | None = None) -> Self:
        """Run the same version on the same document again, and return the new run."""
        request = creating(self._path("/rerun"), None, idempotency_key=idempotency_key)
        return self._of(await self.session.run(call_json(request, self.session.policy)))

    def _bytes(self, rest: str) -> AsyncIterator[bytes]:
        path = self.session.path(f"jobs/{self.id}/{rest}")
        return self.session.iterate(download(path, self.session.policy))

    async def _call(self, method: Any, path: str, body: Any = None) -> Any:
        request = request_of(method, path, json_body=body, repeatable=True)
        return await self.session.run(call_json(request, self.session.policy))

    def _path(self, rest: str) -> str:
        return self.session.path(f"runs/{segment(self.id)}{rest}")

    def _of(self, body: Mapping[str, Any]) -> Self:
        return type(self).of(body, session=self.session)


class AsyncRuns:
    """The runs of a workspace."""

    def __init__(
        self,
        session: AsyncSession,
        documents: AsyncDocuments,
        configurations: AsyncConfigurations,
    ) -> None:
        self._session = session
        self._documents = documents
        self._configurations = configurations

    async def start(
        self,
        document: str | PathLike[str] | AsyncDocument,
        *,
        configuration: str | AsyncConfiguration,
        version: int | str | None = None,
        priority: str | None = None,
        limits: Mapping[str, int] | None = None,
        network_access: bool | None = None,
        fail_on: str | None = None,
        outputs: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        on_upload: Progress | None = None,
    ) -> AsyncRun:
        """Run a configuration on a file, which is uploaded, or on a document of the server.

        `document` is the path of a file that exists here, else the id or the name of a document.
        `configuration` is a name or an id; `version` a number, "active" or "draft".
        """
        configuration_id = (
            configuration.id
            if isinstance(configuration, AsyncConfiguration)
            else await self._configurations.find_id(configuration)
        )
        body = given(
            input_document_id=await self._document_id(document, on_upload),
            version=version,
            priority=priority,
            limits=limits,
            runtime_network_access=network_access,
            fail_on=fail_on,
            outputs=None if outputs is None else list(outputs),
        )
        path = self._session.path(f"configurations/{configuration_id}/runs")
        request = creating(path, body, idempotency_key=idempotency_key)
        return self._run(await self._session.run(call_json(request, self._session.policy)))

    async def get(self, run_id: str) -> AsyncRun:
        """Read a run."""
        return await AsyncRun(id=run_id, session=self._session).refresh()

    async def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        evaluation: str | Sequence[str] | None = None,
        configuration: str | None = None,
        document_id: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[AsyncRun]:
        """List runs that match all filters, newest first."""
        configuration_id = (
            None if configuration is None else await self._configurations.find_id(configuration)
        )
        query = filters(
            status=status,
            evaluation=evaluation,
            configuration_id=configuration_id,
            document_id=document_id,
            created_after=created_after,
            created_before=created_before,
        )
        path, policy = self._session.path("runs"), self._session.policy
        async for run in self._session.iterate(every(path, policy, self._run, query, limit)):
            yield run

    async def _document_id(
        self, document: str | PathLike[str] | AsyncDocument, on_upload: Progress | None
    ) -> str:
        if isinstance(document, AsyncDocument):
            return document.id
        if isinstance(document, str) and is_id(document):
            return document
        if (file := local_file(document)) is not None:
            return (await self._documents.upload(file, on_progress=on_upload)).id
        try:
            return await self._documents.find_id(str(document))
        except NotFound as missing:
            text = f"There is no file {document!r} here. On the server: {missing.detail}"
            raise NotFound(text, code="not_found", status=404) from None

    def _run(self, body: Mapping[str, Any]) -> AsyncRun:
        return AsyncRun.of(body, session=self._session)
