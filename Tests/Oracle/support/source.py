"""Reads the XML of a model source (`.xcdatamodeld`), as far as a comparison needs it; no code is shared with the tool."""

import plistlib
import xml.etree.ElementTree as XML
from pathlib import Path


NUMBERS = {"Integer 16", "Integer 32", "Integer 64", "Decimal", "Double", "Float", "Boolean"}


def default(kind, node):
    """The default of an attribute as a store holds it, or None."""
    text = node.get("defaultDateTimeInterval" if kind == "Date" else "defaultValueString")
    if text is None:
        return None
    if kind in NUMBERS:
        return {"YES": 1, "TRUE": 1, "NO": 0, "FALSE": 0}.get(text.upper()) if not text[-1:].isdigit() else float(text)
    return float(text) if kind == "Date" else text.encode()


class Property:
    """An attribute or a relationship."""

    def __init__(self, node):
        self.name, self.is_attribute = node.get("name"), node.tag == "attribute"
        self.identifier = node.get("elementID") or self.name
        self.is_stored = node.get("transient") != "YES"
        self.type = node.get("attributeType")
        self.default = default(self.type, node)


class Entity:
    def __init__(self, node):
        self.name, self.parent = node.get("name"), node.get("parentEntity")
        self.identifier = node.get("elementID") or self.name
        self.own = {item.get("name"): Property(item) for item in node if item.tag in ("attribute", "relationship")}


class Model:
    """One version of a model: its entities by name, and the version identifier that stores note."""

    def __init__(self, path):
        root = XML.parse(path / "contents").getroot()
        self.identifier = root.get("userDefinedModelVersionIdentifier") or ""
        self.entities = {node.get("name"): Entity(node) for node in root.findall("entity")}

    def properties(self, name):
        """All properties of an entity, those that it inherits included."""
        found = {}
        while name:
            entity = self.entities[name]
            found = entity.own | found
            name = entity.parent
        return found

    def lacks(self, other):
        """What another version stores and this one has no place for, renames considered: `Entity` or `Entity.property`."""
        missing = []
        for name, entity in sorted(other.entities.items()):
            known = [one for one in self.entities.values() if same(one, entity)]
            if not known:
                missing.append(name)
                continue
            places = [place for one in known for place in self.properties(one.name).values()]
            for item in entity.own.values():
                if item.is_stored and not any(same(place, item) for place in places):
                    missing.append(f"{name}.{item.name}")
        return missing


def same(first, second):
    """Whether one has a name or a renaming identifier of the other."""
    return bool({first.name, first.identifier} & {second.name, second.identifier})


def read_versions(folder):
    """The versions of a `.xcdatamodeld` by their names, and the name of the current one."""
    versions = {path.name.removesuffix(".xcdatamodel"): Model(path) for path in Path(folder).glob("*.xcdatamodel")}
    current = plistlib.loads((Path(folder) / ".xccurrentversion").read_bytes())["_XCCurrentVersionName"]
    return versions, current.removesuffix(".xcdatamodel")
