"""Map a table's columns to fields: scores that add up, and one assignment for all of them."""
