"""Turn a request for a job into a submission: kind, inputs, limits, network, execution key."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from ade.app.request_schemas import (
    BATCH,
    JOB,
    RUN,
    SET_BY_ADE,
    UNCHECKED_BATCH,
    JobRequest,
    RunRequest,
)
from ade.app.times import microseconds
from ade.app.validation import ESCAPED_NUL, invalid_body, reject_nonfinite, reject_nul
from ade.domain.build import KIND as BUILD
from ade.domain.errors import (
    AdeError,
    Conflict,
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    UnsupportedSchemaVersion,
)
from ade.domain.job import Priority
from ade.domain.keys import Work
from ade.domain.limits import Limits, resolve_limits
from ade.domain.network import NetworkRule, asked_for_network, gets_network
from ade.kinds import Kind, Kinds
from ade.settings import Settings
from ade.stages.submit.model import Submission
from ade.store.rows import JobRow

SUPPORTED_VERSION = re.compile(r"1(\.\d{1,9}){0,2}")
NO_NETWORK = "Jobs get no network here: ADE_RUNTIME_NETWORK_ACCESS is never."
_PRIORITIES = {priority.value: priority for priority in Priority}


class Caller(NamedTuple):
    """Identify the client that requests work, and the workspace."""

    workspace_id: str
    user_id: str


class JobRequests:
    """Turn requests into submissions, by the job types and the limits of this server."""

    def __init__(self, settings: Settings, kinds: Kinds) -> None:
        self._kinds = kinds
        self._network = settings.runtime_network_access
        self._hosts = settings.available_hosts
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
        self._long_default = replace(
            self._default, timeout_ms=int(settings.container_timeout_seconds * 1000)
        )
        self._long_quota = replace(
            self._quota, timeout_ms=int(settings.limit_container_seconds_max * 1000)
        )
        self._offers: dict[str, _Offer] = {}

    def parse(self, body: bytes) -> JobRequest | RunRequest:
        """Read one job from a request's body, or raise what is wrong with it."""
        try:
            request = JOB.validate_json(body)
        except ValidationError as error:
            if (run := _parse_run(body, error)) is not None:
                return run
            raise invalid_body(error) from None
        if ESCAPED_NUL in body:
            reject_nul(request)
        return request

    def parse_batch(self, body: bytes) -> list[JobRequest | RunRequest | AdeError]:
        """Read many jobs; one that is not valid is replaced by its error."""
        try:
            batch: list[Any] = BATCH.validate_json(body)["jobs"]
            is_valid = ESCAPED_NUL not in body
        except ValidationError:
            try:
                batch = UNCHECKED_BATCH.validate_json(body)["jobs"]
            except ValidationError as error:
                raise invalid_body(error) from None
            is_valid = False
        if not 0 < len(batch) <= self._batch_max:
            raise InvalidRequest(
                f"A batch holds 1 to {self._batch_max} jobs, not {len(batch)}.",
                errors=[{"field": "jobs", "message": f"give 1 to {self._batch_max} jobs"}],
            )
        return batch if is_valid else [self._parse_item(item) for item in batch]

    def _parse_item(self, item: Any) -> JobRequest | RunRequest | AdeError:
        try:
            body = to_json(item)
            request = self.parse(body)
            reject_nul(request)
            return request
        except AdeError as error:
            return error

    def submission(
        self, request: JobRequest, caller: Caller, *, target_id: str | None = None
    ) -> Submission:
        """Make a submission of a request, on a target if one is named, or raise why it cannot be.

        This runs for every job of a batch, so what is the same for all jobs of a type is kept.
        """
        offer = self._offers.get(request["job_type"]) or self._offer(request["job_type"])
        kind = offer.kind
        if not kind.direct:
            raise InvalidRequest(
                f"A job of type {kind.name} is created by POST .../configurations/{{id}}/runs,"
                " or by a body with config_version_id and document_id."
            )
        version = request.get("schema_version")
        if version is not None and not SUPPORTED_VERSION.fullmatch(version):
            raise UnsupportedSchemaVersion("This server supports schema_version 1.x.")
        environment = request.get("environment")
        if environment is not None:
            self._check_network(environment)
            _check_language(kind, environment.get("language"))
        lane = request.get("target_id")
        if target_id is not None:
            if lane not in (None, target_id):
                raise InvalidRequest("target_id: it differs from the target in the path.")
            lane = target_id
        payload = self._payload(request)  # its size is checked before its content
        inputs = offer.inputs(request["inputs"], "inputs")
        output_spec = request.get("output_spec")
        if output_spec:
            output_spec = offer.outputs(output_spec, "output_spec")
        work = offer.work(output_spec, environment)
        kind.check(inputs, output_spec or offer.default_output_spec)
        agent_pool = kind.agent_pool(inputs)
        if agent_pool is not None:
            self._check_host(agent_pool.host)
        limits, not_before = request.get("limits"), request.get("not_before")
        return Submission(
            workspace_id=caller.workspace_id,
            kind=kind.name,
            payload=payload,
            limits=self.limits(limits, kind) if limits else offer.default_limits,
            submitted_by=caller.user_id,
            pool=kind.pool,
            priority=_PRIORITIES[request.get("priority") or "normal"],
            target_id=lane,
            not_before=None if not_before is None else microseconds(not_before),
            execution_key=work.key(request.get("document_revision_id"), _objects(request), inputs),
            # A job on a lane is wanted for its effects and a scheduled one for its time, so
            # neither is answered with an earlier result.
            dedupe=kind.dedupes
            and lane is None
            and not_before is None
            and request.get("dedupe") is not False,
            reuse_failed=bool(request.get("reuse_failed")),
            retries=offer.retries,
            agent_pool=agent_pool,
        )

    def _check_host(self, host: str | None) -> None:
        if host is None or not self._hosts or host in self._hosts:
            return
        known = ", ".join(self._hosts)
        raise InvalidRequest(
            f"There is no host {host} for agents: AVAILABLE_HOSTS lists {known}.",
            errors=[{"field": "preferred_host", "message": f"one of {known}"}],
        )

    def _offer(self, job_type: str) -> "_Offer":
        kind = self._kinds.named(job_type)
        offer = _Offer(kind, self.retries(job_type), self.limits({}, kind), network=self._network)
        return self._offers.setdefault(job_type, offer)

    def repeat(self, job: JobRow, payload: str, caller: Caller) -> Submission:
        """Ask for the work of an earlier job again, under the limits of today."""
        kind = self._kinds.named(job.kind)
        if kind.name == BUILD:
            raise Conflict("A build is made again by activating its version.")
        return Submission(
            workspace_id=job.workspace_id,
            kind=kind.name,
            payload=payload,
            limits=self.limits(json.loads(job.limits), kind),
            submitted_by=caller.user_id,
            pool=job.pool,
            priority=_PRIORITIES[job.priority],
            target_id=job.target_id,
            execution_key=job.execution_key,
            dedupe=False,
            rerun_of=job.id,
            configuration_id=job.configuration_id,
            document_id=job.document_id,
            build_id=job.build_id,
            retries=self.retries(job.kind),
        )

    def env_version(self, job_type: str) -> str | None:
        """Return the environment version that a job of a type would run in here, if known."""
        known = job_type in self._kinds.names()
        return self._kinds.named(job_type).env_version if known else None

    def limits(self, requested: Mapping[str, Any], kind: Kind | None = None) -> Limits:
        """Fill in the default limits, or raise if more is requested than the quota allows."""
        if kind is not None and kind.long_running:
            return resolve_limits(requested, self._long_default, self._long_quota)
        return resolve_limits(requested, self._default, self._quota)

    def retries(self, job_type: str) -> int:
        """Return how often a job of a type is tried again here."""
        return min(self._kinds.named(job_type).retries, self._retries_max)

    def _check_network(self, environment: Mapping[str, Any]) -> None:
        if environment.get("network_access") == "enabled" and self._network is NetworkRule.NEVER:
            raise Forbidden(NO_NETWORK)

    def _payload(self, request: JobRequest) -> str:
        stored: Any = request
        if not SET_BY_ADE.isdisjoint(request):
            stored = {name: value for name, value in request.items() if name not in SET_BY_ADE}
        serialized = to_json(stored)
        if len(serialized) > self._payload_bytes_max:
            raise PayloadTooLarge(
                f"A job's payload may have at most {self._payload_bytes_max // 1024} KiB."
            )
        payload = serialized.decode()
        # Searching for one character is ten times as fast as for a word.
        if ("N" in payload and "NaN" in payload) or ("I" in payload and "Infinity" in payload):
            reject_nonfinite(stored)
        return payload


