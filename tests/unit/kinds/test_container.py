from typing import Any

import pytest
from pydantic import ValidationError

from ade.app.job_requests import Caller, JobRequests
from ade.domain.errors import LimitExceedsQuota
from ade.domain.job import AGENT_POOL
from ade.kinds import load_kinds
from ade.kinds.container import ContainerInputs
from ade.settings import Settings

# What the worker contract shows as a job's payload, without the names that are not the kind's.
OF_THE_CONTRACT = {
    "config_path": "configs/demo.yaml",
    "preferred_host": "tiago-gpu",
    "image": "calof/opeva_simulator:latest",
    "command": "--config /data/configs/demo.yaml --job_id 1234-5678",
    "container_name": "opeva_job_demo_1234",
    "volumes": [{"host": "/opt/opeva_shared_data", "container": "/data", "mode": "rw"}],
    "env": {},
}


def test_the_payload_of_the_worker_contract_is_valid() -> None:
    inputs = ContainerInputs.model_validate(OF_THE_CONTRACT)
    assert inputs.arguments() == [
        "--config", "/data/configs/demo.yaml", "--job_id", "1234-5678",
    ]  # fmt: skip


def test_the_defaults_are_the_safe_ones() -> None:
    inputs = ContainerInputs.model_validate({"image": "a"})
    assert inputs.read_only
    assert inputs.network == "none"
    assert inputs.pull == "missing"


@pytest.mark.parametrize(
    "wrong",
    [
        {"image": "-v"},
        {"image": ""},
        {"image": "a b"},
        {"command": "'open"},
        {"container_name": "-x"},
        {"container_name": "a/b"},
        {"volumes": [{"host": "relative", "container": "/x"}]},
        {"volumes": [{"host": "/a/../b", "container": "/x"}]},
        {"volumes": [{"host": "/a:b", "container": "/x"}]},
        {"volumes": [{"host": "/a", "container": "/"}]},
        {"volumes": [{"host": "/a", "container": "/x", "mode": "exec"}]},
        {"volumes": [{"host": "/a", "container": "/x"}, {"host": "/b", "container": "/x/"}]},
        {"env": {"A=B": "c"}},
        {"env": {"A": "\0"}},
        {"config_path": "../secret"},
        {"config_path": "/etc/passwd"},
        {"require_host": True},
        {"network": "host"},
        {"pull": "sometimes"},
        {"user": "0;rm"},
        {"resources": {"memory_bytes": 1}},
        {"resources": {"gpus": -1}},
        {"privileged": True},
    ],
)
def test_what_does_not_fit_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ContainerInputs.model_validate({"image": "a", **wrong})


def _requests() -> JobRequests:
    return JobRequests(Settings(), load_kinds())


def _request(**more: Any) -> Any:
    return {"job_type": "container", "inputs": {"image": "a"}, **more}


def test_a_container_is_for_agents_once_and_not_deduplicated() -> None:
    made = _requests().submission(_request(), Caller("w", "u"))
    assert (made.pool, made.retries, made.dedupe) == (AGENT_POOL, 0, False)
    assert made.limits.timeout_ms == 24 * 3600 * 1000


def test_a_container_may_run_longer_than_other_jobs_within_its_own_limit() -> None:
    requests, week_ms = _requests(), 7 * 24 * 3600 * 1000
    asked = _request(limits={"timeout_ms": week_ms})
    assert requests.submission(asked, Caller("w", "u")).limits.timeout_ms == week_ms
    with pytest.raises(LimitExceedsQuota):
        requests.submission(_request(limits={"timeout_ms": week_ms + 1}), Caller("w", "u"))
