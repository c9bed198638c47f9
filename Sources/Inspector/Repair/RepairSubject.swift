import HTTPServer
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage

/// A live store to repair.
struct RepairSubject {
  let files: StoreFileSet
  let examination: PagePart<Examination>

  /// The repairing model's name; nil for the embedded one.
  let modelName: String?

  /// The model's versions, if available.
  private let bundle: ModelBundle?

  /// - Throws: ``Refusal`` 404 for a store that isn't live.
  init(_ store: ListedStore, _ parts: InspectorParts) throws {
    files = try store.liveFiles()
    let examined = parts.examined(files, countsRecords: true)
    examination = examined.examination
    let found = examined.examination.value
    if let bundle = examined.model?.bundle, found?.modelVersion != nil {
      self.bundle = bundle
      modelName = examined.model?.name
    } else {
      // The embedded model serves if no version of the app matches.
      let name = "own model"
      bundle = found?.storeModel.flatMap { model in
        ModelBundle(name: name, versions: [ModelVersion(name: name, model: model, isCurrent: true)])
      }
      modelName = nil
    }
  }

  /// - Throws: ``Refusal`` 409 if unavailable.
  func storeLayout() throws -> StoreLayout {
    guard let model = examination.value?.storeModel else { throw Self.modelMissing.refusal }
    return try StoreLayout(model)
  }

  /// - Throws: ``Refusal`` 409 if the store's model is unavailable.
  func migrator(_ parts: InspectorParts) throws -> Migrator {
    guard let bundle else { throw Self.modelMissing.refusal }
    var migrator = Migrator(bundle, surroundings: parts.surroundings, logger: parts.options.logger)
    migrator.keepOriginals(by: parts.surroundings)
    return migrator
  }

  var obstacle: Problem? {
    guard let examination = examination.value else { return examination.problem }
    let reason = examination.reason
    switch examination.verdict {
    case .unavailable, .missing:
      return Problem(.conflict, code: reason.code, title: "Not now.", detail: reason.words, hint: reason.hint)
    case .damaged:
      return Problem(
        .conflict, code: "store-damaged", title: "Not this one.",
        detail: "A damaged store is not repaired but salvaged.",
        hint: "A salvage makes a clean store of every record that is left.")
    case .compatible, .repairable, .outdated, .incompatible:
      guard examination.kind == .coreData else {
        return Problem(
          .conflict, code: "repair-refused", title: "Not this one.",
          detail: "A plain SQLite store is not repaired: its app's migrator owns the schema.",
          hint: "What it lacks of the app's schema is told where the schema is given.")
      }
      return examination.drift == nil || bundle == nil ? Self.modelMissing : nil
    }
  }

  /// The declared expressions that a repair would run.
  func declarations(in fileSystem: FileSystem) throws -> Problem? {
    try DeclaredExpressions.problem(of: files, storeLayout(), in: fileSystem, command: "lazaret repair --dry-run")
  }

  private static let modelMissing = Problem(
    .conflict, code: "source-model-missing", title: "Not like this.",
    detail: "The model that the store was written with is neither among the models given nor in the store.",
    hint: "Start the inspector with the app's model: lazaret serve --model App.xcdatamodeld.")
}

/// Caches dry runs and checks until a store changes.
final class RepairNotes: Sendable {
  struct Done: Sendable {
    let outcome: RepairOutcome

    /// Whether records were repaired too.
    let scope: RepairScope

    let date: Timestamp
  }

  private struct DryRun: Hashable {
    let store: FilePath
    let model: String
    let scope: RepairScope
  }

  private let dryRuns = StoreCache<DryRun, RepairAccount>(capacity: 32)
  private let checks = StoreCache<FilePath, DataCheck>(capacity: 64)

  /// The last repairs.
  let done = RecentValues<StoreID, Done>(capacity: 200)

  /// Returns a repair's effects on a private copy, cached.
  func dryRun(of subject: RepairSubject, _ scope: RepairScope, _ parts: InspectorParts) throws -> RepairAccount {
    let migrator = try subject.migrator(parts)
    let key = DryRun(store: subject.files.main, model: subject.modelName ?? "", scope: scope)
    return try dryRuns.value(key, of: subject.files, in: parts.surroundings.fileSystem) {
      var options = Migrator.Options()
      options.repair = scope
      var account = try migrator.planRepair(subject.files.main, options: options)
      // An embedded model is no version of the app's.
      if subject.modelName == nil { account.version = nil }
      return account
    }
  }

