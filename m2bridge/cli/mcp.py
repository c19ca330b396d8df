"""CLI: ``m2bridge mcp`` serves every question as a Model Context Protocol tool over standard input and output.

A tool has the arguments of the question and returns its record, with its JSON Schema. Requires the extra ``mcp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from typing import Any

import typer

from m2bridge import records
from m2bridge._version import __version__
from m2bridge.cli.common import DEFAULT_MEMORY, DEFAULT_TIMEOUT, parse_limits
from m2bridge.errors import InputError, M2BridgeError
from m2bridge.questions import find, questions
from m2bridge.questions.kernel import Question
from m2bridge.schemas import schema, schema_of

_COMMON: dict[str, dict[str, Any]] = {
    "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "Seed for all random choices."},
    "timeout": {"type": "string", "default": DEFAULT_TIMEOUT, "description": "Time limit: 90s, 10m, 2h."},
    "memory": {"type": "string", "default": DEFAULT_MEMORY, "description": "Memory limit: 512M, 4G."},
}


def register(app: typer.Typer) -> None:
    @app.command("mcp")
    def command() -> None:
        """Serve every question as a Model Context Protocol tool over standard input and output."""
        try:
            import anyio
            from mcp.server.stdio import stdio_server
        except ImportError:
            raise InputError(
                "m2bridge mcp requires an extra: python -m pip install 'm2bridge[mcp]'"
            ) from None

        async def serve() -> None:
            tool_server = server()
            async with stdio_server() as (incoming, outgoing):
                await tool_server.run(incoming, outgoing, tool_server.create_initialization_options())

        anyio.run(serve)


def server() -> Any:
    """Return a server with one tool per question."""
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(*_: Any) -> Any:
        tools = [
            types.Tool(name=name, description=question.asks, input_schema=inputs(question), output_schema=schema(name))
            for name, question in questions().items()
        ]  # fmt: skip
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, call: Any) -> Any:
        try:
            record = await anyio.to_thread.run_sync(answer, call.name, call.arguments or {})
        except M2BridgeError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        text = types.TextContent(text=records.dumps(record))
        return types.CallToolResult(content=[text], structured_content=record)

    return Server("m2bridge", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def inputs(question: Question[Any, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a question."""
    properties: dict[str, Any] = {"subject": {"type": "string", "description": question.subject.help}}
    required = ["subject"]
    for name, declared in question.options.items():
        properties[name] = {**schema_of(declared.kind), "description": declared.option.help}
        if declared.option.least is not None:
            properties[name]["minimum"] = declared.option.least
        if declared.default is Parameter.empty:
            required.append(name)
        elif declared.default is None or isinstance(declared.default, (bool, int, float, str)):
            properties[name]["default"] = declared.default
    if question.takes_prime:
        properties["prime"] = schema_of(int | None)
    properties |= _COMMON
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def answer(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run a question and return its record; the subject is a spec, or polynomials for ``ideal``."""
    question = find(name)
    options = dict(arguments)
    if not isinstance(subject := options.pop("subject", None), str):
        raise InputError(f"{name} requires a subject: {question.subject.help}", argument="subject")
    limits = parse_limits(
        str(options.pop("timeout", DEFAULT_TIMEOUT)), str(options.pop("memory", DEFAULT_MEMORY))
    )
    return records.to_document(question(subject, limits=limits, **options))
