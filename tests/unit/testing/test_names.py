"""What users import from `ade.testing`."""

import ade.testing
from ade.kernel import Kernel
from ade.testing import MemoryStore


def test_the_names() -> None:
    assert sorted(ade.testing.__all__) == ["ImpossibleRow", "MemoryStore"]
    assert all(hasattr(ade.testing, name) for name in ade.testing.__all__)


def test_the_example_of_its_docstring_works() -> None:
    workspace_id = "0198a000-0000-7000-8000-000000000001"
    store = MemoryStore()
    store.add_workspace(workspace_id)
    kernel = Kernel(store)
    assert kernel.now.read(lambda reading: reading.workspace_ids()) == [workspace_id]
