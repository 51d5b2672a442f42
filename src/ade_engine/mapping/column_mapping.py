"""Decide which field each column of a table is, and record why the others stay unmapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ade_engine.mapping.assignment import assign
from ade_engine.mapping.scores import ColumnScores, RawColumn, Score, score_columns
from ade_engine.package.config_package import Package
from ade_engine.package.function_arguments import Context, Table
from ade_engine.sheets.coordinates import column_letters

CANDIDATES_MAX = 3
BY_HOOK = "hook.on_table_mapped"


class Reason(StrEnum):
    """Why a column stays unmapped."""

    EMPTY_HEADER = "empty_header"
    NO_SIGNAL = "no_signal"
    BELOW_THRESHOLD = "below_threshold"
    AMBIGUOUS = "ambiguous"
    DUPLICATE_FIELD = "duplicate_field"
    RELEASED = "released"  # a hook released it


@dataclass(frozen=True)
class Candidate:
    """A field that a column could be, with its score and what contributed to it."""

    field: str
    score: float
    contributors: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class MappedColumn:
    """One column with its target field, or the reason why it has none."""

    number: int
    header: str
    target: str | None
    reason: Reason | None
    candidates: tuple[Candidate, ...] = ()

    @property
    def letter(self) -> str:
        """Return the column's letters."""
        return column_letters(self.number)

    @property
    def chosen(self) -> Candidate | None:
        """Return the candidate that was chosen as the target."""
        return next((one for one in self.candidates if one.field == self.target), None)


@dataclass(frozen=True)
class ColumnMapping:
    """The fields that the columns of a table were mapped to."""

    columns: tuple[MappedColumn, ...]
    known: tuple[str, ...]
    required: tuple[str, ...]

    @property
    def targets(self) -> dict[str, int]:
        """Return {field: number of its column}."""
        return {one.target: one.number for one in self.columns if one.target is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the required fields that no column was mapped to."""
        return tuple(name for name in self.required if name not in self.targets)

    def changed(self, wanted: dict[str, int]) -> ColumnMapping:
        """Return this mapping with the changes of a hook: {field: number of its column}."""
        fields = {number: name for name, number in wanted.items() if name in self.known}
        return replace(self, columns=tuple(_changed(one, fields) for one in self.columns))


def _changed(column: MappedColumn, fields: dict[int, str]) -> MappedColumn:
    name = fields.get(column.number)
    if name == column.target:
        return column
    if name is None:
        return replace(column, target=None, reason=Reason.RELEASED)
    others = tuple(one for one in column.candidates if one.field != name)
    chosen = Candidate(name, 0.0, ((BY_HOOK, 0.0),))
    return replace(column, target=name, reason=None, candidates=(chosen, *others))


def map_columns(
    package: Package, columns: Sequence[RawColumn], table: Table, ctx: Context
) -> ColumnMapping:
    """Map the columns of one table."""
    scores = score_columns(package, columns, table, ctx)
    names = tuple(rules.name for rules in package.fields)
    thresholds = {
        rules.name: package.settings.mapping.threshold
        if rules.field.threshold is None
        else rules.field.threshold
        for rules in package.fields
    }
    chosen = _assigned(scores, names, thresholds)
    taken = set(chosen.values())
    mapped = []
    for index, column in enumerate(columns):
        decision = _ColumnDecision(
            scores[index], names, thresholds, package.settings.mapping.margin
        )
        target = chosen.get(index)
        reason = decision.doubt(target, taken) if target else decision.reason(column.header)
        mapped.append(
            MappedColumn(
                number=column.number,
                header=column.header,
                target=None if reason else target,
                reason=reason,
                candidates=decision.candidates(target),
            )
        )
    required = tuple(rules.name for rules in package.fields if rules.field.required)
    return ColumnMapping(tuple(mapped), names, required)


def _assigned(
    scores: ColumnScores, names: tuple[str, ...], thresholds: dict[str, float]
) -> dict[int, str]:
    matrix = [
        [
            total if (total := scored[name].total) >= thresholds[name] and total > 0 else None
            for name in names
        ]
        for scored in scores
    ]
    return {column: names[rank] for column, rank in assign(matrix).items()}


@dataclass(frozen=True)
class _ColumnDecision:
    scored: dict[str, Score]
    names: tuple[str, ...]
    thresholds: dict[str, float]
    margin: float

    def doubt(self, target: str, taken: set[str]) -> Reason | None:
        """Return AMBIGUOUS if an unassigned field scores as high, within the margin."""
        score = self.scored[target].total
        rivals = (
            self.scored[name].total
            for name in self.names
            if name not in taken and self._reaches(name)
        )
        return Reason.AMBIGUOUS if any(score - one < self.margin for one in rivals) else None

    def reason(self, header: str) -> Reason:
        """Return why the column has no field."""
        best = max((one.total for one in self.scored.values()), default=0.0)
        if any(self._reaches(name) for name in self.names):
            return Reason.DUPLICATE_FIELD
        if not header.strip():
            return Reason.EMPTY_HEADER
        return Reason.BELOW_THRESHOLD if best > 0 else Reason.NO_SIGNAL

    def candidates(self, target: str | None) -> tuple[Candidate, ...]:
        """Return the best fields, the chosen one first."""
        ranked = sorted(
            (name for name in self.names if self.scored[name].total > 0 or name == target),
            key=lambda name: (name != target, -self.scored[name].total, self.names.index(name)),
        )
        return tuple(self._candidates(ranked[:CANDIDATES_MAX]))

    def _candidates(self, names: Iterable[str]) -> Iterable[Candidate]:
        for name in names:
            score = self.scored[name]
            yield Candidate(name, score.total, tuple(score.contributors))

    def _reaches(self, name: str) -> bool:
        total = self.scored[name].total
        return total > 0 and total >= self.thresholds[name]
