"""Many things at once, a few at a time."""

import threading

from ade.cli.remote.several import Failed, each

SECONDS = 60.0


def test_every_item_has_its_result_or_its_error() -> None:
    def halve(number: int) -> float:
        return 1 / number

    found = dict(each([1, 2, 0, 4], halve, 2))
    wrong = found.pop(0)
    assert found == {1: 1.0, 2: 0.5, 4: 0.25}
    assert isinstance(wrong, Failed)
    assert isinstance(wrong.error, ZeroDivisionError)


def test_no_more_are_under_way_than_allowed() -> None:
    both = threading.Barrier(2)
    under_way: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        under_way.append(number)
        most.append(len(under_way))
        both.wait(SECONDS)  # two are under way at once, or this never ends
        under_way.remove(number)

    assert len(list(each(range(6), work, 2))) == 6
    assert max(most) == 2


def test_nothing_is_fine() -> None:
    assert list(each([], lambda item: item, 4)) == []


def test_one_that_never_ends_does_not_keep_the_program() -> None:
    held = threading.Event()

    def hold(number: int) -> int:
        if number:
            held.wait(SECONDS)
        return number

    results = each([0, 1], hold, 2)
    assert next(results) == (0, 0)
    (left,) = [one for one in threading.enumerate() if one.daemon and "work" in one.name]
    held.set()
    left.join(SECONDS)
