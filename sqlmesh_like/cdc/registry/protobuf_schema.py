"""Protobuf schemas as registries have them. Owns compiling their text, and which messages they describe.

A registry has the text of a `.proto` file, or the file's descriptor in base64, as some clients register it; Google's
own compiler reads the text. What Confluent's serializers know without a reference is known here, too.
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from sqlmesh_like.cdc.registry.message_schema import SchemaError, UndecodableError

_ROOT = "sml_message.proto"
_SECONDS = 60
BUILT_IN: Mapping[str, str] = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
    "google/type/date.proto": """syntax = "proto3";
package google.type;
message Date { int32 year = 1; int32 month = 2; int32 day = 3; }
""",
    "google/type/timeofday.proto": """syntax = "proto3";
package google.type;
message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
""",
}
"""Files that a schema may import without a reference, beside those of the compiler (`google/protobuf`)."""


def is_available() -> bool:
    """Whether what reads Protobuf is installed."""
    return find_spec("grpc_tools") is not None and find_spec("google.protobuf") is not None


@dataclass(frozen=True)
class ProtobufSchema:
    """A file of messages: its descriptor and those of all that it imports (`FileDescriptorSet`), and its own name."""

    files: bytes
    root: str = _ROOT

    @cached_property
    def _pool(self) -> tuple[Any, Any]:
        from google.protobuf import descriptor_pb2, descriptor_pool

        files = descriptor_pb2.FileDescriptorSet.FromString(self.files)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:  # each after those that it imports
            pool.AddSerializedFile(file.SerializeToString())
        return pool, next(file for file in files.file if file.name == self.root)

    def message(self, path: Sequence[int]) -> Any:
        """The descriptor of a message by its place in the file, and in the messages around it; None: of no place.

        Raises UndecodableError where there is none.
        """
        pool, file = self._pool
        names, types = [file.package] if file.package else [], file.message_type
        for place in path:
            if not 0 <= place < len(types):
                raise UndecodableError
            names.append(types[place].name)
            types = types[place].nested_type
        return pool.FindMessageTypeByName(".".join(names)) if path else None

    def __getstate__(self) -> dict[str, object]:
        return {"files": self.files, "root": self.root}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


def protobuf_schema(text: str, references: Sequence[tuple[str, str]] = ()) -> ProtobufSchema:
    """Read a schema. `references`: names by which it imports others, and their texts.

    Raises SchemaError where it is not a Protobuf schema that can be compiled.
    """
    with TemporaryDirectory(prefix="sml_protobuf_") as folder:
        own = {**BUILT_IN, **dict(references), _ROOT: text}
        descriptors = {name: data for name, content in own.items() if (data := _descriptor(content, name)) is not None}
        for name, content in own.items():
            if name not in descriptors:
                _write(Path(folder), name, content)
        files = _descriptor_set(Path(folder), descriptors) if descriptors else _compile(Path(folder), [_ROOT])
    schema = ProtobufSchema(files)
    try:
        schema.message(())
    except TypeError as error:
        raise SchemaError(f"is not a Protobuf schema that can be read: {str(error)[:200]}") from error
    return schema


def _write(folder: Path, name: str, content: str) -> None:
    path = PurePosixPath(name)
    place = folder / path
    try:
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise ValueError
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SchemaError(f"imports {name!r}, which is not a path below its own folder") from error


def _compile(folder: Path, names: Sequence[str]) -> bytes:
    """The descriptors of files and of what they import. `names`: as they are imported."""
    import grpc_tools

    output, include = folder / ".descriptors", (Path(str(grpc_tools.__file__)).parent / "_proto")
    # As whole paths, so that none is an option of the compiler.
    paths = [_path(name, (folder, include)) for name in names]
    # -P: what a schema imports is not imported as Python.
    command = [sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{include}", "--include_imports"]
    try:
        result = subprocess.run(
            [*command, f"--descriptor_set_out={output}", *paths],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SchemaError(f"cannot be compiled within {_SECONDS} seconds") from error
    if result.returncode:
        said = next((line for line in result.stderr.splitlines() if _ROOT in line or ".proto:" in line), "")
        said = re.sub(rf"^.*{re.escape(_ROOT)}:", "line ", said)[:200]
        raise SchemaError(f"is not a Protobuf schema that can be compiled: {said or 'protoc refuses it'}")
    return output.read_bytes()


def _path(name: str, folders: Sequence[Path]) -> str:
    paths = (folder / name for folder in folders)
    path = next((path for path in paths if path.is_file() and ".." not in path.parts), None)
    if path is None:
        raise SchemaError(f"imports {name}, which is not known")
    return str(path)


def _descriptor(content: str, name: str) -> Any:
    """The descriptor of a file that is registered as such, with the name that it is imported by; None for a text."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(content.strip(), validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    file.name = name
    return file


def _descriptor_set(folder: Path, descriptors: Mapping[str, Any]) -> bytes:
    """The descriptors, and what the compiler makes of the texts that they import, each after what it imports."""
    from google.protobuf import descriptor_pb2

    known: dict[str, Any] = dict(descriptors)
    texts = [each for file in descriptors.values() for each in file.dependency if each not in descriptors]
    if texts:
        compiled = descriptor_pb2.FileDescriptorSet.FromString(_compile(folder, sorted(set(texts))))
        known = {**{file.name: file for file in compiled.file}, **known}
    result = descriptor_pb2.FileDescriptorSet()
    done: set[str] = set()

    def add(name: str, within: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in within or name not in known:
            raise SchemaError(f"imports {name}, which {'imports it' if name in within else 'is not known'}")
        for each in known[name].dependency:
            add(each, (*within, name))
        done.add(name)
        result.file.append(known[name])

    add(_ROOT, ())
    return bytes(result.SerializeToString())
