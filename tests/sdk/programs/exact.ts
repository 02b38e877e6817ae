// What is written and read exactly, and what errors tell: see tests/tests/sdk.
import assert from "node:assert/strict";
import * as things from "./things/src/index.js";

const client = new things.Client();
const sent: things.Thing = {
  label: "typescript",
  count: 9007199254740993n,
  huge: 18446744073709551615n,
  nullable: null,
  both: null,
  pet: { kind: "dog", name: "Rex" },
  loose: 7,
};
const answer = await client.keepThing(sent);
const kept = answer.value;
assert.deepEqual(kept, sent);
assert.ok(kept.pet !== undefined && kept.pet.kind === "dog");
console.log("exact", String(kept.count), String(kept.huge), kept.pet.name, String(kept.loose), answer.charged);

await client.getThing({ id: "missing" }).catch((error: unknown) => {
  if (!(error instanceof things.ServiceError)) throw error;
  console.log("missing", error.status, error.charged);
});
const lossy = new things.Client({ baseUrl: process.env["DROPPING_THINGS_URL"]!, maxRetries: 0 });
await lossy.getThing({ id: "long" }).catch((error: unknown) => {
  if (!(error instanceof things.ConnectionFailed)) throw error;
  console.log("unknown", error.charged);
});
