"""The commands that call a server, each against a real one, and what goes wrong with them."""

import json
import os
import pty
import secrets
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.system.command_line import END_SECONDS, CommandLine, command_line

from ade.cli.exit_codes import ExitCode
from ade.testing.server import AdeServer
from ade_engine.examples import FOLDER

ROSTER = FOLDER / "member_roster"


@pytest.fixture
def ade(ade_server: AdeServer, tmp_path: Path) -> CommandLine:
    """Log in to the server of the session."""
    return command_line(tmp_path, ade_server)


# --- logging in -----------------------------------------------------------------------------------


def test_a_profile_is_kept_for_its_user_only(ade: CommandLine, ade_server: AdeServer) -> None:
    (profile,) = ade.json("profiles")
    assert profile == {
        "profile": "default",
        "url": ade_server.url,
        "workspace": "default",
        "in_use": True,
    }
    file = Path(ade.environ["XDG_CONFIG_HOME"], "ade", "profiles.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert ade_server.key not in ade("profiles").output


def test_a_wrong_key_changes_nothing(ade: CommandLine, ade_server: AdeServer) -> None:
    before = ade.json("profiles")
    refused = ade("login", ade_server.url, "--profile", "other", stdin="ade_wrong\n")
    assert (refused.exit_code, refused.stdout) == (ExitCode.AUTH, "")
    assert ade.json("profiles") == before


def test_no_key_is_wrong_usage(ade: CommandLine, ade_server: AdeServer) -> None:
    assert ade("login", ade_server.url, stdin="\n").exit_code == ExitCode.USAGE
    assert ade("login", "ftp://somewhere", stdin="x\n").exit_code == ExitCode.USAGE


def test_a_workspace_that_the_key_does_not_see(ade: CommandLine, ade_server: AdeServer) -> None:
    refused = ade("login", ade_server.url, "-w", "elsewhere", stdin=f"{ade_server.key}\n")
    assert refused.exit_code == ExitCode.NOT_FOUND
    assert "it sees: default" in refused.output


def test_logging_out_forgets_the_key(ade: CommandLine) -> None:
    assert ade("logout").exit_code == ExitCode.OK
    assert ade("logout").exit_code == ExitCode.NOT_FOUND
    lost = ade("jobs")
    assert lost.exit_code == ExitCode.USAGE
    assert "ade login URL" in lost.output


# --- misuse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["jobs", "show", "no-id"], ExitCode.NOT_FOUND),
        (["jobs", "show", ".."], ExitCode.NOT_FOUND),
        (["jobs", "show", "a/b?limit=1"], ExitCode.NOT_FOUND),
        (["runs", "show", "01a1f4f7-0000-7000-8000-000000000000"], ExitCode.NOT_FOUND),
        (["documents", "show", "no-such.xlsx"], ExitCode.NOT_FOUND),
        (["config", "pull", "--config", "no-such"], ExitCode.NOT_FOUND),
        (["keys", "revoke", "no-such"], ExitCode.NOT_FOUND),
        (["jobs", "-w", "no-such"], ExitCode.NOT_FOUND),
        (["jobs", "--profile", "no-such"], ExitCode.USAGE),
        (["jobs", "--status", "no-such"], ExitCode.USAGE),
        (["jobs", "submit", "no-such-type"], ExitCode.USAGE),
        (["jobs", "submit", "echo", "--input", "no-equals"], ExitCode.USAGE),
        (["documents", "upload", "no-such-file.xlsx"], ExitCode.USAGE),
        (["submit", "no-such-file.xlsx", "--config", "x"], ExitCode.USAGE),
        (["cells", "run"], ExitCode.USAGE),
        (["config", "push", "--config", "empty"], ExitCode.USAGE),
    ],
)
def test_misuse_is_one_line_and_an_exit_code(
    ade: CommandLine, words: list[str], code: ExitCode
) -> None:
    ended = ade(*words)
    assert (ended.exit_code, ended.stdout) == (code, "")
    assert ended.stderr.strip()
    assert "Traceback" not in ended.stderr


def test_a_server_that_is_away(ade: CommandLine) -> None:
    ended = ade("jobs", ADE_URL="http://127.0.0.1:9", ADE_API_KEY="x")
    assert ended.exit_code == ExitCode.UNAVAILABLE
    assert "http://127.0.0.1:9" in ended.stderr


