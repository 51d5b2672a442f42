"""Hold the only SQL in ADE: schema, statements, dialects, transactions, migrations."""
