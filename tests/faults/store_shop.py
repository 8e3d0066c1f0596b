"""The shop's lake in a bucket: the same tables as on a disk, copied, and the project with a target there."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import client_of, use_store
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.side_by_side import side_by_side
from tests.faults.shop import MODELS, Shop
from tests.services.stores import Server


@dataclass
class StoreShop(Shop):
    """The lake of a shop below `warehouse`."""

    warehouse: str = ""

    @staticmethod
    def copied(shop: Shop, server: Server, bucket: str, endpoint: str = "") -> StoreShop:
        """The lake of `shop` before its first event, in a new bucket; `shop.root` has the project from now on.

        `endpoint`: of a proxy before an S3 server.
        """
        server.make_bucket(bucket)
        warehouse, proxy = f"{server.uri(bucket)}/w", (endpoint,) if endpoint else ()
        output = {"type": "spark", "master": "local[2]", "schema": "dws", "warehouse": warehouse}
        profile = {"lake": {"target": "store", "outputs": {"store": {**output, **server.output(*proxy)}}}}
        (shop.root / "profiles.yml").write_text(json.dumps(profile))
        model = shop.root / "models" / "region.sql"
        model.write_text(model.read_text().partition("}}\n")[2] or model.read_text())  # it is not published
        use_store(warehouse, server.settings(*proxy))
        shop.reset()
        client, kept = client_of(warehouse), shop.root / "warehouse"
        files = [path for path in kept.rglob("*") if path.is_file()]
        side_by_side(lambda path: client.put(f"w/{path.relative_to(kept)}", path.read_bytes()), files)
        return StoreShop(shop.root, dict(shop.rows_at), warehouse=warehouse)

    def table(self, unique_id: str) -> str:
        return f"{self.warehouse}/dws/{unique_id.rpartition('.')[2]}"

    def timeline(self, unique_id: str) -> Timeline:
        return Timeline(self.table(unique_id))

    def remains(self) -> list[str]:
        """What is left of interrupted commits: claims, markers, actions under way, files that no commit has written."""
        left = []
        for name in MODELS:
            uri, timeline = self.table(name), self.timeline(name)
            left += [f"{uri} {instant}" for instant in timeline.unfinished]
            below = folder(f"{uri}/.hoodie").files()
            left += [f"{uri} {path}" for path in below if path.startswith((".sml_writer/", ".temp/"))]
            written = {write.path for commit in timeline.commits for write in commit.writes}
            left += [f"{uri} {path}" for path in timeline.data_files - written]
        return left
