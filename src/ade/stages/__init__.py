"""Take a job through its life, one stage per module, in transactions of the store.

Each stage is a verb: it takes the rules, a transaction and a list of items, and returns one outcome
for each; an exception among the outcomes is that caller's alone.
"""
