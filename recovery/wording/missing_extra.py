"""What is said where a library is missing that only some work needs: how to install the extra that has it."""

from __future__ import annotations


def missing_extra(what_needs: str, library: str, extra: str) -> str:
    """One line: ``a snapshot needs`` deltalake, say. ``extra``: a name of project.optional-dependencies in
    pyproject.toml.
    """
    return f"{what_needs} {library}: pip install 'ktriage[{extra}]'"