def test_a_server_that_is_not_ade(ade: CommandLine) -> None:
    class Hello(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hello) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        ended = ade("jobs", ADE_URL=f"http://127.0.0.1:{other.server_port}", ADE_API_KEY="x")
        other.shutdown()
    assert ended.exit_code == ExitCode.UNAVAILABLE
    assert "not what ADE answers" in ended.stderr


def test_a_role_that_does_not_allow_it(ade: CommandLine) -> None:
    made = ade.json("keys", "create", "reader", "--role", "viewer")
    assert ade("jobs", ADE_API_KEY=made["key"]).exit_code == ExitCode.OK
    refused = ade("jobs", "submit", "echo", ADE_API_KEY=made["key"])
    assert refused.exit_code == ExitCode.AUTH
    assert ade("keys", "revoke", "reader").exit_code == ExitCode.OK
    ended = ade("jobs", ADE_API_KEY=made["key"])
    assert ended.exit_code == ExitCode.AUTH
    assert "ade login URL" in ended.stderr


# --- jobs -----------------------------------------------------------------------------------------


def test_a_job_is_submitted_waited_for_and_read(ade: CommandLine) -> None:
    words = ("jobs", "submit", "echo", "-i", "value=[1, 2]", "-i", "print=hello")
    job = ade.json(*words, "--wait")
    assert job["status"] == "succeeded"
    assert json.loads(ade("jobs", "result", job["job_id"]).stdout) == [1, 2]
    assert ade("jobs", "logs", job["job_id"]).stdout.strip() == "hello"
    assert ade("jobs", "logs", "-f", job["job_id"]).stdout.strip() == "hello"
    events = ade("jobs", "events", job["job_id"], "--json").stdout.splitlines()
    assert json.loads(events[-1])["event"] == "job.succeeded"
    assert ade.json("jobs", "attempts", job["job_id"])[0]["status"] == "succeeded"
    assert ade("jobs", "show", job["job_id"]).exit_code == ExitCode.OK
    assert job["job_id"] in ade("jobs", "--type", "echo", "--status", "succeeded").stdout


def test_how_a_job_ended_is_the_exit_code(ade: CommandLine) -> None:
    ended = ade("jobs", "submit", "echo", "-i", "fail=raise", "--wait")
    assert ended.exit_code == ExitCode.JOB_FAILED
    assert "failed" in ended.stdout


def test_a_wait_has_an_end(ade: CommandLine) -> None:
    job = ade.json("jobs", "submit", "echo", "-i", "sleep_ms=600000")
    late = ade("jobs", "wait", job["job_id"], "--timeout", "0.2")
    assert late.exit_code == ExitCode.WAIT_TIMED_OUT
    assert ade("jobs", "cancel", job["job_id"], "--reason", "enough").exit_code == ExitCode.OK
    assert ade("jobs", "wait", job["job_id"]).exit_code == ExitCode.JOB_FAILED


def test_the_same_key_is_the_same_job(ade: CommandLine) -> None:
    words = ("jobs", "submit", "echo", "--key", secrets.token_hex(8), "--revision", "r")
    assert ade.json(*words)["job_id"] == ade.json(*words)["job_id"]


def test_a_lane_is_held_until_someone_decides(ade: CommandLine) -> None:
    job = ade.json("jobs", "submit", "echo", "-i", "fail=raise", "--target", "robot")
    assert ade("jobs", "wait", job["job_id"]).exit_code == ExitCode.JOB_FAILED
    shown = ade("targets", "show", "robot").stdout
    assert f"held by {job['job_id']} (echo), failed" in shown
    resolved = ade("targets", "resolve", "robot", job["job_id"], "--result", '{"by": "hand"}')
    assert resolved.exit_code == ExitCode.OK, resolved.output
    assert json.loads(ade("jobs", "result", job["job_id"]).stdout) == {"by": "hand"}
    assert job["job_id"] in ade("targets", "jobs", "robot").stdout


