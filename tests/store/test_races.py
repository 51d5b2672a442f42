"""Several servers on one database: races that must have one winner."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from copy import copy
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.databases import WORKSPACE, SqlDatabase, libpq
from tests.processes import PATIENCE_SECONDS
from tests.store.acts import Acts, failure, ref, submission, success
from tests.store.conformance.test_builds import Site, made, version

from ade.clock import ManualClock
from ade.domain.errors import LeaseLost, NotFound
from ade.domain.job import Status
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.stages.resume import Resume
from ade.stages.retain import Retain
from ade.stages.submit.model import Accepted, Idempotency
from ade.store import schema
from ade.store.builds import BuildChanges
from ade.store.port import Transaction
from ade.store.rows import Activation, JobRow

SERVERS = 2


@pytest.fixture
def servers(sql_database: SqlDatabase, clock: ManualClock) -> Iterator[list[Acts]]:
    """Open the database in two stores, as two processes would."""
    doing = [
        Acts(Kernel(sql_database.open(clock), KernelSettings(queue_size=0)), clock)
        for _ in range(SERVERS)
    ]
    yield doing
    doing[0].check()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Make calls from as many threads, starting together; exceptions stand among the outcomes."""
    start = threading.Barrier(len(calls))

    def make(call: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


def test_duplicates_are_one_job(servers: list[Acts]) -> None:
    for number in range(20):
        key = f"sha256:{number}"
        one, two = at_once(*[partial(server.accept, execution_key=key) for server in servers])
        assert one.job.id == two.job.id
        assert sorted([one.deduplicated, two.deduplicated]) == [False, True]
    assert len(servers[0].everything()) == 20


def test_repetitions_are_one_job(servers: list[Acts]) -> None:
    def asked(acts: Acts, number: int) -> Accepted:
        key = Idempotency("me", "POST", str(number), "sha256:b", lambda a: (202, a.job.id))
        accepted: Accepted = acts.kernel.now.submit(submission(idempotency=key))
        return accepted

    for number in range(20):
        one, two = at_once(*[partial(asked, server, number) for server in servers])
        assert one.job.id == two.job.id
        assert sorted([one.replayed is None, two.replayed is None]) == [False, True]


def test_the_queue_takes_exactly_its_size(sql_database: SqlDatabase, clock: ManualClock) -> None:
    kernels = [
        Kernel(sql_database.open(clock), KernelSettings(queue_size=10)) for _ in range(SERVERS)
    ]

    def submit(number: int) -> bool:
        (outcome,) = kernels[number % SERVERS].now.many("submit", [submission()])
        return isinstance(outcome, Accepted)

    with ThreadPoolExecutor(20) as pool:
        accepted = sum(pool.map(submit, range(200)))
    assert accepted == 10
    assert len(Acts(kernels[0], clock).everything()) == 10


def test_a_workspace_takes_exactly_its_quota(sql_database: SqlDatabase, clock: ManualClock) -> None:
    rules = KernelSettings(queue_size=0, workspace_queue_size=10)
    kernels = [Kernel(sql_database.open(clock), rules) for _ in range(SERVERS)]

    def submit(number: int) -> bool:
        later = clock.now_us() + 10**12 if number % 3 else None  # some are held, some are not
        asked = submission(not_before=later)
        (outcome,) = kernels[number % SERVERS].now.many("submit", [asked])
        return isinstance(outcome, Accepted)

    with ThreadPoolExecutor(20) as pool:
        accepted = sum(pool.map(submit, range(200)))
    assert accepted == 10
    assert len(Acts(kernels[0], clock).everything()) == 10


def test_no_job_is_claimed_twice(servers: list[Acts]) -> None:
    servers[0].kernel.now.many("submit", [submission() for _ in range(100)])

    def drain(acts: Acts) -> list[str]:
        claimed = []
        while some := acts.claim(3):
            claimed += [claim.id for claim in some]
        return claimed

    shares = at_once(*[partial(drain, server) for server in servers])
    found = [job_id for share in shares for job_id in share]
    left = servers[0].claim(100)  # a claim passes over what another has locked
    assert len(found) + len(left) == 100
    assert len({*found, *[claim.id for claim in left]}) == 100


def test_a_lane_has_one_head(servers: list[Acts]) -> None:
    for number in range(10):
        jobs = at_once(*[partial(server.submit, target_id=f"t{number}") for server in servers])
        heads = [job for job in servers[0].everything() if job.target_id == f"t{number}"]
        assert len(jobs) == SERVERS
        assert sum(job.eligible for job in heads) == 1


def test_a_lane_that_ends_while_another_joins_goes_on(servers: list[Acts]) -> None:
    one, two = servers
    for number in range(10):
        claim = one.start(target_id=f"t{number}")
        at_once(partial(one.succeed, claim), partial(two.submit, target_id=claim.target_id))
        (behind,) = one.claim(9)
        one.succeed(behind)


def test_a_stop_and_an_end_have_one_winner(servers: list[Acts]) -> None:
    one, two = servers
    ended = Counter[str]()
    for _ in range(20):
        claim = one.start()
        at_once(partial(one.succeed, claim), partial(two.cancel, claim))
        ended[one.status(claim)] += 1
    assert set(ended) == {"succeeded"}


def test_a_late_end_and_a_sweep_have_one_winner(servers: list[Acts]) -> None:
    one, two = servers
    for number in range(10):
        claim = one.start(target_id=f"t{number}")
        behind = one.submit(target_id=f"t{number}")
        one.wait(16)
        recorded, _ = at_once(partial(one.finish, claim, success(by=1)), two.kernel.now.expire)
        if isinstance(recorded, LeaseLost):
            (again,) = one.claim(9)
            assert again.id == claim.id
            one.succeed(again, by=2)
        assert one.result(claim) == {"by": 2 if isinstance(recorded, LeaseLost) else 1}
        (last,) = one.claim(9)
        assert last.id == behind.id
        one.succeed(last)


# --- PostgreSQL only: two transactions that are open at the same time


class Held:
    """Hold a server's transaction open after its verb, until it is let go."""

    def __init__(self, acts: Acts) -> None:
        self._acts = acts
        self._let_go = threading.Event()
        self._done = threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def begin(self, verb: Callable[[Transaction, list[Any]], Any], items: list[Any]) -> Any:
        """Run a verb, and return before its commit a future of its outcome."""

        def work(tx: Transaction, items: list[Any]) -> Any:
            outcome = verb(tx, items)
            self._done.set()
            assert self._let_go.wait(30)
            return outcome

        future = self._pool.submit(self._acts.kernel.store.write, work, items)
        assert self._done.wait(30)
        return future

    def let_go(self) -> None:
        """Let it commit."""
        self._let_go.set()
        self._pool.shutdown()


BLOCKED = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def wait_until_blocked(url: str) -> None:
    """Return when a transaction of this database waits for another."""
    until = time.monotonic() + 30
    with psycopg.connect(libpq(url), autocommit=True) as connection:
        while connection.execute(BLOCKED).fetchone() is None:
            assert time.monotonic() < until, "nothing waits"


def wait_until_blocked_or_done(url: str, call: Future[Any]) -> None:
    """Return when a call waits for another transaction, or has returned without waiting."""
    until = time.monotonic() + 30
    with psycopg.connect(libpq(url), autocommit=True) as connection:
        while not call.done() and connection.execute(BLOCKED).fetchone() is None:
            assert time.monotonic() < until, "it neither waits nor returns"


@pytest.fixture
def two_servers(postgres_url: str, clock: ManualClock) -> Iterator[tuple[Acts, Acts, str]]:
    database = SqlDatabase("postgresql", postgres_url)
    one, two = (
        Acts(Kernel(database.open(clock), KernelSettings(queue_size=0)), clock) for _ in range(2)
    )
    yield one, two, postgres_url
    one.check()
    database.close()


def test_the_second_duplicate_waits_for_the_first_and_joins_it(
    two_servers: tuple[Acts, Acts, str],
) -> None:
    one, two, url = two_servers
    holding = Held(one)
    ask = submission(execution_key="sha256:k")
    first = holding.begin(one.kernel.verbs.submit, [ask])
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(two.kernel.now.submit, ask)
        wait_until_blocked(url)
        holding.let_go()
        assert first.result()[0].job.id == second.result().job.id
        assert second.result().deduplicated
    assert len(one.everything()) == 1


def test_the_second_of_a_lane_waits_for_the_first(two_servers: tuple[Acts, Acts, str]) -> None:
    one, two, url = two_servers
    holding = Held(one)
    first = holding.begin(one.kernel.verbs.submit, [submission(target_id="t")])
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(two.kernel.now.submit, submission(target_id="t"))
        wait_until_blocked(url)
        holding.let_go()
        assert (first.result()[0].job.eligible, second.result().job.eligible) == (1, 0)


def test_a_claim_passes_over_what_another_has_locked(two_servers: tuple[Acts, Acts, str]) -> None:
    one, two, _ = two_servers
    first, second = one.submit(), one.submit()
    holding = Held(one)
    claimed = holding.begin(one.kernel.verbs.claim, [ClaimRequest("one", 1)])
    assert [claim.id for claim in two.claim(9)] == [second.id]
    holding.let_go()
    assert [claim.id for claim in claimed.result()[0]] == [first.id]


def test_a_sweep_passes_over_what_another_sweeps(two_servers: tuple[Acts, Acts, str]) -> None:
    one, two, _ = two_servers
    one.start()
    one.wait(16)
    holding = Held(one)
    swept = holding.begin(one.kernel.verbs.expire, [None])
    assert two.kernel.now.expire().lost == 0
    holding.let_go()
    assert swept.result()[0].lost == 1


def test_a_build_that_ends_while_a_run_joins_it_lets_it_go_on(
    two_servers: tuple[Acts, Acts, str],
) -> None:
    one, two, url = two_servers
    site = Site(one, SqlDatabase("postgresql", url))
    first = site.run()
    claim = site.claim_build()
    holding = Held(one)
    joining = holding.begin(one.kernel.verbs.submit, [site.run_submission(version())])
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(two.finish, claim, made())
        wait_until_blocked(url)
        holding.let_go()
        ending.result()
    runs = {first.id, joining.result()[0].job.id}
    assert {claim.id for claim in one.claim(9)} == runs


def test_a_run_that_joins_a_build_which_is_ending_waits_for_that_and_goes_on(
    two_servers: tuple[Acts, Acts, str],
) -> None:
    one, two, url = two_servers
    site = Site(one, SqlDatabase("postgresql", url))
    first = site.run()
    claim = site.claim_build()
    holding = Held(one)
    ending = holding.begin(one.kernel.verbs.finish, [Finish(claim, made())])
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(two.kernel.now.submit, site.run_submission(version()))
        wait_until_blocked(url)
        holding.let_go()
        assert joining.result().job.eligible
    assert ending.result()[0].status is Status.SUCCEEDED
    assert {claim.id for claim in one.claim(9)} == {first.id, joining.result().job.id}


def test_making_a_failed_build_again_holds_no_lock_while_it_waits(
    two_servers: tuple[Acts, Acts, str],
) -> None:
    """A shared lock that is upgraded would deadlock with another process that does the same."""
    one, two, url = two_servers
    site = Site(one, SqlDatabase("postgresql", url))
    site.run()
    site.build(failure())
    again = site.run_submission(version(), rebuild=True)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(libpq(url)) as reader:
        reader.execute("SELECT 1 FROM builds FOR SHARE")
        submitted = pool.submit(two.kernel.now.submit, again)
        wait_until_blocked(url)
        reader.execute("SET LOCAL deadlock_timeout = '1ms'")  # so that it finds the deadlock first
        reader.execute("UPDATE builds SET started_at = started_at")
        reader.rollback()
        assert submitted.result(PATIENCE_SECONDS).job.status == Status.QUEUED
    site.claim_build()


def test_news_crosses_processes(two_servers: tuple[Acts, Acts, str]) -> None:
    """NOTIFY carries the topics of a commit, and a long list of them becomes everything."""
    one, _, url = two_servers
    with psycopg.connect(libpq(url), autocommit=True) as connection:
        connection.execute("LISTEN ade")
        one.submit()
        (note,) = connection.notifies(stop_after=1, timeout=30)
        assert note.payload == '["work:local"]'
        one.kernel.now.many("submit", [submission() for _ in range(300)])
        one.claim(300)
        *_, note = connection.notifies(stop_after=2, timeout=30)
        assert note.payload == '["*"]'


def test_an_activation_is_not_lost_beside_the_end_of_another_build(
    servers: list[Acts], sql_database: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server activates a version while another one ends the build of the version before."""
    one, other = servers
    site = Site(one, sql_database)
    site.activate(version("sha256:1"))
    claim = site.claim_build()
    has_read, may_go_on, is_first = threading.Event(), threading.Event(), threading.Lock()
    read = BuildChanges.activation

    def read_and_wait(self: BuildChanges, *named: str) -> Activation | None:
        found = read(self, *named)
        if is_first.acquire(blocking=False):
            has_read.set()
            may_go_on.wait(PATIENCE_SECONDS)
        return found

    monkeypatch.setattr(BuildChanges, "activation", read_and_wait)
    with ThreadPoolExecutor(2) as pool:
        ending = pool.submit(one.finish, claim, made())
        assert has_read.wait(PATIENCE_SECONDS)
        second = pool.submit(Site.activate, _on(site, other), version("sha256:2"))
        wait([second], 0.5)  # it is blocked by the row that was read, or it would have passed it
        may_go_on.set()
        ending.result(PATIENCE_SECONDS)
        activated = second.result(PATIENCE_SECONDS)
    site.build()
    assert activated.ensured is not None
    with sql_database.connect() as connection:
        [row] = connection.execute(schema.activations.select()).all()
    assert (row.version_id, row.pending_version_id) == (activated.ensured.version.id, None)


def _on(site: Site, acts: Acts) -> Site:
    """Let another server act on the same site."""
    same = copy(site)
    same.acts = acts
    return same


HOUR_SECONDS = 3600


def _old_failure(acts: Acts) -> JobRow:
    """Let a job fail so long ago that retention deletes it."""
    claim = acts.start(execution_key="sha256:old")
    acts.report(claim, "a line")
    acts.finish(claim, failure())
    acts.wait(2 * HOUR_SECONDS)
    return acts.job(claim)


def _with_brief_retention(acts: Acts) -> Kernel:
    return Kernel(acts.kernel.store, KernelSettings(queue_size=0, retain_seconds=HOUR_SECONDS))


def test_retention_passes_over_a_job_that_is_being_resumed(
    two_servers: tuple[Acts, Acts, str],
) -> None:
    one, two, url = two_servers
    job = _old_failure(one)
    holding = Held(one)
    resuming = holding.begin(one.kernel.verbs.resume, [Resume(ref(job), "someone", operator=True)])
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(_with_brief_retention(two).now.retain, Retain(WORKSPACE))
        wait_until_blocked_or_done(url, deleting)
        holding.let_go()
        assert deleting.result() == []
    assert resuming.result()[0].status == Status.QUEUED
    (claim,) = one.claim()
    assert claim.id == job.id
    assert "worker.log" in one.log(job)
    assert one.accept(execution_key="sha256:old").job.id == job.id


def test_a_job_that_is_being_deleted_cannot_be_resumed(
    two_servers: tuple[Acts, Acts, str],
) -> None:
    one, two, url = two_servers
    job = _old_failure(one)
    holding = Held(one)
    deleting = holding.begin(_with_brief_retention(one).verbs.retain, [Retain(WORKSPACE)])
    with ThreadPoolExecutor(1) as pool:
        resuming = pool.submit(two.resume, job, operator=True)
        wait_until_blocked(url)
        holding.let_go()
        with pytest.raises(NotFound):
            resuming.result()
    assert deleting.result() == [[ref(job)]]
    assert one.everything() == []
