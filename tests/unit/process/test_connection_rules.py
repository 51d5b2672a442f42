"""How many connections a process accepts."""

import resource
from pathlib import Path

import pytest

from ade.process.serve import (
    CONNECTIONS_MIN,
    DESCRIPTORS_KEPT,
    allow_descriptors,
    connection_rules,
)
from ade.settings import Settings


@pytest.mark.parametrize(
    ("descriptors", "accepted"),
    [
        (100_000, 2000),
        (1024, 1024 - DESCRIPTORS_KEPT),
        (DESCRIPTORS_KEPT, CONNECTIONS_MIN),  # red before: every connection was refused
        (resource.RLIM_INFINITY, 2000),
    ],
)
def test_some_descriptors_are_left_and_some_connections_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descriptors: int, accepted: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    rules = connection_rules(Settings(storage_data_dir=tmp_path))
    assert rules.connections_max == accepted


def test_the_soft_limit_on_open_files_is_raised_as_far_as_it_may() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert allow_descriptors(300) == 300
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (300, hard)
        assert allow_descriptors(200) == 300  # it is never lowered
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
