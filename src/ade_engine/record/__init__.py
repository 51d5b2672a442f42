"""The record of a run: one stream of events, and the artifact that is derived from it."""
