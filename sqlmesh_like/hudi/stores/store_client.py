"""Clients of object stores and of HDFS. Owns how each is reached, for how long it is tried, and what errors say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlmesh_like.errors import MachineError, NodeError, SmlError
from sqlmesh_like.names import STORE_SCHEMES, is_hdfs, is_store
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.secrets import scrub_text

if TYPE_CHECKING:
    from obstore.store import ObjectStore

    from sqlmesh_like.hudi.stores.hdfs_client import HdfsClient

STORE_PREFIX = "store-"
"""Before obstore's scheme in paths for DuckDB: `store-s3://lake/w/t/x.parquet`. It has an `s3` of its own."""
INSTALL = "pip install 'sqlmesh_like[s3]'"
INSTALL_HDFS = "pip install 'sqlmesh_like[hdfs]'"
_CONNECT, _SILENCE, _RETRY = timedelta(seconds=4), timedelta(seconds=8), timedelta(seconds=8)
"""Together less than the 20 seconds in which a store that does not answer is given up."""
_WHOLE = timedelta(minutes=5)
"""For a request whose answer is large and arrives."""
_RETRIES = 3


@dataclass
class _Reached:
    """How the buckets of this process's warehouses are reached; `latest`: every other bucket."""

    buckets: dict[str, StoreSettings] = field(default_factory=dict)
    latest: StoreSettings = field(default_factory=StoreSettings)


@cache
def _reached_stores() -> _Reached:
    return _Reached()


def uses_stores() -> bool:
    """Whether a warehouse of this process is on a store."""
    return bool(_reached_stores().buckets)


def use_store(uri: str, settings: StoreSettings) -> None:
    """Set how the bucket of a warehouse is reached, and other buckets that no warehouse of this process is in."""
    if is_store(uri):
        _reached_stores().buckets[bucket_of(uri)] = _reached_stores().latest = settings


def bucket_of(uri: str) -> str:
    """
    >>> bucket_of("s3a://lake/w/dws")
    'lake'
    """
    return urlsplit(uri).netloc


def obstore_address(uri: str) -> tuple[str, str]:
    """obstore's scheme of a URI, and its bucket and key.

    >>> obstore_address("s3a://lake/w/dws")
    ('s3', 'lake/w/dws')
    """
    scheme, _, rest = uri.partition("://")
    return STORE_SCHEMES[scheme], rest.strip("/")


def key_of(uri: str) -> str:
    """The path in the bucket.

    >>> key_of("s3a://lake/w/dws/")
    'w/dws'
    """
    return uri.partition("://")[2].partition("/")[2].strip("/")


def client_of(uri: str) -> ObjectStore | HdfsClient:
    """Return the client of the bucket, or the HDFS, of a URI. Raises MachineError where the library is missing."""
    bucket = bucket_of(uri)
    settings = _reached_stores().buckets.get(bucket, _reached_stores().latest)
    return _client(STORE_SCHEMES[uri.partition("://")[0]], bucket, settings)


def put_content(uri: str, content: bytes) -> None:
    """Write a small file."""
    with failing(uri):
        client_of(uri).put(key_of(uri), content)


def get_content(uri: str) -> bytes:
    """Read a small file, by one request. Raises FileNotFoundError."""
    with failing(uri):
        return bytes(client_of(uri).get(key_of(uri)).bytes())


def child_names(uri: str) -> list[str]:
    """Names of the files and folders right below a place, a thousand by a request; none where it does not exist.

    Both are asked of the library itself: fsspec would hand each question to another thread, and a plan asks hundreds.
    """
    with failing(uri):
        listed = client_of(uri).list_with_delimiter(key_of(uri) or None)
    paths = [*listed["common_prefixes"], *(each["path"] for each in listed["objects"])]
    return [path.rstrip("/").rpartition("/")[2] for path in paths]


def delete_files(uri: str, relative: Sequence[str]) -> None:
    """Delete files below a place, a thousand in a request; one that is gone is none to delete."""
    if not relative:
        return
    client, keys = client_of(uri), [f"{key_of(uri)}/{each}" for each in relative]
    with failing(uri):
        try:
            client.delete(keys)
        except FileNotFoundError:  # not of S3, which does not say so
            for key in keys:
                with suppress(FileNotFoundError):
                    client.delete(key)


def keeps_versions(uri: str) -> bool:
    """Whether the bucket of a table keeps, or has kept, versions of its objects: then each has a version."""
    with failing(uri):
        return client_of(uri).head(f"{key_of(uri)}/.hoodie/hoodie.properties")["version"] is not None


def put_file(uri: str, file: Path) -> None:
    """Write a file of this machine to a store; others see all of it or nothing."""
    with failing(uri):
        client_of(uri).put(key_of(uri), file)