class _Offer:
    """Hold what is the same for all submissions of a kind."""

    def __init__(
        self, kind: Kind, retries: int, default_limits: Limits, *, network: NetworkRule
    ) -> None:
        self.kind = kind
        self.retries = retries
        self.default_limits = default_limits
        self.inputs = _normalizer(kind.inputs)
        self.outputs = _normalizer(kind.output_spec)
        self._network = network

    @cached_property
    def default_output_spec(self) -> dict[str, Any]:
        """Return the output_spec of a request that has none."""
        return self.outputs({}, "output_spec")

    @cached_property
    def _default_work(self) -> Work:
        return Work(self.kind.name, self.default_output_spec, self._env_version(None))

    def work(
        self, output_spec: dict[str, Any] | None, environment: Mapping[str, Any] | None
    ) -> Work:
        """Return the parts of the execution key besides the document and the inputs."""
        if not output_spec and environment is None:
            return self._default_work
        spec = output_spec or self.default_output_spec
        return Work(self.kind.name, spec, self._env_version(environment))

    def _env_version(self, environment: Mapping[str, Any] | None) -> str:
        """Name what runs the job, what the request wants to run it, and whether it has network."""
        requested = environment or {}
        has_network = gets_network(self._network, asked_for_network(requested))
        parts = [self.kind.env_version, requested.get("env_version")]
        parts.append("network" if has_network else None)
        return " ".join(part for part in parts if part is not None)


