"""All pages, two of them, and one that is too dear: see tests/tests/sdk."""

import shelf

client = shelf.Client()
print("cursor", *(book.id for book in client.iterate_by_cursor(limit=2)))
print("page", *(book.id for book in client.iterate_by_page(limit=2)))
print("offset", *(book.id for book in client.iterate_by_offset(limit=2, max_pages=2)))
try:
    next(client.iterate_by_page(limit=2, options=shelf.CallOptions(max_price="0.0001")))
except shelf.NodeError as error:
    print("pages-budget", error.code, str(error.charged).lower())
