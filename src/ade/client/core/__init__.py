"""The client without input and output.

A *call* is a generator: it yields steps (send this request, wait so long), is sent what came of
each, and returns a value or raises an exception. `ade.client.sync` and `ade.client.aio` carry the
steps out. Whatever decides (retries, resuming a stream, waiting for an end, names, digests) is
here, so that it exists once and is tested without a network.
"""
