"""What tests share that compare records of several runs."""

from __future__ import annotations

from typing import Any

VOLATILE = frozenset({"seconds", "peak_memory_bytes", "finished", "attempts", "sha256", "digest"})


def stable(value: Any) -> Any:
    """A record without what differs from one undisturbed run to the next: times, memory, the number of attempts."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [stable(item) for item in value]
    return value
