"""Every exception of the client.

    ClientError
    ├── ServerUnreachable           the server does not answer
    ├── NotAnAdeServer              something else answers at this address
    ├── TransferError               the bytes of a file did not arrive whole
    │   └── DigestMismatch              they are not those that their digest names
    ├── AmbiguousName               several things have this name
    ├── WaitTimedOut                the time to wait is over; the job goes on
    ├── JobEndedBadly               the job or the run did not succeed
    ├── ConnectionNotConfigured     no address, or no key, or a profile that does not exist
    └── Problem                     the server refused: status, code, detail
        ├── InvalidRequest  422     LimitExceedsQuota, IdempotencyKeyReused,
        │                           UnsupportedSchemaVersion, UnreadableDocument
        ├── BadRequest      400     UnsafePath
        ├── SafeMode        400
        ├── Unauthenticated 401     SessionEnded
        ├── Forbidden       403     CrossSiteRequest, CsrfTokenInvalid
        ├── NotFound        404     NoSuchPath
        ├── Conflict        409     InvalidTransition, LeaseLost, StaleAttempt, NotFinished,
        │                           IdempotencyInFlight
        ├── PreconditionFailed 412
        ├── PayloadTooLarge 413
        ├── QueueFull       429
        ├── TooManyRequests 429     TooManyWrongKeys
        ├── Unavailable     503
        └── StorageFull     507

A problem with a code that this version does not know is the class of its status, else `Problem`.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class ClientError(Exception):
    """Something went wrong; the message says what, and what to do next."""


class ServerUnreachable(ClientError):
    """The server does not answer."""


class NotAnAdeServer(ClientError):
    """Something answers at this address that is not ADE."""


class TransferError(ClientError):
    """The bytes of a file did not arrive whole."""


class DigestMismatch(TransferError):
    """The bytes are not those that their digest names."""


class AmbiguousName(ClientError):
    """Several things have this name; use the id of one of them."""


class ConnectionNotConfigured(ClientError):
    """It is not known which server to call, or with which key."""


class WaitTimedOut(ClientError):
    """The time to wait is over; the job goes on."""

    def __init__(self, job_id: str, status: str, seconds: float) -> None:
        super().__init__(f"Job {job_id} is {status} after {seconds:g} s; it goes on.")
        self.job_id = job_id
        self.status = status


class JobEndedBadly(ClientError):
    """The job or the run did not succeed."""

    def __init__(
        self, job_id: str, status: str, error: Mapping[str, Any] | None, stdout: str = ""
    ) -> None:
        error = error or {}
        self.job_id = job_id
        self.status = status
        self.category: str | None = error.get("category")
        self.code: str | None = error.get("code")
        self.details: Mapping[str, Any] = error.get("details") or {}
        self.stdout = stdout
        reason = error.get("message") or "no reason was recorded"
        super().__init__(f"Job {job_id} is {status}: {reason}")


class Problem(ClientError):
    """The server refused the request."""

    def __init__(
        self,
        detail: str,
        *,
        code: str = "http_error",
        status: int = 0,
        title: str = "",
        errors: Sequence[Mapping[str, Any]] = (),
        trace_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(_sentence(detail, errors))
        self.detail = detail
        self.code = code
        self.status = status
        self.title = title
        self.errors = tuple(errors)
        self.trace_id = trace_id
        self.retry_after_seconds = retry_after_seconds


def _sentence(detail: str, errors: Sequence[Mapping[str, Any]]) -> str:
    """Add the fields that are wrong to a detail that does not name them."""
    named = [
        f"{one['field']}: {one['message']}"
        for one in errors
        if {"field", "message"} <= one.keys() and str(one["message"]) not in detail
    ]
    return f"{detail} ({'; '.join(named)})" if named else detail


class InvalidRequest(Problem):
    """The request is not valid."""


class LimitExceedsQuota(InvalidRequest):
    """A limit asks for more than the quota allows."""


class IdempotencyKeyReused(InvalidRequest):
    """The Idempotency-Key was used before with another body."""


class UnsupportedSchemaVersion(InvalidRequest):
    """The schema version is not supported."""


class UnreadableDocument(InvalidRequest):
    """The document cannot be read as a spreadsheet."""


class BadRequest(Problem):
    """The request cannot be read."""


class UnsafePath(BadRequest):
    """The path leads out of the folder that it must stay in."""


class SafeMode(Problem):
    """Safe mode is on: the server starts no job."""


class Unauthenticated(Problem):
    """A valid API key is needed."""


class SessionEnded(Unauthenticated):
    """The session has ended."""


class Forbidden(Problem):
    """The key's role does not allow this."""


class CrossSiteRequest(Forbidden):
    """The request was sent by a page of another site."""


class CsrfTokenInvalid(Forbidden):
    """The CSRF token is missing or not that of the session."""


class NotFound(Problem):
    """There is no such thing here."""


class NoSuchPath(NotFound):
    """The server does not know this path: it is of another version than the client."""


class Conflict(Problem):
    """The request does not fit the current state."""


class InvalidTransition(Conflict):
    """The job's status does not allow this."""


class LeaseLost(Conflict):
    """The lease on this job was lost."""


class StaleAttempt(Conflict):
    """The attempt is over."""


class NotFinished(Conflict):
    """The job has not finished yet."""


class IdempotencyInFlight(Conflict):
    """The first request with this Idempotency-Key is still being answered."""


class PreconditionFailed(Problem):
    """It is not what the caller thinks that it is."""


class PayloadTooLarge(Problem):
    """The request is too large."""


class QueueFull(Problem):
    """The queue is full."""


class TooManyRequests(Problem):
    """Too many are in use at once."""


class TooManyWrongKeys(TooManyRequests):
    """Too many wrong keys came from this address."""


class Unavailable(Problem):
    """ADE cannot answer at the moment."""


class StorageFull(Problem):
    """There is no space left to store this."""


BY_CODE: dict[str, type[Problem]] = {
    "validation_error": InvalidRequest,
    "limit_exceeds_quota": LimitExceedsQuota,
    "idempotency_key_reused": IdempotencyKeyReused,
    "unsupported_schema_version": UnsupportedSchemaVersion,
    "unreadable_document": UnreadableDocument,
    "bad_request": BadRequest,
    "unsafe_path": UnsafePath,
    "safe_mode": SafeMode,
    "unauthenticated": Unauthenticated,
    "session_ended": SessionEnded,
    "forbidden": Forbidden,
    "cross_site_request": CrossSiteRequest,
    "csrf_token_invalid": CsrfTokenInvalid,
    "not_found": NotFound,
    "conflict": Conflict,
    "invalid_transition": InvalidTransition,
    "lease_lost": LeaseLost,
    "stale_job_attempt": StaleAttempt,
    "not_finished": NotFinished,
    "idempotency_in_flight": IdempotencyInFlight,
    "precondition_failed": PreconditionFailed,
    "payload_too_large": PayloadTooLarge,
    "run_queue_full": QueueFull,
    "too_many_requests": TooManyRequests,
    "too_many_wrong_keys": TooManyWrongKeys,
    "unavailable": Unavailable,
    "storage_full": StorageFull,
}
BY_STATUS: dict[int, type[Problem]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: PayloadTooLarge,
    422: InvalidRequest,
    429: TooManyRequests,
    503: Unavailable,
    507: StorageFull,
}
