"""The official Python client of the Model Context Protocol, with a script in the model's place: arguments, input and output are
those of scripted.mjs. SSL_CERT_FILE is the certificate authority that it trusts."""

import asyncio
import json
import os
import re
import ssl
import sys

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

command, *args = sys.argv[1:]
script = json.load(sys.stdin)
results = []
questions = []


def filled(value):
    if isinstance(value, str):
        reference = re.fullmatch(r"\{\{(\d+)\.(.+)\}\}", value)
        if reference is None:
            return value
        found = results[int(reference[1])]["structuredContent"]
        for name in reference[2].split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found
    if isinstance(value, list):
        return [filled(one) for one in value]
    if isinstance(value, dict):
        return {name: filled(member) for name, member in value.items()}
    return value


async def answer(_context, params):
    questions.append(params.message)
    action = script["user"]
    return types.ElicitResult(action=action, content={} if action == "accept" else None)


def server():
    if not command.startswith("https:"):
        return StdioServerParameters(command=command, args=args)
    headers = {"Authorization": f"Bearer {os.environ['FARTHING_SECRET']}"}
    http = httpx2.AsyncClient(headers=headers, verify=ssl.create_default_context())
    return streamable_http_client(command, http_client=http)


def as_json(part):
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


async def result(client, step):
    try:
        return as_json(await client.call_tool(step["tool"], filled(step["arguments"])))
    except MCPError as error:
        return {"refused": str(error)}


async def main():
    async with Client(server(), elicitation_callback=answer if script["user"] else None) as client:
        tools = (await client.list_tools()).tools
        for step in script["steps"]:
            results.append(await result(client, step))
        said = {
            "version": client.protocol_version,
            "server": as_json(client.server_info),
            "instructions": client.instructions,
            "tools": [as_json(tool) for tool in tools],
            "results": results,
            "questions": questions,
        }
    json.dump(said, sys.stdout)


asyncio.run(main())
