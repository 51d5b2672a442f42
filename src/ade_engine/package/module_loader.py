"""Load the files of a package as modules below a unique name.

The modules of a package have a name that no other package has (`ade_config_1.columns.member_id`)
and are found by their own import finder. The folder is not on `sys.path`, so a file of the
package never shadows a module of the runtime, whatever its name is. Files of the package import
each other relatively (`from ..shared import tidy`). No bytecode is written.

The folder `vendor/` holds modules that the package imports by their own names. It is searched after
everything else, so a module in it never replaces one of the runtime or of requirements.txt: while
the package is loaded, `vendor/` is at the end of `sys.path`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

PREFIX = "ade_config_"
VENDOR = "vendor"
_numbers = itertools.count(1)


class PackageModules(importlib.abc.MetaPathFinder):
    """Find and load the modules of one package folder."""

    def __init__(self, folder: Path, names: dict[str, Any]) -> None:
        self.folder = folder
        self.name = f"{PREFIX}{next(_numbers)}"
        self._names = names  # names that authors may use without an import
        self._vendor = folder / VENDOR
        self._has_vendor = self._vendor.is_dir()

    def __enter__(self) -> PackageModules:
        sys.meta_path.insert(0, self)
        if self._has_vendor:
            sys.path.append(str(self._vendor))
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()

    def forget(self) -> None:
        """Remove the finder, the vendor folder, and every module that they loaded."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if str(self._vendor) in sys.path:
            sys.path.remove(str(self._vendor))
            sys.path_importer_cache.pop(str(self._vendor), None)
        for name, module in list(sys.modules.items()):
            if self._owns(name) or (self._has_vendor and self._is_vendored(module)):
                del sys.modules[name]

    def load(self, file: Path) -> ModuleType:
        """Import one file of the package."""
        parts = file.relative_to(self.folder).with_suffix("").parts
        return importlib.import_module(".".join((self.name, *parts)))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module of this package; a folder is a package with or without `__init__.py`."""
        if not self._owns(fullname):
            return None
        module_path = self.folder.joinpath(*fullname.split(".")[1:])
        if module_path.is_dir():
            init = module_path / "__init__.py"
            loader = _Loader(fullname, str(init), self._names) if init.is_file() else None
            spec = importlib.machinery.ModuleSpec(
                fullname, loader, origin=str(init) if loader else None, is_package=True
            )
            spec.submodule_search_locations = [str(module_path)]
            spec.has_location = loader is not None
            return spec
        file = module_path.with_name(f"{module_path.name}.py")
        if not file.is_file():
            return None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_Loader(fullname, str(file), self._names)
        )

    def _is_vendored(self, module: ModuleType) -> bool:
        spec = getattr(module, "__spec__", None)
        paths = [getattr(spec, "origin", None), *(getattr(module, "__path__", None) or ())]
        return any(path and Path(path).is_relative_to(self._vendor) for path in paths)

    def _owns(self, name: str) -> bool:
        return name == self.name or name.startswith(f"{self.name}.")


class _Loader(importlib.machinery.SourceFileLoader):
    """Define the author's names in a module before it runs; write no bytecode."""

    def __init__(self, fullname: str, path: str, names: dict[str, Any]) -> None:
        super().__init__(fullname, path)
        self._names = names

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        vars(module).update(self._names)
        super().exec_module(module)

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write no bytecode."""
