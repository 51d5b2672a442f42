"""``ade login``, ``logout`` and ``profiles``: servers and keys under names."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.choices import choices
from ade.cli.remote.connect import failed, failures_shown, spare_the_programs_of_httpx
from ade.cli.remote.show import show, table

if TYPE_CHECKING:
    from ade.client.answers.directory import Caller


def login(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The server, such as http://127.0.0.1:8000.")
    ],
) -> None:
    """Check a key against a server and keep both under a name, for the commands that call it.

    The key is asked for, or read from stdin if that is no terminal.
    """
    with failures_shown():
        spare_the_programs_of_httpx()
        from ade.client import Client
        from ade.client.profiles import (
            DEFAULT_PROFILE,
            PROFILE_VARIABLE,
            Profile,
            checked_url,
            read_profiles,
            write_profiles,
        )

        url = checked_url(url)
        known = read_profiles()
        key = _key()
        chosen = choices()
        with Client(url, key, chosen.workspace or "default") as client:
            caller = client.me()
        workspace = _workspace(caller, chosen.workspace)
        name = chosen.profile or os.environ.get(PROFILE_VARIABLE) or DEFAULT_PROFILE
        file = write_profiles({**known, name: Profile(url, key, workspace)})
    made = {"profile": name, "url": url, "workspace": workspace, "user": caller.name}
    show(
        made,
        lambda: typer.echo(
            f"Logged in to {url} as {caller.name}, workspace {workspace}."
            f" The key is kept in {file}, profile {name}."
        ),
    )


def logout() -> None:
    """Forget a profile and its key; the key itself stays valid."""
    with failures_shown():
        from ade.client.profiles import (
            DEFAULT_PROFILE,
            PROFILE_VARIABLE,
            read_profiles,
            write_profiles,
        )

        known = read_profiles()
        name = choices().profile or os.environ.get(PROFILE_VARIABLE) or DEFAULT_PROFILE
        if name not in known:
            raise failed(f"There is no profile {name!r}.", ExitCode.NOT_FOUND)
        gone = known.pop(name)
        write_profiles(known)
    show(
        {"profile": name, "url": gone.url},
        lambda: typer.echo(
            f"Forgot {name} ({gone.url}). The key stays valid; `ade keys revoke` ends a key."
        ),
    )


def profiles() -> None:
    """List the profiles that `ade login` made."""
    with failures_shown():
        from ade.client.profiles import DEFAULT_PROFILE, PROFILE_VARIABLE, read_profiles

        known = read_profiles()
        used = choices().profile or os.environ.get(PROFILE_VARIABLE) or DEFAULT_PROFILE
    rows = [
        {"profile": name, "url": one.url, "workspace": one.workspace, "in_use": name == used}
        for name, one in sorted(known.items())
    ]
    show(
        rows,
        lambda: table(
            ("", "profile", "server", "workspace"),
            (("*" if one["in_use"] else "", *list(one.values())[:3]) for one in rows),
            "There is no profile yet: `ade login URL` makes one.",
        ),
    )


def _key() -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        key = getpass("API key: ")
    else:
        key = sys.stdin.readline()
    if not key.strip():
        raise failed("No key was given; nothing was changed.", ExitCode.USAGE)
    return key.strip()


def _workspace(caller: Caller, wanted: str | None) -> str:
    """Return the workspace of the profile: the one that was asked for, else one that is seen."""
    seen = [one.slug for one in caller.workspaces]
    if wanted is not None:
        if wanted in seen or wanted in {one.id for one in caller.workspaces}:
            return wanted
        known = f"; it sees: {', '.join(seen)}" if seen else ""
        raise failed(f"The key sees no workspace {wanted!r}{known}.", ExitCode.NOT_FOUND)
    return "default" if "default" in seen or not seen else seen[0]
