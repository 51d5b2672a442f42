"""Errors in the form of the worker contract: `{"detail": ...}`, with a stable `code` beside it.

The detail is a sentence. For an attempt that is over it is an object with a code of its own, which
workers that know attempt fencing look for.
"""

import json
from typing import Any

from fastapi import Request, Response

from ade.domain.errors import StaleAttempt
from ade.http.middleware import trace_id_in
from ade.http.problems import problem, problem_response
from ade.http.responses import JSON, RawResponse


def detail_response(error: BaseException, trace_id: str) -> RawResponse:
    """Respond with what went wrong; an unexpected error is logged with its traceback."""
    as_problem = problem_response(error, trace_id)
    found = problem(error, trace_id)
    detail: Any = found["detail"]
    if isinstance(error, StaleAttempt):
        detail = {"code": found["code"], "message": detail}
    body: dict[str, Any] = {"detail": detail, "code": found["code"]}
    if errors := found.get("errors"):
        body["errors"] = errors
    return RawResponse(as_problem.status, json.dumps(body).encode(), as_problem.headers, JSON)


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that failed."""
    return detail_response(error, trace_id_in(request.scope)).as_response()
