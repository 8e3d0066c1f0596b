"""Texts of Spark SQL → trees (`syntax`). Owns the part of the grammar that the texts of `cdc` use.

sqlglot is not used: it takes the functions of the ingestion for those of its own dialects (formats of dates, paths of
JSON), and reading a batch's texts with it takes longer than the batch may. No text of a user is read.
"""

from __future__ import annotations

from functools import lru_cache

from sqlmesh_like.cdc.in_process.syntax import (
    Call,
    Case,
    Cast,
    Expression,
    Item,
    Join,
    Lambda,
    Literal,
    Member,
    Path,
    Query,
    Relation,
    Select,
    Type,
)
from sqlmesh_like.cdc.in_process.tokens import Token, number, tokens, unescape
from sqlmesh_like.cdc.in_process.values import NotProvenError

_COMPARED = {"=", "<=>", "!=", "<>", "<", "<=", ">", ">="}
_ENDS = {"as", "from", "where", "group", "union", "left", "on", "using", "end", "when", "then", "else", "and", "or"}
"""Words that end a relation or an expression, so that they do not name it."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens, self.at = tokens(text), 0

    # Reading tokens.
    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else Token("end", "")

    def is_word(self, *words: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "name" and token.text.lower() in words

    def is_sign(self, *signs: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "sign" and token.text in signs

    def takes(self, what: str) -> bool:
        if self.is_word(what) or self.is_sign(what):
            self.at += 1
            return True
        return False

    def need(self, *whats: str) -> None:
        for what in whats:
            if not self.takes(what):
                around = " ".join(token.text for token in self.tokens[self.at : self.at + 6])
                raise NotProvenError(f"the syntax at {around!r}, where {what!r} is expected")

    def name(self) -> str:
        token = self.peek()
        if token.kind not in ("name", "quoted"):
            raise NotProvenError(f"the syntax at {token.text!r}, where a name is expected")
        self.at += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    # Expressions, from the weakest operator to the strongest.
    def expression(self) -> Expression:
        value = self.conjunction()
        while self.takes("or"):
            value = Call("or", (value, self.conjunction()))
        return value

    def conjunction(self) -> Expression:
        value = self.negation()
        while self.takes("and"):
            value = Call("and", (value, self.negation()))
        return value

    def negation(self) -> Expression:
        return Call("not", (self.negation(),)) if self.takes("not") else self.comparison()

    def comparison(self) -> Expression:
        value = self.sum()
        while True:
            if self.takes("is"):
                is_not = self.takes("not")
                self.need("null")
                value = Call("isnull", (value,))
                value = Call("not", (value,)) if is_not else value
            elif self.peek().kind == "sign" and self.peek().text in _COMPARED:
                sign = self.peek().text
                self.at += 1
                value = Call("!=" if sign == "<>" else sign, (value, self.sum()))
            elif self.is_word("rlike", "in", "between") or self.is_word("not"):
                is_not = self.takes("not")
                value = self.predicate(value)
                value = Call("not", (value,)) if is_not else value
            else:
                return value

    def predicate(self, value: Expression) -> Expression:
        if self.takes("rlike"):
            return Call("rlike", (value, self.sum()))
        if self.takes("between"):
            low = self.sum()
            self.need("and")
            return Call("and", (Call(">=", (value, low)), Call("<=", (value, self.sum()))))
        self.need("in", "(")
        return Call("in", (value, *self.arguments()))

    def sum(self) -> Expression:
        value = self.product()
        while self.is_sign("+", "-"):
            sign = self.peek().text
            self.at += 1
            value = Call(sign, (value, self.product()))
        return value

    def product(self) -> Expression:
        value = self.unary()
        while self.is_sign("*", "/", "%") or self.is_word("div"):
            sign = self.peek().text.lower()
            self.at += 1
            value = Call(sign, (value, self.unary()))
        return value

    def unary(self) -> Expression:
        if self.takes("-"):
            value = self.unary()
            return Literal(-value.value) if isinstance(value, Literal) else Call("negative", (value,))
        return self.postfix()

    def postfix(self) -> Expression:
        value = self.primary()
        while True:
            if self.takes("."):
                name = self.name()
                value = Path((*value.names, name)) if isinstance(value, Path) else Member(value, name)
            elif self.takes("["):
                value = Call("item", (value, self.expression()))
                self.need("]")
            else:
                return value

    def primary(self) -> Expression:
        token = self.peek()
        match token.kind:
            case "raw":
                self.at += 1
                return Literal(token.text[2:-1])
            case "bytes":
                self.at += 1
                return Literal(bytes.fromhex(token.text[2:-1]))
            case "text":
                self.at += 1
                return Literal(unescape(token.text[1:-1]))
            case "number":
                self.at += 1
                return Literal(number(token.text))
            case "sign" if token.text == "(":
                return self.bracketed()
            case "name":
                return self.word(token.text.lower())
        return Path((self.name(),))

    def bracketed(self) -> Expression:
        if self.is_sign(",", ahead=2) or (self.is_sign(")", ahead=2) and self.is_sign("->", ahead=3)):
            self.need("(")
            names = [self.name()]
            while self.takes(","):
                names.append(self.name())
            self.need(")", "->")
            return Lambda(tuple(names), self.expression())
        self.need("(")
        value = self.expression()
        self.need(")")
        return value

    def word(self, word: str) -> Expression:
        if word in ("null", "true", "false"):
            self.at += 1
            return Literal({"null": None, "true": True, "false": False}[word])
        if word == "case":
            return self.case()
        if self.is_sign("->", ahead=1):
            name = self.name()
            self.need("->")
            return Lambda((name,), self.expression())
        if not self.is_sign("(", ahead=1):
            return Path((self.name(),))
        self.at += 2
        match word:
            case "cast" | "try_cast":
                value = self.expression()
                self.need("as")
                cast = Cast(value, self.type())
                self.need(")")
                return cast
            case "trim" if self.takes("trailing"):
                sign = self.expression()
                self.need("from")
                value = self.expression()
                self.need(")")
                return Call("trim_trailing", (value, sign))
            case "struct":
                return self.struct()
            case "count" if self.takes("*"):
                self.need(")")
                return Call("count", (Literal(value=1),))
        return Call(word, self.arguments())

    def arguments(self) -> tuple[Expression, ...]:
        """The arguments of a call up to its closing bracket."""
        values: list[Expression] = []
        if not self.takes(")"):
            values.append(self.expression())
            while self.takes(","):
                values.append(self.expression())
            self.need(")")
        return tuple(values)

    def struct(self) -> Expression:
        values: list[Expression] = []
        while True:
            item = self.item()
            if item.expression is None or len(item.names) != 1:
                raise NotProvenError("a struct of `*`")
            values += [Literal(item.names[0]), item.expression]
            if not self.takes(","):
                self.need(")")
                return Call("named_struct", tuple(values))

    def case(self) -> Expression:
        self.need("case")
        subject = None if self.is_word("when") else self.expression()
        whens = []
        while self.takes("when"):
            condition = self.expression()
            self.need("then")
            whens.append((condition, self.expression()))
        otherwise = self.expression() if self.takes("else") else Literal(None)
        self.need("end")
        return Case(subject, tuple(whens), otherwise)

    def type(self) -> Type:
        name = self.name().lower()
        if name in ("array", "map") and self.takes("<"):
            members = [("", self.type())]
            while self.takes(","):
                members.append(("", self.type()))
            self.need(">")
            return Type(name, members=tuple(members))
        if name == "struct" and self.takes("<>"):
            return Type(name)
        if name == "struct" and self.takes("<"):
            return Type(name, members=self.members(">"))
        if name == "decimal" and self.takes("("):
            precision = int(self.peek().text)
            self.at += 1
            self.need(",")
            scale = int(self.peek().text)
            self.at += 1
            self.need(")")
            return Type(name, digits=(precision, scale))
        return Type({"integer": "int", "long": "bigint"}.get(name, name))

    def members(self, end: str) -> tuple[tuple[str, Type], ...]:
        result: list[tuple[str, Type]] = []
        while not (self.takes(end) if end else self.at >= len(self.tokens)):
            if result:
                self.need(",")
            name = self.name()
            self.takes(":")
            result.append((name, self.type()))
        return tuple(result)

    # Queries.
    def item(self) -> Item:
        if self.takes("*"):
            return Item(None, ())
        value = self.expression()
        if not self.takes("as"):
            return Item(value, (value.names[-1] if isinstance(value, Path) else "",))
        if not self.takes("("):
            return Item(value, (self.name(),))
        names = [self.name()]
        while self.takes(","):
            names.append(self.name())
        self.need(")")
        return Item(value, tuple(names))

    def query(self) -> Query:
        named = []
        if self.takes("with"):
            while True:
                name = self.name()
                self.need("as", "(")
                named.append((name, self.query()))
                self.need(")")
                if not self.takes(","):
                    break
        selects = [self.select()]
        while self.takes("union"):
            self.need("all")
            selects.append(self.select())
        return Query(tuple(selects), tuple(named))

    def select(self) -> Select:
        self.need("select")
        items = [self.item()]
        while self.takes(","):
            items.append(self.item())
        relation = self.relation() if self.takes("from") else None
        joins = []
        while self.takes("left"):
            joins.append(self.join())
        where = self.expression() if self.takes("where") else None
        groups: list[Expression] = []
        if self.takes("group"):
            self.need("by")
            groups.append(self.expression())
            while self.takes(","):
                groups.append(self.expression())
        return Select(tuple(items), relation, tuple(joins), where, tuple(groups))

    def relation(self) -> Relation:
        if self.takes("("):
            source: str | Query = self.query()
            self.need(")")
        else:
            source = self.name()
        is_named = self.peek().kind in ("name", "quoted") and not self.is_word(*_ENDS)
        return Relation(source, self.name() if is_named else source if isinstance(source, str) else None)

    def join(self) -> Join:
        is_semi = self.takes("semi")
        self.need("join")
        relation = self.relation()
        if is_semi:
            self.need("using", "(")
            names = [self.name()]
            while self.takes(","):
                names.append(self.name())
            self.need(")")
            return Join(relation, using=tuple(names))
        self.need("on")
        return Join(relation, on=self.expression())

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise NotProvenError(f"the syntax at {self.peek().text!r}")


@lru_cache(maxsize=1024)
def parsed_item(text: str) -> Item:
    """An entry of a SELECT. Raises NotProvenError for what is not understood, as the others do."""
    parser = _Parser(text)
    item = parser.item()
    parser.end()
    return item if item.names != ("",) else Item(item.expression, (text,))


@lru_cache(maxsize=256)
def parsed_query(text: str) -> Query:
    parser = _Parser(text)
    query = parser.query()
    parser.end()
    return query


@lru_cache(maxsize=256)
def parsed_type(text: str) -> Type:
    """A type, or the columns of a row (`a INT, b STRING`) as a struct."""
    parser = _Parser(text)
    if parser.peek().kind in ("name", "quoted") and (len(parser.tokens) == 1 or parser.is_sign("<", "(", ahead=1)):
        result = parser.type()
    else:
        result = Type("struct", members=parser.members(""))
    parser.end()
    return result
