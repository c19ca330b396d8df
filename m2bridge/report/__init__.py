"""Report: results and ledgers as documents for people. Reads records, never calls the engine."""

from m2bridge.report.ledger import ledger_html, ledger_markdown

__all__ = ["ledger_html", "ledger_markdown"]
