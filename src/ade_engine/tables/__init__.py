"""Find the tables of a sheet: headers, data, totals, groups, notes, and what is none of them."""
