// The official client of the Model Context Protocol from version 2026-07-28 on, with a script in the model's place (scripted.mjs).
// It asks the server for its versions first and takes the newest that both speak.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { address, answer, capabilities, carryOut, hasUser, identity, program, requestInit } from "./scripted.mjs";

const transport = address
  ? new StreamableHTTPClientTransport(address, { requestInit })
  : new StdioClientTransport(program);
const client = new Client(identity, { capabilities, versionNegotiation: { mode: "auto" } });
if (hasUser) client.setRequestHandler("elicitation/create", answer);
await client.connect(transport);
await carryOut(client);
