"""Print the OpenAPI document: `python -m ade.http.describe > docs/reference/openapi.json`."""

import json
import sys
from pathlib import Path

from ade.artifacts import Blobs
from ade.http.app import create_app
from ade.kernel import Kernel
from ade.kinds import load_kinds
from ade.settings import Settings
from ade.store.directory import Directory
from ade.store.library import Library
from ade.store.store import SqlStore

NOWHERE = "sqlite://"


def main() -> None:
    """Make an app over nothing and let it describe itself; no database is opened."""
    store = SqlStore(NOWHERE)
    app = create_app(
        Kernel(store),
        Directory(NOWHERE),
        Settings(),
        load_kinds(),
        library=Library(NOWHERE),
        blobs=Blobs(Path(NOWHERE)),
    )
    sys.stdout.write(json.dumps(app.openapi(), indent=1, ensure_ascii=False) + "\n")
    store.close()


if __name__ == "__main__":
    main()
