"""Fixtures for environments: a wheelhouse, and settings that know no other source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.wheels import make_wheel

from ade.environments.install import install, workshop
from ade.environments.requirements import read_requirements
from ade.environments.resolve import Lock, resolve
from ade.environments.tool import Tool
from ade.settings import Settings

Configure = Callable[..., Settings]


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """Make a folder with a few wheels."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "greeting", "1.0")
    make_wheel(folder, "greeting", "2.0")
    make_wheel(folder, "polite", "1.0", requires=("greeting>=1", "numpy"))
    return folder


@pytest.fixture
def configure(tmp_path: Path, wheelhouse: Path) -> Configure:
    """Make settings over the wheelhouse."""

    def make(**changes: Any) -> Settings:
        return Settings(
            **{"storage_data_dir": tmp_path / "data", "wheelhouse": wheelhouse} | changes
        )

    return make


@pytest.fixture
def settings(configure: Configure) -> Settings:
    """Make the usual settings."""
    return configure()


class Workbench:
    """Resolve and install, and keep what was said."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.said: list[str] = []
        self.tool = Tool(settings, self.said.append)

    async def lock(self, requirements: str) -> Lock:
        """Resolve requirements."""
        async with workshop(self.settings) as folder:
            return await resolve(read_requirements(requirements.encode()), self.tool, folder)

    async def install(self, requirements: str) -> str:
        """Install requirements, and return the digest of the environment."""
        async with workshop(self.settings) as folder:
            lock = await resolve(read_requirements(requirements.encode()), self.tool, folder)
            return await install(lock, self.tool, folder)


@pytest.fixture
def workbench(settings: Settings) -> Workbench:
    """Give a workbench over the wheelhouse."""
    return Workbench(settings)
