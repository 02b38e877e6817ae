"""What is written and read exactly, and what errors tell: see tests/tests/sdk."""

import os

import things

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
