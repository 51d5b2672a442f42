"""What the client offers, and that its two forms say the same."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.write_sync_client import CLIENT, sync_modules

import ade
from ade import client
from ade.client import errors
from ade.client.answers.catalogue import BuildAnswer
from ade.client.answers.directory import Key
from ade.client.answers.jobs import JobAnswer
from ade.domain.errors import AdeError
from ade.http.problems import CODES


def test_the_names() -> None:
    assert sorted(client.__all__) == ["AsyncClient", "Client", "RetryPolicy", "errors"]
    assert ade.Client is client.Client
    assert ade.AsyncClient is client.AsyncClient


@pytest.mark.parametrize("name", sync_modules())
def test_the_client_without_asyncio_is_written_from_the_one_with_it(name: str) -> None:
    written = (CLIENT / "sync" / name).read_text(encoding="utf-8")
    assert written == sync_modules()[name], "run: .venv/bin/python -m scripts.write_sync_client"


@pytest.mark.parametrize("name", [path.stem for path in (CLIENT / "sync").glob("*.py")])
def test_both_forms_have_the_same_names(name: str) -> None:
    assert CLIENT.joinpath("aio", f"{name}.py").is_file()


def test_an_import_is_cheap() -> None:
    program = (
        "import sys; from ade.client import Client;"
        "print(sorted({'httpx', 'asyncio', 'polars', 'pandas', 'pydantic'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


# Classes that say more than their status does.
ELSEWHERE = {"safe_mode", "run_queue_full"}


def _kinds(kind: type[AdeError]) -> Iterator[type[AdeError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def test_every_exception_is_for_a_code_of_the_server_with_its_status() -> None:
    known = {kind.code: kind.status for kind in _kinds(AdeError)}
    known |= {code: status for status, code in CODES.items()}
    assert errors.BY_CODE.keys() <= known.keys()
    for code, kind in errors.BY_CODE.items():
        assert issubclass(kind, errors.BY_STATUS[known[code]]) or code in ELSEWHERE, code


def test_the_tree_of_exceptions_names_all_of_them() -> None:
    drawn = errors.__doc__ or ""
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    ours = [one.__name__ for one in classes if one.__module__ == errors.__name__]
    assert [name for name in ours if name not in drawn] == []


def test_answers_of_other_versions_are_read() -> None:
    job = JobAnswer.of({"job_id": "j", "status": "dreaming", "new_field": 1, "submitted_at": "?"})
    assert (job.id, job.status, job.submitted_at) == ("j", "dreaming", None)
    assert job.raw["new_field"] == 1
    assert not job.has_ended
    failed = BuildAnswer.of({"status": "failed", "error": {"code": "X", "message": "no"}})
    assert failed.has_ended
    assert failed.error is not None
    assert failed.error.code == "X"


def test_a_secret_is_not_shown() -> None:
    key = Key.of({"key_id": "k", "key": "ade_secret"})
    assert key.secret == "ade_secret"
    assert "ade_secret" not in repr(key)


def test_a_download_is_whole_or_not_there(tmp_path: Path) -> None:
    from ade.client.saved_files import place_for, written_whole

    place = tmp_path / "a.csv"
    with pytest.raises(TypeError), written_whole(place) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
    with written_whole(place) as file:
        file.write(b"whole")
    assert place.read_bytes() == b"whole"
    assert place_for(tmp_path, "../../etc/passwd") == tmp_path / "passwd"
