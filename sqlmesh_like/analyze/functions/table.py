"""Spark's functions: the table of all of them but the aggregates that `aggregates` knows. Owns no rule.

Which are decided by their arguments alone was reviewed function by function. Source: Spark 3.5's `FunctionRegistry` and
`TableFunctionRegistry`, what its grammar knows beside them, the table functions of Hudi's extension, and `inputTypes`
and `dataType` in `sqlcat.expressions`. A test compares each signature with Spark, which was asked for each count, too
(`WRONG_NUM_ARGS`).
"""

from __future__ import annotations

from sqlmesh_like.analyze.functions.function import Function, functions_of

_BY_ARGUMENTS = """
acos=Acos acosh=Acosh asin=Asin asinh=Asinh atan=Atan atanh=Atanh cbrt=Cbrt cos=Cos cosh=Cosh cot=Cot csc=Csc
  degrees=Degrees exp=Exp expm1 ln=Ln: double -> double
log10 log1p log2 radians=Radians rint=Rint sec=Sec sin=Sin sinh=Sinh sqrt=Sqrt tan=Tan tanh=Tanh: double -> double
sign=Sign signum: double|interval -> double
atan2=Atan2(this expression) hypot pow=Pow(this expression) power: double, double -> double
log=Log(this expression): double, double? -> double
pi=Pi() e: -> double
abs=Abs: number|interval -> $1
negative=Negative positive: number|interval -> $1
bin: bigint -> string
conv: string, int, int -> string
hex=Hex: bigint|binary|string -> string
unhex=Unhex: string -> binary
factorial=Factorial: int -> bigint
width_bucket=WidthBucket(this min_value max_value num_buckets): double|interval, double|interval, double|interval,
  bigint -> bigint
bit_count=BitwiseCount: integer|boolean -> int
bit_get getbit=Getbit(this expression): integer, int -> tinyint
shiftleft=BitwiseLeftShift(this expression) shiftright=BitwiseRightShift(this expression) shiftrightunsigned:
  int|bigint, int -> $1
isnan=IsNan: double|float -> boolean
nanvl=Nanvl(this expression): double|float, double|float -> $1
isnull isnotnull: any -> boolean
coalesce=Coalesce(this expressions): T, T* -> T
nvl ifnull {2}: T, T* -> T
nvl2=Nvl2(this true false): any, T, T -> T
if=If(this true false): boolean, T, T -> T
nullif=Nullif(this expression): any, any -> $1
equal_null=EqualNull(this expression): any, any -> boolean
greatest=Greatest(this expressions) least=Least(this expressions): U, U, U* -> U
typeof=Typeof: any -> string
ascii=Ascii: string -> int
base64=ToBase64: binary -> string
unbase64=FromBase64: string -> binary
bit_length=BitLength octet_length: string|binary -> int
char chr=Chr(expressions): bigint -> string
char_length character_length len length=Length: string|binary -> int
concat_ws=ConcatWs(expressions): string, array<string>|string* -> string
contains=Contains(this expression) startswith=StartsWith(this expression) endswith=EndsWith(this expression):
  string|binary, string|binary -> boolean
elt=Elt(this expressions): int, string|binary, string|binary* -> $2
encode=Encode(this charset): string, string -> binary
decode=Decode(this charset) {2-}: binary, string -> string
find_in_set: string, string -> int
format_number: number, int|string -> string
format_string=Format(this expressions) printf: string, any* -> string
soundex=Soundex: =string -> string
initcap=Initcap lcase lower=Lower ucase upper=Upper url_decode url_encode: string -> string
left=Left(this expression): string|binary, int -> $1
right=Right(this expression): string|binary, int -> string
instr=StrPosition(this substr): string, string -> int
locate position: string, string, int? -> int
charindex: string, string, int? -> int
levenshtein=Levenshtein(this expression): string, string, int? -> int
lpad=Pad(this expression fill_pattern) rpad: string|binary, int, string|binary? -> $1
ltrim rtrim trim=Trim(this expression) btrim: string, string? -> string
luhn_check: string -> boolean
mask: =string, =string?, =string?, =string?, =string? -> string
overlay=Overlay(this expression from_ for_): string|binary, string|binary, int, int? -> $1
parse_url=ParseUrl(this part_to_extract key): string, string, string? -> string
regexp_count=RegexpCount(this expression): string, string -> int
regexp_instr=RegexpInstr(this expression position): string, string, int? -> int
regexp_extract=RegexpExtract(this expression group): string, string, int? -> string
regexp_extract_all=RegexpExtractAll(this expression group): string, string, int? -> array<string>
regexp regexp_like=RegexpLike(this expression) rlike: string, string -> boolean
like=Like(this expression) ilike=ILike(this expression): string, string -> boolean
regexp_replace=RegexpReplace(this expression replacement position): string, string, string, int? -> string
regexp_substr=RegexpSubstr(this expression): string, string -> string
repeat=Repeat(this times): string, int -> string
replace=Replace(this expression replacement): string, string, string? -> string
sentences: string, string?, string? -> array<array<string>>
space=Space: int -> string
split=RegexpSplit(this expression limit): string, string, int? -> array<string>
split_part=SplitPart(this delimiter part_index): string, string, int -> string
substr substring=Substring(this start length): string|binary, int, int? -> $1
substring_index=SubstringIndex(this delimiter count): string, string, int -> string
translate=Translate(this from_ to): string, string, string -> string
to_binary=ToBinary(this format) try_to_binary: string, string? -> binary
to_char=ToChar(this format) to_varchar: any, string -> string
crc32: binary -> bigint
md5=MD5 sha=SHA sha1: binary -> string
sha2=SHA2(this length): binary, int -> string
hash: any, any* -> int
xxhash64: any, any* -> bigint
add_months=AddMonths(this expression): date, int -> date
datediff date_diff {2-3}: date, date -> int
date_add {2-3}: date, int|smallint|tinyint -> date
date_sub: date, int|smallint|tinyint -> date
date_format=TimeToStr(this format): timestamp, string -> string
date_from_unix_date=DateFromUnixDate: int -> date
date_trunc: string, timestamp -> timestamp
day=Day dayofmonth=DayOfMonth dayofweek=DayOfWeek dayofyear=DayOfYear month=Month quarter=Quarter weekday
  weekofyear=WeekOfYear year=Year: date -> int
hour=Hour minute=Minute second=Second: time -> int
from_unixtime=UnixToStr: bigint, string? -> string
from_utc_timestamp=AtTimeZone(this zone) to_utc_timestamp=FromTimeZone(this zone): timestamp, string -> timestamp
convert_timezone=ConvertTimezone(source_tz target_tz timestamp) {2-3}: string, string, timestamp_ntz -> timestamp_ntz
last_day=LastDay: date -> date
make_date: int, int, int -> date
make_timestamp=TimestampFromParts(year month day hour min sec) make_timestamp_ltz: int, int, int, int, int,
  decimal(16,6), string? -> timestamp
make_timestamp_ntz: int, int, int, int, int, decimal(16,6) -> timestamp_ntz
months_between=MonthsBetween(this expression roundoff): timestamp, timestamp, boolean? -> double
next_day=NextDay(this expression): date, string -> date
timestamp_seconds: =number -> timestamp
timestamp_millis timestamp_micros: integer -> timestamp
to_date=TsOrDsToDate: string|date|time, string? -> date
to_timestamp=StrToTime to_timestamp_ltz try_to_timestamp: string|date|time|number, string? -> timestamp
to_timestamp_ntz: string|date|time, string? -> timestamp_ntz
to_unix_timestamp: =string|date|time, string? -> bigint
unix_timestamp=StrToUnix {0-2}: =string|date|time, string? -> bigint
trunc=DateTrunc(this unit): date, string -> date
unix_date=UnixDate: =date -> int
unix_micros=UnixMicros unix_millis=UnixMillis unix_seconds=UnixSeconds: =timestamp -> bigint
timestampdiff: timestamp, timestamp -> bigint
get_json_object=JSONExtractScalar(this expression): string, string -> string
json_array_length: =string -> int
json_object_keys=JSONKeys: =string -> array<string>
schema_of_json schema_of_csv: string, map? -> string
to_json=JSONFormat(this options): array|map|struct, map? -> string
to_csv: struct, map? -> string
xpath: string, string -> array<string>
xpath_boolean: string, string -> boolean
xpath_double xpath_number: string, string -> double
xpath_float: string, string -> float
xpath_int: string, string -> int
xpath_long: string, string -> bigint
xpath_short: string, string -> smallint
xpath_string: string, string -> string
array=Array(expressions): T* -> array<T>
array_compact=ArrayCompact array_distinct=ArrayDistinct: array -> $1
array_contains=ArrayContains(this expression): array, any -> boolean
array_except=ArrayExcept(this expression) array_intersect=ArrayIntersect(expressions) array_union: A, A -> A
array_join=ArrayToString(this expression null): array<string>, string, string? -> string
array_max=ArrayMax array_min=ArrayMin: array -> $1.element
array_position=ArrayPosition(this expression): array, any -> bigint
array_repeat: any, =int -> array<$1>
array_size: array -> int
arrays_overlap: A, A -> boolean
cardinality size=ArraySize: array|map -> int
sort_array: array, boolean? -> $1
slice=ArraySlice(this start end): array, int, int -> $1
get: array, int -> $1.element
exists=Exists(this expression): array, any -> boolean
forall: array, any -> boolean
filter=ArrayFilter(this expression): array, any -> $1
array_sort: array, any? -> $1
map_keys=MapKeys: map -> array<$1.key>
map_values: map -> array<$1.value>
map_contains_key=MapContainsKey(this key): map, any -> boolean
and array_remove=ArrayRemove(this expression) arrays_zip bigint binary boolean concat date decimal div double extract
  float int named_struct not or smallint string struct timestamp timestampadd tinyint
bround ceil ceiling floor round {1-2}
flatten reverse=Reverse {1}
dateadd from_csv from_json sequence {2-3}
array_append=ArrayAppend(this expression) array_prepend=ArrayPrepend(this expression) date_part datepart element_at
  mod pmod to_number transform try_add try_divide try_element_at try_multiply try_subtract try_to_number {2}
aggregate reduce {3-4}
array_insert zip_with {3}
"""
_BY_CHANCE = """
rand=Rand random randn=Randn: =int|bigint? -> double
uuid=Uuid(): -> string
monotonically_increasing_id: -> bigint
spark_partition_id: -> int
input_file_name: -> string
input_file_block_length input_file_block_start: -> bigint
shuffle=Shuffle: array -> $1
"""
_BY_WINDOW = """
row_number=RowNumber(): -> int
rank=Rank() dense_rank=DenseRank(): -> int
ntile=Ntile: int? -> int
percent_rank=PercentRank(): -> double
cume_dist=CumeDist(): -> double
nth_value=NthValue(this offset): any, int -> $1
lag=Lag lead=Lead {0-3}
"""
_BY_GROUP = """
histogram_numeric: any, int -> array<struct<x:$1,y:double>>
hll_sketch_agg: =int|bigint|string|binary, int? -> binary
hll_union_agg: =binary, boolean? -> binary
count_min_sketch grouping grouping_id
try_avg try_sum {1}
"""
_BY_ELSE = """
current_catalog=CurrentCatalog() current_database=CurrentDatabase() current_schema=CurrentSchema()
  current_timezone=CurrentTimezone() current_user=CurrentUser() user version: -> string
curdate current_date=CurrentDate(): -> date
current_timestamp=CurrentTimestamp() now: -> timestamp
localtimestamp=Localtimestamp(): -> timestamp_ntz
aes_encrypt: binary, binary, string?, string?, binary?, binary? -> binary
aes_decrypt try_aes_decrypt: binary, binary, string?, string?, binary? -> binary
raise_error: any -> void
assert_true: boolean, any? -> void
hll_sketch_estimate: =binary -> bigint
hll_union: =binary, =binary, boolean? -> binary
map_concat: M* -> M
map_entries: map -> array<struct<key:$1.key,value:$1.value>>
map_filter: map, any -> $1
map_from_arrays=Map(keys values): array, array -> map<$1.element,$2.element>
make_interval=MakeInterval(year month week day hour minute second): int?, int?, int?, int?, int?, int?, decimal(18,6)?
  -> interval
make_dt_interval: int?, int?, int?, decimal(18,6)? -> interval day to second
make_ym_interval: int?, int? -> interval year to month
str_to_map=StrToMap(this pair_delim key_value_delim): =string, =string?, =string? -> map<string,string>
bitmap_bit_position=BitmapBitPosition bitmap_bucket_number=BitmapBucketNumber: bigint -> bigint
bitmap_count=BitmapCount: =binary -> bigint
between case cast hudi_filesystem_view hudi_query hudi_query_timeline hudi_table_changes in java_method map range
  reflect session_window sql_keywords try_cast when window
explode explode_outer inline inline_outer map_from_entries=MapFromEntries posexplode posexplode_outer window_time {1}
json_tuple stack {2-}
transform_keys transform_values {2}
map_zip_with {3}
"""
FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        *functions_of(_BY_ARGUMENTS, "arguments"),
        *functions_of(_BY_CHANCE, "chance"),
        *functions_of(_BY_WINDOW, "window"),
        *functions_of(_BY_GROUP, "group"),
        *functions_of(_BY_ELSE, "else"),
    )
}
"""By name."""
