// An agent without a model: a script in the model's place, whichever client of the Model Context Protocol carries it out.
//
//   node CLIENT.mjs PROGRAM [ARGUMENT ...] < SCRIPT
//   node CLIENT.mjs https://… < SCRIPT
//
// Starts the program, or asks the server at the address; FARTHING_SECRET is then the secret it presents. The script, on standard
// input, is JSON: {steps, user}. Each step is {tool, arguments}, and they are done in order. A text "{{N.a.b}}" within arguments
// stands for the member a.b of the structured result of step N, counted from 0. `user` is what the user answers to every question,
// accept or decline; without it, the program cannot ask its user. Prints one JSON object: the version of the protocol if the client
// tells it, what the server says of itself, its tools, the result of each step, and the questions to the user.

import { text } from "node:stream/consumers";

const [command, ...args] = process.argv.slice(2);
const { steps, user } = JSON.parse(await text(process.stdin));

export const program = { command, args, stderr: "inherit" };
export const address = command.startsWith("https:") ? new URL(command) : undefined;
export const requestInit = { headers: { Authorization: `Bearer ${process.env.FARTHING_SECRET}` } };
export const identity = { name: "scripted-agent", version: "1.0.0" };
export const hasUser = Boolean(user);
export const capabilities = hasUser ? { elicitation: {} } : {};

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

// The user's answer to a question.
export function answer({ params }) {
  questions.push(params.message);
  return user === "accept" ? { action: "accept", content: {} } : { action: user };
}

// Does the steps with a client that is connected, and prints their results.
export async function carryOut(client) {
  const { tools } = await client.listTools();
  for (const { tool, arguments: given } of steps) {
    try {
      results.push(await client.callTool({ name: tool, arguments: filled(given) }));
    } catch (error) {
      results.push({ refused: String(error) });
    }
  }
  const version = client.getNegotiatedProtocolVersion?.();
  const said = { version, server: client.getServerVersion(), instructions: client.getInstructions(), tools, results, questions };
  await client.close();
  process.stdout.write(JSON.stringify(said));
}
