// An agent without a model: the official client of the Model Context Protocol, and a script in the model's place.
//
//   node mcp.mjs PROGRAM [ARGUMENT ...] < SCRIPT
//   node mcp.mjs https://… < SCRIPT
//
// Starts the program, or asks the server at the address; FARTHING_SECRET is then the secret it presents. The script, on standard
// input, is JSON: {steps, user}. Each step is {tool, arguments}, and they are done in order. A text "{{N.a.b}}" within arguments
// stands for the member a.b of the structured result of step N, counted from 0. `user` is what the user answers to every question,
// accept or decline; without it, the program cannot ask its user. Prints one JSON object: what the server says of itself, its
// tools, the result of each step, and the questions to the user.

import { text } from "node:stream/consumers";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...args] = process.argv.slice(2);
const { steps, user } = JSON.parse(await text(process.stdin));

const results = [];
const questions = [];

function filled(value) {
  if (typeof value === "string") {
    const [, step, path] = value.match(/^\{\{(\d+)\.(.+)\}\}$/) ?? [];
    if (step === undefined) return value;
    return path.split(".").reduce((found, name) => found?.[name], results[step].structuredContent);
  }
  if (Array.isArray(value)) return value.map(filled);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member)]));
}

function transport() {
  if (!command.startsWith("http")) return new StdioClientTransport({ command, args, stderr: "inherit" });
  const headers = { Authorization: `Bearer ${process.env.FARTHING_SECRET}` };
  return new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers } });
}

const capabilities = user ? { elicitation: {} } : {};
const client = new Client({ name: "scripted-agent", version: "1.0.0" }, { capabilities });
if (user) {
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    questions.push(params.message);
    return user === "accept" ? { action: "accept", content: {} } : { action: user };
  });
}
await client.connect(transport());
const { tools } = await client.listTools();
for (const { tool, arguments: given } of steps) {
  try {
    results.push(await client.callTool({ name: tool, arguments: filled(given) }));
  } catch (error) {
    results.push({ refused: String(error) });
  }
}
const said = { server: client.getServerVersion(), instructions: client.getInstructions(), tools, results, questions };
await client.close();
process.stdout.write(JSON.stringify(said));
