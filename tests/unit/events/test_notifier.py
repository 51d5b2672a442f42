"""A notification reaches the waiters for its topic, from any thread, and no others."""

import asyncio
import threading

from ade.events.notifier import EVERYTHING, Notifier, Subscription

SOON_SECONDS = 10.0
NO_TIME = 0.001


async def test_a_notification_ends_the_wait() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1") as subscription:
        waiting = asyncio.create_task(subscription.wait(SOON_SECONDS))
        notifier.publish(["job:1"])
        assert await waiting


async def test_a_ring_before_the_wait_is_not_lost() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1") as subscription:
        notifier.publish(["job:1"])
        assert await subscription.wait(SOON_SECONDS)


async def test_rings_between_two_waits_count_as_one() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1") as subscription:
        for _ in range(5):
            notifier.publish(["job:1"])
        assert await subscription.wait(SOON_SECONDS)
        assert not await subscription.wait(NO_TIME)


async def test_another_topic_does_not_end_the_wait() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1") as subscription:
        notifier.publish(["job:2", "work:local"])
        assert not await subscription.wait(NO_TIME)


async def test_one_subscription_may_have_several_topics() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1", "job:2") as subscription:
        notifier.publish(["job:2"])
        assert await subscription.wait(SOON_SECONDS)


async def test_a_star_notifies_every_subscription() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1") as one, notifier.subscribe("job:2") as other:
        notifier.publish([EVERYTHING])
        assert await one.wait(SOON_SECONDS)
        assert await other.wait(SOON_SECONDS)


async def test_threads_may_ring() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1") as subscription:
        publisher = threading.Thread(target=notifier.publish, args=(["job:1"],))
        publisher.start()
        assert await subscription.wait(SOON_SECONDS)
        publisher.join()


async def test_a_subscription_ends_with_its_block() -> None:
    notifier = Notifier()
    with notifier.subscribe("job:1", "job:2") as subscription:
        pass
    notifier.publish(["job:1"])
    assert not await subscription.wait(NO_TIME)
    assert notifier._subscriptions == {}


def test_a_loop_that_is_closed_is_not_notified() -> None:
    loop = asyncio.new_event_loop()
    subscription = Subscription(loop)
    loop.close()
    subscription.notify()
    assert not subscription._notified.is_set()
