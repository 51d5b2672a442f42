"""The client for asyncio. `ade.client.sync` is written from it: `scripts/write_sync_client.py`."""
