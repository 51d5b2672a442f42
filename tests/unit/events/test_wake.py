"""News wakes whoever waits for it, from any thread, and nobody else."""

import asyncio
import threading

from ade.events.wake import EVERYTHING, Bell, Wake

SOON_SECONDS = 10.0
NO_TIME = 0.001


async def test_a_ring_wakes_the_waiter() -> None:
    wake = Wake()
    with wake.listen("job:1") as bell:
        waiting = asyncio.create_task(bell.wait(SOON_SECONDS))
        wake.publish(["job:1"])
        assert await waiting


async def test_a_ring_before_the_wait_is_not_lost() -> None:
    wake = Wake()
    with wake.listen("job:1") as bell:
        wake.publish(["job:1"])
        assert await bell.wait(SOON_SECONDS)


async def test_rings_between_two_waits_count_as_one() -> None:
    wake = Wake()
    with wake.listen("job:1") as bell:
        for _ in range(5):
            wake.publish(["job:1"])
        assert await bell.wait(SOON_SECONDS)
        assert not await bell.wait(NO_TIME)


async def test_other_news_does_not_wake() -> None:
    wake = Wake()
    with wake.listen("job:1") as bell:
        wake.publish(["job:2", "work:local"])
        assert not await bell.wait(NO_TIME)


async def test_one_bell_may_wait_for_several_topics() -> None:
    wake = Wake()
    with wake.listen("job:1", "job:2") as bell:
        wake.publish(["job:2"])
        assert await bell.wait(SOON_SECONDS)


async def test_a_star_wakes_everyone() -> None:
    wake = Wake()
    with wake.listen("job:1") as one, wake.listen("job:2") as other:
        wake.publish([EVERYTHING])
        assert await one.wait(SOON_SECONDS)
        assert await other.wait(SOON_SECONDS)


async def test_threads_may_ring() -> None:
    wake = Wake()
    with wake.listen("job:1") as bell:
        ringer = threading.Thread(target=wake.publish, args=(["job:1"],))
        ringer.start()
        assert await bell.wait(SOON_SECONDS)
        ringer.join()


async def test_who_has_left_is_forgotten() -> None:
    wake = Wake()
    with wake.listen("job:1", "job:2") as bell:
        pass
    wake.publish(["job:1"])
    assert not await bell.wait(NO_TIME)
    assert wake._bells == {}


def test_a_loop_that_is_closed_is_not_rung() -> None:
    loop = asyncio.new_event_loop()
    bell = Bell(loop)
    loop.close()
    bell.ring()
    assert not bell._rung.is_set()
