"""Credentials and endpoint for S3: from the variables and files that all clients of AWS read.

Variables come first, then the profile (`AWS_PROFILE`, else `default`) in `~/.aws/credentials` and
`~/.aws/config`. Of a profile its keys, its region and its endpoint are read; profiles that sign in
or take on a role are not supported, and are refused rather than passed over. Without either,
obstore asks the container or the machine that it runs on.
"""

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ade.domain.errors import Unavailable

# What obstore calls it, the variables that set it, and its name in a profile.
WHO = (
    ("access_key_id", ("AWS_ACCESS_KEY_ID",), "aws_access_key_id"),
    ("secret_access_key", ("AWS_SECRET_ACCESS_KEY",), "aws_secret_access_key"),
    ("session_token", ("AWS_SESSION_TOKEN",), "aws_session_token"),
)
WHERE = (
    ("region", ("AWS_REGION", "AWS_DEFAULT_REGION"), "region"),
    ("endpoint", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), "endpoint_url"),
)
# Any of these gives credentials in another way; obstore reads them itself.
OTHERWISE = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
SCHEMES = ("https://", "http://")


def aws_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the credentials and the endpoint; raise Unavailable if they cannot be read."""
    profile = _profile(environ)
    by_variable = any(environ.get(name) for name in ("AWS_ACCESS_KEY_ID", *OTHERWISE))
    found: dict[str, Any] = {}
    for settings, of_profile in ((WHO, {} if by_variable else profile), (WHERE, profile)):
        for name, variables, in_profile in settings:
            values = [environ.get(variable) for variable in variables]
            if value := next(filter(None, values), None) or of_profile.get(in_profile):
                found[name] = value
    named = environ.get("AWS_PROFILE")
    if named and not by_variable and "access_key_id" not in found:
        raise Unavailable(
            f"AWS_PROFILE={named} has no aws_access_key_id, which ADE_BLOB_URL needs. Roles and"
            " sign-ins of profiles are not supported: set AWS_ACCESS_KEY_ID and the others."
        )
    if not found.get("endpoint", SCHEMES[0]).startswith(SCHEMES):
        raise Unavailable("AWS_ENDPOINT_URL must begin with https:// or http://.")
    return found


def _profile(environ: Mapping[str, str]) -> dict[str, str]:
    """Read a profile from both of its files; they need not be there."""
    name = environ.get("AWS_PROFILE") or "default"
    home = Path(environ.get("HOME") or "~").expanduser() / ".aws"
    config = environ.get("AWS_CONFIG_FILE") or home / "config"
    credentials = environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"
    found: dict[str, str] = {}
    for path, sections in ((config, (name, f"profile {name}")), (credentials, (name,))):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            raise Unavailable(f"{path} cannot be read as a file of AWS profiles.") from None
        for section in sections:
            if parser.has_section(section):
                found |= dict(parser.items(section))
    return found
