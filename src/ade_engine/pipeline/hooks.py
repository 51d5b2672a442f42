"""Call the package's hooks, in the order of their files' names."""

from __future__ import annotations

from typing import Any

from ade_engine.package.config_package import Package
from ade_engine.package.views import Context


def call_hooks(package: Package, event: str, given: dict[str, Any]) -> list[Any]:
    """Call every hook of an event and give what they gave back."""
    return [hook(given) for hook in package.hooks.get(event, ())]


def activate(package: Package) -> list[Any]:
    """Run `on_activate`, once for each prepared version of a package, before any file is seen."""
    ctx = Context(settings=package.settings.author)
    return call_hooks(package, "on_activate", {"ctx": ctx})
