"""Spark's functions: what they take and what they return. Owns the table; `calls` says which function a node calls.

A line of the table is `names: parameters -> result`. A parameter is a type or class of types (`coercion.converted`) and
may end with `?` (may be left out) or `*` (any number of times); `=` before it: nothing is converted. `T` stands for the
one type to which all arguments at such parameters are widened, `U` for the same without texts winning, `A` and `M` for
that of arrays and maps. In a result `$1` is the converted type of the first argument, and `$1.element`, `$1.key` and
`$1.value` are parts of it.

Source: `inputTypes` and `dataType` in Spark 3.5's `sqlcat.expressions`. A test compares each line with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmesh_like.analyze.spark_types.coercion import VOID, converted, widest
from sqlmesh_like.analyze.spark_types.nested_types import element_of, entry_of
from sqlmesh_like.analyze.spark_types.refusal import Refusal

_TABLE = """
acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln: double -> double
log10 log1p log2 radians rint sec sin sinh sqrt tan tanh: double -> double
sign signum: double|interval -> double
atan2 hypot pow power: double, double -> double
log: double, double? -> double
pi e: -> double
abs: number|interval -> $1
negative positive: number|interval -> $1
bin: bigint -> string
conv: string, int, int -> string
hex: bigint|binary|string -> string
unhex: string -> binary
factorial: int -> bigint
width_bucket: double|interval, double|interval, double|interval, bigint -> bigint
bit_count: integer|boolean -> int
bit_get getbit: integer, int -> tinyint
shiftleft shiftright shiftrightunsigned: int|bigint, int -> $1
isnan: double|float -> boolean
nanvl: double|float, double|float -> $1
isnull isnotnull: any -> boolean
coalesce nvl ifnull: T, T* -> T
nvl2: any, T, T -> T
if: boolean, T, T -> T
nullif: any, any -> $1
equal_null: any, any -> boolean
greatest least: U, U, U* -> U
typeof: any -> string
rand random randn: =int|bigint? -> double
uuid: -> string
monotonically_increasing_id: -> bigint
spark_partition_id: -> int
current_catalog current_database current_schema current_timezone current_user user version: -> string
curdate current_date: -> date
current_timestamp now: -> timestamp
localtimestamp: -> timestamp_ntz
ascii: string -> int
base64: binary -> string
unbase64: string -> binary
bit_length octet_length: string|binary -> int
char chr: bigint -> string
char_length character_length len length: string|binary -> int
concat_ws: string, array<string>|string* -> string
contains startswith endswith: string|binary, string|binary -> boolean
elt: int, string|binary, string|binary* -> $2
encode: string, string -> binary
decode: binary, string -> string
histogram_numeric: any, int -> array<struct<x:$1,y:double>>
find_in_set: string, string -> int
format_number: number, int|string -> string
format_string printf: string, any* -> string
soundex: =string -> string
initcap lcase lower ucase upper url_decode url_encode: string -> string
left: string|binary, int -> $1
right: string|binary, int -> string
instr: string, string -> int
locate position charindex: string, string, int? -> int
levenshtein: string, string, int? -> int
lpad rpad: string|binary, int, string|binary? -> $1
ltrim rtrim trim btrim: string, string? -> string
luhn_check: string -> boolean
mask: =string, =string?, =string?, =string?, =string? -> string
overlay: string|binary, string|binary, int, int? -> $1
parse_url: string, string, string? -> string
regexp_count: string, string -> int
regexp_instr: string, string, int? -> int
regexp_extract: string, string, int? -> string
regexp_extract_all: string, string, int? -> array<string>
regexp regexp_like rlike: string, string -> boolean
like ilike: string, string -> boolean
regexp_replace: string, string, string, int? -> string
regexp_substr: string, string -> string
repeat: string, int -> string
replace: string, string, string? -> string
sentences: string, string?, string? -> array<array<string>>
space: int -> string
split: string, string, int? -> array<string>
split_part: string, string, int -> string
substr substring: string|binary, int, int? -> $1
substring_index: string, string, int -> string
translate: string, string, string -> string
to_binary try_to_binary: string, string? -> binary
to_char to_varchar: any, string -> string
crc32: binary -> bigint
md5 sha sha1: binary -> string
sha2: binary, int -> string
hash: any, any* -> int
xxhash64: any, any* -> bigint
aes_encrypt: binary, binary, string?, string?, binary?, binary? -> binary
aes_decrypt try_aes_decrypt: binary, binary, string?, string?, binary? -> binary
add_months: date, int -> date
datediff date_diff: date, date -> int
date_add date_sub: date, int|smallint|tinyint -> date
date_format: timestamp, string -> string
date_from_unix_date: int -> date
date_trunc: string, timestamp -> timestamp
day dayofmonth dayofweek dayofyear month quarter weekday weekofyear year: date -> int
hour minute second: time -> int
from_unixtime: bigint, string? -> string
from_utc_timestamp to_utc_timestamp: timestamp, string -> timestamp
convert_timezone: string, string, timestamp_ntz -> timestamp_ntz
last_day: date -> date
make_date: int, int, int -> date
make_timestamp make_timestamp_ltz: int, int, int, int, int, decimal(16,6), string? -> timestamp
make_timestamp_ntz: int, int, int, int, int, decimal(16,6) -> timestamp_ntz
raise_error: any -> void
assert_true: boolean, any? -> void
input_file_name: -> string
input_file_block_length input_file_block_start: -> bigint
bitmap_construct_agg: bigint -> binary
bitmap_or_agg: =binary -> binary
hll_sketch_agg: =int|bigint|string|binary, int? -> binary
hll_union_agg: =binary, boolean? -> binary
hll_sketch_estimate: =binary -> bigint
hll_union: =binary, =binary, boolean? -> binary
map_concat: M* -> M
map_entries: map -> array<struct<key:$1.key,value:$1.value>>
map_filter: map, any -> $1
map_from_arrays: array, array -> map<$1.element,$2.element>
make_interval: int?, int?, int?, int?, int?, int?, decimal(18,6)? -> interval
make_dt_interval: int?, int?, int?, decimal(18,6)? -> interval day to second
make_ym_interval: int?, int? -> interval year to month
months_between: timestamp, timestamp, boolean? -> double
next_day: date, string -> date
timestamp_seconds: =number -> timestamp
timestamp_millis timestamp_micros: integer -> timestamp
to_date: string|date|time, string? -> date
to_timestamp to_timestamp_ltz try_to_timestamp: string|date|time|number, string? -> timestamp
to_timestamp_ntz: string|date|time, string? -> timestamp_ntz
to_unix_timestamp unix_timestamp: =string|date|time, string? -> bigint
trunc: date, string -> date
unix_date: =date -> int
unix_micros unix_millis unix_seconds: =timestamp -> bigint
timestampdiff: timestamp, timestamp -> bigint
get_json_object: string, string -> string
json_array_length: =string -> int
json_object_keys: =string -> array<string>
schema_of_json schema_of_csv: string, map? -> string
to_json: array|map|struct, map? -> string
to_csv: struct, map? -> string
xpath: string, string -> array<string>
xpath_boolean: string, string -> boolean
xpath_double xpath_number: string, string -> double
xpath_float: string, string -> float
xpath_int: string, string -> int
xpath_long: string, string -> bigint
xpath_short: string, string -> smallint
xpath_string: string, string -> string
array: T* -> array<T>
array_compact array_distinct shuffle: array -> $1
array_contains: array, any -> boolean
array_except array_intersect array_union: A, A -> A
array_join: array<string>, string, string? -> string
array_max array_min: array -> $1.element
array_position: array, any -> bigint
array_repeat: any, =int -> array<$1>
array_size: array -> int
arrays_overlap: A, A -> boolean
cardinality size: array|map -> int
sort_array: array, boolean? -> $1
slice: array, int, int -> $1
get: array, int -> $1.element
exists forall: array, any -> boolean
filter: array, any -> $1
array_sort: array, any? -> $1
map_keys: map -> array<$1.key>
map_values: map -> array<$1.value>
map_contains_key: map, any -> boolean
str_to_map: =string, =string?, =string? -> map<string,string>
bitmap_bit_position bitmap_bucket_number: bigint -> bigint
bitmap_count: =binary -> bigint
count: any* -> bigint
count_if: boolean -> bigint
approx_count_distinct: any, double? -> bigint
bool_and bool_or every some any: boolean -> boolean
bit_and bit_or bit_xor: integer -> $1
min max: any -> $1
first first_value last last_value any_value: any, boolean? -> $1
max_by min_by: any, any -> $1
collect_list array_agg collect_set: any -> array<$1>
stddev std stddev_pop stddev_samp variance var_pop var_samp skewness kurtosis: double -> double
corr covar_pop covar_samp: double, double -> double
regr_count: double, double -> bigint
regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy: double, double -> double
mode: any -> $1
row_number rank dense_rank: -> int
ntile: int? -> int
percent_rank cume_dist: -> double
nth_value: any, int -> $1
"""


@dataclass(frozen=True)
class Signature:
    """Parameters of a function, and its result; `is_last_repeated`: the last parameter takes any number of values."""

    parameters: tuple[str, ...]
    required: int
    is_last_repeated: bool
    result: str

    def parameter(self, position: int) -> str | None:
        if position < len(self.parameters):
            return self.parameters[position]
        return self.parameters[-1] if self.is_last_repeated else None


def _read(table: str) -> dict[str, Signature]:
    signatures: dict[str, Signature] = {}
    for line in table.strip().splitlines():
        names, _, rest = line.partition(":")
        listed, _, result = (part.strip() for part in rest.partition("->"))
        parts = listed.split(", ") if listed else []
        read = Signature(
            tuple(part.rstrip("?*") for part in parts),
            sum(part[-1] not in "?*" for part in parts),
            bool(parts) and parts[-1].endswith("*"),
            result,
        )
        signatures |= dict.fromkeys(names.split(), read)
    return signatures


SIGNATURES: Mapping[str, Signature] = _read(_TABLE)
_WIDENED = {"T": True, "U": False, "A": True, "M": True}
"""Variables for the one type that all their arguments are widened to, and whether a text wins there."""
_PART = re.compile(r"\$(\d)(?:\.(element|key|value))?")
_CLASSES = {"number": "a number", "integer": "an integer", "time": "a timestamp", "array": "an array", "map": "a map",
            "struct": "a struct", "interval": "an interval"}  # fmt: skip


def returned(name: str, types: Sequence[str | None]) -> str | Refusal | None:
    """Type of a function's result over arguments of these types; None where it is not proven.

    >>> returned("substring", ["binary", "int"]), returned("coalesce", ["int", "decimal(10,2)"])
    ('binary', 'decimal(12,2)')
    >>> returned("upper", ["array<int>"])
    Refusal(message='upper() takes string as argument 1, not array<int>')
    """
    signature = SIGNATURES.get(name)
    if signature is None:
        return None
    if len(types) < signature.required or (types and signature.parameter(len(types) - 1) is None):
        return Refusal(f"{name}() does not take {len(types)} {'argument' if len(types) == 1 else 'arguments'}")
    arguments: list[str | None] = []
    widened: dict[str, list[str | None]] = {}
    for position, type_ in enumerate(types):
        expected = signature.parameter(position) or "any"
        if expected in _WIDENED:
            widened.setdefault(expected, []).append(type_)
            arguments.append(type_)
            continue
        made = None if type_ is None else converted(type_, expected)
        if made is None and type_ is not None:
            return Refusal(f"{name}() takes {_described(expected)} as argument {position + 1}, not {type_}")
        arguments.append(made)
    variables = {variable: _common(given, variable) for variable, given in widened.items()}
    for variable, common in variables.items():
        if isinstance(common, Refusal):
            return Refusal(f"{name}() of {common.message}")
        wanted = {"A": "array", "M": "map"}.get(variable)
        if wanted and common is not None and common != VOID and not common.startswith(f"{wanted}<"):
            return Refusal(f"{name}() takes {_CLASSES[wanted]}, not {common}")
    return _filled(signature.result, arguments, variables)


def common_type(types: Sequence[str | None], *, text_wins: bool = True) -> str | Refusal | None:
    """The type to which Spark widens values of these types; None where one of them is not proven."""
    known = [type_ for type_ in types if type_ is not None]
    if len(known) != len(types):
        return None
    distinct = list(dict.fromkeys(known))
    return widest(distinct, text_wins=text_wins) or Refusal(f"{' and '.join(distinct)} have no common type")


def _common(types: Sequence[str | None], variable: str) -> str | Refusal | None:
    return common_type(types, text_wins=_WIDENED[variable])


def _filled(result: str, arguments: Sequence[str | None], variables: Mapping[str, str | Refusal | None]) -> str | None:
    """A result with the types of arguments and variables filled in."""
    unknown = False

    def fill(match: re.Match[str]) -> str:
        nonlocal unknown
        number, part = int(match[1]), match[2]
        type_ = arguments[number - 1] if number <= len(arguments) else None
        if part == "element":
            type_ = element_of(type_)
        elif part is not None:
            entry = entry_of(type_)
            type_ = entry[part == "value"] if entry else None
        unknown |= type_ is None
        return str(type_)

    made = _PART.sub(fill, result)
    for variable in _WIDENED:
        if re.search(rf"\b{variable}\b", made):
            type_ = variables.get(variable)
            unknown |= not isinstance(type_, str)
            made = re.sub(rf"\b{variable}\b", str(type_), made)
    return None if unknown else made


def _described(expected: str) -> str:
    return " or ".join(_CLASSES.get(choice, choice) for choice in expected.removeprefix("=").split("|"))