  /// The last check; nil if outdated.
  func check(of files: StoreFileSet, in fileSystem: FileSystem) throws -> DataCheck? {
    try checks.kept(files.main, of: files, in: fileSystem)
  }

  /// Checks the records, read-only.
  func check(_ files: StoreFileSet, _ layout: StoreLayout, _ surroundings: Surroundings) throws -> DataCheck {
    try checks.value(files.main, of: files, in: surroundings.fileSystem) {
      try DataCheck(of: files, layout: layout, surroundings: surroundings)
    }
  }
}

/// The schema expressions SQLite would evaluate while a repair writes rows, unless they are the model's.
///
/// The inspector runs no code that a store declares (see `HOSTILE_CONTENT.md`), so the schema is read without SQLite.
enum DeclaredExpressions {
  /// Why a copy isn't repaired here; nil if no declared expression would run.
  ///
  /// - Parameter command: the equivalent command.
  static func problem(
    of files: StoreFileSet, _ layout: StoreLayout, in fileSystem: FileSystem, command: String
  ) throws -> Problem? {
    let tables = try tables(of: files, layout, in: fileSystem)
    guard let first = tables.first else { return nil }
    let others = tables.count == 1 ? "" : " and \(counted(tables.count - 1, "other table"))"
    return Problem(
      .conflict, code: "schema-expressions", title: "Not from here.",
      detail: """
        Table \(printable(String(first.prefix(DriftList.maximumLength))))\(others) declares checks, generated columns, \
        defaults or indexes with expressions of its own, which a repair would run; the inspector runs none.
        """, hint: "Use the command, which stands for the app: \(command).")
  }

  static func tables(of files: StoreFileSet, _ layout: StoreLayout, in fileSystem: FileSystem) throws -> [String] {
    let schema = try schema(of: files, in: fileSystem)
    let written = layout.tables.map(\.name) + layout.joinTables.map(\.name) + StoreLayout.bookkeepingTableNames
    let names = Set(written.map { $0.uppercased() })
    let conditions = Set(layout.indexes.compactMap { IndexDefinition(sql: $0.statement)?.condition })
    var found: Set<String> = []
    for entry in schema.entries where names.contains(entry.tableName.uppercased()) {
      switch entry.kind {
      case .table where declares(entry.sql): found.insert(entry.tableName)
      case .index where computes(entry, conditions): found.insert(entry.tableName)
      case .table, .index, .view, .trigger: continue
      }
    }
    return found.sorted()
  }

  private static func schema(of files: StoreFileSet, in fileSystem: FileSystem) throws -> Schema {
    func part(_ part: StoreFileSet.Part) throws -> (any ByteSource)? {
      guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
      let file = try fileSystem.open(files.path(of: part))
      return file.count > 0 ? file : nil
    }
    return try Database(
      main: try fileSystem.open(files.main), writeAheadLog: try part(.wal), rollbackJournal: try part(.journal)
    ).schema()
  }

  /// Whether an index is partial or on an expression, unlike the model's.
  private static func computes(_ entry: SchemaEntry, _ conditions: Set<String>) -> Bool {
    // An automatic index has no statement or expression.
    guard entry.sql != nil else { return false }
    guard let index = entry.indexDefinition else { return true }
    if index.columns.contains(where: { $0.name == nil }) { return true }
    return index.condition.map { !conditions.contains($0) } ?? false
  }

  /// Whether a statement has an expression's keyword, even in a quoted name.
  private static func declares(_ sql: String?) -> Bool {
    guard let sql else { return true }
    var rest = sql.utf8[...]
    while let start = rest.firstIndex(where: isWordByte) {
      let end = rest[start...].firstIndex { !isWordByte($0) } ?? rest.endIndex
      let word = rest[start..<end]
      rest = rest[end...]
      // The longest keyword has 9 letters.
      guard word.count <= 9 else { continue }
      switch String(decoding: word, as: UTF8.self).uppercased() {
      case "CHECK", "GENERATED", "AS": return true
      case "DEFAULT":
        // A literal or parentheses follow, perhaps after a comment.
        let value = rest.drop { $0 == 0x20 || (9...13).contains($0) }
        if value.first == UInt8(ascii: "(") || value.first == UInt8(ascii: "/") || value.starts(with: "--".utf8) {
          return true
        }
      default: continue
      }
    }
    return false
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
      true
    default: false
    }
  }
}
