"""The example of a framework in docs/agents.md as it stands, with a script in the model's place: input and output are those of
scripted.mjs. Arguments: the framework's name in the document, and the address of the node's port. FARTHING_DATA is the data folder."""

import ast
import json
import os
import re
import sys
from pathlib import Path

framework, address = sys.argv[1:]
node = address.removesuffix("/mcp")
script = json.load(sys.stdin)
tools = []
# The example has to trust the node's authority by itself.
os.environ.pop("SSL_CERT_FILE", None)


def example():
    """The block of the document, with the node of this test and the model of this script."""
    document = Path(__file__).parents[2].joinpath("docs/agents.md").read_text(encoding="utf-8")
    block = document.split(f"\n{framework} (`pip ")[1].split("```python\n")[1].split("```")[0]
    for shown, here in [
        ("https://localhost:3000", node),
        ('Path.home() / ".local/share/farthing"', 'Path(os.environ["FARTHING_DATA"])'),
        ('"<MODEL>"', "MODEL"),
    ]:
        assert block.count(shown) == 1, f"{shown} is {block.count(shown)} times in the example"
        block = block.replace(shown, here)
    return block


def filled(value, results):
    if isinstance(value, str):
        reference = re.fullmatch(r"\{\{(\d+)\.(.+)\}\}", value)
        if reference is None:
            return value
        found = results[int(reference[1])]["structuredContent"]
        for name in reference[2].split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found
    if isinstance(value, dict):
        return {name: filled(member, results) for name, member in value.items()}
    return value


def next_call(results):
    """The next step of the script, or the model's last words: all that it was told."""
    if len(results) < len(script["steps"]):
        step = script["steps"][len(results)]
        return {"name": step["tool"], "arguments": filled(step["arguments"], results)}, ""
    said = {"server": None, "instructions": "", "tools": tools, "results": results, "questions": []}
    return None, json.dumps(said)


def langchain():
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    def result(message):
        """What the model is told: the node's words, and the data as text. A refusal is words alone."""
        parts = [part["text"] for part in message.content]
        if message.status == "error":
            return {"isError": True, "structuredContent": {"error": {"message": parts[0]}}}
        return {"isError": False, "structuredContent": json.loads(parts[1])}

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, bound, **_options):
            tools[:] = [{"name": tool.name, "description": tool.description} for tool in bound]
            return self

        def _generate(self, messages, stop=None, run_manager=None, **_options):
            results = [result(message) for message in messages if isinstance(message, ToolMessage)]
            call, words = next_call(results)
            calls = [{"name": call["name"], "args": call["arguments"], "id": str(len(results))}] if call else []
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=words, tool_calls=calls))])

    return Scripted()


def llamaindex():
    from llama_index.core.llms import ChatMessage, MessageRole
    from llama_index.core.llms.mock import MockFunctionCallingLLM
    from llama_index.core.base.llms.types import ToolCallBlock

    def result(message):
        """What the model is told: the whole result, as Python writes it."""
        data, failed = re.search(r"structured_content=(\{.*\}) is_error=(True|False)", message.content, re.DOTALL).groups()
        return {"isError": failed == "True", "structuredContent": ast.literal_eval(data)}

    def answer(messages, **options):
        bound = options.get("tools") or []
        tools[:] = [{"name": tool.metadata.name, "description": tool.metadata.description} for tool in bound]
        results = [result(message) for message in messages if message.role == MessageRole.TOOL]
        call, words = next_call(results)
        if call is None:
            return ChatMessage(role=MessageRole.ASSISTANT, content=words)
        block = ToolCallBlock(tool_call_id=str(len(results)), tool_name=call["name"], tool_kwargs=call["arguments"])
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[block])

    return MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)


model = {"LangChain": langchain, "LlamaIndex": llamaindex}[framework]
# What the example prints is the model's answer.
exec(compile(example(), "docs/agents.md", "exec"), {"__name__": "__main__", "MODEL": model()})
