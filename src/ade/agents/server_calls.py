"""Calls to the server that an agent works for: messages out, messages or errors back."""

from typing import Any

import httpx
from pydantic import TypeAdapter, ValidationError

from ade.app.agent_messages import (
    ArchiveMessage,
    BlobMessage,
    ClaimMessage,
    ClaimsMessage,
    DocumentMessage,
    EndedMessage,
    EndMessage,
    EnvironmentMessage,
    InputMessage,
    KnownEnvironmentMessage,
    MadeEnvironmentMessage,
    OutputMessage,
    PackageMessage,
    ReceiptMessage,
    RenewalMessage,
    RenewedMessage,
    ReportedMessage,
    ReportMessage,
    WorkerMessage,
)
from ade.domain.errors import (
    AdeError,
    InvalidRequest,
    LeaseLost,
    NotFound,
    PayloadTooLarge,
    StorageFull,
    Unauthenticated,
    Unavailable,
)

DETAIL_CHARS_MAX = 300
# A connection that hangs must not outlast a lease; a claim also waits for work.
TIMEOUT = httpx.Timeout(10.0, connect=5.0, write=30.0, pool=30.0)
_MESSAGES = {
    message: TypeAdapter[Any](message)
    for message in (
        ArchiveMessage,
        BlobMessage,
        ClaimMessage,
        ClaimsMessage,
        DocumentMessage,
        EndMessage,
        EndedMessage,
        EnvironmentMessage,
        InputMessage,
        KnownEnvironmentMessage,
        MadeEnvironmentMessage,
        OutputMessage,
        PackageMessage,
        ReceiptMessage,
        RenewalMessage,
        RenewedMessage,
        ReportMessage,
        ReportedMessage,
        WorkerMessage,
    )
}
_ERRORS = {kind.code: kind for kind in (LeaseLost, NotFound, PayloadTooLarge, StorageFull)}


class ServerCalls:
    """Send messages to the server, and read its answers."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def post(
        self,
        path: str,
        message: Any,
        answer: type[Any] | None,
        *,
        wait_seconds: int = 0,
        patience_seconds: float = 0.0,
        repeats: bool = True,
    ) -> Any:
        """Send a message and return the answer, or raise what the server answered instead.

        The server may take longer than usual: as long as it is asked to wait, and `patience`.
        """
        headers = {"Content-Type": "application/json"}
        if wait_seconds:
            headers["Prefer"] = f"wait={wait_seconds}"
        body = _MESSAGES[type(message)].dump_json(message)
        try:
            response = await self._sent(
                path, body, headers, repeats, wait_seconds + patience_seconds
            )
        except httpx.HTTPError as error:
            raise away(error) from None
        if response.is_success:
            return None if answer is None else read_answer(answer, response.content)
        raise error_of(response)

    async def _sent(
        self, path: str, body: bytes, headers: dict[str, str], repeats: bool, longer_seconds: float
    ) -> httpx.Response:
        url, allowed = f"/api/agent/{path}", self.http.timeout
        if longer_seconds and allowed.read is not None:
            limits = allowed.as_dict()
            allowed = httpx.Timeout(**limits | {"read": allowed.read + longer_seconds})
        try:
            return await self.http.post(url, content=body, headers=headers, timeout=allowed)
        except httpx.RemoteProtocolError:  # a connection that the server had closed meanwhile
            if not repeats:
                raise
            return await self.http.post(url, content=body, headers=headers, timeout=allowed)


def away(error: Exception) -> Unavailable:
    """Say that the server cannot be reached."""
    return Unavailable(f"The server does not answer: {type(error).__name__}.")


def read_answer(answer: type[Any], body: bytes) -> Any:
    """Read what the server answered."""
    try:
        return _MESSAGES[answer].validate_json(body)
    except ValidationError:
        raise Unavailable("The server's answer cannot be read; are both of one version?") from None


def error_of(response: httpx.Response) -> AdeError:
    """Make the error that the server answered with."""
    try:
        problem = response.json()
        code, detail = str(problem["code"]), str(problem["detail"])[:DETAIL_CHARS_MAX]
    except (ValueError, LookupError, TypeError):
        code, detail = "", f"The server answered {response.status_code}."
    if code in _ERRORS:
        return _ERRORS[code](detail)
    if response.status_code in (401, 403):
        return Unauthenticated(detail)
    return Unavailable(detail) if response.status_code >= 429 else InvalidRequest(detail)
