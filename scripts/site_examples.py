"""Extension of griffe for the site: doctests at the end of a docstring become its section of examples."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Puts the heading that the numpy style asks for before the first `>>>` of a docstring without one."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring as the page shows it; the source stays."""
        if obj.docstring and "Examples\n-----" not in obj.docstring.value:
            obj.docstring.value = re.sub(
                r"(?m)^>>>", "Examples\n--------\n>>>", obj.docstring.value, count=1
            )
