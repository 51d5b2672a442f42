"""Read spreadsheets of any supported format into blocks of columns."""
