"""A kind of import contract that import-linter does not have: a list of what may be imported."""

import sys
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyContract(Contract):
    """Allow a set of modules only those direct imports that are listed.

    Configuration options:
        - modules:          the modules, with everything below them, whose imports are looked at.
        - except_modules:   modules among them that the contract leaves alone. (Optional.)
        - may_import:       what they may import, with everything below it.
        - standard_library: whether they may import all of the standard library. Default: False.
        - within:           look only at imports of these and of what is below them. (Optional.)
    """

    type_name = "only"

    modules = fields.ListField(subfield=fields.StringField())
    except_modules = fields.ListField(subfield=fields.StringField(), required=False)
    may_import = fields.ListField(subfield=fields.StringField())
    standard_library = fields.BooleanField(required=False, default=False)
    within = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Compare every direct import of the modules with the list."""
        names: Any = self.modules
        left_alone: Any = self.except_modules
        importers = {
            module
            for module in graph.modules
            if _is_below(module, names) and not _is_below(module, left_alone or [])
        }
        if not importers:
            return ContractCheck(kept=False, metadata={"missing": names, "imports": []})
        found = [
            (importer, imported)
            for importer in sorted(importers)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not self._is_allowed(imported)
        ]
        return ContractCheck(kept=not found, metadata={"missing": [], "imports": found})

    def _is_allowed(self, imported: str) -> bool:
        within: Any = self.within
        may_import: Any = self.may_import
        if within and not _is_below(imported, within):
            return True
        if self.standard_library and imported.partition(".")[0] in sys.stdlib_module_names:
            return True
        return _is_below(imported, may_import)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """List the imports that are not allowed."""
        for name in check.metadata["missing"]:
            output.print_error(f"There is no module {name}.")
        for importer, imported in check.metadata["imports"]:
            output.print_error(f"{importer} may not import {imported}.")


def _is_below(module: str, names: list[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)
