"""Read .xlsx and .xlsm as a stream, column by column instead of cell by cell."""
