"""Orders: what `next-job` answers, by the contract alone or with all that ADE knows."""

from typing import Any

import pytest

from ade.agents.containers.order import ContainerError, read_order

JOB = "01900000-0000-7000-8000-00000000000A"
OF_CONTRACT: dict[str, Any] = {
    "job_id": JOB,
    "job_name": "Demo-Run1",
    "config_path": "configs/demo.yaml",
    "preferred_host": "tiago-gpu",
    "image": "calof/opeva_simulator:latest",
    "command": "--config /data/configs/demo.yaml --job_id 1234-5678",
    "container_name": "opeva_job_demo_1234",
    "volumes": [{"host": "/opt/opeva_shared_data", "container": "/data", "mode": "rw"}],
    "env": {},
    "attempt_number": 2,
    "attempt_token": "abc",
}


def test_the_words_of_the_contract_are_enough() -> None:
    order = read_order(OF_CONTRACT)
    assert (order.job_id, order.attempt) == (JOB.lower(), 2)
    assert order.container_name == "opeva_job_demo_1234"
    assert order.inputs.arguments()[-2:] == ["--job_id", "1234-5678"]
    assert order.inputs.volumes[0].mode == "rw"
    assert (order.inputs.network, order.timeout_seconds) == ("none", None)
    assert "abc" not in repr(order)


def test_all_that_a_job_asks_for_is_read() -> None:
    container = {"image": "busybox", "network": "bridge", "env": {"PASSWORD": "secret"}}
    more = {"container": container, "limits": {"timeout_ms": 1500}}
    order = read_order({**OF_CONTRACT, **more})
    assert (order.inputs.image, order.inputs.network) == ("busybox", "bridge")
    assert order.timeout_seconds == 1.5
    assert "secret" not in repr(order)


@pytest.mark.parametrize(
    "change",
    [
        {"job_id": "../x"},
        {"attempt_number": None},
        {"attempt_token": ""},
        {"image": ""},
        {"volumes": [{"host": "relative", "container": "/data"}]},
    ],
)
def test_what_cannot_be_read_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ContainerError):
        read_order({**OF_CONTRACT, **change})