def _check_language(kind: Kind, language: str | None) -> None:
    if language is not None and kind.language is not None and language.lower() != kind.language:
        raise InvalidRequest(
            f"The language of a job of type {kind.name} must be {kind.language}.",
            errors=[{"field": "environment.language", "message": f"must be {kind.language}"}],
        )


def _objects(request: JobRequest) -> list[str]:
    target = request.get("target")
    if not target:
        return []
    first = [target["object_id"]] if "object_id" in target else []
    return first + target.get("object_ids", [])


def _normalizer(model: type[BaseModel]) -> Callable[[dict[str, Any], str], Any]:
    """Return a function that validates a part of a request and fills in its defaults."""
    validate = model.__pydantic_validator__.validate_python
    to_python = model.__pydantic_serializer__.to_python

    def normalize(part: dict[str, Any], name: str) -> Any:
        try:
            return to_python(validate(part), mode="json")
        except ValidationError as error:
            raise invalid_body(error, within=(name,)) from None
        except (PydanticSerializationError, RecursionError):
            raise InvalidRequest(f"{name}: not all of it can be written as JSON.") from None

    return normalize


def _parse_run(body: bytes, error: ValidationError) -> RunRequest | None:
    """Read the short form: a body without `job_type` that names a configuration version."""
    missing = any(e["type"] == "missing" and e["loc"] == ("job_type",) for e in error.errors())
    if not missing or b"config_version_id" not in body:
        return None
    try:
        run = RUN.validate_json(body)
    except ValidationError as wrong:
        raise invalid_body(wrong) from None
    reject_nul(run)
    return run
