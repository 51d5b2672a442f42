"""Environments: what a build is named by, and what becomes of one that is gone."""

import json
from pathlib import Path

import pytest
from tests.databases import WORKSPACE

from ade.environments import EnvironmentGone, environment_of, fingerprint_of
from ade.environments.environment import STAMP, folder_of
from ade.sandbox.runtime_environment import own_environment
from ade.settings import Settings
from ade.store.rows import Version

DIGEST = "sha256:" + "ab" * 32


def version(digest: str) -> Version:
    return Version(WORKSPACE, "v", "c", 1, digest, "[]", "me", 0)


def stamp(settings: Settings, made: str) -> Path:
    folder = folder_of(DIGEST, settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).write_text(json.dumps({"made": made}))
    return folder


def test_builds_are_named_by_content_engine_and_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = fingerprint_of(version("sha256:a"))
    assert fingerprint_of(version("sha256:a")) == first
    assert fingerprint_of(version("sha256:b")) != first
    monkeypatch.setattr("ade.environments.environment.ENGINE_VERSION", "another")
    assert fingerprint_of(version("sha256:a")) != first


def test_without_requirements_jobs_run_in_ades_own(settings: Settings) -> None:
    assert environment_of(None, settings) is own_environment()


def test_an_environment_that_is_not_whole_is_never_used(settings: Settings) -> None:
    with pytest.raises(EnvironmentGone):
        environment_of(DIGEST, settings)
    (folder_of(DIGEST, settings) / "packages").mkdir(parents=True)
    with pytest.raises(EnvironmentGone):
        environment_of(DIGEST, settings)
    (folder_of(DIGEST, settings) / STAMP).write_text("{")
    with pytest.raises(EnvironmentGone):
        environment_of(DIGEST, settings)


def test_one_that_was_made_again_is_another_to_warm_interpreters(settings: Settings) -> None:
    stamp(settings, "once")
    first = environment_of(DIGEST, settings)
    assert environment_of(DIGEST, settings).key == first.key
    stamp(settings, "twice")
    assert environment_of(DIGEST, settings).key != first.key