@lru_cache(maxsize=64)
def _client(scheme: str, bucket: str, settings: StoreSettings) -> ObjectStore | HdfsClient:
    require_library(f"{scheme}://{bucket}")
    if scheme == "hdfs":
        from sqlmesh_like.hudi.stores.hdfs_client import HdfsClient

        return HdfsClient(bucket, dict(settings.hadoop))
    from obstore.store import from_url

    options = store_options(settings) if scheme == "s3" else common_options()
    with failing(f"{scheme}://{bucket}"):
        return from_url(f"{scheme}://{bucket}", **options)


def require_library(uri: str) -> None:
    """Raises MachineError where obstore, or for HDFS hdfs-native, is not installed."""
    modules, hint = (("obstore", "hdfs_native"), INSTALL_HDFS) if is_hdfs(uri) else (("obstore",), INSTALL)
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            package = module.replace("_", "-")
            text = f"{uri} is read by the Python package {package}, which is missing"
            raise MachineError(text, hint=hint) from error


def common_options() -> dict[str, Any]:
    """Options of any client: for how long it tries."""
    return {
        "client_options": {
            "connect_timeout": _CONNECT,
            "read_timeout": _SILENCE,
            "timeout": _WHOLE,
            "allow_http": True,
        },
        "retry_config": {"max_retries": _RETRIES, "retry_timeout": _RETRY},
    }


def store_options(settings: StoreSettings) -> dict[str, Any]:
    """Options of an S3 client. Without keys in the profile: boto3's default chain if it is there, else obstore's."""
    # With an endpoint of one's own, obstore would want the bucket's name in it.
    config: dict[str, Any] = {"virtual_hosted_style_request": not (settings.path_style or settings.endpoint)}
    for name, value in (("endpoint", settings.endpoint), ("region", settings.region)):
        if value:
            config[name] = value
    provider = None
    if settings.access_key:
        config |= {"access_key_id": settings.access_key, "secret_access_key": settings.secret_key}
        if settings.session_token:
            config["session_token"] = settings.session_token
    else:
        provider = _default_chain()
    return {"config": config, **common_options(), **({"credential_provider": provider} if provider else {})}


def _default_chain() -> object | None:
    """Boto's chain, which also knows profiles and single sign-on; None where it is not installed or finds no keys."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    session = boto3.Session()
    return None if session.get_credentials() is None else Boto3CredentialProvider(session)


@contextmanager
def failing(uri: str) -> Iterator[None]:
    """Raise errors of the library in words. FileNotFoundError stays what it is, except where the bucket is missing."""
    try:
        yield
    except (SmlError, MemoryError):
        raise
    except Exception as error:
        if (in_words := _in_words(uri, error)) is None:
            raise
        raise in_words from error


def _in_words(uri: str, error: Exception) -> SmlError | None:
    """The error to raise; None for one that is not of the store."""
    from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

    text = str(error)
    if isinstance(error, FileNotFoundError):
        if "NoSuchBucket" not in text and "ContainerNotFound" not in text:
            return None
    elif isinstance(error, AlreadyExistsError | PreconditionError) or not isinstance(error, BaseError):
        return None
    place = scrub_text(uri)
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return MachineError(f"{place}: there is no such bucket", hint="create it, or change `warehouse:` of the target")
    if "403 Forbidden" in text or "401 Unauthorized" in text or "credential" in text.lower():
        code = _code(text) or "no credentials, or not allowed"
        hint = "check the keys (environment, role; ~/.aws if boto3 is installed), their rights, `region:` of `store:`"
        return MachineError(f"{place}: access is denied: {code}", hint=hint)
    if "http error" in text.lower() or "timed out" in text or "error sending request" in text:
        hint = "check `endpoint:` under `store:` of the target, and the network"
        return MachineError(f"{place}: the store does not answer{_address(text)}", hint=hint)
    return NodeError(
        f"{place}: the store failed: {_code(text) or _first_line(text)}", hint="run the same command again"
    )


def _code(text: str) -> str:
    """The code and message of an S3 answer."""
    code, message = (_between(text, f"<{tag}>", f"</{tag}>") for tag in ("Code", "Message"))
    return ": ".join(filter(None, (code, message)))


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0].strip() if start in text else ""


def _address(text: str) -> str:
    """Scheme, host and port that were asked; nothing else of the address, which may be signed."""
    for word in text.split():
        if word.startswith(("http://", "https://")):
            split = urlsplit(word)
            return f" at {split.scheme}://{split.hostname}{f':{split.port}' if split.port else ''}"
    return ""


def _first_line(text: str) -> str:
    return scrub_text(text.strip().splitlines()[0]) if text.strip() else "no reason is given"
