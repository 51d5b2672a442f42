"""The limit: the fewest and plainest statements that make a queue, one for each database."""
