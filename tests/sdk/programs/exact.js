// What is written and read exactly, and what errors tell: see tests/tests/sdk.
import assert from "node:assert/strict";
import * as things from "./things/src/index.js";

const client = new things.Client();
const sent = {
  label: "javascript",
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
console.log("exact", String(kept.count), String(kept.huge), kept.pet.name, String(kept.loose), answer.charged);

await client.getThing({ id: "missing" }).catch((error) => {
  if (!(error instanceof things.ServiceError)) throw error;
  console.log("missing", error.status, error.charged);
});
const lossy = new things.Client({ baseUrl: process.env.DROPPING_THINGS_URL, maxRetries: 0 });
await lossy.getThing({ id: "long" }).catch((error) => {
  if (!(error instanceof things.ConnectionFailed)) throw error;
  console.log("unknown", error.charged);
});

for (const [name, path] of [["dripping", ""], ["dripping-headers", "/headers"]]) {
  const slow = new things.Client({ baseUrl: `${process.env.DRIPPING_URL}${path}`, timeoutMs: 2000, maxRetries: 0 });
  await slow.getThing({ id: "slow" }).catch((error) => {
    if (!(error instanceof things.FarthingError)) throw error;
    console.log(name, error.charged);
  });
}
for (const node of process.env.LEAVING_URLS.split(" ")) {
  const [name, baseUrl] = node.split("=");
  await new things.Client({ baseUrl, maxRetries: 1 }).getThing({ id: "gone" }).catch((error) => {
    if (!(error instanceof things.FarthingError)) throw error;
    console.log(name, error.charged);
  });
}
for (const [named, options] of [
  ["timeoutMs", { timeoutMs: 0 }],
  ["maxRetries", { maxRetries: -1 }],
  ["maxPrice", { maxPrice: "1e-05" }],
  ["maxPrice", { maxPrice: 0.00001 }],
  ["baseUrl", { baseUrl: "https://localhost:notaport" }],
  ["baseUrl", { baseUrl: "http://127.0.0.1.example.com" }],
  ["baseUrl", { baseUrl: "https://localhost:3000/?x" }],
  ["baseUrl", { baseUrl: "https://u:p@localhost:3000" }],
  ["secret", { secret: "a\nb" }],
  ["caFile", { caFile: "/nothing/here" }],
]) {
  assert.throws(() => new things.Client(options), new RegExp(`^TypeError: ${named}`));
}
console.log("settings refused");
