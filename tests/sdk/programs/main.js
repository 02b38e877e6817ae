// What every language does: see tests/tests/sdk.
import * as planets from "./planets/src/index.js";
import * as quakes from "./quakes/src/index.js";

async function refused(what, named, call) {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof quakes.FarthingError || error instanceof planets.FarthingError)) throw error;
    const isNode = error instanceof quakes.NodeError || error instanceof planets.NodeError;
    console.log(what, isNode ? error.code : "", error.charged, error.message.includes(named));
    return;
  }
  throw new Error(`${what}: no error`);
}

// docs: begin
const client = new quakes.Client(); // CONSUMER_SECRET and FARTHING_CA_FILE are set
const answer = await client.recentEarthquakes({ limit: 3 });
for (const event of answer.value.features) {
  console.log(event.properties.place, event.properties.mag);
}
console.log(`paid ${answer.charged} USDC, receipt ${answer.receipt}`);
// docs: end
const first = answer.value.features[0];
const magnitude = Math.round((first.properties.mag ?? 0) * 10);
console.log("recent", answer.value.features.length, first.id, String(first.properties.time), magnitude, answer.charged);

const wrong = process.env.WRONG_CA_FILE;
const many = await new quakes.Client({ baseUrl: process.env.DROPPING_URL }).recentEarthquakes({ limit: 40 });
console.log("again", many.value.features.length, many.charged);

await refused("refused", "limit", () => client.recentEarthquakes({ limit: 0 }));
await refused("budget", "", () => new quakes.Client({ maxPrice: "0.001" }).recentEarthquakes());
await refused("untrusted", "", () => new quakes.Client({ caFile: wrong }).recentEarthquakes());

const stars = new planets.Client();
const found = await stars.planets({ discoveryMethod: "Transit", limit: 2 });
const planet = found.value[0];
console.log("planets", found.value.length, planet.name, String(planet.discoveryYear), found.charged);

const others = await new planets.Client({ baseUrl: process.env.DROPPING_PLANETS_URL }).planets({ limit: 40 });
console.log("planets-again", others.value.length, others.charged);

await refused("planets-refused", "fields", () => stars.planets({ fields: "nothing" }));
await refused("planets-budget", "", () => new planets.Client({ maxPrice: "0.001" }).planets());
await refused("planets-untrusted", "", () => new planets.Client({ caFile: wrong }).planets());

const chosen = await stars.call("GET", "/planets", { limit: 1, fields: ["name", "discoveryYear"] });
console.log("chosen", chosen.value.length, Object.keys(chosen.value[0]).length, chosen.charged);
