"""A read sees one moment, whatever is written meanwhile."""

from tests.store.acts import Acts, ref

from ade.store.port import Reading


def test_two_looks_in_one_read_see_the_same(acts: Acts) -> None:
    job = acts.submit()

    def look(reading: Reading) -> None:
        before = reading.read_job(ref(job)), reading.read_events(ref(job), 0, 10)
        acts.cancel(job)
        after = reading.read_job(ref(job)), reading.read_events(ref(job), 0, 10)
        assert after == before

    acts.kernel.now.read(look)
    assert acts.job(job).status == "cancelled"
