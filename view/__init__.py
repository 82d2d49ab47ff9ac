"""Viewer of single decodes, step by step, and of the reasons why gates stop them.

`c4 view` serves the page on loopback; `write_page` writes it as one file that opens from disk, and
`show` puts that file into a notebook. Exits are computed in Python; the page only draws.
"""

from c4.view.page import NotebookPage, show, write_page
from c4.view.viewer import Viewer

__all__ = ["NotebookPage", "Viewer", "show", "write_page"]
