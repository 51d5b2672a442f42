"""What a container may do on a host: what is refused, and what the engine is asked for."""

from pathlib import Path
from typing import Any

import pytest

from ade.agents.containers.order import ContainerError, Order
from ade.agents.containers.rules import (
    HostRules,
    attempt_of,
    check_config,
    create_request,
    gpu_count,
    labels_of,
)
from ade.domain.units import MIB
from ade.kinds.container import ContainerInputs

JOB = "01900000-0000-7000-8000-00000000000a"


def order(**inputs: Any) -> Order:
    return Order(JOB, 3, "token", ContainerInputs(image="busybox", **inputs), "name")


def refused(rules: HostRules, **inputs: Any) -> str:
    with pytest.raises(ContainerError) as error:
        create_request(order(**inputs), rules)
    return error.value.message


def test_a_container_may_do_little_by_default() -> None:
    made = create_request(order(command="--job 'a b'", env={"A": "1"}), HostRules("h"))
    assert made.command == ["--job", "a b"]
    assert made.environment == {"A": "1"}
    assert made.labels == {"ade.agent": "h", "ade.job": JOB, "ade.attempt": "3"}
    host = made.host
    assert (host["network_mode"], host["read_only"], host["cap_drop"]) == ("none", True, ["ALL"])
    assert host["security_opt"] == ["no-new-privileges"]
    assert host["auto_remove"] is False
    assert host["mem_limit"] == host["memswap_limit"] == 2048 * MIB
    assert {limit["Name"] for limit in host["ulimits"]} == {"nofile", "nproc"}
    assert "nano_cpus" not in host
    assert "device_requests" not in host


def test_what_a_job_asks_for_is_given() -> None:
    asked = {"cpus": 0.5, "memory_bytes": 64 * MIB, "pids": 10, "gpus": 1}
    rules = HostRules("h", gpus=2, cpus_max=1, memory_bytes_max=64 * MIB, pids_max=10)
    host = create_request(order(resources=asked, network="bridge", read_only=False), rules).host
    assert (host["nano_cpus"], host["mem_limit"], host["pids_limit"]) == (5 * 10**8, 64 * MIB, 10)
    assert (host["network_mode"], host["read_only"]) == ("bridge", False)
    assert host["device_requests"][0]["Count"] == 1


def test_more_than_the_host_gives_is_refused() -> None:
    rules = HostRules(
        "h", networks=frozenset({"none"}), cpus_max=1, memory_bytes_max=64 * MIB, pids_max=10
    )
    assert "1 GPUs; this host has 0" in refused(rules, resources={"gpus": 1})
    assert "cpus" in refused(rules, resources={"cpus": 2})
    assert "memory_bytes" in refused(rules, resources={"memory_bytes": 65 * MIB})
    assert "pids" in refused(rules, resources={"pids": 11})
    assert "network" in refused(rules, network="bridge")


def test_volumes_lie_below_allowed_folders(tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    (allowed / "in").mkdir(parents=True)
    other.mkdir()
    (allowed / "out").symlink_to(other)
    (allowed / "back").symlink_to(allowed / "in")
    rules = HostRules("h", folders=(allowed,))

    def volume(path: Path) -> list[dict[str, str]]:
        return [{"host": str(path), "container": "/data"}]

    for name in ("in", "back"):
        made = create_request(order(volumes=volume(allowed / name)), rules)
        assert made.host["binds"] == [f"{allowed / 'in'}:/data:ro"]
    for path in (other, allowed / "out", tmp_path, tmp_path / "allowed2"):
        assert "outside" in refused(rules, volumes=volume(path))
    assert "does not exist" in refused(rules, volumes=volume(allowed / "nothing"))
    assert "outside" in refused(HostRules("h"), volumes=volume(allowed / "in"))


def test_a_configuration_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").touch()
    check_config(order(config_path="configs/a.yaml"), tmp_path)
    check_config(order(config_path="configs/b.yaml"), None)
    with pytest.raises(ContainerError, match=r"configs/b\.yaml"):
        check_config(order(config_path="configs/b.yaml"), tmp_path)


def test_gpus_are_counted_by_their_devices(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "sda"):
        (tmp_path / name).touch()
    assert gpu_count(tmp_path) == 2
    assert gpu_count(tmp_path / "nothing") == 0


def test_labels_name_the_attempt() -> None:
    assert attempt_of(labels_of("h", JOB, 3)) == (JOB, 3)
    assert attempt_of({"ade.job": JOB}) is None
