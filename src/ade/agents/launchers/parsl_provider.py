"""Make the provider of Parsl that a file of `ade scale` names."""

import inspect
from pathlib import Path
from typing import Any

from ade.agents.launchers.parsl import ParslLauncher
from ade.domain.errors import Unavailable

# A folder is part of commands that Parsl gives to a shell, without quotes.
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")


def parsl_launcher(
    prefix: str,
    name: str,
    options: dict[str, Any],
    folder: Path,
    *,
    timeout_seconds: float,
    walltime_seconds: float,
) -> ParslLauncher:
    """Make the launcher, or raise Unavailable with what is wrong."""
    if not set(str(folder)) <= SAFE:
        raise Unavailable(
            f"[pilot] folder={str(folder)!r} is not allowed with Parsl: use letters, digits, `.`,"
            " `_` and `-` only."
        )
    provider = _provider(name, options, timeout_seconds, walltime_seconds)
    return ParslLauncher(
        prefix,
        provider,
        folder,
        timeout_seconds=timeout_seconds,
        walltime_seconds=walltime_seconds,
    )


def _provider(
    name: str, options: dict[str, Any], timeout_seconds: float, walltime_seconds: float
) -> Any:
    try:
        import parsl.providers
        from parsl.launchers import SimpleLauncher
    except ImportError:
        raise Unavailable("Parsl is not installed: install `ade[parsl]`.") from None
    made = getattr(parsl.providers, name, None)
    if made is None:
        known = ", ".join(sorted(one for one in dir(parsl.providers) if one.endswith("Provider")))
        raise Unavailable(f"[parsl] provider={name!r} is not known: there are {known}.")
    minutes = -(-int(walltime_seconds) // 60)
    ours = {
        "walltime": f"{minutes // 60:02d}:{minutes % 60:02d}:00",
        "launcher": SimpleLauncher(),
        "cmd_timeout": int(timeout_seconds),
        "init_blocks": 0,
    }
    accepted = inspect.signature(made).parameters
    if unknown := sorted(options.keys() - accepted.keys()):
        raise Unavailable(
            f"[parsl] options: {unknown[0]} is not known; {name} has {', '.join(accepted)}."
        )
    try:
        return made(**options | {key: value for key, value in ours.items() if key in accepted})
    except Exception as error:
        raise Unavailable(f"{name} cannot be made: {type(error).__name__}: {error}") from None
