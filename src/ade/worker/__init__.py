"""Run jobs: claim, prepare, run, collect, finish."""
