"""What runs inside the sandbox; imports nothing of `ade`.

Authors of config packages write `from ade_engine import Column, Field, Issue`. These names are
imported on first access, so that a process that runs something else does not pay for them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ade_engine.package import Column, Field, Issue

__all__ = ["Column", "Field", "Issue"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from ade_engine import package

        return getattr(package, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
