"""Run a measurement from a clone: `python -m benchmarks NAME [OPTIONS]`, or `python -m benchmarks` for the list."""

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
SHARED = (
    "__init__",
    "__main__",
    "common",
    "polynomials",
    "fuzz_mutations",
    "fuzz_readers",
)  # imported by others, not run


def programs() -> dict[str, Path]:
    """Return the programs by name: `peers`, `faults kill`, and `paper` for the paper's tables."""
    found = {
        path.stem.replace("_", "-"): path
        for path in sorted(HERE.glob("*.py"))
        if path.stem not in SHARED
    }
    found |= {
        f"faults {path.stem}": path
        for path in sorted((HERE / "faults").glob("*.py"))
        if path.stem not in SHARED
    }
    return {"paper": HERE / "paper" / "__main__.py", **found}


def main() -> None:
    """Run the named program with the other arguments, or list all programs."""
    known = programs()
    for words in (1, 2):
        path = known.get(" ".join(sys.argv[1 : 1 + words]))
        if path:
            sys.argv = [
                f"python -m benchmarks {' '.join(sys.argv[1 : 1 + words])}",
                *sys.argv[1 + words :],
            ]
            if path.name == "__main__.py":
                runpy.run_module("benchmarks.paper", run_name="__main__")
            else:
                sys.path.insert(0, str(path.parent))
                runpy.run_path(str(path), run_name="__main__")
            return
    for name, path in known.items():
        print(f"{name:16} {(ast.get_docstring(ast.parse(path.read_text())) or '').splitlines()[0]}")
    sys.exit(2 if len(sys.argv) > 1 else 0)


if __name__ == "__main__":
    main()
