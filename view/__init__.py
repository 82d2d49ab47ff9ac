"""The viewer: see a decode happen, and why a gate stops it.

`c4 view` serves the page on loopback; `write_page` writes it as one file that opens from disk, and
`show` puts that file into a notebook. Python's gates answer; the page only draws.
"""

from c4.view.export import NotebookPage, show, write_page
from c4.view.shelf import Shelf

__all__ = ["NotebookPage", "Shelf", "show", "write_page"]
