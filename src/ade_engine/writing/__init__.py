"""Write workbooks as a stream of columns."""
