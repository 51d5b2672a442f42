"""Commands that call a server; like the thin distribution, they import nothing of the server."""
