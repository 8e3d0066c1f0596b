"""The keys of `selectors.yml`."""

from __future__ import annotations

from sqlmesh_like.project.keys.shape import JsonSchema, Key, Shape
from sqlmesh_like.project.keys.value_types import anything, choice, count, custom, each, flag, text
from sqlmesh_like.project.selection import INDIRECT, METHODS


class DefinitionShape(Shape):
    """A text of the command line's grammar, a union, an intersection, one `method: value`, or these keys."""

    def schema(self) -> JsonSchema:
        parts: JsonSchema = {"type": "array", "items": {"anyOf": [self, _EXCLUDE]}}
        both = [{"type": "object", "properties": {key: parts}, "required": [key], "additionalProperties": False}
                for key in ("union", "intersection")]  # fmt: skip
        methods = f"^({'|'.join((*METHODS, 'selector'))})([.].*)?$"
        short: JsonSchema = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False,
                         "patternProperties": {methods: {}}}  # fmt: skip
        return {"anyOf": [{"type": "string"}, self._by_method(), *both, short]}

    def _by_method(self) -> JsonSchema:
        schema = super().schema()
        properties = schema["properties"]
        assert isinstance(properties, dict)
        return {**schema, "properties": {**properties, "exclude": {"type": ["array", "null"], "items": self}}}


_EXCLUSION = Key(custom("list: definition", {}), help="What is excluded.", example=[{"tag": "slow"}])
_DEFINITION_KEYS = {
    "method": Key(text, is_required=True, help="The selector method.", example="tag"),
    "value": Key(custom("text or list of texts", {}), is_required=True, help="The values to match.", example="nightly"),
    "parents": Key(flag, False, help="Whether the nodes it reads are selected too.", example=True),
    "parents_depth": Key(count(0), help="Number of steps up. Default: all.", example=1),
    "children": Key(flag, False, help="Whether the nodes that read it are selected too.", example=True),
    "children_depth": Key(count(0), help="Number of steps down. Default: all.", example=1),
    "childrens_parents": Key(flag, False, help="Like @ on the command line.", example=True),
    "indirect_selection": Key(choice(*INDIRECT), help="Which tests are selected with it.", example="cautious"),
}  # fmt: skip
DEFINITION = DefinitionShape("a definition", {**_DEFINITION_KEYS, "exclude": _EXCLUSION})
_EXCLUDE: JsonSchema = {"type": "object", "required": ["exclude"], "additionalProperties": False,
                    "properties": {"exclude": {"type": "array", "items": DEFINITION}}}  # fmt: skip
SELECTOR = Shape("a selector", {
    "name": Key(text, is_required=True, help="Its name, for --selector.", example="nightly"),
    "description": Key(text, help="What it selects, in words.", example="What runs at night."),
    "definition": Key(custom("definition", DEFINITION), is_required=True, help="What it selects.",
                      example={"union": [{"tag": "nightly"}]}),
    "default": Key(flag, False, help="Whether it is used if a call selects nothing itself.", example=True),
})  # fmt: skip
SELECTORS = Shape("selectors.yml", {
    "version": Key(anything, help="Version of the format: 2.", example=2),
    "selectors": Key(each(SELECTOR), help="The selectors.", example=[{"name": "nightly", "definition": "tag:nightly"}]),
})  # fmt: skip
