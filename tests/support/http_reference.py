"""The reference page of the server, rendered from its OpenAPI document."""

from collections.abc import Iterator
from typing import Any

from omnigraph.server.app import graph_routes
from omnigraph.server.openapi import openapi_document
from omnigraph.server.routes import process

HEAD = """\
# HTTP

Generated from the OpenAPI document of a server; `pytest tests/surfaces/docs --accept` rewrites it. A
server gives the document itself at `/openapi.json`. How to run one is in the [guide](../guide/serving.md),
the rules are in [surfaces, section 2](../spec/surfaces.md).

Every route of a graph exists as `/graphs/{graph_id}/…`, where its operation id has `cluster_` in front, and
without that prefix for the graph that is served by default, whose id is `default` if it has no name. Tokens
go into the header `Authorization: Bearer TOKEN`. A segment of a path may contain `%2F`: the branch
`review/june` is `/branches/review%2Fjune`. Every failure has the body [ErrorOutput](#erroroutput).
"""


def document(*, is_open: bool = False, has_default: bool = True) -> dict[str, Any]:
    """Return the document of a server, without starting one."""
    # The routes of the process need a server only to answer, not to be described.
    own = process.routes(None)  # type: ignore[arg-type]
    return openapi_document(own, graph_routes(), is_open=is_open, has_default=has_default)


def render() -> str:
    """Return the whole page."""
    made = document()
    flat = {path: methods for path, methods in made["paths"].items() if "{graph_id}" not in path}
    sections = [HEAD, _overview(flat), *_routes(flat), "## Models\n", *_models(made["components"]["schemas"])]
    return "\n".join(sections)


def _overview(paths: dict[str, Any]) -> str:
    rows = [
        f"| {method.upper()} `{path}` | `{route['operationId']}` | {_summary(route)} |"
        for path, methods in paths.items()
        for method, route in methods.items()
    ]
    return "\n".join(["| Route | Operation | |", "|---|---|---|", *rows, ""])


def _summary(route: dict[str, Any]) -> str:
    old = "Deprecated. " if route.get("deprecated") else ""
    return f"{old}{route['summary']}"


def _routes(paths: dict[str, Any]) -> Iterator[str]:
    for path, methods in paths.items():
        for method, route in methods.items():
            yield f"## {method.upper()} {path}\n\n{_summary(route)}\n"
            if parameters := route.get("parameters"):
                rows = [_parameter(parameter) for parameter in parameters]
                yield "\n".join(["| Parameter | In | Type | |", "|---|---|---|---|", *rows, ""])
            if body := route.get("requestBody"):
                need = "" if body["required"] else ", which may be left out"
                yield f"Body: {_contents(body['content'])}{need}.\n"
            success = route["responses"]["200"]
            failures = ", ".join(status for status in route["responses"] if status != "200")
            yield f"Answers 200: {_contents(success['content'])}. Failures: {failures}.\n"


def _parameter(parameter: dict[str, Any]) -> str:
    need = _optional(parameter["required"])
    text = parameter.get("description", "")
    return f"| `{parameter['name']}`{need} | {parameter['in']} | {_type(parameter['schema'])} | {text} |"


def _contents(content: dict[str, Any]) -> str:
    return " or ".join(
        _type(media["schema"]) if kind == "application/json" else f"`{kind}`"
        for kind, media in content.items()
    )


def _models(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        required = schema.get("required", ())
        rows = [
            f"| `{member}`{_optional(member in required)} | {_type(part)} | {part.get('description', '')} |"
            for member, part in schema.get("properties", {}).items()
        ]
        yield f"### {name}\n\n{' '.join(schema.get('description', '').split())}\n"
        yield "\n".join(["| Member | Type | |", "|---|---|---|", *rows, ""])


def _optional(is_required: bool) -> str:
    return "" if is_required else "?"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "anything"))
