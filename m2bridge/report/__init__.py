"""Report: write results and ledgers as documents. This package reads records and never runs an engine."""

from m2bridge.report.ledger import ledger_html, ledger_markdown

__all__ = ["ledger_html", "ledger_markdown"]
