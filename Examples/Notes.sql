-- The schema of a plain SQLite store: what `lazaret open --model Examples/Notes.sql` creates and expects.
CREATE TABLE folders (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE notes (
  id INTEGER PRIMARY KEY,
  folder_id INTEGER REFERENCES folders (id),
  title TEXT NOT NULL,
  body TEXT,
  changed_at REAL NOT NULL
);

CREATE INDEX notes_by_folder ON notes (folder_id, changed_at);
