"""Each layer is needed: with one left out, something that it alone holds back gets through."""

import os

import pytest
from tests.sandbox.conftest import IS_FAST
from tests.sandbox.driver_client import DriverClient
from tests.sandbox.hostile.catalogue import BY_NAME
from tests.sandbox.hostile.test_contained import what_is_wrong
from tests.sandbox.modes import BY_NAME as MODES

FULL_MODE = "root" if os.geteuid() == 0 else "user"
NOTICED: list[tuple[str, str, tuple[str, ...]]] = [
    (FULL_MODE, "seccomp", ("clone_into_namespaces", "prctl_subreaper", "landlock_calls")),
    (FULL_MODE, "landlock", ("own_memory_by_file", "own_oom_score")),
    (FULL_MODE, "user", ("ordinary_work",)),
    (FULL_MODE, "pid", ("daemon", "namespaces_of_another_job")),
    (FULL_MODE, "mount", ("ordinary_work", "namespaces_of_another_job")),
    (FULL_MODE, "net", ("namespaces_of_another_job",)),
    (FULL_MODE, "ipc", ("namespaces_of_another_job",)),
    (FULL_MODE, "uts", ("namespaces_of_another_job",)),
    (FULL_MODE, "capabilities", ("capabilities",)),
    (FULL_MODE, "limits", ("descriptors",)),
    (FULL_MODE, "notify", ("tcp", "ptrace")),
    ("user-landlock", "seccomp", ("fork_bomb", "daemon", "chmod_of_what_is_readable")),
    ("user-landlock", "landlock", ("environ_of_others", "command_lines_of_others")),
    ("user-landlock", "limits", ("descriptors",)),
    ("user-landlock", "notify", ("tcp", "ptrace")),
]


@pytest.mark.skipif(IS_FAST, reason="a new driver for each layer takes its time")
@pytest.mark.parametrize(
    ("mode", "layer", "names"), NOTICED, ids=[f"{mode}-{layer}" for mode, layer, _ in NOTICED]
)
def test_a_layer_left_out_is_noticed(mode: str, layer: str, names: tuple[str, ...]) -> None:
    driver = DriverClient(MODES[mode], without=(layer,))
    try:
        if not driver.is_ready:
            assert "ordinary_work" in names, f"without {layer} nothing runs at all"
            return
        unnoticed = []
        for name in names:
            report = driver.run(**BY_NAME[name].asked())
            if not what_is_wrong(BY_NAME[name], MODES[mode], report):
                unnoticed.append(name)
        assert not unnoticed, f"nothing is wrong without {layer}"
    finally:
        driver.end()
