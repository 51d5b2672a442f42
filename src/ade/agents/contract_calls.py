"""The calls of an agent by the worker contract: work, reports, heartbeats, output.

Every call either gets an answer or raises: Unavailable where trying again may help, and another
AdeError where it does not. A connection that the server had closed meanwhile is tried once more.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import httpx

from ade.agents.server_calls import away
from ade.domain.errors import (
    AdeError,
    InvalidRequest,
    InvalidTransition,
    NotFound,
    OutputGap,
    StaleAttempt,
    Unauthenticated,
    Unavailable,
)
from ade.storage.attempt_logs import LogState

CAPABILITIES = ["attempt_fencing_v1", "container_spec_v1"]
WAIT_SECONDS = 25
ANSWER_SECONDS = 30.0
DETAIL_CHARS_MAX = 300
# 401 and 403: another key may be put into the file meanwhile.
_RETRIED = frozenset({401, 403, 408, 425, 429})
_REFUSED: dict[int, type[AdeError]] = {404: NotFound, 409: InvalidTransition}


class Backoff:
    """Wait longer after each failure, at random, so that agents do not come back all at once."""

    def __init__(self, first_seconds: float = 0.5, most_seconds: float = 10.0) -> None:
        self._first_seconds = first_seconds
        self._most_seconds = most_seconds
        self._seconds = first_seconds

    def next_seconds(self) -> float:
        """Return how long to wait after one more failure."""
        seconds, self._seconds = self._seconds, min(self._seconds * 2, self._most_seconds)
        return seconds * random.uniform(0.5, 1)

    async def wait(self) -> None:
        """Wait after a failure."""
        await asyncio.sleep(self.next_seconds())

    def reset(self) -> None:
        """Begin anew after a success."""
        self._seconds = self._first_seconds


class ContractCalls:
    """Call the server; `http` holds its address and the agent's key."""

    def __init__(self, http: httpx.AsyncClient, worker_id: str, labels: list[str]) -> None:
        self._http = http
        self._worker_id = worker_id
        self._labels = labels

    async def next_job(self, wait_seconds: int = WAIT_SECONDS) -> dict[str, Any] | None:
        """Ask for a job, and wait for one; None if there is none."""
        body = {
            "worker_id": self._worker_id,
            "capabilities": CAPABILITIES,
            "labels": self._labels,
        }
        headers = {"Prefer": f"wait={wait_seconds}"}
        answer = await self._sent(
            "POST", "/api/agent/next-job", json=body, headers=headers, repeats=False
        )
        return None if answer.status_code == 204 else _object(answer)

    async def report(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Report on a job, and return its status as the server has it now."""
        body = {"worker_id": self._worker_id, **report}
        return _object(await self._sent("POST", "/api/agent/job-status", json=body))

    async def status(self, job_id: str) -> dict[str, Any]:
        """Read the status of a job."""
        return _object(await self._sent("GET", f"/status/{job_id}"))

    async def heartbeat(self, info: Mapping[str, Any], active_jobs: list[str]) -> None:
        """Say that the agent is there, how it is, and which jobs it has."""
        body = {"worker_id": self._worker_id, "info": info, "active_jobs": active_jobs}
        await self._sent("POST", "/api/agent/heartbeat", json=body)

    async def append_output(
        self, proof: Mapping[str, Any], offset_bytes: int, piece: bytes, *, is_last: bool
    ) -> LogState:
        """Send output at its place, or raise OutputGap with the place to go on from."""
        headers = _proof(proof) | {
            "Upload-Offset": str(offset_bytes),
            "Content-Type": "application/octet-stream",
        }
        if is_last:
            headers["Upload-Complete"] = "?1"
        path = f"/api/agent/jobs/{proof['job_id']}/output"
        return _log_state(await self._sent("PATCH", path, content=piece, headers=headers))

    async def held_output(self, proof: Mapping[str, Any]) -> LogState:
        """Ask how much of the output the server has."""
        path = f"/api/agent/jobs/{proof['job_id']}/output"
        return _log_state(await self._sent("HEAD", path, headers=_proof(proof)))

    async def _sent(
        self, method: str, path: str, *, repeats: bool = True, **parts: Any
    ) -> httpx.Response:
        request = self._http.build_request(method, path, timeout=ANSWER_SECONDS, **parts)
        try:
            try:
                answer = await self._http.send(request)
            except httpx.RemoteProtocolError:
                if not repeats:
                    raise
                request = self._http.build_request(method, path, timeout=ANSWER_SECONDS, **parts)
                answer = await self._http.send(request)
        except httpx.HTTPError as error:
            raise away(error) from None
        if answer.is_success:
            return answer
        raise _error_of(answer)


async def trade_code(http: httpx.AsyncClient, code: str) -> str:
    """Trade a one-time code for the agent's key, or raise Unauthenticated or Unavailable."""
    try:
        answer = await http.post("/api/agent/enrol", json={"code": code}, timeout=ANSWER_SECONDS)
    except httpx.HTTPError as error:
        raise away(error) from None
    if answer.status_code in (401, 403, 404, 410, 422):
        raise Unauthenticated(f"The code is not valid: {_detail(answer)[1]}")
    if not answer.is_success:
        raise _error_of(answer)
    key = _object(answer).get("key")
    if not isinstance(key, str) or not key:
        raise Unavailable("The server answered a code with no key.")
    return key


def _proof(proof: Mapping[str, Any]) -> dict[str, str]:
    return {
        "Attempt-Number": str(proof["attempt_number"]),
        "Attempt-Token": str(proof["attempt_token"]),
    }


def _log_state(answer: httpx.Response) -> LogState:
    offset = answer.headers.get("upload-offset", "")
    if not offset.isdigit():
        raise Unavailable("The server does not say how much output it has; is it an older one?")
    return LogState(int(offset), answer.headers.get("output-cut") == "?1")


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Unavailable("The server's answer is not a JSON object; is there a proxy before it?")
    return value


def _error_of(answer: httpx.Response) -> AdeError:
    code, detail = _detail(answer)
    # An error without a code is not one of ADE's: a proxy answers, or another server.
    is_ours = bool(code) or answer.request.method == "HEAD"
    if answer.status_code >= 500 or answer.status_code in _RETRIED or not is_ours:
        return Unavailable(detail)
    offset = answer.headers.get("upload-offset", "")
    if code == OutputGap.code and offset.isdigit():
        return OutputGap(detail, held_bytes=int(offset))
    if code == StaleAttempt.code:
        return StaleAttempt(detail)
    return _REFUSED.get(answer.status_code, InvalidRequest)(detail)


def _detail(answer: httpx.Response) -> tuple[str, str]:
    """Read what an error says of itself; that of a stale attempt is an object."""
    said = f"The server answered {answer.status_code}."
    try:
        body = answer.json()
        detail = body["detail"]
        if isinstance(detail, dict):
            return str(detail.get("code")), str(detail.get("message", said))[:DETAIL_CHARS_MAX]
        return str(body.get("code")), str(detail)[:DETAIL_CHARS_MAX]
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", said
