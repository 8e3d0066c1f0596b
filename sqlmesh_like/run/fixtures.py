"""A unit test's rows as cells with their position, and then as typed rows. Owns reading, typing and their errors.

Columns that a row does not contain are NULL; names are compared without case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlmesh_like.analyze.spark_types.type_names import normalize
from sqlmesh_like.errors import Location, ProjectError, nearest, with_article
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.project.testing.unit_test_spec import Fixture
from sqlmesh_like.run.values.csv_file import CsvField, CsvFile
from sqlmesh_like.run.values.fixture_values import convert_value, type_of


@dataclass(frozen=True)
class Cell:
    value: object
    location: Location


@dataclass(frozen=True)
class FixtureRow:
    """Cells by column name, as written."""

    cells: Mapping[str, Cell]
    location: Location


@dataclass(frozen=True)
class FixtureRows:
    """All rows of a fixture; `names` are its columns in the order of their first mention. CSV holds text only."""

    names: tuple[str, ...]
    rows: tuple[FixtureRow, ...]
    is_text: bool = False


def read_fixture(fixture: Fixture) -> FixtureRows:
    """The rows of a fixture of mappings or CSV. Raises ProjectError with file and line."""
    if fixture.text is not None:
        return _csv_rows(fixture)
    listed = () if fixture.rows is None else fixture.rows.elements
    rows = tuple(
        FixtureRow({name: Cell(cell.value, cell.key_location) for name, cell in row.items()}, row.location)
        for row in listed
    )
    for row in rows:
        _refuse_twice(row)
    return FixtureRows(distinct_names(name for row in rows for name in row.cells), rows)


def plain_rows(names: Sequence[str], rows: Iterable[Sequence[object]], location: Location) -> FixtureRows:
    """Rows that a query returned; the location of each is that of the query."""
    made = tuple(FixtureRow({n: Cell(v, location) for n, v in zip(names, row, strict=True)}, location) for row in rows)
    return FixtureRows(tuple(names), made)


def complete_schema(known: Schema | None, fixture: FixtureRows, hints: Schema = ()) -> Schema:
    """The known columns, with missing types added; if none are known, those of `hints` and of the rows.

    `hints` are declared columns, possibly not all.
    """
    declared = {column.name.lower(): normalize(column.type) for column in hints if column.type}
    columns = known or (*hints, *(Column(n) for n in fixture.names if n.lower() not in {h.name.lower() for h in hints}))
    return tuple(
        Column(c.name, normalize(c.type) if c.type else declared.get(c.name.lower()) or _infer_type(fixture, c.name))
        for c in columns
    )


def typed_fixture(fixture: FixtureRows, schema: Schema, what: str) -> list[tuple[object, ...]]:
    """Rows in the schema's order. Raises ProjectError at a cell of an unknown column or with a wrong value."""
    check_names(fixture, schema, what)
    return [tuple(typed_cell(cell_of(row, column.name), column) for column in schema) for row in fixture.rows]


def check_names(fixture: FixtureRows, schema: Schema, what: str) -> None:
    """Raise ProjectError at the first column that `what` does not have."""
    names = {column.name.lower() for column in schema}
    for row in fixture.rows:
        for name, cell in row.cells.items():
            if name.lower() not in names:
                shown = [column.name for column in schema]
                hint = nearest(name, shown) or f"its columns: {', '.join(shown)}"
                raise ProjectError(f"{what} has no column {name!r}", location=cell.location, hint=hint)


def cell_of(row: FixtureRow, name: str) -> Cell | None:
    """The cell of a column, None if the row does not mention it."""
    return next((cell for key, cell in row.cells.items() if key.lower() == name.lower()), None)


def typed_cell(cell: Cell | None, column: Column) -> object:
    """The cell's value converted to the column's type. Raises ProjectError."""
    if cell is None or cell.value is None:
        return None
    try:
        return convert_value(cell.value, column.type or "string")
    except ValueError as error:
        message = f"{cell.value!r} is not {with_article(column.type or 'string')} for column {column.name!r}"
        raise ProjectError(message, location=cell.location, hint=str(error) or None) from None


def _infer_type(fixture: FixtureRows, name: str) -> str:
    cells = [cell_of(row, name) for row in fixture.rows]
    return type_of([cell.value for cell in cells if cell and cell.value is not None], is_text=fixture.is_text)


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name as it is first written; names are compared without case.

    >>> distinct_names(["id", "Day", "ID"])
    ('id', 'Day')
    """
    seen: dict[str, str] = {}
    for name in names:
        seen.setdefault(name.lower(), name)
    return tuple(seen.values())


def _refuse_twice(row: FixtureRow) -> None:
    seen: set[str] = set()
    for name, cell in row.cells.items():
        if name.lower() in seen:
            hint = "names are compared without case"
            raise ProjectError(f"the column {name!r} is there twice", location=cell.location, hint=hint)
        seen.add(name.lower())


def _csv_rows(fixture: Fixture) -> FixtureRows:
    # A block of YAML may be indented further than its first line needs.
    text = "\n".join(line.strip() for line in (fixture.text or "").splitlines()) + "\n"
    file = CsvFile(fixture.text_path or fixture.location.path, text)
    try:
        header, *records = list(file.records()) or [[]]
    except ProjectError as error:
        raise ProjectError(
            error.message, location=_location_in_file(error.location, fixture), hint=error.hint
        ) from None
    names = [field.text.strip() for field in header]
    if not names:
        raise ProjectError("the CSV is empty", location=fixture.location, hint="its first line names the columns")
    rows = tuple(_csv_row(file, fixture, names, record) for record in records)
    head = FixtureRow({name: Cell(None, _place(file, fixture, header[0])) for name in names}, fixture.location)
    if len(head.cells) < len(names):
        raise ProjectError("a column is there twice", location=_place(file, fixture, header[0]))
    return FixtureRows(tuple(names), rows, is_text=True)


def _csv_row(file: CsvFile, fixture: Fixture, names: Sequence[str], record: Sequence[CsvField]) -> FixtureRow:
    place = _place(file, fixture, record[0])
    if len(record) != len(names):
        message = f"this line has {len(record)} fields, the header has {len(names)}"
        raise ProjectError(message, location=place, hint="a field that holds a comma must be quoted")
    cells: dict[str, Cell] = {}
    for name, field in zip(names, record, strict=True):
        text = field.text if field.quoted else field.text.strip()
        cells[name] = Cell(None if field.is_null else text, _place(file, fixture, field))
    return FixtureRow(cells, place)


def _place(file: CsvFile, fixture: Fixture, field: CsvField) -> Location:
    place = _location_in_file(file.locate(field.offset), fixture)
    assert place is not None
    return place


def _location_in_file(place: Location | None, fixture: Fixture) -> Location | None:
    """A location in the text as one in the file: a block starts on the line below its `|`, in an unknown column."""
    if fixture.text_path is not None or place is None:
        return place
    return Location(fixture.location.path, (fixture.location.line or 0) + (place.line or 1), None)
