"""Procrastinate with psycopg and uvloop. It claims jobs one at a time and runs 16 at once."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import uvloop
from procrastinate import App, PsycopgConnector
from procrastinate.types import JSONDict

from bench.cases import BULK_ROWS, Case, Contestant, Sample

JOBS_AT_ONCE = 16


class Procrastinate(Contestant):
    name = "Procrastinate"
    database = "postgres"
    cases = (
        Case("enqueue", jobs_max=5_000),
        Case("bulk", jobs_max=50_000),
        Case("drain", jobs_max=3_000),
        Case("pickup"),
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        uvloop.run(self._install())

    def _app(self) -> App:
        return App(connector=PsycopgConnector(conninfo=self.url, max_size=JOBS_AT_ONCE + 4))

    async def _install(self) -> None:
        async with self._app().open_async() as app:
            await app.schema_manager.apply_schema_async()

    def enqueue(self, count: int) -> Sample:
        return uvloop.run(self._enqueue(count))

    async def _enqueue(self, count: int) -> Sample:
        async with self._app().open_async() as app:
            noop = app.configure_task("noop")
            began = time.perf_counter()
            for number in range(count):
                await noop.defer_async(n=number)
            return Sample(count, time.perf_counter() - began)

    def enqueue_bulk(self, count: int) -> Sample:
        return uvloop.run(self._enqueue_bulk(count))

    async def _enqueue_bulk(self, count: int) -> Sample:
        async with self._app().open_async() as app:
            noop = app.configure_task("noop")
            began = time.perf_counter()
            for start in range(0, count, BULK_ROWS):
                numbers = range(start, min(start + BULK_ROWS, count))
                jobs: list[JSONDict] = [{"n": number} for number in numbers]
                await noop.batch_defer_async(*jobs)
            return Sample(count, time.perf_counter() - began)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        return uvloop.run(self._drain(count))

    async def _drain(self, count: int) -> Sample:
        app = self._app()
        enough = asyncio.Event()
        done = 0

        @app.task(name="noop")
        async def noop(n: int) -> None:
            nonlocal done
            done += 1
            if done >= count:
                enough.set()

        async with app.open_async():
            began = time.perf_counter()
            worker = asyncio.create_task(app.run_worker_async(concurrency=JOBS_AT_ONCE))
            await _first(enough, worker)
            await _stop(worker)
            return Sample(done, time.perf_counter() - began)

    def pickup(self, count: int) -> Sample:
        return uvloop.run(self._pickup(count))

    async def _pickup(self, count: int) -> Sample:
        app = self._app()
        started: asyncio.Queue[float] = asyncio.Queue()

        @app.task(name="noop")
        async def noop() -> None:
            started.put_nowait(time.perf_counter())

        async with app.open_async():
            worker = asyncio.create_task(app.run_worker_async(concurrency=JOBS_AT_ONCE))
            await noop.defer_async()
            await started.get()
            latencies = []
            for _ in range(count):
                await asyncio.sleep(0.02)  # the worker finishes the last job and waits again
                began = time.perf_counter()
                await noop.defer_async()
                latencies.append(await started.get() - began)
            await _stop(worker)
        return Sample(count, sum(latencies), tuple(latencies))


async def _first(event: asyncio.Event, worker: asyncio.Task[None]) -> None:
    """Wait for the event, or for the worker to fail."""
    waiting = asyncio.ensure_future(event.wait())
    await asyncio.wait({waiting, worker}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if worker.done():
        worker.result()


async def _stop(worker: asyncio.Task[None]) -> None:
    """Cancelling a worker makes it finish the jobs that it has."""
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
