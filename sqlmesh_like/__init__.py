"""sqlmesh_like: write a SELECT; its Hudi table stays exactly equal to it, at a cost that follows the change."""

__version__ = "0.1.0"
