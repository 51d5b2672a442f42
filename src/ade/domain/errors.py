"""Every error that ADE answers with.

    AdeError
    ├── InvalidRequest          422 validation_error
    │   ├── LimitExceedsQuota       limit_exceeds_quota
    │   ├── IdempotencyKeyReused    idempotency_key_reused
    │   ├── UnsupportedSchemaVersion unsupported_schema_version
    │   └── UnreadableDocument      unreadable_document
    ├── BadRequest              400 bad_request
    │   └── UnsafePath              unsafe_path
    ├── SafeMode                400 safe_mode
    ├── Unauthenticated         401 unauthenticated
    │   └── SessionEnded            session_ended
    ├── Forbidden               403 forbidden
    │   ├── CrossSiteRequest        cross_site_request
    │   └── CsrfTokenInvalid        csrf_token_invalid
    ├── NotFound                404 not_found
    ├── Conflict                409 conflict
    │   ├── InvalidTransition       invalid_transition
    │   ├── LeaseLost               lease_lost
    │   ├── StaleAttempt            stale_job_attempt
    │   ├── OutputGap               output_gap
    │   ├── NotFinished             not_finished
    │   └── IdempotencyInFlight     idempotency_in_flight
    ├── PreconditionFailed      412 precondition_failed
    ├── PayloadTooLarge         413 payload_too_large
    ├── QueueFull               429 run_queue_full
    ├── TooManyRequests         429 too_many_requests
    │   └── TooManyWrongKeys        too_many_wrong_keys
    ├── Unavailable             503 unavailable
    └── StorageFull             507 storage_full

Each class is one problem type of the HTTP API; its docstring is the title that the user reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class AdeError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500

    def __init__(self, detail: str, *, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)

    @classmethod
    def title(cls) -> str:
        """Return the title of the problem, as the user reads it."""
        return (cls.__doc__ or cls.__name__).strip().rstrip(".")


class InvalidRequest(AdeError):
    """The request is not valid."""

    code, status = "validation_error", 422


class LimitExceedsQuota(InvalidRequest):
    """A limit asks for more than the quota allows."""

    code = "limit_exceeds_quota"


class IdempotencyKeyReused(InvalidRequest):
    """The Idempotency-Key was used before with another body."""

    code = "idempotency_key_reused"


class UnsupportedSchemaVersion(InvalidRequest):
    """The schema version is not supported."""

    code = "unsupported_schema_version"


class UnreadableDocument(InvalidRequest):
    """The document cannot be read as a spreadsheet."""

    code = "unreadable_document"


class BadRequest(AdeError):
    """The request cannot be read."""

    code, status = "bad_request", 400


class UnsafePath(BadRequest):
    """The path leads out of the folder that it must stay in."""

    code = "unsafe_path"


class SafeMode(AdeError):
    """Safe mode is on."""

    code, status = "safe_mode", 400


SAFE_MODE_DETAIL = (
    "ADE_SAFE_MODE is enabled: nothing is run until it is switched off."
    " Fix the configuration, then restart ADE without it."
)


class Unauthenticated(AdeError):
    """A valid API key is needed."""

    code, status = "unauthenticated", 401


class SessionEnded(Unauthenticated):
    """The session has ended."""

    code = "session_ended"


class Forbidden(AdeError):
    """The key's role does not allow this."""

    code, status = "forbidden", 403


class CrossSiteRequest(Forbidden):
    """The request was sent by a page of another site."""

    code = "cross_site_request"


class CsrfTokenInvalid(Forbidden):
    """The CSRF token is missing or not that of the session."""

    code = "csrf_token_invalid"


class NotFound(AdeError):
    """There is no such thing here."""

    code, status = "not_found", 404


class Conflict(AdeError):
    """The request does not fit the current state."""

    code, status = "conflict", 409


class InvalidTransition(Conflict):
    """The job's status does not allow this."""

    code = "invalid_transition"


class LeaseLost(Conflict):
    """The lease on this job was lost."""

    code = "lease_lost"


class StaleAttempt(Conflict):
    """The attempt is over."""

    code = "stale_job_attempt"


class OutputGap(Conflict):
    """Output before this piece is missing."""

    code = "output_gap"

    def __init__(self, detail: str, *, held_bytes: int) -> None:
        super().__init__(detail)
        self.held_bytes = held_bytes


class NotFinished(Conflict):
    """The job has not finished yet."""

    code = "not_finished"


class IdempotencyInFlight(Conflict):
    """The first request with this Idempotency-Key is still being answered."""

    code = "idempotency_in_flight"


class PreconditionFailed(AdeError):
    """It is not what the caller thinks that it is."""

    code, status = "precondition_failed", 412


class PayloadTooLarge(AdeError):
    """The request is too large."""

    code, status = "payload_too_large", 413


class QueueFull(AdeError):
    """The queue is full."""

    code, status = "run_queue_full", 429

    def __init__(self, detail: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class TooManyRequests(AdeError):
    """Too many are in use at once."""

    code, status = "too_many_requests", 429

    def __init__(self, detail: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class TooManyWrongKeys(TooManyRequests):
    """Too many wrong keys came from this address."""

    code = "too_many_wrong_keys"


class Unavailable(AdeError):
    """ADE cannot answer at the moment."""

    code, status = "unavailable", 503


class StorageFull(AdeError):
    """There is no space left to store this."""

    code, status = "storage_full", 507
