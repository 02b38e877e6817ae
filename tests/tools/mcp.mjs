// An agent without a model: the official client of the Model Context Protocol, and a script in the model's place.
//
//   node mcp.mjs PROGRAM [ARGUMENT ...] < STEPS
//
// Starts the program, reads the steps from standard input and does them in order. The steps are a JSON list; each is
// {tool, arguments}. A text "{{N.a.b}}" within arguments stands for the member a.b of the structured result of step N, counted
// from 0. Prints one JSON object: what the program says of itself, its tools, and the result of each step.

import { text } from "node:stream/consumers";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const steps = JSON.parse(await text(process.stdin));

const results = [];

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

const client = new Client({ name: "scripted-agent", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
const { tools } = await client.listTools();
for (const { tool, arguments: given } of steps) {
  try {
    results.push(await client.callTool({ name: tool, arguments: filled(given) }));
  } catch (error) {
    results.push({ refused: String(error) });
  }
}
const said = { server: client.getServerVersion(), instructions: client.getInstructions(), tools, results };
await client.close();
process.stdout.write(JSON.stringify(said));
