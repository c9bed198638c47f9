"""Reads a store with SQLite, changing nothing of it."""

import plistlib
import sqlite3
from pathlib import Path


class Store:
    """A store at rest: everything is in its main file."""

    def __init__(self, path):
        self.path = Path(path).absolute()
        self.database = sqlite3.connect(self.path.as_uri() + "?mode=ro&immutable=1", uri=True)
        self.database.text_factory = bytes
        self.metadata = plistlib.loads(self.database.execute("SELECT Z_PLIST FROM Z_METADATA").fetchone()[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.database.close()

    def names(self, query, *values):
        return [row[0].decode() for row in self.database.execute(query, values)]

    @property
    def tables(self):
        """The tables of entities and of relationships, and that of the highest keys."""
        found = self.names("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z*'")
        return {name for name in found if name not in ("Z_METADATA", "Z_MODELCACHE")}

    def columns(self, table):
        return self.names("SELECT name FROM pragma_table_info(?)", table)

    def rows(self, table, columns):
        """All rows of a table, as tuples of these columns."""
        chosen = ",".join(f'"{table}"."{column}"' for column in columns)
        return self.database.execute(f'SELECT {chosen} FROM "{table}"').fetchall()

    def column(self, table, column):
        """The values of a column by primary key."""
        return dict(self.rows(table, ["Z_PK", column]))

    def entities(self):
        """The number and the root entity's table of each entity by its name; those of Core Data's own are left out."""
        rows = self.database.execute("SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000").fetchall()
        parents = {number: parent for number, _, parent in rows}
        names = {number: name.decode() for number, name, _ in rows}

        def root(number):
            while parents.get(number):
                number = parents[number]
            return number

        return {name: (number, "Z" + names[root(number)].upper()) for number, name in names.items()}

    def keys(self):
        """The primary keys of the records of each entity by its name."""
        tables = self.tables
        return {
            name: {key for key, entity in self.rows(table, ["Z_PK", "Z_ENT"]) if entity == number}
            for name, (number, table) in self.entities().items() if table in tables}
