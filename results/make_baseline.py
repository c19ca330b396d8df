"""Write ``m2bridge/data/ledger.json``, the recorded verdicts, from records of ``m2bridge verify``."""

import json
import sys
from pathlib import Path

KEPT = ("claim", "size", "status")


def main(paths: list[str]) -> None:
    entries = [e for path in paths for e in json.loads(Path(path).read_text(encoding="utf-8"))["entries"]]
    kept = [{name: entry[name] for name in KEPT} for entry in entries]
    document = {"schema_version": 1, "analysis": "verify", "entries": kept}
    target = Path(__file__).parent.parent / "m2bridge" / "data" / "ledger.json"
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
