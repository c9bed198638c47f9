"""Writes `.xcdatamodeld` folders and stores of their versions."""

import sqlite3
from pathlib import Path
from xml.sax.saxutils import quoteattr

from tool import lazaret


def element(tag, children=(), **attributes):
    text = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items() if value is not None)
    return f"<{tag}{text}>{''.join(children)}</{tag}>"


def attribute(name, kind="String", mandatory=False, default=None, renamed=None, info=()):
    """An attribute; `renamed` is its renaming identifier, `info` are keys of its user info that say YES."""
    info = [element("userInfo", [element("entry", key=key, value="YES") for key in info])] if info else []
    return element(
        "attribute", info, name=name, attributeType=kind, optional=None if mandatory else "YES", defaultValueString=default,
        elementID=renamed)


def relationship(name, destination, inverse, to_many=False, mandatory=False, minimum=None, renamed=None):
    """A relationship; one to many has no greatest number of destinations."""
    return element(
        "relationship", name=name, destinationEntity=destination, inverseName=inverse, inverseEntity=destination,
        optional=None if mandatory else "YES", toMany="YES" if to_many else None, maxCount=None if to_many else "1",
        minCount=minimum, deletionRule="Nullify", elementID=renamed)


def entity(name, *properties, renamed=None):
    properties = [attribute(one) if not one.startswith("<") else one for one in properties]
    return element("entity", properties, name=name, representedClassName=name, elementID=renamed)


class Version:
    """One version of a model: its name, its entities, and the version identifier that its stores note."""

    def __init__(self, name, *entities, identifier=""):
        self.name, self.entities, self.identifier = name, entities, identifier

    def write(self, folder):
        target = folder / f"{self.name}.xcdatamodel"
        target.mkdir(parents=True)
        text = element(
            "model", self.entities, type="com.apple.IDECoreDataModeler.DataModel", documentVersion="1.0",
            userDefinedModelVersionIdentifier=self.identifier)
        (target / "contents").write_text('<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n' + text)


def write_model(folder, versions, current):
    """A `.xcdatamodeld` of some versions, one of which is the current one."""
    for version in versions:
        version.write(folder)
    name = element("key", ["_XCCurrentVersionName"]) + element("string", [f"{current}.xcdatamodel"])
    plist = f'<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>{name}</dict></plist>\n'
    (folder / ".xccurrentversion").write_text(plist)
    return folder


def empty_store(model, path):
    """An empty store of the only version of a model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = lazaret("open", path, "--model", model, "--home", path.parent / "made", "--json")
    if made.code != 0 or not path.exists():
        raise RuntimeError(f"no store could be made\n{made}")


def insert(path, rows):
    """Writes records, each a dictionary of properties, by their entities, and returns their primary keys.

    A property's column is its name in capitals after a Z.
    """
    keys = {}
    with sqlite3.connect(path) as store:
        numbers = dict(store.execute("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY"))
        for name, records in rows.items():
            table = "Z" + name.upper()
            first = store.execute(f'SELECT coalesce(max(Z_PK), 0) FROM "{table}"').fetchone()[0] + 1
            for key, record in enumerate(records, first):
                columns = ["Z_PK", "Z_ENT", "Z_OPT"] + ["Z" + property.upper() for property in record]
                marks = ",".join("?" * len(columns))
                names = ",".join(f'"{column}"' for column in columns)
                store.execute(
                    f'INSERT INTO "{table}" ({names}) VALUES ({marks})', (key, numbers[name], 1, *record.values()))
                keys.setdefault(name, []).append(key)
            store.execute(
                f'UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT coalesce(max(Z_PK), 0) FROM "{table}") WHERE Z_NAME = ?', (name,))
    close(store)
    return keys


def close(store):
    """Closes a connection so that everything is in the main file."""
    store.commit()
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def values(path, name, *properties):
    """The values of some properties of all records of an entity, sorted; one property gives values, several give tuples."""
    store = sqlite3.connect(Path(path).absolute().as_uri() + "?mode=ro", uri=True)
    try:
        # With the table's name, since SQLite takes an unknown name in quotes for a text.
        columns = ",".join(f'"Z{name.upper()}"."Z{property.upper()}"' for property in properties)
        rows = store.execute(f'SELECT {columns} FROM "Z{name.upper()}"').fetchall()
    finally:
        store.close()
    return sorted((row[0] if len(properties) == 1 else row for row in rows), key=repr)


def tables(path):
    store = sqlite3.connect(Path(path).absolute().as_uri() + "?mode=ro", uri=True)
    try:
        return {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        store.close()
