"""Write the answer to a batch: the fast path for many jobs that differ in their identifiers.

Serializing the body of one job takes about 20 µs and filling in a template about 1 µs, of the
33 µs that a job of a batch costs in all. So what is equal in a row of jobs is serialized once, and
each job's own identifier and execution key are put into it.
"""

import json
import secrets
from collections.abc import Sequence

from ade.app.submission import status_of
from ade.domain.errors import AdeError
from ade.http.problems import problem
from ade.http.schemas.jobs import job_body
from ade.stages.submit.model import Accepted
from ade.store.rows import JobRow

# Placeholders that no client can guess, so that nothing else in a body is taken for one.
_ID, _KEY = secrets.token_hex(16), secrets.token_hex(16)
_KEY_FIELD = JobRow._fields.index("execution_key")


class JobTemplate:
    """Write jobs as `job_body` shows them; fast for jobs that resemble the one before."""

    def __init__(self, slug: str, *, safe_mode: bool) -> None:
        self._slug = slug
        self._safe_mode = safe_mode
        self._like: tuple[object, ...] = ()
        self._before_key: list[str] = []
        self._after_key: list[str] = []

    def text(self, job: JobRow, *, deduplicated: bool) -> str:
        """Write a job as JSON."""
        job_id, key = job.id, job.execution_key
        if key is None:
            return self._serialized(job, deduplicated)
        like = (deduplicated, job.workspace_id, job[2:_KEY_FIELD], job[_KEY_FIELD + 1 :])
        if like != self._like:
            marked = self._serialized(job._replace(id=_ID, execution_key=_KEY), deduplicated)
            before, _, after = marked.partition(_KEY)
            self._like = like
            self._before_key, self._after_key = before.split(_ID), after.split(_ID)
        return f"{job_id.join(self._before_key)}{key}{job_id.join(self._after_key)}"

    def _serialized(self, job: JobRow, deduplicated: bool) -> str:
        return json.dumps(
            job_body(job, self._slug, deduplicated=deduplicated, safe_mode=self._safe_mode)
        )


def batch_text(outcomes: Sequence[Accepted | AdeError], template: JobTemplate, trace: str) -> str:
    """Write what became of each job of a batch, in order (the body `Batch`)."""
    items = []
    for outcome in outcomes:
        if isinstance(outcome, AdeError):
            refusal = json.dumps(problem(outcome, trace))
            items.append(f'{{"status": {outcome.status}, "problem": {refusal}}}')
            continue
        status, text = outcome.replayed or (
            status_of(outcome.job),
            template.text(outcome.job, deduplicated=outcome.deduplicated),
        )
        items.append(f'{{"status": {status}, "job": {text}}}')
    return f'{{"items": [{", ".join(items)}]}}'
