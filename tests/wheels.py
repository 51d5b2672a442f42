"""Wheels made on the fly, so that installations need no registry."""

import zipfile
from pathlib import Path

WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    requires: tuple[str, ...] = (),
    files: dict[str, str] | None = None,
) -> Path:
    """Write a wheel with one module that knows its version, or with the files that are given."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    about = f"{module}-{version}.dist-info"
    needed = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    content = files or {f"{module}.py": f"VERSION = {version!r}\n"}
    content |= {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{about}/WHEEL": WHEEL,
    }
    content[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in [*content, f"{about}/RECORD"])
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
    return wheel
