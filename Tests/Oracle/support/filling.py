"""Fills stores of any model with generated records, and reads them back by entity and property.

A model is what `lazaret model show --json` says of one version; columns are found in the store's own tables.
"""

import re
import sqlite3

from models import close
from store import Store

ROWS = 3
RANGES = {"Integer 16": 1 << 15, "Integer 32": 1 << 31, "Integer 64": 1 << 53, "Decimal": 1 << 31}


class Shape:
    """The entities of one version with what they inherit."""

    def __init__(self, version):
        self.name = version["name"]
        self.entities = {one["name"]: one for one in version["entities"]}

    def ancestors(self, name):
        """An entity and those it inherits from, the nearest first."""
        while name:
            yield name
            name = self.entities[name].get("parent")

    def heirs(self, name):
        """The concrete entities that are an entity or inherit from it."""
        return [one for one in sorted(self.entities) if name in self.ancestors(one) and not self.entities[one]["abstract"]]

    def own(self, name):
        """The stored attributes and to-one relationships that an entity itself declares."""
        entity = self.entities[name]
        made = ("transient", "derivation", "elements")
        attributes = [one for one in entity["attributes"] if not any(one.get(key) for key in made)]
        return attributes + [one for one in entity["relationships"] if not one["toMany"] and not one.get("transient")]

    def all(self, name):
        """The same with what it inherits: the declaring entity and the property by the property's name."""
        return {one["name"]: (declaring, one) for declaring in self.ancestors(name) for one in self.own(declaring)}


class Layout:
    """Where a store has the entities and properties of its version."""

    def __init__(self, store, shape):
        self.shape = shape
        self.places = {name: place for name, place in store.entities().items() if name in shape.entities}
        self.columns, taken = {}, {}
        existing = {table: set(store.columns(table)) for _, table in self.places.values()}
        for name, (_, table) in sorted(self.places.items(), key=lambda item: item[1][0]):
            for item in shape.own(name):
                base = column = "Z" + item["name"].upper()
                number = 0
                # A name that an entity before has taken gets a number at its end.
                while (table, column) in taken:
                    number += 1
                    column = f"{base}{number}"
                if column in existing[table]:
                    taken[table, column] = True
                    self.columns[name, item["name"]] = (table, column)
        self.existing = existing

    def column(self, name, item):
        """The table and the column of a property that an entity has or inherits."""
        found = self.shape.all(name).get(item)
        return self.columns.get((found[0], item)) if found else None


def is_attribute(item):
    return "destination" not in item


def value(item, random):
    kind = item["type"]
    if kind in RANGES:
        return random.randrange(1, RANGES[kind])
    if kind == "Boolean":
        return random.randrange(2)
    if kind in ("Double", "Float", "Date"):
        return float(random.randrange(1, 1 << 20)) + 0.5
    if kind == "UUID":
        return random.randbytes(16)
    if kind in ("Binary", "Transformable"):
        return (b"\x01" if item.get("externalStorage") else b"") + random.randbytes(12)
    if kind == "URI":
        return f"https://example.org/{random.randrange(1 << 40):x}"
    return f"text {random.randrange(1 << 40):x}"


def demanding(source, target):
    """The entities whose records could not be migrated: the target has mandatory properties that nothing fills."""
    found = set()
    for name in set(source.entities) & set(target.entities):
        for item, (_, told) in target.all(name).items():
            if not told.get("optional") and told.get("default") is None and item not in source.all(name):
                found.add(name)
    return found


def fill(path, shape, random, without=()):
    """Gives an empty store records of its concrete entities, with a value in every attribute, that lead to each other."""
    with Store(path) as store:
        layout = Layout(store, shape)
        joins = list(join_tables(store, shape))
    keys, next_key, records = {}, {}, {}
    for name, (number, table) in sorted(layout.places.items()):
        if shape.entities[name]["abstract"] or name in without:
            continue
        for _ in range(ROWS):
            key = next_key[table] = next_key.get(table, 0) + 1
            keys.setdefault(name, []).append(key)
            records[table, key] = {"Z_PK": key, "Z_ENT": number, "Z_OPT": 1} | {
                layout.column(name, item["name"])[1]: value(item, random)
                for _, item in shape.all(name).values() if is_attribute(item) and layout.column(name, item["name"])}
    link(layout, keys, records, random)
    with sqlite3.connect(path) as database:
        for (table, _), record in records.items():
            names, marks = ",".join(f'"{column}"' for column in record), ",".join("?" * len(record))
            database.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(record.values()))
        for table, last in next_key.items():
            root = next(
                name for name, (_, one) in layout.places.items() if one == table and not shape.entities[name].get("parent"))
            database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_NAME = ?", (last, root))
        for table, (first, first_entity), (second, second_entity) in joins:
            one, other = (
                [key for name in shape.heirs(entity) for key in keys.get(name, [])] for entity in (first_entity, second_entity))
            pairs = {(random.choice(one), random.choice(other)) for _ in range(ROWS)} if one and other else set()
            if second == "REFLEXIVE":
                pairs |= {(b, a) for a, b in pairs}
            database.executemany(f'INSERT INTO "{table}" ("{first}", "{second}") VALUES (?, ?)', sorted(pairs))
    close(database)


