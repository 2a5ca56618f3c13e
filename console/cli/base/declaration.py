"""How a command declares its options: name, value, help, default and limits in one place, as the default of the
function's parameter. A frozen dataclass of such fields is a group of options: the function takes it as one value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Annotated, Any, TypeVar

import typer

R = TypeVar("R")
REQUIRED: Any = inspect.Parameter.empty
"""The default of an option that must be given."""

_WORDS = re.compile(r"((?:-[^ ,]+(?:, )?)*) ?(.*)")


@dataclass(frozen=True, slots=True)
class Declared:
    """An option, or an argument where it has no ``names``. ``default`` None is False for a flag."""

    names: tuple[str, ...]
    metavar: str | None
    help: str
    default: Any
    limits: dict[str, Any]

    def by_default(self, default: Any) -> Declared:
        return replace(self, default=default)

    def parameter(self, name: str, kind: Any) -> inspect.Parameter:
        """The same as typer reads it from the signature of a command."""
        said = {"metavar": self.metavar, "help": self.help, **self.limits}
        info = typer.Option(*self.names, **said) if self.names else typer.Argument(**said)
        default = False if kind is bool and self.default is None else self.default
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
        )


def option(words: str, help: str, default: Any = None, **limits: Any) -> Any:
    """``words``: the names and the value as the help shows them, such as ``--follow, -f`` or ``--rows N``.
    ``limits``: what else typer.Option takes. The type is that of the parameter or field that has it as default.
    """
    names, metavar = _matched(words)
    return Declared(names, metavar, help, default, limits)


def argument(metavar: str, help: str, default: Any = REQUIRED) -> Any:
    """A word without a name, as :func:`option`."""
    return Declared((), metavar, help, default, {})


def _matched(words: str) -> tuple[tuple[str, ...], str | None]:
    match = _WORDS.fullmatch(words)
    assert match is not None
    return tuple(match[1].split(", ")), match[2] or None


def with_options(
    function: Callable[..., R],
    first: Sequence[type],
    last: Sequence[type],
    call: Callable[[typer.Context, dict[Any, Any]], R],
) -> Callable[..., R]:
    """A typer command with the groups of options ``first``, the options of the function, and the groups ``last``.

    ``call`` gets the values of the function's options by name, and each group of ``first`` and ``last`` by its
    class. It makes the function's first argument of those, and calls it.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    groups: dict[Any, Any] = {group: group for group in (*first, *last)}
    groups |= {
        parameter.name: parameter.annotation for parameter in own if is_dataclass(parameter.annotation)
    }
    fields = {key: [field.name for field in _parameters(group)] for key, group in groups.items()}

    def command(ctx: typer.Context, **values: Any) -> R:
        made = {key: groups[key](**{name: values.pop(name) for name in fields[key]}) for key in groups}
        return call(ctx, {**values, **made})

    shown: Iterable[inspect.Parameter] = (
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(parameter for group in first for parameter in _parameters(group)),
        *(parameter for each in own for parameter in _typed(each)),
        *(parameter for group in last for parameter in _parameters(group)),
    )
    command.__signature__ = inspect.Signature(list(shown))  # type: ignore[attr-defined]  # read by typer
    command.__doc__ = function.__doc__
    return command


def _parameters(group: Any) -> list[inspect.Parameter]:
    """What typer reads of a group of options."""
    fields = inspect.signature(group, eval_str=True).parameters.values()
    return [parameter for field in fields for parameter in _typed(field)]


def _typed(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    if is_dataclass(parameter.annotation):
        return _parameters(parameter.annotation)
    assert isinstance(parameter.default, Declared), f"{parameter.name} declares no option"
    return [parameter.default.parameter(parameter.name, parameter.annotation)]
