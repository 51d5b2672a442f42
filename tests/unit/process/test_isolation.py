"""What is said and done about the layers, for machines that have fewer than this one."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from ade.process import isolation
from ade.process.isolation import Isolation, examine, isolated, scratch_folder
from ade.sandbox.probe import LayerStatus, SandboxReport
from ade.settings import Settings
from ade.worker.sandbox_runner import SandboxRunner
from ade.worker.subprocess_runner import SubprocessRunner

REMEDY = "Allow user namespaces."
NOTHING = SandboxReport("none", (LayerStatus("full", "missing", "no"),), REMEDY)
WEAK = SandboxReport(
    "landlock", (LayerStatus("pid", "weaker"), LayerStatus("seccomp", "up")), REMEDY
)
STRONG = SandboxReport("full", (LayerStatus("pid", "up"), LayerStatus("seccomp", "up")))
LEVELS = {"none": NOTHING, "landlock": WEAK, "full": STRONG}


def settings(folder: Path, least: str = "landlock") -> Settings:
    """Make settings for a data folder."""
    return Settings(storage_data_dir=folder, sandbox=least)  # type: ignore[arg-type]


def held(report: SandboxReport, least: str, refusal: str | None = None) -> Isolation:
    """Say what was found on some machine."""
    runner = SubprocessRunner(file_mb_max=1, result_bytes_max=1, refusal=refusal)
    return Isolation(report, runner, least)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the probe find what a test wants: no machine is strong and weak at once."""

    def find(level: str) -> None:
        async def probe(*_: object) -> SandboxReport:
            return LEVELS[level]

        monkeypatch.setattr(isolation, "probe", probe)

    return find


# --- what is said ---------------------------------------------------------------------------------


def test_full_isolation_is_reported_in_one_sentence() -> None:
    strong = held(STRONG, "landlock")
    assert strong.summary == "Jobs run at level full."
    assert not strong.is_degraded


def test_a_weaker_level_that_is_accepted_is_said_and_is_well() -> None:
    weak = held(WEAK, "landlock")
    assert weak.summary == "Jobs run at level landlock; weaker: pid."
    assert not weak.is_degraded


def test_accepting_no_isolation_is_reported_even_if_available() -> None:
    open_minded = held(STRONG, "none")
    assert open_minded.summary == "Jobs run at level full; ADE_SANDBOX=none accepts less."
    assert open_minded.is_degraded


def test_missing_isolation_is_reported() -> None:
    bare = held(NOTHING, "none")
    assert bare.summary == "ADE_SANDBOX=none: jobs run without isolation."
    assert bare.is_degraded


def test_a_refusal_is_what_is_said_first() -> None:
    refusing = held(WEAK, "full", refusal="Refused here.")
    assert refusing.summary == "Refused here."
    assert refusing.is_degraded


# --- what is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize("least", LEVELS)
@pytest.mark.parametrize("level", LEVELS)
async def test_less_than_the_least_is_refused(
    tmp_path: Path, found: Any, level: str, least: str
) -> None:
    found(level)
    report, refusal = await examine(settings(tmp_path, least))
    assert report.level == level
    ranks = list(LEVELS)
    assert (refusal is not None) == (ranks.index(level) < ranks.index(least))


async def test_a_refusal_says_what_is_missing_and_what_to_do(tmp_path: Path, found: Any) -> None:
    found("landlock")
    _, refusal = await examine(settings(tmp_path, "full"))
    assert refusal == (
        "Untrusted code is refused here: only level landlock is reached, and"
        " ADE_SANDBOX=full requires more. Allow user namespaces."
        " `ade doctor` lists the missing sandbox layers and the reasons."
    )
    found("none")
    _, refusal = await examine(settings(tmp_path))
    assert refusal is not None
    assert "no sandbox layer can be applied, and ADE_SANDBOX=landlock requires more" in refusal


# --- what runs jobs accordingly -------------------------------------------------------------------


async def test_without_isolation_the_runner_refuses(tmp_path: Path, found: Any) -> None:
    found("none")
    async with isolated(settings(tmp_path)) as held:
        assert isinstance(held.runner, SubprocessRunner)
        assert held.runner.refusal == held.summary
        assert held.runner.isolation == ()
        assert held.is_degraded


async def test_with_isolation_none_the_runner_runs(tmp_path: Path, found: Any) -> None:
    found("none")
    async with isolated(settings(tmp_path, "none")) as held:
        assert isinstance(held.runner, SubprocessRunner)
        assert held.runner.refusal is None
        assert held.is_degraded


async def test_available_isolation_is_used_even_if_not_required(tmp_path: Path) -> None:
    async with isolated(settings(tmp_path, "none")) as held:
        if held.report.found is None:
            pytest.skip("this machine has no sandbox layers at all")
        assert isinstance(held.runner, SandboxRunner)
        assert held.runner.refusal is None
        assert {"landlock", "seccomp"} & set(held.runner.isolation)


# --- where jobs work without namespaces -----------------------------------------------------------


def test_scratch_lies_with_the_data_if_others_can_get_there() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        assert scratch_folder(settings(Path(folder, "data"))) == Path(folder, "data", "scratch")


def test_scratch_is_elsewhere_if_the_data_folder_is_private(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with tempfile.TemporaryDirectory() as folder:
        private = Path(folder, "data")
        private.mkdir(mode=0o700)
        assert scratch_folder(settings(private)) == Path(tempfile.gettempdir())


def test_scratch_of_an_ordinary_user_lies_with_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs then run as the same user, and the data folder is always private."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with tempfile.TemporaryDirectory() as folder:
        private = Path(folder, "data")
        private.mkdir(mode=0o700)
        assert scratch_folder(settings(private)) == private / "scratch"
