"""Map the columns of a table to fields by additive scores and one optimal assignment."""
