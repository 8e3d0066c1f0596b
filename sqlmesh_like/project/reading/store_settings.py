"""How an object store is reached: endpoint, region, keys, leases. Owns reading them from an output of `profiles.yml`.

Spark and this process read the same settings: what `store:` says is given to both, and Hadoop's own `fs.s3a.*` under
`spark:` counts for both as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from sqlmesh_like.names import is_hdfs

LEASE_SECONDS = 120
"""Default time for which a lock holds without being renewed."""
_HADOOP = "spark.hadoop."
_S3A = f"{_HADOOP}fs.s3a."
SparkJars = Literal["pinned", "site"]


@dataclass(frozen=True)
class StoreSettings:
    """Settings of the store of a warehouse; empty texts are left to the cloud's default chain.

    `single_writer`: no locks are taken, because the user sees to it that one call writes at a time. `lease_seconds`:
    time after which another call may take over the locks of one that no longer renews them. `spark_jars`: whether Spark
    gets the pinned jars of `s3a://`, or has its own. `versions_expire`: a rule of the bucket removes versions of
    deleted objects, which `sml forget` cannot. `hadoop`: of HDFS, Hadoop's settings by their names.
    """

    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    single_writer: bool = False
    lease_seconds: int = LEASE_SECONDS
    spark_jars: SparkJars = "pinned"
    versions_expire: bool = False
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    hadoop: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def needs_pinned_jars(self, warehouse: str) -> bool:
        """Whether Spark gets the pinned jars of `s3a://` for this warehouse.

        >>> [StoreSettings().needs_pinned_jars(place) for place in ("s3a://lake/w", "s3://lake/w", "/lake")]
        [True, False, False]
        """
        # `s3://` is a file system of EMR's own, which its Spark brings.
        return self.spark_jars == "pinned" and warehouse.startswith(("s3a://", "s3n://"))

    @property
    def for_spark(self) -> Mapping[str, str]:
        """Hadoop's settings of `s3a://` by their names in Spark, without keys."""
        settings = {
            # As `sml` itself: environment, web identity, ~/.aws, container, instance.
            f"{_S3A}aws.credentials.provider": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
            # The defaults try for half an hour. Whether the store answers was asked before; in the middle of work a
            # short fault is worth a minute or two.
            f"{_S3A}attempts.maximum": "5",
            f"{_S3A}retry.limit": "5",
            f"{_S3A}connection.establish.timeout": "5000",
            f"{_S3A}connection.timeout": "60000",
            # Deleting the markers of parent folders costs a request for each, with every file.
            f"{_S3A}directory.marker.retention": "keep",
        }
        if self.endpoint:
            settings[f"{_S3A}endpoint"] = self.endpoint
            settings[f"{_S3A}connection.ssl.enabled"] = str(not self.endpoint.startswith("http://")).lower()
        if self.region:
            settings[f"{_S3A}endpoint.region"] = self.region
        if self.path_style:
            settings[f"{_S3A}path.style.access"] = "true"
        if self.access_key:
            # Keys in the profile are Hadoop's own settings; its providers read them in this order.
            kind = "TemporaryAWSCredentialsProvider" if self.session_token else "SimpleAWSCredentialsProvider"
            settings[f"{_S3A}aws.credentials.provider"] = f"org.apache.hadoop.fs.s3a.{kind}"
        return settings


def read_store_settings(store: Mapping[str, object], spark: Mapping[str, str], warehouse: str) -> StoreSettings:
    """Return the settings of `store:`, and for what it leaves out Hadoop's under `spark:`, those of the bucket first.

    >>> spark = {"spark.hadoop.fs.s3a.endpoint": "http://a", "spark.hadoop.fs.s3a.bucket.lake.endpoint": "http://b"}
    >>> read_store_settings({}, spark, "s3a://lake/w").endpoint, read_store_settings({}, spark, "s3a://x/w").endpoint
    ('http://b', 'http://a')
    """
    bucket = warehouse.partition("://")[2].partition("/")[0]

    def hadoop(name: str) -> str:
        return spark.get(f"{_S3A}bucket.{bucket}.{name}", spark.get(f"{_S3A}{name}", ""))

    endpoint = str(store.get("endpoint") or hadoop("endpoint"))
    if endpoint and "://" not in endpoint:
        is_plain = hadoop("connection.ssl.enabled") == "false"
        endpoint = f"{'http' if is_plain else 'https'}://{endpoint}"
    return StoreSettings(
        endpoint=endpoint,
        region=str(store.get("region") or hadoop("endpoint.region")),
        path_style=bool(store.get("path_style", hadoop("path.style.access") == "true")),
        single_writer=bool(store.get("single_writer", False)),
        lease_seconds=cast(int, store.get("lease_seconds") or LEASE_SECONDS),
        spark_jars=cast(SparkJars, store.get("spark_jars") or "pinned"),
        versions_expire=bool(store.get("versions_expire", False)),
        access_key=hadoop("access.key"),
        secret_key=hadoop("secret.key"),
        session_token=hadoop("session.token"),
        hadoop=_hadoop_settings(spark) if is_hdfs(warehouse) else (),
    )


def _hadoop_settings(spark: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """
    >>> _hadoop_settings({"spark.hadoop.dfs.nameservices": "n", "spark.sql.ansi.enabled": "false"})
    (('dfs.nameservices', 'n'),)
    """
    names = sorted(name for name in spark if name.startswith(_HADOOP))
    return tuple((name.removeprefix(_HADOOP), spark[name]) for name in names)
