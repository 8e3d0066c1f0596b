# ruff: noqa: E501
"""Random expressions over the nasty values, of all functions that people write, nested in each other.

Owns the expressions; `nasty_tables` owns the columns. `typed` gives each function what it takes, `spelt` operators
without brackets, whose order the parser must find.
"""

from __future__ import annotations

import re
from random import Random

_LEAVES = {
    "int": """
        a_int ; b_int ; 1 ; -3 ; 0 ; 2 ; cast(a_int as tinyint)
    """,
    "bigint": """
        a_bigint ; b_bigint ; a_int ; 7L
    """,
    "decimal": """
        a_decimal122 ; b_decimal122 ; a_decimal3818 ; 0.05 ; 1.5 ; -2
    """,
    "double": """
        a_double ; b_double ; 0.5D ; 2D
    """,
    "string": """
        a_string ; b_string ; 'x' ; 'a,b,,c' ; '' ; ' 1 ' ; '2024-02-29'
    """,
    "date": """
        a_date ; b_date ; date '2024-01-31'
    """,
    "timestamp": """
        a_timestamp ; b_timestamp ; timestamp '2024-02-29 23:59:59.999999'
    """,
    "boolean": """
        a_boolean ; b_boolean ; a_int > 1 ; a_string is null
    """,
    "numbers": """
        array(a_int, b_int, null) ; array(1,2,3)
    """,
    "texts": """
        split(a_string, '/') ; array(a_string, b_string) ; split('a,b,,c', ',')
    """,
}  # fmt: skip
_FORMS = {
    "int": """
        named_struct('a', {int}, 'b', {string}).a ; map('x', {int}, 'y', {int})['x'] ; element_at(map({string}, {int}), 'x') ; if({boolean}, struct({int} as p), null).p ; size(array({string}, {string})) ;
        ({int} + {int}) ; ({int} - {int}) ; ({int} * {int}) ; ({int} % {int}) ; pmod({int}, {int}) ; year({date}) ;
        month({timestamp}) ; day({date}) ; quarter({date}) ; hour({timestamp}) ; minute({timestamp}) ; second({timestamp}) ;
        dayofweek({date}) ; dayofyear({timestamp}) ; weekofyear({date}) ; weekday({date}) ; length({string}) ;
        datediff({date}, {date}) ; coalesce({int}, {int}) ; case when {boolean} then {int} else {int} end ; abs({int}) ;
        nullif({int}, {int}) ; cast({string} as int) ; cast({decimal} as int) ; cast({double} as int) ;
        locate({string}, {string}) ; instr({string}, 'x') ; size({numbers}) ; size({texts}) ; sign({int}) ;
        greatest({int}, {int}) ; least({int}, {int}, {int}) ; element_at({numbers}, 1) ; {numbers}[{int}] ; ascii({string}) ;
        width_bucket({double}, 0, 10, 5) ; levenshtein({string}, {string}) ; array_position({numbers}, {int}) ;
        array_max({numbers}) ; array_min({numbers}) ; aggregate({numbers}, 0, (a, e) -> a + coalesce(e, 1)) ; ifnull({int}, 0) ;
        nvl2({boolean}, {int}, {int}) ; int({string}) ; bit_count({int}) ; ({int} & {int}) ; ({int} | {int}) ; ({int} ^ {int}) ;
        shiftleft({int}, 2) ; ({int} div {int}) ; extract(year from {timestamp}) ; date_part('month', {date}) ;
        find_in_set('a', {string}) ; char_length({string}) ; bit_length({string}) ; octet_length({string}) ; unix_date({date}) ;
        mod({int}, {int}) ; negative({int}) ; decode({int}, 1, 5, 2, 6, 7) ; cardinality({numbers}) ;
        regexp_count({string}, 'x')
    """,
    "bigint": """
        ({bigint} + {int}) ; ({bigint} - {bigint}) ; ({bigint} * {int}) ; ({bigint} % {bigint}) ; cast({string} as bigint) ;
        cast({decimal} as bigint) ; cast({double} as bigint) ; floor({double}) ; ceil({double}) ; unix_timestamp({timestamp}) ;
        unix_micros({timestamp}) ; cast({timestamp} as bigint) ; abs({bigint}) ; coalesce({bigint}, {int}) ;
        if({boolean}, {bigint}, {int}) ; ({bigint} div {bigint}) ; unix_millis({timestamp}) ; unix_seconds({timestamp}) ;
        round({bigint}, -1) ; to_unix_timestamp({timestamp}) ; unix_timestamp({string}, 'yyyy-MM-dd')
    """,
    "decimal": """
        named_struct('a', {decimal}).a ; coalesce(map('k', {decimal})['k'], {decimal}) ; array({decimal}, {decimal})[0] ;
        ({decimal} + {decimal}) ; ({decimal} - {int}) ; ({decimal} * {decimal}) ; ({decimal} / {decimal}) ;
        ({decimal} % {decimal}) ; case when {boolean} then {decimal} else 0 end ; (-{decimal}) ; coalesce({decimal}, 0) ;
        cast({decimal} as decimal(18,3)) ; round({decimal}, 1) ; round({decimal}) ; round({decimal}, -1) ;
        cast({int} as decimal(12,2)) ; cast({bigint} as decimal(20,1)) ; cast({double} as decimal(20,4)) ;
        cast({string} as decimal(12,2)) ; abs({decimal}) ; floor({decimal}) ; ceil({decimal}) ; greatest({decimal}, {decimal}) ;
        nullif({decimal}, {int}) ; ({decimal} * {int}) ; ({decimal} / {int}) ; months_between({date}, {date}) ;
        bround({decimal}, 1) ; cast({boolean} as decimal(5,1)) ; sign({decimal}) ; ceil({decimal}, 1) ; floor({decimal}, 1) ;
        pmod({decimal}, {decimal}) ; ({decimal} * 7L) ; ({decimal} / 3S) ; ({bigint} * {decimal}) ; ({decimal} + {bigint})
    """,
    "double": """
        struct({double} as p).p ; array({double}, {int})[0] ;
        ({double} + {double}) ; ({double} - {int}) ; ({double} * {double}) ; ({double} / {double}) ; ({int} / {int}) ;
        cast({string} as double) ; cast({decimal} as double) ; cast({bigint} as double) ; sqrt({double}) ; abs({double}) ;
        coalesce({double}, {int}) ; case when {boolean} then {double} else {int} end ; round({double}, 2) ;
        greatest({double}, {double}) ; least({double}, {decimal}) ; power({double}, 2) ; ({double} % {double}) ; exp({double}) ;
        ln({double}) ; log10({double}) ; nanvl({double}, {double}) ; -{double} ; floor({double}) / 2 ; cbrt({double}) ;
        isnan({double}) ; cast({double} as float) ; degrees({double}) ; pi() ; months_between({timestamp}, {timestamp}) ;
        round({double}) ; round({double}, 0) ; try_divide({double}, {int}) ; log(2, {double}) ; sin({double}) ;
        signum({double}) ; cast({timestamp} as double) ; cast({boolean} as double) ; log2({int})
    """,
    "string": """
        named_struct('a', {int}, 'b', {string}).b ; map('x', {string})[{string}] ; array(struct({string} as p, {int} as q))[0].p ; coalesce(struct({string} as s).s, {string}) ;
        ({string} || {string}) ; cast({int} as string) ; cast({bigint} as string) ; cast({decimal} as string) ;
        cast({date} as string) ; cast({timestamp} as string) ; cast({boolean} as string) ; cast({double} as string) ;
        replace({string}, 'a', 'bb') ; replace({string}, {string}, '') ; substring({string}, 2, 2) ;
        substring({string}, {int}, {int}) ; substring({string}, -2) ; coalesce({string}, 'N') ; date_format({date}, 'yyyy-MM') ;
        date_format({timestamp}, 'HH:mm:ss') ; date_format({timestamp}, 'EEE MMM dd') ; if({boolean}, {string}, {string}) ;
        upper({string}) ; lower({string}) ; trim({string}) ; ltrim({string}) ; rtrim({string}) ; lpad({string}, 5, 'xy') ;
        rpad({string}, {int}, '-') ; substring_index({string}, '/', 1) ; substring_index({string}, ',', -2) ;
        concat_ws('-', {string}, {string}) ; concat_ws(',', {texts}) ; md5({string}) ; sha2({string}, 256) ; reverse({string}) ;
        repeat({string}, 2) ; split_part({string}, '/', 2) ; regexp_extract({string}, '([a-z]+)', 1) ;
        regexp_replace({string}, '[0-9]', '#') ; initcap({string}) ; translate({string}, 'ab', 'xy') ; left({string}, 2) ;
        right({string}, {int}) ; concat({string}, {int}) ; {texts}[0] ; element_at({texts}, -1) ; split({string}, ',')[1] ;
        nullif({string}, {string}) ; greatest({string}, {string}) ; hex({int}) ; format_number({decimal}, 2) ;
        date_format({date}, 'yyyyMMdd') ; date_format({date}, 'yyyy') ; array_join({texts}, '|') ;
        get_json_object({string}, '$.a') ; trim(both 'x' from {string}) ; overlay({string} placing 'zz' from 2) ; space({int}) ;
        chr({int}) ; ltrim('x', {string}) ; btrim({string}) ; soundex({string}) ; base64({string}) ; crc32({string}) ;
        sha1({string}) ; typeof({int}) ; string({int}) ; date_format({timestamp}, 'yyyy-MM-dd') ; from_unixtime({bigint}) ;
        nvl({string}, {string}) ; char({int}) ; url_encode({string}) ; conv({string}, 10, 16) ; bin({int}) ;
        case {int} when 1 then {string} when {int} then {string} end ; case {string} when {string} then 'e' else {string} end ;
        elt({int}, {string}, {string}) ; format_string('%s-%d', {string}, {int}) ; mask({string}) ;
        parse_url({string}, 'HOST') ; right({string}, 2) ; lower(trim({string}))
    """,
    "date": """
        struct({int} as p, {date} as q).q ; array({date}, {date})[{int}] ;
        ({date} + interval 1 month) ; ({date} - interval 2 days) ; ({date} + {int}) ; date_add({date}, {int}) ;
        date_sub({date}, 31) ; coalesce({date}, {date}) ; greatest({date}, {date}) ; cast(date_trunc('month', {date}) as date) ;
        trunc({date}, 'MM') ; trunc({date}, 'week') ; trunc({date}, 'Q') ; last_day({date}) ; add_months({date}, {int}) ;
        to_date({string}) ; to_date({timestamp}) ; cast({string} as date) ; next_day({date}, 'MON') ;
        case when {boolean} then {date} end ; to_date({string}, 'yyyy-MM-dd') ; make_date({int}, {int}, {int}) ;
        date_from_unix_date({int}) ; nullif({date}, {date}) ; least({date}, to_date({timestamp})) ;
        if({boolean}, {date}, {date}) ; add_months({timestamp}, 1) ; trunc({timestamp}, 'YEAR') ; trunc({date}, {string})
    """,
    "timestamp": """
        named_struct('at', {timestamp}).at ; array_max(array({timestamp}, {timestamp})) ;
        ({timestamp} + interval 1 month) ; ({timestamp} - interval 3 hours) ; ({timestamp} + interval 1 day) ;
        cast({date} as timestamp) ; cast({string} as timestamp) ; to_timestamp({string}) ; date_trunc('hour', {timestamp}) ;
        date_trunc('week', {timestamp}) ; date_trunc('quarter', {timestamp}) ; date_trunc('minute', {timestamp}) ;
        coalesce({timestamp}, {date}) ; greatest({timestamp}, {timestamp}) ; timestamp_micros({bigint}) ;
        timestamp_seconds({int}) ; from_utc_timestamp({timestamp}, 'Asia/Shanghai') ;
        to_utc_timestamp({timestamp}, 'America/New_York') ; case when {boolean} then {timestamp} else {date} end ;
        timestamp_millis({bigint}) ; date_trunc('day', {date}) ; cast({bigint} as timestamp) ;
        to_timestamp({string}, 'yyyy-MM-dd HH:mm:ss') ; ({timestamp} + interval 90 minutes) ;
        make_timestamp({int}, 1, 2, 3, 4, 5) ; least({timestamp}, {date}) ; ({date} + interval 5 hours) ;
        date_trunc('q', {timestamp}) ; date_trunc({string}, {timestamp})
    """,
    "boolean": """
        (struct({int} as p, {string} as q) = struct({int} as p, {string} as q)) ; (named_struct('a', {int}) <=> named_struct('a', {int})) ; array_contains(array({date}), {date}) ; (array({int}) = {numbers}) ;
        ({int} < {int}) ; ({decimal} >= {decimal}) ; ({string} = {string}) ; ({date} <=> {date}) ; ({boolean} and {boolean}) ;
        (not {boolean}) ; ({boolean} or {boolean}) ; ({decimal} = {int}) ; ({double} > {decimal}) ; ({double} = {double}) ;
        ({string} like 'a%') ; ({string} like '%x_') ; ({int} in (1, {int})) ; ({date} between {date} and {date}) ;
        ({string} in ('x', {string})) ; ({string} rlike '^[a-z]+$') ; ({string} = {int}) ; ({string} > {int}) ;
        ({timestamp} = {date}) ; ({timestamp} > {string}) ; ({date} = {string}) ; ({double} <=> {double}) ;
        ({boolean} = {boolean}) ; ({bigint} = {double}) ; contains({string}, {string}) ; startswith({string}, 'a') ;
        endswith({string}, {string}) ; array_contains({numbers}, {int}) ; array_contains({texts}, {string}) ;
        exists({numbers}, e -> e > 1) ; forall({texts}, e -> e like 'a%') ; cast({string} as boolean) ; cast({int} as boolean) ;
        isnull({string}) ; ({decimal} in (1.5, {int})) ; ({string} not in ({string})) ; ({double} between 0 and {int}) ;
        arrays_overlap({numbers}, {numbers}) ; ({string} is not distinct from {string}) ; ({boolean} is true) ;
        ({boolean} is not false) ; ({string} ilike 'A%') ; coalesce({boolean}, false) ; ({boolean} <=> null) ;
        equal_null({int}, {int}) ; ({decimal} <> {string}) ; ({int} = {boolean}) ; ({int} not between {int} and {bigint}) ;
        ({string} between {string} and {string}) ; (({int}, {string}) in ((1, 'x'), ({int}, {string})))
    """,
    "numbers": """
        array({int}, {int}) ; sort_array({numbers}) ; array_sort({numbers}) ; filter({numbers}, e -> e > 0) ;
        transform({numbers}, e -> e + {int}) ; sort_array({numbers}, false) ; array_distinct({numbers}) ;
        slice({numbers}, 1, 2) ; array_union({numbers}, {numbers}) ; array_except({numbers}, {numbers}) ;
        array_intersect({numbers}, {numbers}) ; reverse({numbers}) ; array_remove({numbers}, {int}) ; array_compact({numbers}) ;
        array_append({numbers}, {int}) ; concat({numbers}, {numbers}) ; flatten(array({numbers}, {numbers})) ;
        sequence(1, abs({int}) % 5) ; if({boolean}, {numbers}, {numbers}) ; array_repeat({int}, 2) ;
        coalesce({numbers}, array(1)) ; transform({texts}, e -> length(e))
    """,
    "texts": """
        split({string}, '/') ; split({string}, '[.]') ; array({string}, {string}) ; transform({texts}, e -> upper(e)) ;
        filter({texts}, e -> e is not null) ; sort_array({texts}) ; split({string}, ' ') ; array_distinct({texts}) ;
        transform({numbers}, e -> cast(e as string)) ; split({string}, ',', 2) ; array_sort({texts}) ; split({string}, 'x') ;
        if({boolean}, {texts}, {texts}) ; reverse({texts})
    """,
}  # fmt: skip

