"""The bodies of the API, one type each: it describes the body in the OpenAPI document and types it.

A response body is a typed dictionary, made by a function beside it. It is a dictionary and not a
pydantic model because it carries what jobs wrote: a text with half a surrogate pair, or a result
nested hundreds of levels deep, can be written by `json.dumps` and not by pydantic.
"""
