def on_table_mapped(table, mapping, ctx):
    """Remember for later hooks how many columns each table had."""
    ctx.state.setdefault("columns", {})[table.number] = len(mapping.headers)
