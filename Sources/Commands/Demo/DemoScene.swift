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

  var fileName: String {
    switch self {
    case .firstStart: "New.sqlite"
    case .healthy: "Healthy.sqlite"
    case .overwritten: "Overwritten.sqlite"
    case .truncated: "Truncated.sqlite"
    case .firstPageLost: "NoFirstPage.sqlite"
    case .logAlone: "LogAlone.sqlite"
    case .foreignLog: "WrongLog.sqlite"
    case .lostTables: "OtherApp.sqlite"
    case .older: "Older.sqlite"
    case .newer: "Newer.sqlite"
    case .repaired: "Repaired.sqlite"
    case .unrepaired: "Repairable.sqlite"
    }
  }

  var title: String {
    switch self {
    case .firstStart: "The first start"
    case .healthy: "An ordinary day"
    case .overwritten: "The file was overwritten"
    case .truncated: "The copy was cut off"
    case .firstPageLost: "The first page is gone"
    case .logAlone: "Only the log is left"
    case .foreignLog: "A restored file met the wrong log"
    case .lostTables: "A store of another app"
    case .older: "The app was updated"
    case .newer: "The app was downgraded"
    case .repaired: "A part of the model is missing"
    case .unrepaired: "The same, and the app leaves it to its makers"
    }
  }

  var story: String {
    switch self {
    case .firstStart: "There is no store yet."
    case .healthy: "The store is sound and of the current model version."
    case .overwritten: "Its first bytes are those of an error page that a download saved there."
    case .truncated: "The last eighth of a file with 3,012 records never arrived."
    case .firstPageLost:
      "Its first page, with the header and the list of tables, is nothing but zeros. SQLite says that it is no database."
    case .logAlone: "The main file was deleted. Its write-ahead log lay beside it, and the app had not yet cleared it."
    case .foreignLog: "The main file was put back from a copy, but the write-ahead log of another store lay beside it."
    case .lostTables: "A sound store, but none of its entities is in the garage's model: it is left as it is."
    case .older: "The store was written with the model's first version."
    case .newer: "The store was written with a version that this older app does not know."
    case .repaired:
      "Every page is sound, but a migration ended too early: a column and an index are missing, and a highest key is too low."
    case .unrepaired:
      "The app's policy repairs nothing by itself. It can be repaired with the command, or in the browser."
    }
  }
}