def link(layout, keys, records, random):
    """Lets every to-one relationship lead somewhere; where its inverse is one as well, they lead to each other."""
    shape = layout.shape
    for name in sorted(layout.places):
        for item in shape.own(name):
            if is_attribute(item) or (name, item["name"]) not in layout.columns:
                continue
            sources = [(heir, key) for heir in shape.heirs(name) for key in keys.get(heir, [])]
            targets = [(heir, key) for heir in shape.heirs(item["destination"]) for key in keys.get(heir, [])]
            inverse = shape.all(item["destination"]).get(item.get("inverse"))
            if not inverse:
                targets = [random.choice(targets) for _ in sources] if targets else []
            elif (inverse[0], item["inverse"]) < (name, item["name"]):
                continue
            elif (inverse[0], item["inverse"]) == (name, item["name"]):
                targets = list(reversed(sources))
            for source, target in zip(sources, targets):
                lead(layout, records, name, item, source, target)
                if inverse:
                    lead(layout, records, inverse[0], inverse[1], target, source)


def lead(layout, records, declaring, item, source, target):
    if (declaring, item["name"]) not in layout.columns:
        return
    table, column = layout.columns[declaring, item["name"]]
    record = records[table, source[1]]
    record[column] = target[1]
    number = layout.places[item["destination"]][0]
    companion, place = f"Z{number}_{column[1:]}", f"Z_FOK_{column[1:]}"
    if companion in layout.existing[table]:
        record[companion] = layout.places[target[0]][0]
    if place in layout.existing[table]:
        record[place] = 2048 * source[1]


def join_tables(store, shape):
    """The tables of many-to-many relationships: each with two columns, and the entity whose keys are in each."""
    names = {number: name for name, (number, _) in store.entities().items()}
    for table in sorted(store.tables):
        columns = [column for column in store.columns(table) if not column.startswith("Z_FOK_") and column != "FOK_REFLEXIVE"]
        if len(columns) != 2 or not re.match(r"Z_\d", table):
            continue
        found = [re.match(r"Z_(\d+)(.+)", column) for column in columns]
        entities = [names.get(int(one[1])) if one else None for one in found]
        if columns[1] == "REFLEXIVE":
            entities[1] = entities[0]
        if all(one in shape.entities for one in entities):
            yield table, (columns[0], entities[0]), (columns[1], entities[1])


class Holding:
    """What a store holds: values by entity and property, and pairs by many-to-many relationship."""

    def __init__(self, path, shape):
        self.shape, self.values, self.pairs = shape, {}, {}
        with Store(path) as store:
            layout = Layout(store, shape)
            self.keys = store.keys()
            for name in layout.places:
                if shape.entities[name]["abstract"]:
                    continue
                for item, (_, told) in shape.all(name).items():
                    place = layout.column(name, item)
                    if place:
                        self.values[name, item] = self.read(store, name, place, told)
            for table, (first, one), (second, other) in join_tables(store, shape):
                ends = [(one, re.sub(r"^Z_\d+|\d+$", "", first)), (other, re.sub(r"^Z_\d+|\d+$", "", second))]
                turn = ends[0] > ends[1]
                rows = store.rows(table, [second, first] if turn else [first, second])
                self.pairs[tuple(sorted(ends))] = sorted(rows)

    def read(self, store, name, place, told):
        found = {key: value for key, value in store.column(*place).items() if key in self.keys[name]}
        if is_attribute(told) and told.get("externalStorage"):
            found = {key: value[1:] if isinstance(value, bytes) else value for key, value in found.items()}
        return found
