"""Score every column of a table for every field, keeping what each rule contributed.

The built-in rules are `col.<field>.synonym` (how similar the header is to one of the field's names)
and `col.<field>.type` (how many cells can be read as the field's type). An author's `detect_<rule>`
is `col.<field>.<rule>`; it scores its own field, or any field if it returns a mapping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ade_engine.mapping.header_likeness import FieldNames
from ade_engine.package.author_scores import author_scores
from ade_engine.package.column import Column
from ade_engine.package.config_package import FieldRules, Package
from ade_engine.package.conversion import misfits, to_type
from ade_engine.package.field import FieldType
from ade_engine.package.function_arguments import Context, Table

TYPE_WEIGHT = 0.3
DIGITS = 4
TYPES_WITH_A_SIGN = (FieldType.NUMBER, FieldType.INTEGER, FieldType.DATE, FieldType.BOOLEAN)


@dataclass(frozen=True)
class RawColumn:
    """One column of a table before it is mapped: its number, header and a sample of its cells."""

    number: int
    header: str
    sample: Column
    last_level: str = ""


@dataclass
class Score:
    """What each rule contributed for one column and one field."""

    contributors: list[tuple[str, float]] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Return the sum of the contributions."""
        return round(math.fsum(delta for _, delta in self.contributors), DIGITS)

    def add(self, rule: str, delta: float) -> None:
        """Add the contribution of a rule, unless it rounds to zero."""
        if rounded := round(delta, DIGITS):
            self.contributors.append((rule, rounded))


ColumnScores = list[dict[str, Score]]  # by column, then by field


def score_columns(
    package: Package, columns: Sequence[RawColumn], table: Table, ctx: Context
) -> ColumnScores:
    """Apply every rule to every column."""
    names = {rules.name: _names(rules) for rules in package.fields}
    scores: ColumnScores = []
    for column in columns:
        fit = _TypeFit(column.sample)
        scored = {rules.name: Score() for rules in package.fields}
        for rules in package.fields:
            likeness = names[rules.name].likeness(column.header, column.last_level)
            scored[rules.name].add(f"col.{rules.name}.synonym", likeness)
            scored[rules.name].add(f"col.{rules.name}.type", fit.delta(rules.field.type))
        for rules in package.fields:
            arguments = {
                "column": column.sample,
                "header": column.header,
                "field": rules.field,
                "table": table,
                "ctx": ctx,
            }
            for detector in rules.detectors:
                result = detector(arguments)
                for target, delta in author_scores(
                    detector, result, rules.name, scored, "fields of the package"
                ):
                    scored[target].add(detector.rule or detector.name, delta)
        scores.append(scored)
    return scores


def _names(rules: FieldRules) -> FieldNames:
    return FieldNames.of([rules.label, rules.name, *rules.field.synonyms])


class _TypeFit:
    """Measure how well a column's cells fit each type, once for each type."""

    def __init__(self, sample: Column) -> None:
        self._sample = sample
        self._deltas: dict[str, float] = {}

    def delta(self, wanted: str) -> float:
        if wanted not in TYPES_WITH_A_SIGN:
            return 0.0
        if wanted not in self._deltas:
            self._deltas[wanted] = self._measure(wanted)
        return self._deltas[wanted]

    def _measure(self, wanted: str) -> float:
        sample = self._sample
        filled = sample.filled()
        if not filled:
            return 0.0
        cells = to_type(sample.cells, wanted, sample.notation)
        fitting = filled - int(misfits(cells, wanted).sum())
        return TYPE_WEIGHT * (2 * fitting / filled - 1)
