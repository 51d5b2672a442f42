"""The client for ordinary programs. Written from `ade.client.aio`, except driver and mapping."""
