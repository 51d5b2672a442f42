"""What a job is: pure code, without I/O, clock or SQL.

Everything may import this package; it imports nothing else of ADE.
"""
