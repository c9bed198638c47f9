"""Where the rows of a sound SQLite file lie: a walk over its b-trees that trusts its input. A part of claims.py.

The rules are those of https://sqlite.org/fileformat2.html.
"""

import struct

INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE = 2, 5, 10, 13


def varint(data, at):
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    return value << 8 | data[at + 8], at + 9


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


class Row:
    """A row's rowid (None without one), its cell's page and place, and its overflow pages in order."""

    def __init__(self, rowid, page, offset, length, chain):
        self.rowid, self.page, self.offset, self.length, self.chain = rowid, page, offset, length, chain

    @property
    def pages(self):
        return {self.page, *self.chain}


class Tree:
    """A table or an index: its pages by kind, in key order, and its rows."""

    def __init__(self, name, root, is_index):
        self.name, self.root, self.is_index = name, root, is_index
        self.interior, self.leaves, self.overflow, self.rows = [], [], [], []


class PageMap:
    """All trees of a database by name, and its free pages; `data` is a whole main file at rest."""

    def __init__(self, data, schema):
        """schema: (name, root page, whether the tree is an index's or of a table without rowids)."""
        self.data = data
        self.page_size = struct.unpack(">H", data[16:18])[0]
        if self.page_size == 1:
            self.page_size = 65536
        self.usable = self.page_size - data[20]
        self.count = len(data) // self.page_size
        self.trees = {}
        for name, root, is_index in [("sqlite_schema", 1, False), *schema]:
            tree = self.trees[name] = Tree(name, root, is_index)
            self._walk(tree, root)
        self.trunks, self.free = self._freelist()

    def page(self, number):
        return self.data[(number - 1) * self.page_size : number * self.page_size]

    def owner(self, number):
        """The tree that a page belongs to; None for free and other pages."""
        for tree in self.trees.values():
            if number in tree.interior or number in tree.leaves or number in tree.overflow:
                return tree
        return None

    def _freelist(self):
        trunks, leaves = [], []
        trunk = struct.unpack(">I", self.data[32:36])[0]
        while trunk:
            trunks.append(trunk)
            following, count = struct.unpack(">II", self.page(trunk)[:8])
            leaves += struct.unpack(f">{count}I", self.page(trunk)[8 : 8 + 4 * count])
            trunk = following
        return trunks, leaves

    def _walk(self, tree, number):
        page = self.page(number)
        start = 100 if number == 1 else 0
        kind = page[start]
        count = struct.unpack(">H", page[start + 3 : start + 5])[0]
        is_interior = kind in (INTERIOR_INDEX, INTERIOR_TABLE)
        (tree.interior if is_interior else tree.leaves).append(number)
        first = start + (12 if is_interior else 8)
        for place in struct.unpack(f">{count}H", page[first : first + 2 * count]):
            if is_interior:
                self._walk(tree, struct.unpack(">I", page[place : place + 4])[0])
            if kind != INTERIOR_TABLE:
                self._row(tree, number, page, place, place + (4 if is_interior else 0), kind == LEAF_TABLE)
        if is_interior:
            self._walk(tree, struct.unpack(">I", page[start + 8 : start + 12])[0])

    def _row(self, tree, number, page, place, at, is_table):
        length, at = varint(page, at)
        rowid = None
        if is_table:
            rowid, at = varint(page, at)
            rowid = signed(rowid)
        local = self._local(length, is_table)
        end, chain = at + local, []
        if local < length:
            overflow = struct.unpack(">I", page[end : end + 4])[0]
            end += 4
            rest = length - local
            while overflow and rest > 0:
                chain.append(overflow)
                rest -= self.usable - 4
                overflow = struct.unpack(">I", self.page(overflow)[:4])[0]
        tree.overflow += chain
        tree.rows.append(Row(rowid, number, place, end - place, chain))

    def _local(self, length, is_table):
        """How many bytes of a record are on its cell's page."""
        most = self.usable - 35 if is_table else (self.usable - 12) * 64 // 255 - 23
        if length <= most:
            return length
        least = (self.usable - 12) * 32 // 255 - 23
        kept = least + (length - least) % (self.usable - 4)
        return kept if kept <= most else least
