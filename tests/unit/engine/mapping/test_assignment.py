"""The assignment is the best one, and the same one every time."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from ade_engine.mapping.assignment import assign

scores = st.lists(
    st.lists(st.none() | st.sampled_from([0.5, 0.6, 0.9, 1.0, 1.8]), min_size=3, max_size=3),
    min_size=1,
    max_size=4,
)


def total(rows: list[list[float | None]], chosen: dict[int, int]) -> float:
    return sum(rows[column][field] or 0 for column, field in chosen.items())


def best_by_trying(rows: list[list[float | None]]) -> float:
    width = len(rows[0])
    places = [*range(width), *[width] * len(rows)]
    return max(
        sum(rows[i][j] or 0 for i, j in enumerate(order) if j < width)
        for order in permutations(places, len(rows))
    )


@given(scores)
def test_no_other_assignment_scores_more(rows: list[list[float | None]]) -> None:
    chosen = assign(rows)
    assert len(set(chosen.values())) == len(chosen)
    assert all(rows[column][field] is not None for column, field in chosen.items())
    assert abs(total(rows, chosen) - best_by_trying(rows)) < 1e-9


@given(scores)
def test_the_order_of_columns_does_not_change_the_sum(rows: list[list[float | None]]) -> None:
    assert abs(total(rows, assign(rows)) - total(rows[::-1], assign(rows[::-1]))) < 1e-9


def test_a_column_that_loses_its_best_field_takes_its_second() -> None:
    assert assign([[1.0, 0.9], [0.95, None]]) == {0: 1, 1: 0}


def test_ties_go_to_columns_further_left_and_fields_of_lower_order() -> None:
    assert assign([[1.0], [1.0], [1.0]]) == {0: 0}
    assert assign([[1.0, 1.0, 1.0]]) == {0: 0}
    assert assign([[1.0, 1.0], [1.0, 1.0]]) == {0: 0, 1: 1}
    assert assign([[None, 1.0], [1.0, 1.0], [1.0, 1.0]]) == {0: 1, 1: 0}


def test_scores_that_differ_by_rounding_are_equal() -> None:
    assert assign([[0.3 * 3], [0.9]]) == {0: 0}
    assert assign([[0.9], [0.3 * 3]]) == {0: 0}


def test_nothing_is_assigned_from_nothing() -> None:
    assert assign([]) == {}
    assert assign([[None, None]]) == {}
