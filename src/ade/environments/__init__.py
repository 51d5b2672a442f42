"""Folders of installed packages, shared by all builds that need the same ones.

The model. A version's `requirements.txt` is resolved to a *lock*: exact versions with hashes. The
digest of the lock, the interpreter, the platform and uv names the *environment*, a folder that is
installed under a temporary name, stamped, renamed, and never changed after. What the engine itself
runs on is pinned and not installed again. No requirements: no environment but ADE's own.

    requirements ── checked ── resolved (uv pip compile) ── installed (uv pip install --target)
                    never a path, a URL or an option        temporary folder, stamp, rename

Failures.
    a line that is refused, no such version    the build fails with the line or what uv says
    the process dies while it installs         an unfinished folder without a stamp: never used
    two processes install the same             the second finds the name taken and drops its own
    the folder is gone                         `EnvironmentGone`; the next build makes it again
"""

from ade.environments.environment import (
    EnvironmentGone,
    environment_of,
    fingerprint_of,
)

__all__ = [
    "EnvironmentGone",
    "environment_of",
    "fingerprint_of",
]
