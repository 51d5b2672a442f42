"""Load, check and call config packages, and define the API that their authors use."""

from ade_engine.package.author_errors import (
    AuthorError,
    DependencyMissing,
    PackageInvalid,
    PackageProblem,
)
from ade_engine.package.column import Column
from ade_engine.package.config_package import FieldRules, Package, load_package
from ade_engine.package.field import Field, FieldType
from ade_engine.package.issues import Issue, Issues, Severity
from ade_engine.package.mask import Mask
from ade_engine.package.package_settings import PackageSettings

__all__ = [
    "AuthorError",
    "Column",
    "DependencyMissing",
    "Field",
    "FieldRules",
    "FieldType",
    "Issue",
    "Issues",
    "Mask",
    "Package",
    "PackageInvalid",
    "PackageProblem",
    "PackageSettings",
    "Severity",
    "load_package",
]
