"""Turn what a client sent into a submission: kind, inputs, limits, network, execution key."""

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ade.domain.errors import (
    AdeError,
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    UnsupportedSchemaVersion,
)
from ade.domain.job import Priority
from ade.domain.keys import Work, digest
from ade.domain.limits import Limits, settle
from ade.http.contract import BATCH, JOB, LOOSE_BATCH, RUN, SET_BY_ADE, JobRequest, RunRequest
from ade.http.problems import invalid_by
from ade.http.times import microseconds
from ade.kinds import Kind, Kinds
from ade.settings import Settings
from ade.stages.submit.submission import Idempotency, Submission
from ade.store.rows import JobRow

SUPPORTED_VERSION = re.compile(r"1(\.\d{1,9}){0,2}")
NUL = b"\\u0000"
_PRIORITIES = {priority.value: priority for priority in Priority}


class Intake:
    """Know what this server can run and what a job may ask for."""

    def __init__(self, settings: Settings, kinds: Kinds) -> None:
        self._kinds = kinds
        self._network = settings.runtime_network_access
        self._payload_bytes_max = settings.payload_max_kb * 1024
        self._retries_max = settings.retry_max_attempts - 1
        self._batch_max = settings.batch_max
        self._default = Limits(
            timeout_ms=int(settings.job_timeout_seconds * 1000),
            cpu_ms=settings.worker_cpu_seconds * 1000,
            memory_mb=settings.worker_mem_mb,
            max_output_kb=settings.max_output_kb,
            max_artifacts=settings.max_artifacts,
        )
        self._quota = Limits(
            timeout_ms=int(settings.limit_timeout_seconds_max * 1000),
            cpu_ms=settings.limit_cpu_seconds_max * 1000,
            memory_mb=settings.limit_memory_mb_max,
            max_output_kb=settings.limit_output_kb_max,
            max_artifacts=settings.limit_artifacts_max,
        )
        self._unasked = settle({}, self._default, self._quota)
        self._offers: dict[str, _Offer] = {}

    def read_job(self, body: bytes) -> JobRequest | RunRequest:
        """Read one job from a request's body, or raise what is wrong with it."""
        try:
            asked = JOB.validate_json(body)
        except ValidationError as error:
            if (run := _read_run(body, error)) is not None:
                return run
            raise invalid_by(error) from None
        if NUL in body:
            refuse_nul(asked)
        return asked

    def read_batch(self, body: bytes) -> list[JobRequest | AdeError]:
        """Read many jobs; one that is not valid stands as its error in its place."""
        try:
            batch: list[Any] = BATCH.validate_json(body)["jobs"]
            checked = NUL not in body
        except ValidationError:
            try:
                batch = LOOSE_BATCH.validate_json(body)["jobs"]
            except ValidationError as error:
                raise invalid_by(error) from None
            checked = False
        if not 0 < len(batch) <= self._batch_max:
            raise InvalidRequest(
                f"A batch holds 1 to {self._batch_max} jobs, not {len(batch)}.",
                errors=[{"field": "jobs", "message": f"give 1 to {self._batch_max} jobs"}],
            )
        return batch if checked else [_checked(item) for item in batch]

    def submission(
        self,
        asked: JobRequest,
        workspace_id: str,
        user_id: str,
        *,
        target_id: str | None = None,
        idempotency: Idempotency | None = None,
    ) -> Submission:
        """Make a submission of what was asked, or raise why it cannot be one."""
        offer = self._offers.get(asked["job_type"]) or self._offer(asked["job_type"])
        kind = offer.kind
        if not kind.direct:
            raise InvalidRequest(
                f"A job of type {kind.name} is made by its own door: POST"
                " .../configurations/{id}/runs, or a body with config_version_id and document_id."
            )
        version = asked.get("schema_version")
        if version is not None and not SUPPORTED_VERSION.fullmatch(version):
            raise UnsupportedSchemaVersion("This server speaks schema_version 1.x.")
        environment = asked.get("environment")
        if environment is not None:
            self._check_network(environment)
            _check_language(kind, environment.get("language"))
        lane = asked.get("target_id")
        if target_id is not None:
            if lane not in (None, target_id):
                raise InvalidRequest("target_id: it differs from the target in the path.")
            lane = target_id
        payload = self._payload(asked)  # too large is too large, whatever else is wrong with it
        inputs = offer.inputs(asked["inputs"], "inputs")
        output_spec = asked.get("output_spec")
        if output_spec:
            output_spec = offer.outputs(output_spec, "output_spec")
        work = offer.work(output_spec, environment)
        kind.check(inputs, output_spec or offer.output_spec)
        limits, not_before = asked.get("limits"), asked.get("not_before")
        return Submission(  # by position: this runs for every job
            workspace_id,
            kind.name,
            payload,
            self.settled(limits) if limits else self._unasked,
            user_id,
            kind.pool,
            _PRIORITIES[asked.get("priority") or "normal"],
            lane,
            None if not_before is None else microseconds(not_before),
            work.key(asked["document_revision_id"], _objects(asked), inputs),
            # A lane is asked for its effects and a timer for its time, not for a known result.
            lane is None and not_before is None,
            bool(asked.get("reuse_failed")),
            None,
            None,
            None,
            None,
            offer.retries,
            idempotency,
        )

    def _offer(self, job_type: str) -> "_Offer":
        kind = self._kinds.named(job_type)
        offer = _Offer(kind, min(kind.retries, self._retries_max), network=self._network)
        return self._offers.setdefault(job_type, offer)

    def again(self, job: JobRow, payload: str, user_id: str) -> Submission:
        """Ask for the work of an earlier job again, under the rules of today."""
        kind = self._kinds.named(job.kind)
        return Submission(
            workspace_id=job.workspace_id,
            kind=kind.name,
            payload=payload,
            limits=self.settled(json.loads(job.limits)),
            submitted_by=user_id,
            pool=job.pool,
            priority=_PRIORITIES[job.priority],
            target_id=job.target_id,
            execution_key=job.execution_key,
            dedupe=False,
            rerun_of=job.id,
            configuration_id=job.configuration_id,
            document_id=job.document_id,
            build_id=job.build_id,
            retries=min(kind.retries, self._retries_max),
        )

    def env_version(self, job_type: str) -> str | None:
        """Return what results of a job type depend on besides their inputs, if it is known here."""
        known = job_type in self._kinds.names()
        return self._kinds.named(job_type).env_version if known else None

    def settled(self, asked: Any) -> Limits:
        """Hold the limits that are asked for against the quota."""
        return settle(asked, self._default, self._quota)

    def retries_of(self, job_type: str) -> int:
        """Return how often a job type is tried again here."""
        return min(self._kinds.named(job_type).retries, self._retries_max)

    def _check_network(self, environment: Mapping[str, Any]) -> None:
        if environment.get("network_access") == "enabled" and not self._network:
            raise Forbidden("Jobs get no network here: ADE_RUNTIME_NETWORK_ACCESS is off.")

    def _payload(self, asked: JobRequest) -> str:
        kept: Any = asked
        if not SET_BY_ADE.isdisjoint(asked):
            kept = {name: value for name, value in asked.items() if name not in SET_BY_ADE}
        spelled = to_json(kept)
        if len(spelled) > self._payload_bytes_max:
            raise PayloadTooLarge(
                f"A job's payload may have {self._payload_bytes_max // 1024} KiB."
            )
        payload = spelled.decode()
        # One letter is found ten times as fast as a word, and faster in text than in bytes.
        if ("N" in payload and "NaN" in payload) or ("I" in payload and "Infinity" in payload):
            refuse_endless(kept)
        return payload


