"""The keys of `registry:` in an `ingest:` block, how they are read, and which sources may have one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, cast
from urllib.parse import urlsplit

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import choice, count, text, texts
from sqlmesh_like.project.nodes import RegistrySettings
from sqlmesh_like.project.paths import is_address
from sqlmesh_like.project.reading.yaml_node import YamlNode

_GLUE = re.compile(r"glue(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)")
_APICURIO = re.compile(r".*/apis/registry/v(\d+)/?")
REGISTRY_FORMATS = ("debezium", "debezium_flat", "rows")
"""Formats whose events are also written in Avro or Protobuf."""

REGISTRY = Shape("registry", {
    "url": Key(texts, is_required=True, help="Its address, or several of the same registry; of Apicurio: "
               "`…/apis/ccompat/v7`.", example="http://localhost:8081"),
    "username": Key(text, help="User, or key of an API.", example="{{ env_var('REGISTRY_USER') }}"),
    "password": Key(text, help="Password, or secret of an API.", example="{{ env_var('DBT_ENV_SECRET_REGISTRY') }}"),
    "token": Key(text, help="Bearer token, instead of user and password.",
                 example="{{ env_var('DBT_ENV_SECRET_TOKEN') }}"),
    "ssl_ca_location": Key(text, help="File of the certificate authorities that it is trusted by. Default: those of "
                           "`REQUESTS_CA_BUNDLE`, or Python's.", example="/etc/ssl/company.pem"),
    "ssl_certificate_location": Key(text, help="File of the certificate to send.", example="/etc/ssl/sml.pem"),
    "ssl_key_location": Key(text, help="File of its private key, if it is not in the same file.",
                            example="/etc/ssl/sml.key"),
    "ids": Key(choice("globalId", "contentId"), help="Of Apicurio's own interface (`…/apis/registry/v2`): "
               "which numbers its converter writes (its `use-id`). Default: `globalId`.", example="contentId"),
    "aws_region": Key(text, help="Of AWS Glue's registry: its region. Default: the one in its address "
                      "(`https://glue.eu-central-1.amazonaws.com`).", example="eu-central-1"),
    "timeout": Key(count(), 60, help="Seconds to wait for its answer.", example=10),
})  # fmt: skip


def parse_registry(ingest: YamlNode) -> RegistrySettings | None:
    """The schema registry of an `ingest:` block. Raises ProjectError where it is wrong or has no use there."""
    node = ingest.get("registry")
    if node is None:
        return None
    REGISTRY.check(node)
    if ingest.get("kafka") is None:
        raise node.error("a registry is for messages in Kafka", "remove it: lines of files are JSON")
    form = ingest.get("format")
    if form is not None and form.value not in REGISTRY_FORMATS:
        what = f"events of {form.value!r} are not in Avro or Protobuf"
        raise node.error(what, "remove it: a registry is for Debezium's events")
    values = REGISTRY.read(node)
    urls = tuple(part.strip() for url in cast(list[str], values["url"]) for part in url.split(",") if part.strip())
    for url in urls:
        if not is_address(url) or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise node.children["url"].error("url is not the address of a registry", "write it as http://host:8081")
    if values["ids"] is not None and None in map(apicurio_version, urls):
        hint = "remove it, or set url to …/apis/registry/v2"
        raise node.children["ids"].error("ids is of Apicurio's own interface", hint)
    region = _text(values, "aws_region") or next(filter(None, map(glue_region, urls)), None)
    if region is not None:
        _require_signed(node, values)
    if values["token"] is not None and values["username"] is not None:
        raise node.children["token"].error("registry has a token and a username", "give one of them")
    if (values["username"] is None) != (values["password"] is None):
        raise node.error("registry needs username and password", "give both, or neither")
    return RegistrySettings(
        urls,
        username=_text(values, "username"),
        password=_text(values, "password"),
        token=_text(values, "token"),
        authorities=_text(values, "ssl_ca_location"),
        certificate=_text(values, "ssl_certificate_location"),
        key=_text(values, "ssl_key_location"),
        timeout=cast(int, values["timeout"]),
        region=region,
        ids=cast(Literal["globalId", "contentId"] | None, values["ids"]),
        declared_at=node.children["url"].location,
    )


def apicurio_version(url: str) -> int | None:
    """The version of Apicurio's own interface at an address; None where it is Confluent's.

    >>> apicurio_version("http://r:8080/apis/registry/v2/"), apicurio_version("http://r:8080/apis/ccompat/v7")
    (2, None)
    """
    own = _APICURIO.fullmatch(urlsplit(url).path)
    return int(own[1]) if own else None


def glue_region(url: str) -> str | None:
    """The region of AWS Glue at an address; None for others.

    >>> glue_region("https://glue.eu-central-1.amazonaws.com"), glue_region("http://localhost:8081")
    ('eu-central-1', None)
    """
    match = _GLUE.fullmatch(urlsplit(url).hostname or "")
    return match[1] if match else None


def _require_signed(node: YamlNode, values: Mapping[str, object]) -> None:
    """Raises ProjectError for keys without a meaning for AWS Glue, whose requests are signed."""
    for name in ("username", "password", "token", "ids", "ssl_certificate_location", "ssl_key_location"):
        if values[name] is not None:
            hint = "remove it: requests are signed by AWS's default credentials (environment, ~/.aws, role)"
            raise node.children[name].error(f"{name} has no meaning for AWS Glue's registry", hint)


def _text(values: Mapping[str, object], name: str) -> str | None:
    return cast(str | None, values[name])
