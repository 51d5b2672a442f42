"""Every error is a problem of RFC 9457 with a stable `code`.

A problem shows the class of the error, its detail, and for an invalid request the fields that are
wrong. It never shows the values that were sent, which may be secrets, nor what happened inside,
which is in the server's log under the same trace id.
"""

import json
import logging
from http import HTTPStatus

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ade.app.validation import ERRORS_MAX, invalid_fields
from ade.domain.errors import (
    AdeError,
    NotFound,
    QueueFull,
    SessionEnded,
    TooManyRequests,
    Unauthenticated,
)
from ade.http.responses import PROBLEM, Headers, RawResponse
from ade.http.schemas.problems import Problem

TYPE_PREFIX = "urn:ade:problem:"
RETRY_AFTER_UNAVAILABLE = b"1"
CODES = {
    400: "bad_request",
    404: NotFound.code,
    405: "method_not_allowed",
    408: "request_timeout",
    414: "url_too_long",
    415: "unsupported_media_type",
    416: "range_not_satisfiable",
    431: "head_too_large",
}
log = logging.getLogger("ade.http")


def problem(error: BaseException, trace_id: str) -> Problem:
    """Describe an error to the client that caused it."""
    if isinstance(error, AdeError):
        found = _problem(error.code, error.status, type(error).title(), error.detail, trace_id)
        if error.errors:
            found["errors"] = [dict(one) for one in error.errors[:ERRORS_MAX]]
    elif isinstance(error, RequestValidationError):
        return problem(invalid_fields(error.errors()), trace_id)
    elif isinstance(error, HTTPException):
        title = HTTPStatus(error.status_code).phrase
        code = CODES.get(error.status_code, "http_error")
        found = _problem(code, error.status_code, title, _http_detail(error), trace_id)
    else:
        detail = "ADE failed to answer. The trace id finds the reason in the server's log."
        found = _problem(AdeError.code, 500, AdeError.title(), detail, trace_id)
    return found


def _problem(code: str, status: int, title: str, detail: str, trace_id: str) -> Problem:
    return {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "trace_id": trace_id,
    }


def _http_detail(error: HTTPException) -> str:
    if error.status_code == 404:
        return "There is no such path."
    if error.status_code == 405:
        return "This path does not support this method."
    return str(error.detail)


def problem_response(error: BaseException, trace_id: str) -> RawResponse:
    """Respond with a problem; an unexpected error is logged with its traceback."""
    found = problem(error, trace_id)
    if found["code"] == AdeError.code:
        log.error("request failed, trace id %s", trace_id, exc_info=error)
    return RawResponse(found["status"], json.dumps(found).encode(), _headers(error), PROBLEM)


def _headers(error: BaseException) -> Headers:
    if isinstance(error, QueueFull | TooManyRequests):
        return ((b"retry-after", b"%d" % error.retry_after_seconds),)
    if isinstance(error, SessionEnded):  # a page is to show its own form, not the browser's
        return ((b"www-authenticate", b'Bearer realm="ade"'),)
    if isinstance(error, Unauthenticated):
        return ((b"www-authenticate", b'Bearer realm="ade", Basic realm="ade"'),)
    if isinstance(error, AdeError) and error.status == 503:
        return ((b"retry-after", RETRY_AFTER_UNAVAILABLE),)
    if isinstance(error, HTTPException) and error.headers:
        return tuple((k.lower().encode(), v.encode()) for k, v in error.headers.items())
    return ()
