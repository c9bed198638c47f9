enum DemoScene: String, CaseIterable {
  case firstStart = "first-start"
  case healthy = "healthy"
  case overwritten = "overwritten-header"
  case truncated = "truncated"
  case firstPageLost = "first-page-lost"
  case logAlone = "log-alone"
  case foreignLog = "foreign-wal"
  case lostTables = "another-model"
  case older = "older-version"
  case newer = "newer-version"
  case repaired = "parts-missing"
  case unrepaired = "parts-missing-kept"

  var fileName: String { facts.fileName }
  var title: String { facts.title }
  var story: String { facts.story }

  private var facts: (fileName: String, title: String, story: String) {
    switch self {
    case .firstStart: ("New.sqlite", "The first start", "There is no store yet.")
    case .healthy: ("Healthy.sqlite", "An ordinary day", "The store is sound and of the current model version.")
    case .overwritten:
      (
        "Overwritten.sqlite", "The file was overwritten",
        "Its first bytes are those of an error page that a download saved there."
      )
    case .truncated:
      ("Truncated.sqlite", "The copy was cut off", "The last eighth of a file with 3,012 records never arrived.")
    case .firstPageLost:
      (
        "NoFirstPage.sqlite", "The first page is gone",
        "Its first page, with the header and the list of tables, is nothing but zeros. SQLite says that it is no database."
      )
    case .logAlone:
      (
        "LogAlone.sqlite", "Only the log is left",
        "The main file was deleted. Its write-ahead log lay beside it, and the app had not yet cleared it."
      )
    case .foreignLog:
      (
        "WrongLog.sqlite", "A restored file met the wrong log",
        "The main file was put back from a copy, but the write-ahead log of another store lay beside it."
      )
    case .lostTables:
      (
        "OtherApp.sqlite", "A store of another app",
        "A sound store, but none of its entities is in the garage's model: it is left as it is."
      )
    case .older: ("Older.sqlite", "The app was updated", "The store was written with the model's first version.")
    case .newer:
      (
        "Newer.sqlite", "The app was downgraded",
        "The store was written with a version that this older app does not know."
      )
    case .repaired:
      (
        "Repaired.sqlite", "A part of the model is missing",
        "Every page is sound, but a migration ended too early: a column and an index are missing, and a highest key is too low."
      )
    case .unrepaired:
      (
        "Repairable.sqlite", "The same, and the app leaves it to its makers",
        "The app's policy repairs nothing by itself. It can be repaired with the command, or in the browser."
      )
    }
  }
}