def test_a_cell_prints_its_value_and_a_failed_one_ends_with_1(ade: CommandLine) -> None:
    code = "def main(price, count):\n    print('so')\n    return price * count"
    ended = ade("cells", "run", "-", "-p", "price=21", "-p", "count=2", stdin=code)
    assert (ended.exit_code, ended.stdout) == (ExitCode.OK, "so\n42\n")
    broken = ade("cells", "run", "-c", "print('so')\n1 / 0")
    assert (broken.exit_code, broken.stdout) == (ExitCode.JOB_FAILED, "so\n")
    assert "division by zero" in broken.stderr


# --- configurations, documents, runs --------------------------------------------------------------


def test_a_draft_that_someone_else_changed_is_left_alone(ade: CommandLine) -> None:
    name = f"roster {secrets.token_hex(4)}"
    assert ade("config", "init", "mine").exit_code == ExitCode.OK
    pushed = ade("config", "push", "mine", "--config", name, "--no-check")
    assert pushed.exit_code == ExitCode.OK, pushed.output
    assert ade("config", "pull", "theirs", "--config", name).exit_code == ExitCode.OK
    Path(ade.folder, "theirs", "config.toml").write_text('name = "Theirs"\n')
    assert ade("config", "diff", "theirs", "--config", name).exit_code == ExitCode.JOB_FAILED
    assert ade("config", "push", "theirs", "--config", name, "--no-check").exit_code == ExitCode.OK
    assert ade("config", "diff", "theirs", "--config", name).exit_code == ExitCode.OK

    late = ade("config", "push", "mine", "--config", name, "--no-check")
    assert late.exit_code == ExitCode.JOB_FAILED
    assert "--force" in late.stderr
    unknown = ade("config", "pull", "third", "--config", name)
    assert unknown.exit_code == ExitCode.OK
    forced = ade("config", "push", "mine", "--config", name, "--no-check", "--force")
    assert forced.exit_code == ExitCode.OK
    assert ade("config", "delete", name).exit_code == ExitCode.OK


def test_a_draft_that_cannot_be_used_says_where(ade: CommandLine) -> None:
    name = f"broken {secrets.token_hex(4)}"
    columns = Path(ade.folder, "broken", "columns")
    columns.mkdir(parents=True)
    columns.joinpath("a.py").write_text("FIELD = Field()\n\ndef transform(vlaue): pass\n")
    ended = ade("config", "push", "broken", "--config", name)
    assert ended.exit_code == ExitCode.JOB_FAILED
    assert "columns/a.py:3" in ended.stderr


def test_a_folder_is_watched(ade: CommandLine) -> None:
    name = f"watched {secrets.token_hex(4)}"
    assert ade("config", "init", "mine").exit_code == ExitCode.OK
    words = ("config", "push", "mine", "--config", name, "--watch", "--no-check")
    with ade.start(*words, stderr=subprocess.DEVNULL) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        Path(ade.folder, "mine", "config.toml").write_text('name = "Changed"\n')
        second = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(END_SECONDS) == ExitCode.OK
    assert first.startswith(f"{name}: draft sha256:")
    assert second.startswith(f"{name}: draft sha256:")
    assert first != second
    assert ade("config", "diff", "mine", "--config", name).exit_code == ExitCode.OK


def test_files_are_run_and_summed_up(ade: CommandLine) -> None:
    name = f"many {secrets.token_hex(4)}"
    assert ade("config", "push", ROSTER, "--config", name, "--no-check").exit_code == ExitCode.OK
    roster = ROSTER.joinpath("samples", "roster.csv").read_bytes()
    for place in ("a", "b"):
        Path(ade.folder, place).mkdir()
        Path(ade.folder, place, "roster.csv").write_bytes(roster)
    Path(ade.folder, "broken.xlsx").write_bytes(b"PK\x03\x04 and no more")
    files = ("a/roster.csv", "b/roster.csv", "broken.xlsx")
    ended = ade("submit", *files, "--config", name, "--wait", "--out", "results", "--json")
    assert ended.exit_code == ExitCode.JOB_FAILED
    summary = json.loads(ended.stdout)
    assert [one["file"] for one in summary] == list(files)
    assert [one["run"]["status"] for one in summary] == ["succeeded", "succeeded", "failed"]
    names = ["roster.normalized.xlsx", "roster-2.normalized.xlsx"]
    assert [one["output"] for one in summary] == [f"results/{one}" for one in names] + [None]
    assert sorted(os.listdir(Path(ade.folder, "results"))) == sorted(names)

    good = summary[0]["run"]["run_id"]
    assert ade("runs", "wait", good, summary[1]["run"]["run_id"]).exit_code == ExitCode.OK
    assert "member_id" in ade("runs", "explain", good).stdout
    saved = ade("runs", "download", good, "--out", "files")
    assert saved.exit_code == ExitCode.OK, saved.output
    assert Path(ade.folder, "files", "artifact.json").is_file()
    listed = ade.json("runs", "--config", name, "--status", "succeeded")
    assert {one["run_id"] for one in listed} == {one["run"]["run_id"] for one in summary[:2]}