_OPERATORS = (
    "+", "-", "*", "/", "%", "||", "&", "|", "^", "=", "<>", "<", "==", "!=", "and", "or", "div",
    "is distinct from", "is not distinct from",
)  # fmt: skip
_PREDICATES = (
    "is null", "is not null", "between {e} and {e}", "not between {e} and {e}", "in ({e}, {e})", "not in ({e})",
    "like {s}", "not like 'a%'", "rlike {s}", "is true", "is not false", "is unknown", "[{e}]", "ilike 'x'",
    "not ilike {s}", "like any ('a', {s})", "like all ({s})", "is not true",
)  # fmt: skip
_SIGNS = ("-", "not ", "!", "~", "- -", "not not ", "not -")
_TEXTS = ("a_string", "'x%'", "b_string || '%'")


def _items(texts: dict[str, str]) -> dict[str, list[str]]:
    return {kind: [item.strip() for item in re.split(r"\s;\s", text)] for kind, text in texts.items()}


LEAVES, FORMS = _items(_LEAVES), _items(_FORMS)
KINDS = tuple(FORMS)


def typed(draw: Random, kind: str, depth: int) -> str:
    """An expression of a kind, of functions within functions."""
    if depth == 0 or draw.random() < 0.12:
        return draw.choice(LEAVES[kind])
    return re.sub(r"\{(\w+)\}", lambda part: typed(draw, part[1], depth - 1), draw.choice(FORMS[kind]))


def spelt(draw: Random, depth: int) -> str:
    """An expression whose operators, predicates and signs stand beside each other as they come."""
    if depth == 0:
        return draw.choice(LEAVES[draw.choice(KINDS)])
    chance = draw.random()
    if chance < 0.45:
        return f"{spelt(draw, depth - 1)} {draw.choice(_OPERATORS)} {spelt(draw, depth - 1)}"
    if chance < 0.6:
        predicate = draw.choice(_PREDICATES)
        predicate = re.sub(r"\{e\}", lambda _: spelt(draw, max(0, depth - 2)), predicate)
        return f"{spelt(draw, depth - 1)} {predicate.replace('{s}', draw.choice(_TEXTS))}"
    if chance < 0.7:
        return draw.choice(_SIGNS) + spelt(draw, depth - 1)
    if chance < 0.8:
        return f"({spelt(draw, depth - 1)})"
    if chance < 0.9:
        return f"case when {' then '.join(spelt(draw, depth - 1) for _ in 'ab')} else {spelt(draw, depth - 1)} end"
    return re.sub(r"\{\w+\}", lambda _: spelt(draw, depth - 1), draw.choice(FORMS[draw.choice(KINDS)]))
