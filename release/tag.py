"""``python -m release.tag``: the tag of the version that pyproject.toml has (``make tag``)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from release.build_backend import ROOT, commit


def version() -> str:
    """The version, from the only place of it."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def newest_section() -> tuple[str, str]:
    """Version and date of the first section of CHANGELOG.md, as they stand there."""
    found = re.search(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    return ("", "") if found is None else (found[1], found[2])


def main() -> None:
    """Makes the tag, or says why not."""
    here, (written, date) = version(), newest_section()
    if written != here or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        sys.exit(f"CHANGELOG.md begins with {written!r} ({date}): write '## {here} (YYYY-MM-DD)'")
    if commit().endswith(".dirty"):
        sys.exit("there are changes that are not committed")
    command = ["git", "tag", "--annotate", f"v{here}", "--message", f"ktriage {here}"]
    made = subprocess.run(command, cwd=ROOT, check=False)  # whichever git there is
    sys.exit(made.returncode)


if __name__ == "__main__":
    main()
