"""Every hostile snippet, in every situation: contained, classified, in time, without a trace."""

import platform
from typing import Any

import pytest
from tests.sandbox.conftest import IS_FAST, Drivers
from tests.sandbox.hostile import gaps
from tests.sandbox.hostile.catalogue import ALL, BY_NAME
from tests.sandbox.hostile.snippet import HARM, NO_HARM, NOWHERE, Snippet
from tests.sandbox.modes import BY_NAME as MODES
from tests.sandbox.modes import FAST, Mode

TRIED = list(FAST) if IS_FAST else list(MODES)
ON_THIS_MACHINE = [s for s in ALL if s.machine in {"", platform.machine()}]
CHOSEN = [s.name for s in ON_THIS_MACHINE if not (IS_FAST and s.slow)]


def _cases() -> list[Any]:
    cases = []
    for mode in TRIED:
        for name in CHOSEN:
            snippet = BY_NAME[name]
            if snippet.only not in {"", MODES[mode].level}:
                continue
            if IS_FAST and mode != FAST[0] and snippet.control == NO_HARM:
                continue  # a verdict is the same wherever it is reached
            why = gaps.reason(name, mode)
            strict = name not in gaps.BY_CHANCE
            marks = [pytest.mark.xfail(reason=f"gap: {why}", strict=strict)] if why else []
            cases.append(pytest.param(mode, name, marks=marks, id=f"{mode}-{name}"))
    return cases


@pytest.mark.parametrize(("mode", "name"), _cases())
def test_is_contained(mode: str, name: str, drivers: Drivers) -> None:
    snippet = BY_NAME[name]
    driver = drivers.of(mode)
    assert driver.is_ready, f"no job runs at all in the situation {mode!r}"
    report = driver.run(**snippet.asked())
    wrong = what_is_wrong(snippet, MODES[mode], report)
    if report.get("traces") or report.get("left") or report["verdict"].startswith("driver"):
        drivers.replace(mode)
    assert not wrong, f"{wrong}: {report}"


def what_is_wrong(snippet: Snippet, mode: Mode, report: dict[str, Any]) -> list[str]:
    """Compare what came of a snippet with what must come of it."""
    expected = snippet.verdicts(mode)
    if report["verdict"] not in expected:
        return [f"the verdict is {report['verdict']}, not {' or '.join(expected)}"]
    value = report["outputs"].get("result_json")
    refused = report["details"].get("refused", [])
    kept = sorted(report["kept"])
    is_denied = report["verdict"].startswith("SANDBOX_VIOLATION")
    is_named = not snippet.refused or snippet.refused in {*refused, *mode.refused_already}
    is_ok = report["verdict"] == "succeeded"
    place = report["details"].get("source", NOWHERE)
    found = {
        "it did its harm": value == HARM,
        "it left traces": report["traces"],
        "something is left": report["left"],
        "it took too long": report["seconds"] > snippet.seconds_max,
        "its value is another": is_ok and snippet.value is not None and value != snippet.value,
        "what was refused is not named": is_denied and not is_named,
        f"its place is {place}": snippet.place not in {"", place},
        "other files were kept": snippet.artifacts != ("*",)
        and is_ok
        and kept != sorted(snippet.artifacts),
        "a secret was kept": any("ade-secret" in content for content in report["kept"].values()),
        "it cannot be written as text": not _is_text(report),
    }
    return [what for what, is_so in found.items() if is_so]


def _is_text(report: dict[str, Any]) -> bool:
    """Tell whether what people are shown can be written in UTF-8: no halves of characters."""
    try:
        str(
            [report["message"], report["outputs"].get("stdout"), report["outputs"].get("stderr")]
        ).encode()
    except UnicodeEncodeError:
        return False
    return True
