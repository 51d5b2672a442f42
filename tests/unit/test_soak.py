"""The soak's verdict: what grows is called so, what only wavers is not."""

from tests.soak import Finding, Measure, judge, sparkline

HOURS = [n / 100 for n in range(100)]
MEASURE = Measure("memory", 4.0, lambda server, data: 0.0)


def judged(values: list[float]) -> Finding:
    """Judge values of one hour."""
    return judge(MEASURE, HOURS, values)


def test_a_leak_is_not_flat() -> None:
    found = judged([100 + 10 * hour for hour in HOURS])
    assert not found.is_flat
    assert round(found.slope_per_hour, 6) == 10


def test_a_saw_is_flat() -> None:
    assert judged([100.0 + n % 10 for n in range(100)]).is_flat


def test_what_falls_is_flat() -> None:
    assert judged([100 - 10 * hour for hour in HOURS]).is_flat


def test_a_sparkline_shows_the_shape() -> None:
    assert sparkline([0.0, 1.0, 2.0], width=3) == "▁▅█"
