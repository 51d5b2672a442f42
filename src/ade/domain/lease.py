"""The lease: how long a worker may trust that a job is its own.

The model. The database holds one lease per running job: an owner, an expiry and a fence, a number
that goes up by one with each claim. A request that carries the current fence of a running job may
renew, report and finish it; any other is rejected, so at most one attempt's result is recorded.

The rule about time. The expiry is set to `now + lease` by the database's clock when the request
arrives. The worker cannot see that moment; it knows only when it *sent* the request, which was
earlier. So it trusts its lease until `sent + lease - margin` on its own monotonic clock, which is
sooner than the database expires it, whatever the network did. The clock counts suspended time.

    failure                                   what happens
    ----------------------------------------  ---------------------------------------------------
    the answer to a renewal is lost           the worker renews again; renewing twice is harmless
    the worker cannot reach the database      at the end of its trust it kills its child, gives up
    the worker dies                           no renewal; `expire` queues the job again
    the worker is frozen and continues        its trust is over: it kills its child; what it still
                                              sends carries an old fence and changes nothing
    a wall clock is stepped                   nothing: time is the database's, carried by the boot
                                              clock (`ade.clock`)
    the database's own clock is stepped       workers renew in the new time; `expire` waits for one
                                              lease length
    two processes expire the same lease       the second one's WHERE matches no row

What it does not give: while a worker is frozen, the child that it started may still run beside the
next attempt. Its result is rejected, but its effects outside ADE have happened.
"""

from dataclasses import dataclass

from ade.domain.units import MICROSECONDS


@dataclass(frozen=True, slots=True)
class LeaseRule:
    """Hold the three durations of the protocol; `renew < lease - margin`, or no renewal works."""

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

    def trusted_until(self, sent_at_monotonic: float) -> float:
        """Return until when the worker may trust a lease that it requested then."""
        return sent_at_monotonic + self.lease_seconds - self.margin_seconds
