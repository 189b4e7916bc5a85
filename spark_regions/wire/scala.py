"""The messages of schema.json as Scala case classes with their codecs. Run by the build, so it needs Python alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).with_name("schema.json")
KIND = "kind"
TAGS = ("type", KIND)
NUMBER = "seq"
"""Of the connection, which puts it in and takes it out."""
HEAD = """// Made from spark_regions/wire/schema.json by the build.
package org.apache.spark.sql.regions.wire

import com.fasterxml.jackson.databind.JsonNode

"""


def messages() -> str:
    """A case class a record, a sealed trait a union, an object with the codec each."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    records, unions = schema["records"], schema["unions"]
    parts = [HEAD]
    for union, members in unions.items():
        asked = union == "Request"
        whole = f"{union}[_ <: Answer]" if asked else union
        cases = "; ".join(f"case m: {each} => {each}.codec.write(out, m)" for each in members)
        names = ", ".join(f'"{_tag(records[each])[1]}" -> {each}.codec' for each in members)
        tag = _tag(records[members[0]])[0]
        parts.append(f"sealed trait {union}{'[A <: Answer]' if asked else ''} extends Product {{\n")
        parts += [f"  def {key}: {kind}\n" for key, kind in _common(records[each] for each in members).items()]
        parts.append(f"}}\nobject {union} {{\n  implicit lazy val codec: Codec[{whole}] = Codec.union[{whole}](")
        parts.append(f'"{tag}", "{union}")(\n    (out, m) => m match {{ {cases} }},\n    {names})\n}}\n\n')
    for name in records:
        parts += _record(name, schema)
    return "".join(parts)


def _record(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    record = schema["records"][name]
    tag, value = _tag(record)
    fields = {key: each for key, each in record["properties"].items() if key not in (tag, NUMBER)}
    parents = [
        f"Request[{schema['answers'][name]}]" if union == "Request" else union
        for union, members in schema["unions"].items()
        if name in members
    ]
    required = record["required"]
    parameters = [
        f"{key}: {_type(each)}" + ("" if key in required else f" = {_default(each)}") for key, each in fields.items()
    ]
    reads = [
        f'in[{_type(each)}]("{key}")' if key in required else f'in.or[{_type(each)}]("{key}", {_default(each)})'
        for key, each in fields.items()
    ]
    writes = [f'out{"" if key in required else ".some"}("{key}", m.{key})' for key in fields]
    yield f"final case class {name}({', '.join(parameters)})"
    yield f" extends {' with '.join(parents)}" if parents else ""
    yield f' {{ def kind: String = "{value}" }}\n' if tag == KIND else "\n"
    yield f"object {name} {{\n  implicit lazy val codec: Codec[{name}] = Codec.record[{name}](\n"
    yield f'    "{name}", "{tag}", "{value}", Set({", ".join(json.dumps(key) for key in fields)}))(\n'
    yield f"    in => {name}({', '.join(reads)}),\n"
    yield f"    (out, m) => {{ {'; '.join(writes)} }})\n}}\n\n"


def _common(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Fields that all records of a union have, with their type."""
    every = [{key: _type(each) for key, each in record["properties"].items()} for record in records]
    shared = {key: kind for key, kind in every[0].items() if all(other.get(key) == kind for other in every)}
    return {key: kind for key, kind in shared.items() if key not in ("type", NUMBER)}


def _tag(record: Mapping[str, Any]) -> tuple[str, str]:
    for tag in TAGS:
        values = record["properties"].get(tag, {}).get("enum")
        if values:
            return tag, values[0]
    return "", ""


def _type(field: Mapping[str, Any]) -> str:
    """
    >>> _type({"type": "array", "items": {"anyOf": [{"type": "integer", "format": "int64"}, {"type": "null"}]}})
    'Seq[Option[Long]]'
    """
    if "$ref" in field:
        return str(field["$ref"])
    if "anyOf" in field:
        some = [each for each in field["anyOf"] if each.get("type") != "null"]
        if "discriminator" in field:
            return "Action"
        return f"Option[{_type(some[0])}]"
    kind = "string" if "enum" in field else field.get("type")
    if kind == "array":
        if "prefixItems" in field:
            return f"({', '.join(_type(each) for each in field['prefixItems'])})"
        return f"Seq[{_type(field.get('items', {}))}]"
    if kind == "object":
        return f"Map[String, {_type(field['additionalProperties'])}]"
    if kind == "integer":
        return "Long" if field.get("format") == "int64" else "Int"
    return {"string": "String", "number": "Double", "boolean": "Boolean"}.get(str(kind), "JsonNode")


def _default(field: Mapping[str, Any]) -> str:
    value = field["default"]
    if value is None:
        return "None"
    if isinstance(value, (list, dict)):
        return "Nil" if isinstance(value, list) else "Map()"
    return json.dumps(float(value) if _type(field) == "Double" else value) + ("L" if _type(field) == "Long" else "")
