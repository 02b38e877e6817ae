// The official client of the Model Context Protocol before version 2026-07-28, with a script in the model's place (scripted.mjs).

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { address, answer, capabilities, carryOut, hasUser, identity, program, requestInit } from "./scripted.mjs";

const transport = address
  ? new StreamableHTTPClientTransport(address, { requestInit })
  : new StdioClientTransport(program);
const client = new Client(identity, { capabilities });
if (hasUser) client.setRequestHandler(ElicitRequestSchema, answer);
await client.connect(transport);
await carryOut(client);
