"""Read `requirements.txt`, and accept only names and versions of packages.

A requirements file of pip may hold paths, URLs, other files and options. Here its author is not
trusted with this machine: a path would read its files, a URL would reach its network. So a line is
a requirement of PEP 508 without a URL, with hashes or without, or it is rejected by its number.
"""

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ade.environments.failure import refused

FILE = "requirements.txt"
BYTES_MAX = 256 * 1024
REQUIREMENTS_MAX = 500
HASH = re.compile(r"\s+--hash=(sha256|sha384|sha512):[0-9a-f]{64,128}(?=\s|$)")
COMMENT = re.compile(r"(^|\s)#.*$")
SHOWN_CHARS_MAX = 80


def read_requirements(content: bytes) -> list[str]:
    """Return the requirements of a file, one each, in order; none means that nothing is needed."""
    if len(content) > BYTES_MAX:
        raise refused(f"{FILE} may have at most {BYTES_MAX // 1024} KiB.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refused(f"{FILE} is not written in UTF-8.") from None
    found = [_requirement(line, number) for number, line in _lines(text) if line]
    if len(found) > REQUIREMENTS_MAX:
        raise refused(f"{FILE} may name at most {REQUIREMENTS_MAX} packages.")
    return found


def names_of(requirements: list[str]) -> list[str]:
    """Return the names of the required packages."""
    return [Requirement(HASH.sub("", line).strip()).name for line in requirements]


def _lines(text: str) -> list[tuple[int, str]]:
    """Join continued lines and drop comments; a line keeps the number of its beginning."""
    joined: list[tuple[int, str]] = []
    begun = ""
    begun_at = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not begun:
            begun_at = number
        begun += COMMENT.sub("", line)
        if begun.endswith("\\"):
            begun = begun[:-1] + " "
            continue
        joined.append((begun_at, begun.strip()))
        begun = ""
    joined.append((begun_at, begun.strip()))
    return joined


def _requirement(line: str, number: int) -> str:
    hashes = "".join(found.group(0) for found in HASH.finditer(line))
    named = HASH.sub("", line).strip()
    shown = ascii(named[:SHOWN_CHARS_MAX])
    if named.startswith("-"):
        raise refused(
            f"{FILE}, line {number}: {shown} is an option; write names and versions of packages"
            " only."
        )
    try:
        requirement = Requirement(named)
    except InvalidRequirement:
        raise refused(
            f"{FILE}, line {number}: {shown} is not the name of a package, perhaps with versions,"
            " such as python-dateutil>=2.9."
        ) from None
    if requirement.url is not None:
        raise refused(
            f"{FILE}, line {number}: {canonicalize_name(requirement.name)} comes from an address;"
            " packages come from the registry or the wheelhouse only."
        )
    return f"{requirement}{re.sub(' +', ' ', hashes)}"
