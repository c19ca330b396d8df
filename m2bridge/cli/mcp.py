"""CLI: ``m2bridge mcp`` offers every declared question as a tool of the Model Context Protocol, over standard input and output.

A tool takes what the question takes and returns the record, with the question's own schema. Needs the extra ``mcp``.
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
    "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "Of every random choice."},
    "timeout": {"type": "string", "default": DEFAULT_TIMEOUT, "description": "Time limit: 90s, 10m, 2h."},
    "memory": {"type": "string", "default": DEFAULT_MEMORY, "description": "Memory limit: 512M, 4G."},
}


def register(app: typer.Typer) -> None:
    @app.command("mcp")
    def command() -> None:
        """Offer every question as a tool of the Model Context Protocol, on standard input and output."""
        try:
            import anyio
            from mcp.server.stdio import stdio_server
        except ImportError:
            raise InputError("m2bridge mcp needs the extra: python -m pip install 'm2bridge[mcp]'") from None

        async def serve() -> None:
            offered = server()
            async with stdio_server() as (incoming, outgoing):
                await offered.run(incoming, outgoing, offered.create_initialization_options())

        anyio.run(serve)


def server() -> Any:
    """A server with one tool for each question."""
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(*_: Any) -> Any:
        tools = [
            types.Tool(name=name, description=asked.asks, input_schema=inputs(asked), output_schema=schema(name))
            for name, asked in questions().items()
        ]  # fmt: skip
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, call: Any) -> Any:
        try:
            found = await anyio.to_thread.run_sync(answered, call.name, call.arguments or {})
        except M2BridgeError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        text = types.TextContent(text=records.dumps(found))
        return types.CallToolResult(content=[text], structured_content=found)

    return Server("m2bridge", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def inputs(asked: Question[Any, Any]) -> dict[str, Any]:
    """The JSON Schema of what a question takes, from its declaration."""
    properties: dict[str, Any] = {"subject": {"type": "string", "description": asked.subject.help}}
    required = ["subject"]
    for name, own in asked.options.items():
        properties[name] = {**schema_of(own.kind), "description": own.option.help}
        if own.option.least is not None:
            properties[name]["minimum"] = own.option.least
        if own.default is Parameter.empty:
            required.append(name)
        elif own.default is None or isinstance(own.default, (bool, int, float, str)):
            properties[name]["default"] = own.default
    if asked.takes_prime:
        properties["prime"] = schema_of(int | None)
    properties |= _COMMON
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def answered(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a question's answer; the subject is a spec, or for ``ideal`` the polynomials themselves."""
    asked, options = find(name), dict(given)
    if not isinstance(subject := options.pop("subject", None), str):
        raise InputError(f"{name} needs a subject: {asked.subject.help}", argument="subject")
    limits = parse_limits(
        str(options.pop("timeout", DEFAULT_TIMEOUT)), str(options.pop("memory", DEFAULT_MEMORY))
    )
    return records.to_document(asked(subject, limits=limits, **options))
