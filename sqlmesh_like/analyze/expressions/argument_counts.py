"""How many arguments Spark's functions take. Owns finding a call with another number in the text of a query.

Source: Spark 3.5 itself, which was asked for each function and number (`WRONG_NUM_ARGS`). A function that is not listed
takes any number, or has a syntax of its own; the parser accepts every number, so nothing else reports it before a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import Token, TokenType

_MANY = 1_000_000
_NAMES = {
    (0, 0): "cume_dist curdate current_catalog current_database current_schema current_timezone e "
    "input_file_block_length input_file_block_start input_file_name localtimestamp "
    "monotonically_increasing_id now pi row_number spark_partition_id uuid version",
    (0, 1): "ntile rand randn random",
    (0, 2): "unix_timestamp",
    (0, 3): "lag lead",
    (1, 1): "abs acos acosh array_agg array_compact array_distinct array_max array_min array_size ascii asin "
    "asinh atan atanh avg base64 bin bit_and bit_count bit_length bit_or bit_xor bool_and bool_or "
    "cardinality cbrt char_length character_length chr collect_list collect_set cos cosh cot count_if "
    "crc32 csc date_from_unix_date day dayofmonth dayofweek dayofyear degrees exp explode explode_outer "
    "expm1 factorial flatten hex hour initcap inline inline_outer isnan isnotnull isnull "
    "json_array_length json_object_keys kurtosis last_day lcase len length ln log10 log1p log2 lower "
    "luhn_check map_entries map_from_entries map_keys map_values max md5 mean median min minute month "
    "negative octet_length posexplode posexplode_outer positive quarter radians reverse rint sec second "
    "sha sha1 shuffle sign signum sin sinh size skewness soundex space sqrt std stddev stddev_pop "
    "stddev_samp sum tan tanh timestamp_micros timestamp_millis timestamp_seconds try_avg try_sum typeof "
    "ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds upper url_decode url_encode "
    "var_pop var_samp variance weekday weekofyear window_time year",
    (1, 2): "any_value approx_count_distinct array_sort assert_true bround btrim ceil ceiling first first_value "
    "floor from_unixtime last last_value log ltrim round rtrim schema_of_csv schema_of_json sort_array "
    "to_binary to_csv to_date to_json to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp "
    "trim try_to_binary try_to_timestamp",
    (1, 3): "sentences str_to_map",
    (1, _MANY): "coalesce concat_ws count format_string hash printf xxhash64",
    (2, 2): "add_months array_append array_contains array_except array_intersect array_position array_prepend "
    "array_remove array_repeat array_union arrays_overlap atan2 bit_get contains corr covar_pop "
    "covar_samp date_format date_part date_sub date_trunc datepart element_at encode endswith equal_null "
    "find_in_set format_number from_utc_timestamp get get_json_object getbit hypot ifnull instr left "
    "map_contains_key map_filter map_from_arrays max_by min_by mod nanvl next_day nth_value nullif nvl "
    "pmod pow power regexp_count regexp_like regexp_substr regr_avgx regr_avgy regr_count regr_intercept "
    "regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat right sha2 shiftleft shiftright "
    "shiftrightunsigned startswith to_char to_number to_utc_timestamp to_varchar transform transform_keys "
    "transform_values trunc try_add try_divide try_element_at try_multiply try_subtract try_to_number",
    (2, 3): "approx_percentile array_join convert_timezone date_add date_diff dateadd datediff from_csv from_json "
    "levenshtein locate lpad months_between parse_url percentile percentile_approx regexp_extract "
    "regexp_extract_all regexp_instr replace rpad sequence split substr substring",
    (2, _MANY): "decode elt greatest json_tuple least stack",
    (3, 3): "array_insert conv if make_date map_zip_with nvl2 slice split_part substring_index timestampadd "
    "timestampdiff translate zip_with",
    (3, 4): "aggregate overlay reduce regexp_replace",
    (4, 4): "width_bucket",
    (6, 7): "make_timestamp",
}  # fmt: skip
_COUNTS = {name: counts for counts, names in _NAMES.items() for name in names.split()}
_OWN_SYNTAX = frozenset({"from", "for", "in", "as", "placing", "using"})
"""Words with which a call has no list of arguments: `substring(a from 2)`, `position(a in b)`."""
_NO_CALL_AFTER = frozenset({
    TokenType.DOT, TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.DCOLON,
    TokenType.COLON, TokenType.LT,
})  # fmt: skip
"""What stands before a name that is an alias with columns, a type or a clause, and no function."""


def first_miscounted(sql: str) -> tuple[int, str] | None:
    """0-based offset and description of the first call with too few or too many arguments; None if there is none.

    >>> first_miscounted("select substring(a), count(*) from t")
    (7, 'substring takes 2 or 3 arguments, not 1')
    >>> first_miscounted("with first(a, b, c) as (select 1, 2, 3) select trim(both from a) from first") is None
    True
    """
    tokens = sqlglot.tokenize(sql, dialect="spark")
    for at in range(len(tokens) - 1):
        counts = _COUNTS.get(tokens[at].text.lower())
        if counts is None or tokens[at + 1].token_type is not TokenType.L_PAREN or sql[tokens[at].start] in "`'\"":
            continue
        if at and tokens[at - 1].token_type in _NO_CALL_AFTER:
            continue
        given = _argument_count(tokens, at + 1)
        if given is not None and not counts[0] <= given <= counts[1]:
            return tokens[at].start, f"{tokens[at].text.lower()} takes {_words(*counts)}, not {given}"
    return None


def _argument_count(tokens: Sequence[Token], opening: int) -> int | None:
    """How many arguments the bracket has; None where it is not a list of arguments, or not known."""
    inside = list(_within(tokens, opening))
    end = opening + 1 + len(inside)
    names_columns = [token.text.lower() for token in tokens[end + 1 : end + 3]] == ["as", "("]
    if end >= len(tokens) or names_columns:
        return None
    shallow = [token for token, depth in inside if depth == 0]
    has_star = any(token.token_type is TokenType.STAR and _is_whole(shallow, at) for at, token in enumerate(shallow))
    if has_star or any(t.text.lower() in _OWN_SYNTAX or t.token_type is TokenType.FARROW for t in shallow):
        return None
    return 0 if not inside else 1 + sum(token.token_type is TokenType.COMMA for token in shallow)


def _is_whole(tokens: Sequence[Token], at: int) -> bool:
    """Whether a star stands for columns rather than between two factors."""
    return at == 0 or tokens[at - 1].token_type in (TokenType.COMMA, TokenType.DOT)


def _within(tokens: Sequence[Token], opening: int) -> Iterator[tuple[Token, int]]:
    """The tokens in a bracket, each with the number of brackets that it is in within this one."""
    depth = 0
    for token in tokens[opening + 1 :]:
        if token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET):
            if depth == 0:
                return
            depth -= 1
        yield token, depth
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)


def _words(least: int, most: int) -> str:
    if most == _MANY:
        return f"at least {least} argument{'' if least == 1 else 's'}"
    numbers = f"{least} or {most}" if most == least + 1 else f"{least} to {most}" if most > least else str(most)
    return f"{numbers} argument{'' if most == 1 else 's'}" if most else "no arguments"
