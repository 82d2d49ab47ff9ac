"""HTML for notebooks. Names and answers come from users and models, so all text is escaped."""

import html
from collections.abc import Mapping
from typing import Any

import polars as pl

LEFT = "text-align: left; vertical-align: top"
QUIET = "white-space: pre-wrap; margin: 0.4em 0; max-height: 16em; overflow: auto"


def escape(value: Any) -> str:
    """Escape a value for HTML; None becomes a dash."""
    return "–" if value is None else html.escape(str(value))


def facts_table(title: str, facts: Mapping[str, Any]) -> str:
    """Render names and values as a table with one row each."""
    rows = (
        f'<tr><th style="{LEFT}">{escape(name)}</th><td style="{LEFT}">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{''.join(rows)}</table></div>"


def frame_table(frame: pl.DataFrame) -> str:
    """Render a small frame in full, with numbers rounded to three digits."""
    head = "".join(f'<th style="{LEFT}">{escape(name)}</th>' for name in frame.columns)
    rows = []
    for row in frame.rows():
        values = [f"{value:.3g}" if isinstance(value, float) else value for value in row]
        rows.append("".join(f'<td style="{LEFT}">{escape(value)}</td>' for value in values))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_block(title: str, text: str) -> str:
    """Render a longer text with its line breaks."""
    return f'<div><strong>{escape(title)}</strong><pre style="{QUIET}">{escape(text)}</pre></div>'
