// An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk.
import { readFileSync } from "node:fs";
import * as sizes from "./sizes/src/index.js";

const name = 'a "dot".png';
const client = new sizes.Client();
const content = readFileSync(name);
const form = { image: new sizes.Upload(content, name, "image/png"), note: "Z\u00fcrich --farthing-sizejavascript" };
const answer = await client.imageSize(form);
const size = answer.value;
console.log("form", size.width, size.height, size.type, size.file, size.note === form.note, String(size.bytes), answer.charged);
const raw = await client.rawImageSize(content);
console.log("raw", raw.value.width, raw.value.height, raw.value.type, String(raw.value.bytes), raw.charged);
for (let time = 0; time < 2; time += 1) {
  console.log("again", (await client.imageSize(form, { callId: "size-javascript" })).value.width);
}