def test_documents_come_back_as_they_went(ade: CommandLine) -> None:
    Path(ade.folder, "note.csv").write_text(f"a,b\n1,{secrets.token_hex(8)}\n")
    (made,) = ade.json("documents", "upload", "note.csv")
    assert ade("documents", "download", made["document_id"], "--out", "back.csv").exit_code == 0
    assert Path(ade.folder, "back.csv").read_bytes() == Path(ade.folder, "note.csv").read_bytes()
    assert ade("documents", "delete", made["document_id"]).exit_code == ExitCode.OK
    assert ade("documents", "show", made["document_id"]).exit_code == ExitCode.NOT_FOUND


# --- as processes: signals, pipes, terminals ------------------------------------------------------


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(ade: CommandLine) -> None:
    job = ade.json("jobs", "submit", "echo", "-i", "sleep_ms=600000")
    with ade.start("jobs", "wait", job["job_id"]) as waiting:
        assert waiting.stderr is not None
        assert job["job_id"] in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=END_SECONDS)
    assert waiting.returncode == ExitCode.INTERRUPTED
    assert f"ade jobs wait {job['job_id']}" in said
    assert "Traceback" not in said
    assert ade.json("jobs", "show", job["job_id"])["status"] in ("queued", "running")
    assert ade("jobs", "cancel", job["job_id"]).exit_code == ExitCode.OK


def test_a_reader_that_leaves_is_no_error(ade: CommandLine) -> None:
    job = ade.json("jobs", "submit", "echo", "-i", f"print={'x' * 99_000}", "--wait")
    read, write = os.pipe()
    os.close(read)
    with ade.start("jobs", "logs", job["job_id"], stdout=write) as printing:
        os.close(write)
        _, said = printing.communicate(timeout=END_SECONDS)
    assert said == ""
    assert printing.returncode != 0


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_a_terminal_gets_colours_unless_it_wants_none(ade: CommandLine, no_colour: str) -> None:
    ade.json("jobs", "submit", "echo", "--wait")
    environ = {"NO_COLOR": no_colour, "TERM": "xterm", "COLUMNS": "200"}
    ours, theirs = pty.openpty()
    with ade.start("jobs", "--limit", "1", stdout=theirs, environ=environ) as printing:
        os.close(theirs)
        shown = _read_all(ours)
        assert printing.wait(END_SECONDS) == 0
    os.close(ours)
    assert ("\x1b[32m" in shown) is (no_colour == "")
    assert "succeeded" in shown


def test_a_terminal_gets_a_bar(ade: CommandLine) -> None:
    ours, theirs = pty.openpty()
    words = ("jobs", "submit", "echo", "-i", "steps=3", "-i", "sleep_ms=300", "--wait")
    with ade.start(*words, stderr=theirs, environ={"TERM": "xterm"}) as waiting:
        os.close(theirs)
        shown = _read_all(ours)
        assert waiting.wait(END_SECONDS) == 0
    os.close(ours)
    assert "3/3" in shown or "━" in shown


def _read_all(terminal: int) -> str:
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces).decode(errors="replace")


def test_the_shell_completes(ade: CommandLine) -> None:
    environ = {"_ADE_COMPLETE": "complete_bash", "COMP_WORDS": "ade ta", "COMP_CWORD": "1"}
    with ade.start(environ=environ) as completing:
        offered, _ = completing.communicate(timeout=END_SECONDS)
    assert offered.split() == ["targets"]
