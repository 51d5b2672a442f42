"""Turn documents into PDF, HTML and bundles, and pages and objects into thumbnails.

```
document_reader ─▶ document_tree ─▶ formula_drawings ─┬─▶ typst_data ─▶ pages ─▶ PDF ─▶ PNG
 (markdown, images,                                   └─▶ html_writer ─▶ HTML
  characters)
```

`typst_data` and `html_writer` both put objects on slides by `slides`; `pages` chooses fonts by
`fonts`; `bundle` packs the submission with the results. The jobs are `entry.export` and
`entry.thumbnail`. This file imports nothing, so that each process imports only the parts that it
needs.
"""
