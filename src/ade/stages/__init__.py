"""Take a job through its life, one stage per module, in transactions of the store.

Each stage is a verb: it takes the settings, a transaction and a list of items, and returns one
answer for each. An error among the answers concerns that item only.
"""
