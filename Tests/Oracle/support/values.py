"""Reads the values of tables with SQLite, each with its storage class."""

import collections
import sqlite3


def opened(path):
    """A connection that gives text as it is, even where it is no UTF-8."""
    connection = sqlite3.connect(path)
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return connection


def quoted_rows(connection, table, columns):
    """The rows of a table, and how often each is there, as SQLite quotes their values."""
    chosen = ", ".join(f'quote("{column}")' for column in columns)
    return collections.Counter(connection.execute(f'SELECT {chosen} FROM "{table}"'))
