"""What users get from `ade.testing`."""

from importlib.metadata import entry_points

import ade.testing


def test_the_names() -> None:
    assert sorted(ade.testing.__all__) == ["ade_server", "ade_server_settings"]
    assert all(hasattr(ade.testing, name) for name in ade.testing.__all__)


def test_pytest_finds_the_fixture() -> None:
    (plugin,) = entry_points(group="pytest11", name="ade_server")
    assert plugin.load() is ade.testing
