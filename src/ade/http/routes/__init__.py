"""The routes, one noun per module; each is a function that makes a router over a context."""
