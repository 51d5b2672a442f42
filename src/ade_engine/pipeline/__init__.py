"""The steps of a run: read tables, map columns, then transform, validate and write the rows."""
