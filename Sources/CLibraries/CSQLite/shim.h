// Swift cannot call functions with any number of arguments; this one asks what it is wanted for.
//
// SQLite's own header is left to the module that GRDB has for it.

struct sqlite3;
int sqlite3_db_config(struct sqlite3 *, int, ...);

/// Turns a setting of a connection on or off, and returns SQLite's result code.
static inline int lazaret_sqlite_set(void *connection, int setting, int value) {
  return sqlite3_db_config((struct sqlite3 *)connection, setting, value, (int *)0);
}
