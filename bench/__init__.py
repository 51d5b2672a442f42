"""Benchmarks: what the machine allows, what the peers reach, and what ADE does, in one run.

Read in this order: `cases` (what a contestant is), `raw` and `peers` (the contestants), `child`
(one timed run in a fresh process on one core), `contest` (rounds and medians), `report`, `queue`.
"""
