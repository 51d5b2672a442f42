"""Example config packages to learn from and to start with: `ade config init --example NAME DIR`."""

from pathlib import Path

FOLDER = Path(__file__).parent


def example_names() -> tuple[str, ...]:
    """List the examples."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/config.toml")))
