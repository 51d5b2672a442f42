"""Write config packages for tests."""

from pathlib import Path


def write_package(folder: Path, **files: str) -> Path:
    """Write files; `columns__name` is `columns/name.py`, `config` is `config.toml`."""
    for name, text in files.items():
        parts = name.split("__")
        path = folder.joinpath(*parts[:-1], f"{parts[-1]}.py")
        if name == "config":
            path = folder / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


FIELD = "FIELD = Field(type='text')\n"
