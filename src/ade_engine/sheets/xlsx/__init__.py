"""Read .xlsx and .xlsm as a stream, in columns, never one cell at a time."""
