"""Keep the clock of a process at the database's time."""

from typing import Any

import structlog

from ade.clock import SystemClock
from ade.domain.units import MICROSECONDS
from ade.store.dialects.dialect import Dialect

log = structlog.get_logger()


def sync_clock(clock: SystemClock, dialect: Dialect, connection: Any) -> None:
    """Ask the database for its time; one without a clock is asked once what it has recorded."""
    sent_us = clock.boot_us()
    database_us = dialect.server_now_us(connection)
    if database_us is not None:
        stepped_us = clock.sync(database_us, sent_us, clock.boot_us())
        if stepped_us:
            log.warning(
                "the clock of the database was stepped; leases expire after one lease length",
                seconds=stepped_us / MICROSECONDS,
            )
    elif not clock.is_synced:
        behind_us = clock.begin_after(dialect.latest_recorded_us(connection))
        if behind_us > MICROSECONDS:
            log.warning(
                "the clock of this machine is behind the times in the database; time goes on from"
                " the latest of them",
                seconds=behind_us / MICROSECONDS,
            )
