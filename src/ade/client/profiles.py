"""Where a client finds its server and its key: arguments, variables, or a profile.

`ade login` writes profiles to one file that only its user may read, `ade/profiles.json` below
`XDG_CONFIG_HOME`. An argument wins over a variable, and a variable over the profile. A key is sent
only to the server of its own profile: with another address, from an argument or `ADE_URL`, the
profile's key and workspace are not used.
"""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ade.client.errors import ConnectionNotConfigured

URL_VARIABLE = "ADE_URL"
KEY_VARIABLE = "ADE_API_KEY"
WORKSPACE_VARIABLE = "ADE_WORKSPACE"
PROFILE_VARIABLE = "ADE_PROFILE"
DEFAULT_PROFILE = "default"
DEFAULT_WORKSPACE = "default"


@dataclass(frozen=True)
class Profile:
    """A server, a key and a workspace under a name."""

    url: str
    api_key: str = field(repr=False)
    workspace: str = DEFAULT_WORKSPACE


@dataclass(frozen=True)
class Connection:
    """Which server to call, with which key, about which workspace."""

    url: str
    api_key: str = field(repr=False)
    workspace: str


def connection(
    url: str | None = None,
    api_key: str | None = None,
    workspace: str | None = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """Find out which server to call; raise ConnectionNotConfigured with what is missing."""
    environ = os.environ if environ is None else environ
    named = profile or environ.get(PROFILE_VARIABLE) or None
    url = url or environ.get(URL_VARIABLE) or None
    api_key = api_key or environ.get(KEY_VARIABLE) or None
    workspace = workspace or environ.get(WORKSPACE_VARIABLE) or None
    found = None
    if url is None or api_key is None or named is not None:
        found = _profile(named, environ)
    if found is not None and url is not None and checked_url(url) != found.url:
        found = None
    url = checked_url(url) if url else found.url if found else None
    if url is None:
        raise ConnectionNotConfigured(
            "No server is named. Run `ade login URL`, or set ADE_URL and ADE_API_KEY."
        )
    key = api_key or (found.api_key if found else None)
    if key is None:
        raise ConnectionNotConfigured(
            f"There is no key for {url}. Run `ade login {url}`, or set ADE_API_KEY."
        )
    workspace = workspace or (found.workspace if found else DEFAULT_WORKSPACE)
    return Connection(url, key, workspace)


def checked_url(url: str) -> str:
    """Return an address without a slash at its end; raise if it is none."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or parts.username:
        raise ConnectionNotConfigured(
            f"{url!r} is no address of a server; it looks like http://127.0.0.1:8000"
        )
    return text.rstrip("/")


def profiles_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the file of the profiles."""
    environ = os.environ if environ is None else environ
    home = environ.get("XDG_CONFIG_HOME")
    folder = Path(home) if home else Path(environ.get("HOME") or Path.home()) / ".config"
    return folder / "ade" / "profiles.json"


def read_profiles(environ: Mapping[str, str] | None = None) -> dict[str, Profile]:
    """Read all profiles; there are none before the first `ade login`."""
    file = profiles_file(environ)
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return {
            name: Profile(one["url"], one["api_key"], one.get("workspace", DEFAULT_WORKSPACE))
            for name, one in kept["profiles"].items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConnectionNotConfigured(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConnectionNotConfigured(
            f"{file} is damaged; delete it and run `ade login URL` again."
        ) from None


def write_profiles(
    profiles: Mapping[str, Profile], environ: Mapping[str, str] | None = None
) -> Path:
    """Write all profiles, readable by their user only; the file is whole at every moment."""
    file = profiles_file(environ)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = {"profiles": {name: asdict(one) for name, one in sorted(profiles.items())}}
    text = json.dumps(kept, indent=2) + "\n"
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as written:
            written.write(text)
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return file


def _profile(named: str | None, environ: Mapping[str, str]) -> Profile | None:
    profiles = read_profiles(environ)
    if named is not None and named not in profiles:
        known = f"; there are: {', '.join(profiles)}" if profiles else ""
        raise ConnectionNotConfigured(
            f"There is no profile {named!r}{known}. `ade login URL --profile {named}` makes it."
        )
    return profiles.get(named or DEFAULT_PROFILE)
