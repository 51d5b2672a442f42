"""Read spreadsheets: whatever the file is, its cells come as blocks of columns."""
