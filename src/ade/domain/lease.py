"""The lease: how long a worker may believe that a job is its own.

The model. The database holds one lease per running job: an owner, an expiry and a fence, a number
that goes up by one with each claim. Whoever presents the current fence of a running job may renew,
report and finish it; anyone else is refused, so at most one attempt's result is ever recorded.

The rule about time. The expiry is set to `now + lease` by the database's reckoning when the request
arrives. The worker cannot see that moment; it knows only when it *asked*, which was earlier. So it
trusts its lease until `asked + lease - margin` on its own monotonic clock, which is sooner than the
database expires it, whatever the network did. The clock counts time spent suspended.

    failure                                   what happens
    ----------------------------------------  ---------------------------------------------------
    the answer to a renewal is lost           the worker asks again; renewing twice is harmless
    the worker cannot reach the database      at the end of its trust it kills its child, gives up
    the worker dies                           nobody renews; `expire` hands the job on
    the worker is frozen and wakes up         its trust is over: it kills its child; what it still
                                              sends carries an old fence and changes nothing
    two processes expire the same lease       the second one's WHERE matches no row

What it does not give: while a worker is frozen, the child that it started may still run beside the
next attempt. Its result is refused, but what it does to the world outside is done.
"""

from dataclasses import dataclass

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class LeaseRule:
    """Hold the three durations of the protocol; `renew < lease - margin` or no renewal can work."""

    lease_seconds: float
    margin_seconds: float
    renew_seconds: float

    def __post_init__(self) -> None:
        if not 0 < self.renew_seconds < self.lease_seconds - self.margin_seconds:
            raise ValueError("a lease must outlast its margin and one renewal")

    @property
    def lease_us(self) -> int:
        """Return how long a lease lasts, in the unit of the database."""
        return int(self.lease_seconds * MICROSECONDS)

    def expires_at(self, now_us: int) -> int:
        """Return when a lease granted now ends, for the database."""
        return now_us + self.lease_us

    def trusted_until(self, asked_at_monotonic: float) -> float:
        """Return until when the worker may believe in a lease that it asked for then."""
        return asked_at_monotonic + self.lease_seconds - self.margin_seconds


def has_expired(lease_expires_at: int, now_us: int) -> bool:
    """Tell whether nobody holds the lease any more."""
    return lease_expires_at < now_us