class _Offer:
    """Hold what is equal for all submissions of a kind."""

    def __init__(self, kind: Kind, retries: int, *, network: bool) -> None:
        self.kind = kind
        self.retries = retries
        self.inputs = _reader(kind.inputs)
        self.outputs = _reader(kind.output_spec)
        self._network = network

    @cached_property
    def output_spec(self) -> dict[str, Any]:
        """Return what is given to those who ask for nothing in particular."""
        return self.outputs({}, "output_spec")

    @cached_property
    def _plain_work(self) -> Work:
        return Work(self.kind.name, self.output_spec, self._env_version(None))

    def work(
        self, output_spec: dict[str, Any] | None, environment: Mapping[str, Any] | None
    ) -> Work:
        """Say what names the work, besides the document and the inputs."""
        if not output_spec and environment is None:
            return self._plain_work
        asked = output_spec or self.output_spec
        return Work(self.kind.name, asked, self._env_version(environment))

    def _env_version(self, environment: Mapping[str, Any] | None) -> str:
        """Name what runs the job, what it asked to be run by, and whether it has the network."""
        asked = environment or {}
        has_network = self._network and asked.get("network_access") != "disabled"
        words = [self.kind.env_version, asked.get("env_version")]
        words.append("network" if has_network else None)
        return " ".join(word for word in words if word is not None)


def body_digest(body: bytes) -> str:
    """Name a request's body by its value, whatever its spelling."""
    return digest(from_json(body))


def _check_language(kind: Kind, asked: str | None) -> None:
    if asked is not None and kind.language is not None and asked.lower() != kind.language:
        raise InvalidRequest(
            f"A job of type {kind.name} is written in {kind.language}.",
            errors=[{"field": "environment.language", "message": f"known is {kind.language}"}],
        )


def _objects(asked: JobRequest) -> list[str]:
    target = asked.get("target")
    if not target:
        return []
    first = [target["object_id"]] if "object_id" in target else []
    return first + target.get("object_ids", [])


def _reader(model: type[BaseModel]) -> Callable[[dict[str, Any], str], Any]:
    """Read parts of submissions in the words of their kind, defaults filled in."""
    validated = model.__pydantic_validator__.validate_python
    plain = model.__pydantic_serializer__.to_python

    def read(given: dict[str, Any], name: str) -> Any:
        try:
            return plain(validated(given), mode="json")
        except ValidationError as error:
            raise invalid_by(error, within=(name,)) from None
        except (PydanticSerializationError, RecursionError):
            raise InvalidRequest(f"{name}: not all of it can be written as JSON.") from None

    return read


def _checked(item: Any) -> JobRequest | AdeError:
    try:
        asked = JOB.validate_json(to_json(item))
        refuse_nul(asked)
        return asked
    except ValidationError as error:
        return invalid_by(error)
    except AdeError as error:
        return error


def refuse_nul(value: Any) -> None:
    """Raise if a text anywhere holds the character that databases and C programs cannot."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if "\0" in one:
                raise InvalidRequest("A text holds the character NUL (\\u0000).")
        elif isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def refuse_endless(value: Any) -> None:
    """Raise if a number anywhere is one that JSON has no word for."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float) and not math.isfinite(one):
            raise InvalidRequest("A number is too large, or none (NaN).")
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _read_run(body: bytes, error: ValidationError) -> RunRequest | None:
    """Read the short form: a body without `job_type` that names a configuration version."""
    missing = any(e["type"] == "missing" and e["loc"] == ("job_type",) for e in error.errors())
    if not missing or b"config_version_id" not in body:
        return None
    try:
        run = RUN.validate_json(body)
    except ValidationError as wrong:
        raise invalid_by(wrong) from None
    refuse_nul(run)
    return run
