"""The passes over a file: structure, mapping, then transform, validate and write in one stream."""
