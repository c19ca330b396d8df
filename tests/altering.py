"""Alter records, and assert that no command confirms what was altered."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from m2bridge import checker, records
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.results import Result

Document = dict[str, Any]
COUNT = 20
MODELS = ("lightning(d=2,dp=2)", "linear(widths=[3,1,3])", "map:t->t^2;t^5")
_WORDS = {"proved": "computed", "computed": "proved", "probable": "proved", "theorem": "proved"}


def document_of(result: Result) -> Document:
    """The record of a result, as it is read from a file."""
    document: Document = json.loads(records.dumps(records.to_document(result)))
    return document


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return _WORDS.get(value, f"{value} ")
    if isinstance(value, list):
        return value[:-1] if value else [1]
    if isinstance(value, dict):
        return {**value, "altered": 1}
    return 1


# -- one alteration of each kind -------------------------------------------------------------------------------------


def alter_headline(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    name = rng.choice(headline)
    document[name] = changed(document[name])
    return name


def alter_field(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    name = rng.choice(sorted(set(document) - {"digest"}))
    document[name] = changed(document[name])
    return name


def alter_evidence(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    number = rng.randrange(len(document["evidence"]))
    key = rng.choice(("value", "certainty", "witness", "relation", "method"))
    document["evidence"][number][key] = changed(document["evidence"][number][key])
    return f"{key} of evidence {number}"


def alter_headline_and_evidence(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    name = alter_headline(document, headline, rng)
    for item in document["evidence"]:
        if item["quantity"] == name and item["value"] is not None:
            item["value"] = changed(item["value"])
    return f"{name} and its evidence"


def alter_options(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    options = document["options"]
    name = rng.choice(sorted(options) or ["further"])
    options[name] = changed(options.get(name))
    return f"option {name}"


def alter_model(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    document["model"] = rng.choice([spec for spec in MODELS if spec != document["model"]])
    return f"model {document['model']}"


def alter_certificate(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    """Change one entry somewhere in the certificate, or add one to a record without any."""
    certificate = document.get("certificate")
    if not certificate:
        document["certificate"] = {"format": "m2bridge certificate", "statement": {"kind": "dimension"}}
        return "certificate added"
    place, path = certificate, ["certificate"]
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        path.append(str(key))
        if not isinstance(place[key], dict | list) or not place[key]:
            break
        place = place[key]
    place[key] = changed(place[key])
    return ".".join(path)


def alter_certainty(document: Document, headline: tuple[str, ...], rng: random.Random) -> str:
    """Call the answer proved; where it is, take its certificate away."""
    if document["certainty"] == "proved":
        document["certificate"] = [] if isinstance(document["certificate"], list) else None
        return "certificate removed"
    document["certainty"] = "proved"
    return "certainty proved"


KINDS: tuple[Callable[[Document, tuple[str, ...], random.Random], str], ...] = (
    alter_headline, alter_field, alter_evidence, alter_headline_and_evidence, alter_certainty, alter_options, alter_model,
    alter_certificate,
)  # fmt: skip


def alterations(document: Document, headline: tuple[str, ...]) -> Iterator[tuple[str, Document]]:
    """Yield twenty altered documents, of all kinds in turn, with what was altered."""
    rng = random.Random(document["analysis"])
    names = tuple(name for name in headline if name in document) or ("certainty",)
    for number in range(COUNT):
        altered = copy.deepcopy(document)
        what = KINDS[number % len(KINDS)](altered, names, rng)
        yield what, altered


# -- what the commands say -------------------------------------------------------------------------------------------


class Commands:
    """Run check, cite, explain and report on a document, with the checker in this process."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.path, self.page, self.capsys = directory / "record.json", directory / "page.html", capsys
        verdicts: dict[bytes, tuple[int, list[str]]] = {}

        def verify(path: str, seconds: int = 60) -> tuple[int, list[str]]:
            data = Path(path).read_bytes()
            if data not in verdicts:
                verdicts[data] = checker.verify(data)
            return verdicts[data]

        self.verify = verify
        monkeypatch.setattr("m2bridge.cli.records.verify_file", verify)

    def write(self, document: Document) -> None:
        self.path.write_text(json.dumps(document))

    def check(self) -> tuple[int, list[str]]:
        return self.verify(str(self.path))

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of a command and what it printed."""
        more = ["-o", str(self.page)] if command == "report" else []
        code = main([command, str(self.path), *more])
        printed = self.capsys.readouterr()
        return code, printed.out + printed.err


def assert_not_confirmed(commands: Commands, what: str, altered: Document) -> None:
    """Assert that every command rejects a record with a wrong digest, or reports it as altered."""
    commands.write(altered)
    code, said = commands.check()
    assert code in (7, 8, 9), (what, said)
    assert code != 9 or "altered" in said[0], (what, said)
    assert code != 8 or "Verified" not in said[0], (what, said)
    for command in ("cite", "explain", "report"):
        code, printed = commands.run(command)
        assert code != 0, (what, command, printed)


def assert_only_certified(commands: Commands, what: str, altered: Document, document: Document) -> None:
    """Assert that of a record with a new digest only true fields are certified, and nothing else is cited as proved."""
    forged = {**altered, "digest": records.digest_of(altered)}
    commands.write(forged)
    code, said = commands.check()
    if code in (0, 9):
        wrong = [name for name in covered_by(said, forged) if forged[name] != document.get(name)]
        assert wrong in ([], ["certificate"]), (what, said)
    cited, sentence = commands.run("cite")
    if cited == 0:
        assert code == 0 or "this is proved" not in sentence, (what, sentence)
        assert code in (0, 9) or "checker verified" not in sentence, (what, sentence)
    if code == 7 and forged["certainty"] == "proved":
        for command in ("cite", "explain", "report"):
            assert commands.run(command)[0] != 0, (what, command, said)


def covered_by(said: list[str], document: Document) -> list[str]:
    """The fields that the checker does not list as not covered, or as covered in part."""
    begin = "Not covered by the certificate: "
    rest = next((line.removeprefix(begin).rstrip(".") for line in said if line.startswith(begin)), "")
    names = {item.partition(" but for ")[0] for item in rest.split(", ")}
    return [name for name in document if name not in {*names, "digest"}]


def damaged_msolve(directory: Path, engine: Engine, change: str) -> str:
    """Return the path of an msolve that passes its test and damages the output of other jobs."""
    real = engine.info.path
    program = directory / "msolve"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in -V|*probe*) exec {real} "$@";; esac\n{real} "$@" | {change}\n'
    )
    program.chmod(0o755)
    return str(program)
