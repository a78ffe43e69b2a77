"""What a function takes: its signature as JSON Schema, and JSON arguments as what it is called with.

`inspect` would do, and cost more than everything an extension does until it is ready. Types are in `forms`.
"""

from __future__ import annotations

from hilt_sdk.forms import BadArgument, Form, add_default, form_of, left_out, no_such, resolved, unfit
from hilt_sdk.values import RegistrationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hilt_sdk.forms import Convert

_MISSING: Any = object()


class Signature:
    """What a tool takes."""

    __slots__ = ("call_parameter", "members", "open", "schema")

    def __init__(self) -> None:
        self.schema: dict[str, Any] = {"type": "object"}
        self.members: list[tuple[str, Convert | None, bool]] = []
        """Each with how it is converted, and whether it must be there."""
        self.call_parameter = ""
        """The one that gets the call itself."""
        self.open = False
        """It takes whatever else there is, too."""

    def bind(self, args: Any) -> dict[str, Any]:
        """Keyword arguments for the function. Raises `BadArgument`."""
        if not isinstance(args, dict):
            raise unfit("the arguments", "an object", args)
        bound = {}
        for name, convert, required in self.members:
            value = args.get(name, _MISSING)
            if value is _MISSING:
                if required:
                    raise BadArgument(f"{name} is missing")
            elif convert is None:
                bound[name] = value
            elif value is not None or required or not left_out(convert, name):
                bound[name] = convert(value, name)
        if len(bound) < len(args):
            self._others(args, bound)
        return bound

    def _others(self, args: dict[str, Any], bound: dict[str, Any]) -> None:
        known = [member[0] for member in self.members]
        for name, value in args.items():
            if name not in known:
                if not self.open:
                    raise no_such(name, known)
                bound[name] = value


def signature_of(function: Callable[..., Any], call_type: type, described: dict[str, str]) -> Signature:
    """What a function takes. Raises `RegistrationError` that names the parameter."""
    made = Signature()
    names, defaults, has_rest = _parameters(function)
    annotations = _annotations(function)
    properties: dict[str, Any] = {}
    required = []
    for name in names:
        annotation = annotations.get(name, _MISSING)
        if annotation is call_type:
            made.call_parameter = name
            continue
        form = _form_of_parameter(function, name, annotation, defaults.get(name, _MISSING))
        schema = dict(form.schema)
        if name in described and "description" not in schema:
            schema["description"] = described[name]
        if name in defaults:
            add_default(schema, defaults[name])
        else:
            required.append(name)
        properties[name] = schema
        made.members.append((name, form.convert, name not in defaults))
    made.open = has_rest
    made.schema = {"type": "object", "properties": properties}
    if required:
        made.schema["required"] = required
    if not has_rest:
        made.schema["additionalProperties"] = False
    return made


def free_signature(function: Callable[..., Any], call_type: type, schema: dict[str, Any]) -> Signature:
    """For a tool with a schema of its author's own: arguments go to it as they came."""
    made = Signature()
    made.schema = schema
    made.open = True
    names, defaults, has_rest = _parameters(function)
    annotations = _annotations(function)
    for name in names:
        if annotations.get(name) is call_type:
            made.call_parameter = name
        else:
            made.members.append((name, None, name not in defaults))
    if not has_rest:
        lacking = [name for name in schema.get("properties", ()) if name not in names]
        if lacking:
            raise RegistrationError(
                f"{function.__name__} has no parameter {lacking[0]}, which is in its schema: add it, or **kwargs"
            )
    return made


# Functions


def _parameters(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    """Names of the parameters, the defaults of those that have one, and whether there is a `**rest`."""
    target = getattr(function, "__func__", function)
    code = getattr(target, "__code__", None)
    if code is None:
        return _inspected(function)
    if code.co_flags & 4:
        raise RegistrationError(f"{function.__name__}: *{_variadic(code)} has no name to be called by: take it away")
    count = code.co_argcount
    names = list(code.co_varnames[:count])
    defaults = dict(zip(names[::-1], (target.__defaults__ or ())[::-1]))
    if target is not function:  # a method: without self
        names = names[1:]
    if code.co_posonlyargcount:
        raise RegistrationError(
            f"{function.__name__}: positional-only parameters cannot be called by name: take the / away"
        )
    names += code.co_varnames[count : count + code.co_kwonlyargcount]
    defaults.update(target.__kwdefaults__ or {})
    return names, defaults, bool(code.co_flags & 8)


def _variadic(code: Any) -> str:
    return str(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])


def _inspected(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    """For what is callable but no function, such as a `functools.partial`."""
    import inspect

    names, defaults, rest = [], {}, False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = True
            continue
        names.append(name)
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
    return names, defaults, rest


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Those that are text are looked up where the function was written."""
    target = getattr(function, "__func__", function)
    found = dict(getattr(target, "__annotations__", None) or {})
    space = getattr(target, "__globals__", {})
    for name, annotation in found.items():
        if isinstance(annotation, str):
            found[name] = resolved(annotation, space, f"{target.__name__}: {name}", _enclosed(target))
    return found


def _enclosed(function: Any) -> dict[str, Any]:
    """What a function sees of the one it was written in."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            pass  # not there yet
    return values


def _form_of_parameter(function: Callable[..., Any], name: str, annotation: Any, default: Any) -> Form:
    if annotation is _MISSING:
        if default is _MISSING or default is None:
            return Form({}, None)
        annotation = type(default)
    try:
        return form_of(annotation)
    except RegistrationError as error:
        raise RegistrationError(f"{function.__name__}: {name}: {error}") from None
    except RecursionError:
        raise RegistrationError(f"{function.__name__}: {name}: the type contains itself; give schema=") from None
