"""The description of a server: OpenAPI 3.1, made from the routes and from the models that they read.

O1  What a route reads and answers is described by the models that it uses, so that neither can change alone.
O2  Every operation has an id that stays: clients are generated from it. Below `/graphs/{graph_id}` it is
    the same, with `cluster_` in front.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from omnigraph import __version__
from omnigraph.core.values import Json
from omnigraph.server.bodies import JSON_TYPE
from omnigraph.server.route import GraphRoute, JsonBody, RawBody
from omnigraph.server.routes.process import ProcessRoute
from omnigraph.wire.responses import ErrorOutput

SCHEME = "bearer_token"
NESTED = "cluster_"
_REFERENCE = "#/components/schemas/{model}"
_ERRORS = {
    400: "The request cannot be carried out as it was made.",
    401: "No token, or an unknown one.",
    403: "This caller may not.",
    404: "Something named does not exist.",
    408: "The body did not arrive in time.",
    409: "Another writer was first, or two things exclude each other; nothing was done.",
    410: "The past that was asked for was cleaned up.",
    412: "What was required of the branch or the value does not hold; nothing was done.",
    413: "A limit is passed; nothing was done.",
    415: "The body has a type that this route does not take.",
    416: "The value ends before the first byte that was asked for.",
    424: "What is stored as a reference is none.",
    429: "This actor has as much in the works as one may; try again later.",
    500: "Something failed on the server.",
    503: "An interrupted write must be recovered first.",
}


def openapi_document(
    process: Sequence[ProcessRoute], graph: Sequence[GraphRoute], *, is_open: bool, has_default: bool
) -> Json:
    """Return the description of a server; one that is open to everybody has no security (O1, O2)."""
    security: Json = {} if is_open else {"security": [{SCHEME: []}]}
    schemas, definitions = models_json_schema(
        [(model, "validation") for model in _models(process, graph)], ref_template=_REFERENCE
    )
    describe = _Describe({model: reference for (model, _), reference in schemas.items()}, security)
    paths: dict[str, dict[str, Json]] = {}
    for own in process:
        paths.setdefault(own.path, {})[own.method.lower()] = describe.process(own)
    for route in graph:
        if has_default:
            paths.setdefault(route.path, {})[route.method.lower()] = describe.graph(route)
        nested = paths.setdefault(f"/graphs/{{graph_id}}{route.path}", {})
        nested[route.method.lower()] = describe.nested(route)
    components: Json = {"schemas": definitions.get("$defs", {})}
    if not is_open:
        components["securitySchemes"] = {SCHEME: {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Omnigraph API", "version": __version__},
        "paths": paths,
        "components": components,
    }


def _models(process: Sequence[ProcessRoute], graph: Sequence[GraphRoute]) -> list[type[BaseModel]]:
    found: dict[type[BaseModel], None] = {ErrorOutput: None}
    for own in process:
        if own.model is not None:
            found[own.model] = None
    for route in graph:
        if isinstance(route.body, JsonBody):
            found[route.body.model] = None
        for model in route.answers.models:
            found[model] = None
    return list(found)


class _Describe:
    """Describes routes by references to the models of one document."""

    def __init__(self, references: dict[Any, Any], security: Json) -> None:
        self._references, self._security = references, security

    def process(self, route: ProcessRoute) -> Json:
        """Return one route of the server itself."""
        errors = (*route.errors, 500) if route.is_public else (401, *route.errors, 500)
        return {
            "operationId": route.id,
            "summary": route.summary,
            **({} if route.is_public else self._security),
            "responses": {
                "200": self._success(
                    (route.media_type,), () if route.model is None else (route.model,), "Success"
                ),
                **self._failures(errors, route.error_models),
            },
        }

    def graph(self, route: GraphRoute) -> Json:
        """Return one route of a graph."""
        document: Json = {"operationId": route.id, "summary": route.summary}
        if route.is_deprecated:
            document["deprecated"] = True
        document |= self._security
        if parameters := [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)]:
            document["parameters"] = parameters
        if route.body is not None:
            document["requestBody"] = self._body(route.body)
        answers = route.answers
        document["responses"] = {
            "200": self._success(answers.media_types, answers.models, answers.description),
            **{
                str(status): self._success(answers.media_types, answers.models, text)
                if status < 300
                else {"description": text}
                for status, text in answers.others.items()
            },
            **self._failures(_errors_of(route), {}),
        }
        return document

    def nested(self, route: GraphRoute) -> Json:
        """Return the same route below the id of a graph (O2)."""
        document = self.graph(route)
        parameters = document.get("parameters", [])
        assert isinstance(parameters, list)
        return {
            **document,
            "operationId": f"{NESTED}{route.id}",
            "parameters": [_path_parameter("graph_id"), *parameters],
        }

    def _body(self, body: JsonBody | RawBody) -> Json:
        if isinstance(body, RawBody):
            return {"required": True, "content": {body.media_type: {"schema": _raw(body.media_type)}}}
        content = {JSON_TYPE: {"schema": self._references[body.model]}}
        return {"required": not body.may_be_absent, "content": content}

    def _success(
        self, media_types: Iterable[str], models: Sequence[type[BaseModel]], description: str
    ) -> Json:
        references = [self._references[model] for model in models]
        schema = references[0] if len(references) == 1 else {"anyOf": references}
        content = {kind: {"schema": schema if kind == JSON_TYPE else _raw(kind)} for kind in media_types}
        return {"description": description, "content": content}

    def _failures(self, statuses: Iterable[int], models: dict[int, type[BaseModel]]) -> Json:
        return {
            str(status): {
                "description": _ERRORS[status],
                "content": {JSON_TYPE: {"schema": self._references[models.get(status, ErrorOutput)]}},
            }
            for status in sorted(set(statuses))
        }


def _raw(media_type: str) -> Json:
    """Return the schema of content that is not JSON."""
    return {"type": "string"} if media_type.startswith("text/") else {"type": "string", "format": "binary"}


def _errors_of(route: GraphRoute) -> Iterable[int]:
    of_body = () if route.body is None else (408, 413, 415)
    return (400, 401, 403, 404, 500, *of_body, *route.errors)


def _path_parameters(route: GraphRoute) -> Iterable[Json]:
    return [
        _path_parameter(part[1:-1])
        for part in route.path.split("/")
        if part.startswith("{") and part.endswith("}")
    ]


def _path_parameter(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(route: GraphRoute) -> Iterable[Json]:
    if route.query is None:
        return []
    schema = route.query.model_json_schema()
    required = set(schema.get("required", ()))
    return [
        _query_parameter(name, dict(member), is_required=name in required)
        for name, member in schema["properties"].items()
    ]


def _query_parameter(name: str, schema: Json, *, is_required: bool) -> Json:
    """Return one parameter; one that is left out is simply not there, and never null."""
    description = schema.pop("description", "")
    schema.pop("title", None)
    schema.pop("default", None) if schema.get("default") in (None, []) else None
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        (given,) = (choice for choice in choices if choice != {"type": "null"})
        schema = {**{key: value for key, value in schema.items() if key != "anyOf"}, **given}
    return {
        "name": name,
        "in": "query",
        "required": is_required,
        "description": description,
        "schema": schema,
    }


def _header_parameters(route: GraphRoute) -> Iterable[Json]:
    return [
        {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}
        for name, text in route.headers.items()
    ]
