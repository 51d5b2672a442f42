"""Find the tables of a sheet, and tell header, data, total, group and note rows apart."""
