"""Write the API's description to files: `python -m ade.process.describe docs/reference`."""

import json
import sys
from pathlib import Path
from typing import Any

from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.http.app import create_app
from ade.http.contract_schemas import contract_schemas
from ade.kernel import Kernel
from ade.kinds import Kinds, load_kinds
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.session import Session

NOWHERE = "sqlite://"


def main() -> None:
    """Write the OpenAPI documents and the JSON Schemas of the execution contract into a folder."""
    folder = Path(sys.argv[1])
    kinds = load_kinds()
    api, contract = openapi(kinds)
    _write(folder / "openapi.json", api)
    _write(folder / "worker-contract.json", contract)
    for name, schema in contract_schemas(kinds).items():
        _write(folder / "schemas" / name, schema)


def openapi(kinds: Kinds) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the OpenAPI documents of an app without a database: of the API, of the contract."""
    store = Session(NOWHERE)
    app = create_app(
        Kernel(store),
        Directory(store),
        Settings(),
        kinds,
        catalogue=Catalogue(store),
        blobs=Blobs(Path(NOWHERE)),
    )
    described: tuple[dict[str, Any], dict[str, Any]] = app.openapi(), app.contract.openapi()
    store.close()
    return described


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
