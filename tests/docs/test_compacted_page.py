"""docs/formats/compacted.md says exactly what the code writes, and its queries run."""

import re
from pathlib import Path

import duckdb
import msgspec

from goodput.training.measure.compact import compact
from goodput.training.measure.readers.packed import (
    KINDS,
    PACKED_SCHEMA,
    STEP_DEFAULTS,
    Contents,
    CoveredFile,
    PackedProcess,
)

PAGE = (Path(__file__).parents[2] / "docs" / "formats" / "compacted.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ", flags=re.MULTILINE)


def compacted(folder: Path) -> Path:
    """A small compacted run, nobody's."""
    lines = [
        b'{"k":"process","schema":"goodput.events/1.0","job":"j","t":1790000000000000000}',
        b'{"k":"step","n":0,"t":1790000001000000000}',
        b'{"k":"point","name":"loss","value":2.5,"t":1790000001500000000}',
        b'{"k":"step","n":1,"t":1790000002000000000}',
        b'{"k":"process_end","t":1790000003000000000}',
    ]
    (folder / "events-0.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return compact(folder, now_ns=10**20).path


def test_columns(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        query = "DESCRIBE FROM read_parquet(?)"
        actual = [
            row[:2] for row in connection.execute(query, [str(compacted(tmp_path))]).fetchall()
        ]
    assert [row for row in ROW.findall(PAGE) if row[1].isupper()] == actual


def test_table_of_contents() -> None:
    for kind, name in ((Contents, "contents"), (CoveredFile, "file"), (PackedProcess, "process")):
        documented = [field for field, of in ROW.findall(PAGE) if of == name]
        assert documented == [field.name for field in msgspec.structs.fields(kind)]


def test_words() -> None:
    assert f"Format `{PACKED_SCHEMA}`" in PAGE
    assert ", ".join(f"`{kind}`" for kind in KINDS[:-1]) + " or `event`" in PAGE
    assert ", ".join(f"`{name}`" for name in STEP_DEFAULTS) in PAGE


def test_queries_run(tmp_path: Path) -> None:
    target = compacted(tmp_path)
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
    with duckdb.connect() as connection:
        found = [
            connection.execute(
                query.replace("goodput-runs/job/compacted.parquet", str(target))
            ).fetchall()
            for query in block.split(";")
            if query.strip()
        ]
    assert found[0] == [(0, 2, 1_000_000_000)]
    assert found[1] == [(1_790_000_001_500_000_000, "loss", 2.5)]
    assert msgspec.json.decode(found[2][0][0], type=Contents).schema == PACKED_SCHEMA
