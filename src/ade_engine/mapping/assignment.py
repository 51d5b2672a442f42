"""Assign columns to fields one to one, so that the sum of the scores is as large as possible.

This is the assignment problem, solved by shortest augmenting paths (the Hungarian method in the
form of Jonker and Volgenant) on integers, so that rounding never decides. Ties are broken the same
way every time: columns further left first, then fields of lower order, then columns and fields in
the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

SCORE_UNIT = 1_000_000  # scores that differ by less than a millionth are equal


def assign(scores: Sequence[Sequence[float | None]]) -> dict[int, int]:
    """Return {column: field} for scores by column and field; None rules a pair out."""
    columns = [i for i, row in enumerate(scores) if any(score is not None for score in row)]
    fields = sorted({j for i in columns for j, score in enumerate(scores[i]) if score is not None})
    if not columns:
        return {}
    weights = _weights(scores, columns, fields)
    transposed = [[row[j] for row in weights] for j in range(len(fields))]
    pairs = _assign_rows(transposed)
    return {
        columns[i]: fields[j]
        for j, i in enumerate(pairs)
        if i < len(columns) and scores[columns[i]][fields[j]] is not None
    }


def _weights(
    scores: Sequence[Sequence[float | None]], columns: list[int], fields: list[int]
) -> list[list[int]]:
    """Fold the tie-breaks into the scores: each matters only if those before it are equal."""
    pairs = min(len(columns), len(fields))
    aligned_most = len(columns) * len(fields) * pairs + 1
    field_unit = aligned_most
    column_unit = field_unit * (len(fields) * pairs + 1)
    score_unit = column_unit * (len(columns) * pairs + 1)
    weights = []
    for place, i in enumerate(columns):
        row = []
        for rank, j in enumerate(fields):
            score = scores[i][j]
            if score is None:
                row.append(0)
                continue
            left = (len(columns) - place) * column_unit + (len(fields) - rank) * field_unit
            row.append(round(score * SCORE_UNIT) * score_unit + left + place * rank)
        weights.append(row)
    return weights


def _assign_rows(weights: list[list[int]]) -> list[int]:
    """Assign each row a distinct column so that the sum of the weights is greatest.

    Each row also has an extra column of weight 0 to itself, so that it may stay unassigned.
    """
    height, width = len(weights), len(weights[0]) + len(weights)
    infinite = 1 << 200
    of_row, of_column = [0] * (height + 1), [0] * (width + 1)
    holder = [0] * (width + 1)  # the row that holds each column, 1-based; 0 is none
    for row in range(1, height + 1):
        holder[0] = row
        at = 0
        least = [infinite] * (width + 1)
        came_from = [0] * (width + 1)
        used = [False] * (width + 1)
        while holder[at]:
            used[at] = True
            here, step, next_at = holder[at], infinite, 0
            line, potential = weights[here - 1], of_row[here]
            for column in range(1, width + 1):
                if used[column]:
                    continue
                weight = line[column - 1] if column <= len(line) else 0
                reduced = -weight - potential - of_column[column]
                if reduced < least[column]:
                    least[column], came_from[column] = reduced, at
                if least[column] < step:
                    step, next_at = least[column], column
            for column in range(width + 1):
                if used[column]:
                    of_row[holder[column]] += step
                    of_column[column] -= step
                else:
                    least[column] -= step
            at = next_at
        while at:
            before = came_from[at]
            holder[at] = holder[before]
            at = before
    chosen = [0] * height
    for column in range(1, width + 1):
        if holder[column]:
            chosen[holder[column] - 1] = column - 1
    return chosen
