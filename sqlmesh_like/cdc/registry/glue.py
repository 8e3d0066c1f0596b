"""AWS Glue's schema registry: schemas by the UUID of their version, asked for by boto3. Owns its errors.

https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlmesh_like.cdc.registry.frames import GlueFrame
from sqlmesh_like.cdc.registry.interfaces import Ask, Definition
from sqlmesh_like.project.nodes import RegistrySettings

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRY_AGAIN = {"ThrottlingException", "InternalServiceException", "InternalFailure", "ServiceUnavailable"}


class UnknownVersionError(Exception):
    """The registry has no such version."""


class GlueRefusedError(Exception):
    """The registry is not asked or does not answer, whenever it is tried: the text says why, `hint` what to do."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint


class Glue:
    """The registry's interface; the path of a schema is the UUID of its version."""

    frame = GlueFrame()

    def path_of(self, number: int) -> str:
        return str(UUID(int=number))

    def definition(self, path: str, answer: bytes, ask: Ask) -> Definition | None:  # noqa: ARG002 - one answer has all
        match json.loads(answer):
            case {"SchemaDefinition": str(text), "DataFormat": str(kind)}:
                return Definition(text, "Protobuf in AWS Glue" if kind == "PROTOBUF" else kind)
            case _:
                return None

    def is_unknown(self, answer: object) -> bool:  # noqa: ARG002 - an error says so
        return False


def ask_glue(url: str, settings: RegistrySettings, version: str, seconds: float) -> bytes | str:
    """What Glue answers about a version (JSON), or why it does not now. Signed by AWS's default credentials.

    Raises UnknownVersionError and GlueRefusedError.
    """
    if find_spec("boto3") is None:
        raise GlueRefusedError("is AWS Glue's, whose client is not installed", "pip install 'sqlmesh_like[glue]'")
    import boto3
    from botocore import exceptions
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, SSLError

    # Waiting and asking again are the caller's.
    waits = Config(connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 1})
    try:
        session = boto3.session.Session()
        verify = settings.authorities or True
        client = session.client("glue", settings.region, endpoint_url=url, verify=verify, config=waits)
        answer: Mapping[str, Any] = client.get_schema_version(SchemaVersionId=version)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code"))
        if code == "EntityNotFoundException":
            raise UnknownVersionError from error
        if code in _TRY_AGAIN or int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500:
            return code
        hint = "check AWS's default credentials, and that they may glue:GetSchemaVersion"
        raise GlueRefusedError(f"refuses to answer: {code}", hint) from error
    except SSLError as error:
        hint = "set registry: {ssl_ca_location: …} to its authority"
        raise GlueRefusedError(f"cannot be asked by TLS: {error}"[:300], hint) from error
    except (HTTPClientError, exceptions.ConnectionError) as error:
        return type(error).__name__
    except (BotoCoreError, ValueError, OSError) as error:
        hint = "set AWS's default credentials (environment, ~/.aws, role), and aws_region of registry:"
        raise GlueRefusedError(f"cannot be asked: {type(error).__name__}: {error}"[:300], hint) from error
    return json.dumps({name: answer.get(name) for name in ("SchemaDefinition", "DataFormat")}).encode()
