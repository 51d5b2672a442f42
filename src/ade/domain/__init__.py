"""Say what a job is, with no I/O, no clock and no SQL.

Everything may import this; it imports nothing of ours.
"""
