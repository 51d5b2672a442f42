"""Turn documents into PDF and HTML, and pages and objects into thumbnails.

```
reading ─ markdown, images ─▶ tree ─▶ formulas ─┬─▶ layout ─▶ fonts, pages ─▶ PDF ─▶ PNG
                              slides ──────────▶└─▶ html
```

`exporting` and `thumbnails` are what runs as a job. Nothing is imported here: who needs a part of
it pays for that part.
"""
