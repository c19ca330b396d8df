"""`m2bridge mcp`, asked by the SDK's own client over standard input and output."""

from __future__ import annotations

import sys
from typing import Any

import jsonschema
import pytest

from m2bridge.questions import questions

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def asked(*calls: tuple[str, dict[str, Any]]) -> tuple[dict[str, Any], list[Any]]:
    """The tools by name, and the answers to calls, from one server."""

    async def talk() -> tuple[dict[str, Any], list[Any]]:
        started = StdioServerParameters(command=sys.executable, args=["-m", "m2bridge", "mcp"])
        async with stdio_client(started) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            return tools, [await session.call_tool(name, given) for name, given in calls]

    return anyio.run(talk)


def test_every_question_is_a_tool_and_answers_with_its_record() -> None:
    tools, (found, wrong, unknown, ideal) = asked(
        ("dimension", {"subject": "lightning(d=2,dp=1)", "seed": 3, "certify": False}),
        ("dimension", {"subject": "lightnin(d=2,dp=1)"}),
        ("dimension", {"subject": "lightning(d=2,dp=1)", "certfy": True}),
        ("ideal", {"subject": "x*y - z^2\nx", "timeout": "1m"}),
    )
    assert set(tools) == set(questions())
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    degree = tools["symmetries"].input_schema["properties"]["degree"]
    assert (degree["minimum"], degree["default"]) == (1, 2)  # as it is declared
    record = found.structured_content
    jsonschema.validate(record, tools["dimension"].output_schema)
    # the function is given by A (4 entries) and V (2 entries) up to one common scaling: 5
    assert (record["image_dim"], record["seed"], record["certainty"]) == (5, 3, "proved")
    assert wrong.is_error
    assert "lightning" in wrong.content[0].text
    assert unknown.is_error
    assert "has no option 'certfy'" in unknown.content[0].text
    assert ideal.structured_content["dim"] == 1  # x = 0 and z = 0 twice: a line in affine 3-space
