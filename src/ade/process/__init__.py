"""One process of ADE: its parts put together, served, and taken down again."""
