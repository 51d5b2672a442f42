"""What goes wrong on the way to a server is one line and an exit code."""

import inspect

import pytest
import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.connect import code_of, failures_shown
from ade.client import errors
from ade.client.core.package_files import NotAPackage

EXPECTED = {
    errors.ServerUnreachable: ExitCode.UNAVAILABLE,
    errors.NotAnAdeServer: ExitCode.UNAVAILABLE,
    errors.TransferError: ExitCode.UNAVAILABLE,
    errors.AmbiguousName: ExitCode.USAGE,
    errors.ConnectionNotConfigured: ExitCode.USAGE,
    errors.InvalidRequest: ExitCode.USAGE,
    errors.BadRequest: ExitCode.USAGE,
    errors.PayloadTooLarge: ExitCode.USAGE,
    errors.SafeMode: ExitCode.UNAVAILABLE,
    errors.Unauthenticated: ExitCode.AUTH,
    errors.Forbidden: ExitCode.AUTH,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.Conflict: ExitCode.JOB_FAILED,
    errors.PreconditionFailed: ExitCode.JOB_FAILED,
    errors.QueueFull: ExitCode.UNAVAILABLE,
    errors.TooManyRequests: ExitCode.UNAVAILABLE,
    errors.Unavailable: ExitCode.UNAVAILABLE,
    errors.StorageFull: ExitCode.UNAVAILABLE,
}


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.Problem) and kind is not errors.Problem
    ],
)
def test_every_problem_has_an_exit_code(kind: type[errors.Problem]) -> None:
    (expected,) = {code for parent, code in EXPECTED.items() if issubclass(kind, parent)}
    assert code_of(kind("no")) == expected


@pytest.mark.parametrize("kind", [errors.ServerUnreachable, errors.AmbiguousName, NotAPackage])
def test_other_errors_have_exit_codes(kind: type[errors.ClientError]) -> None:
    assert code_of(kind("no")) == EXPECTED.get(kind, ExitCode.USAGE)


def test_an_unknown_problem_is_judged_by_its_status() -> None:
    assert code_of(errors.Problem("no", status=502)) == ExitCode.UNAVAILABLE
    assert code_of(errors.Problem("no", status=418)) == ExitCode.USAGE
    assert code_of(errors.WaitTimedOut("j", "running", 1.0)) == ExitCode.WAIT_TIMED_OUT


@pytest.mark.parametrize(
    ("raised", "said", "code"),
    [
        (FileNotFoundError(2, "No such file", "a.xlsx"), "a.xlsx: No such file", ExitCode.USAGE),
        (errors.NotFound("There is none."), "There is none.", ExitCode.NOT_FOUND),
        (KeyboardInterrupt(), "", ExitCode.INTERRUPTED),
    ],
)
def test_a_failure_is_one_line(
    raised: BaseException, said: str, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, failures_shown():
        raise raised
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == (f"ade: {said}\n" if said else "")


def test_a_reader_that_left_is_not_said() -> None:
    with pytest.raises(BrokenPipeError), failures_shown():
        raise BrokenPipeError


def test_an_error_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), failures_shown():
        raise ZeroDivisionError
