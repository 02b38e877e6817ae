"""What is written and read exactly, and what errors tell: see tests/tests/sdk."""

import os
from typing import Callable

import things
from things._runtime import decode

client = things.Client()
sent = things.Thing(
    label="python", count=2**53 + 1, huge=2**64 - 1, nullable=None, both=None, pet=things.Dog(kind="dog", name="Rex"), loose=7
)
answer = client.keep_thing(sent)
kept = answer.value
assert kept == sent and kept.both is None and isinstance(kept.pet, things.Dog)
print("exact", kept.count, kept.huge, kept.pet.name, kept.loose, answer.charged)

try:
    client.get_thing("missing")
except things.ServiceError as error:
    print("missing", error.status, str(error.charged).lower())
try:
    things.Client(base_url=os.environ["DROPPING_THINGS_URL"], max_retries=0).get_thing("long")
except things.ConnectionFailed as error:
    print("unknown", "null" if error.charged is None else error.charged)

for name, path in (("dripping", ""), ("dripping-headers", "/headers")):
    try:
        things.Client(base_url=os.environ["DRIPPING_URL"] + path, timeout=2, max_retries=0).get_thing("slow")
    except things.FarthingError as error:
        print(name, "null" if error.charged is None else error.charged)

for node in os.environ["LEAVING_URLS"].split():
    name, url = node.split("=")
    try:
        things.Client(base_url=url, max_retries=1).get_thing("gone")
    except things.FarthingError as error:
        print(name, "null" if error.charged is None else str(error.charged).lower())

refused: list[tuple[str, Callable[[], things.Client]]] = [
    ("timeout", lambda: things.Client(timeout=0)),
    ("timeout", lambda: things.Client(timeout=float("inf"))),
    ("max_retries", lambda: things.Client(max_retries=-1)),
    ("max_price", lambda: things.Client(max_price="1e-05")),
    ("max_price", lambda: things.Client(max_price=0.00001)),  # type: ignore[arg-type]
    ("base_url", lambda: things.Client(base_url="https://localhost:notaport")),
    ("base_url", lambda: things.Client(base_url="http://127.0.0.1.example.com")),
    ("base_url", lambda: things.Client(base_url="https://localhost:3000/?x")),
    ("base_url", lambda: things.Client(base_url="https://u:p@localhost:3000")),
    ("secret", lambda: things.Client(secret="a\nb")),
    ("secret", lambda: things.Client(secret="")),
    ("ca_file", lambda: things.Client(ca_file="/nothing/here")),
]
for named, made in refused:
    try:
        made()
    except ValueError as problem:
        assert named in str(problem), problem
    else:
        raise AssertionError(named)

# Nested more deeply than Python reads: paid for, and told with the answer.
try:
    client.get_thing("deep")
except things.AnswerError as problem:
    assert problem.charged and problem.answer.receipt and problem.answer.body.startswith(b"[[["), problem
else:
    raise AssertionError("deep")

# Whatever an answer holds, alternatives are tried so often at most.
assert decode(list[int | str], ["a", 1, "b"], 6) == ["a", 1, "b"]
try:
    decode(list[int | str], ["a", 1, "b"], 4)
except ValueError as problem:
    assert "too long" in str(problem), problem
else:
    raise AssertionError("tries")
print("settings refused")
