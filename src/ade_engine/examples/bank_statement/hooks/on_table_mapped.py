def on_table_mapped(table, mapping, ctx):
    """Remember for later hooks how many columns each table has."""
    ctx.state.setdefault("columns", {})[table.number] = len(mapping.columns)
