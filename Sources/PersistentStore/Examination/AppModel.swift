package import ManagedObjectModel
package import Platform
package import SQLiteFormat
package import SystemPackage

/// An app's expected store: model versions or a plain SQLite schema.
package enum AppModel: Sendable {
  case coreData(ModelBundle)

  case sqlite(SchemaScript, name: String)

  /// Loads a `.xcdatamodeld`, `.xcdatamodel`, `.momd`, `.mom` or `.sql` file.
  ///
  /// - Parameter order: all version names, oldest first; nil for natural order, current last.
  /// - Throws: `ModelError`, `PersistentStoreError` or `FileError`.
  package static func load(_ path: FilePath, order: [String]? = nil) throws -> AppModel {
    guard try isScript(path) else { return .coreData(try ModelBundle.load(path: path, order: order)) }
    let bytes = try FileSystem().contents(of: path, limit: SchemaScript.maximumLength)
    do {
      return .sqlite(try SchemaScript(bytes: bytes), name: path.stem ?? "")
    } catch {
      throw error.at(path)
    }
  }

  package static func isScript(_ path: FilePath, in fileSystem: FileSystem = FileSystem()) throws(FileError) -> Bool {
    if path.extension?.lowercased() == "sql" { return true }
    guard path.extension?.lowercased() != "swift", try fileSystem.status(of: path)?.kind == .regular else {
      return false
    }
    let start = try fileSystem.open(path).bytes(at: 0, length: 4096)
    return SchemaScript.isLikely(String(decoding: start, as: UTF8.self))
  }

  /// Returns a plain store's schema; nil for other files.
  ///
  /// - Parameter opened: its files, if they have no names.
  /// - Throws: `PersistentStoreError` if its schema table is damaged or empty, or `FileError`.
  package static func schema(
    ofStore path: FilePath, _ opened: OpenedFiles? = nil, in fileSystem: FileSystem = FileSystem()
  ) throws -> AppModel? {
    let files = StoreFileSet(main: path)
    func part(_ part: StoreFileSet.Part) throws(FileError) -> (any ByteSource)? {
      if let opened { return opened[part] }
      guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
      return try fileSystem.open(files.path(of: part))
    }
    let schema: Schema
    let encoding: TextEncoding
    let main = try opened?[.main] ?? fileSystem.open(path)
    do throws(FileError) {
      let database = try Database.withOwnParts(main: main, writeAheadLog: part(.wal), rollbackJournal: part(.journal))
      schema = try database.schema()
      encoding = database.encoding
    } catch {
      guard error.kind == .notADatabase else { throw error }
      return nil
    }
    guard schema.table(named: "Z_METADATA") == nil, schema.table(named: "Z_PRIMARYKEY") == nil else { return nil }
    guard !schema.findings.hasDamage, !schema.entries.isEmpty else {
      throw PersistentStoreError(
        .schemaScriptRefused, operation: "read the schema of the store", path: path,
        detail: schema.entries.isEmpty ? "it has no tables" : "its list of tables is damaged",
        hint: "Give the schema as a .sql file, or another store that is sound.")
    }
    do {
      return .sqlite(try SchemaScript(of: schema, encoding), name: path.stem ?? "")
    } catch {
      throw error.at(path)
    }
  }

  package var isCoreData: Bool { if case .coreData = self { true } else { false } }

  /// The current version's or the schema file's name.
  package var currentVersionName: String {
    switch self {
    case .coreData(let bundle): bundle.current.name
    case .sqlite(_, let name): name
    }
  }
}

extension PersistentStoreError {
  fileprivate func at(_ path: FilePath) -> PersistentStoreError {
    var error = self
    error.path = path
    return error
  }
}

extension SchemaScript {
  /// Creates a script from a store's encoding, tables, indexes, views and triggers; SQLite's own may be included.
  package init(of schema: Schema, _ encoding: TextEncoding) throws(PersistentStoreError) {
    let pragma = encoding == .utf8 ? "" : "PRAGMA encoding = '\(encoding.pragmaName)';\n"
    try self.init(pragma + schema.entries.compactMap(\.sql).map { $0 + "\n;\n" }.joined())
  }
}

extension Examination {
  /// The compared model's fit, higher is better, 0 for unfit or unknown.
  var fit: Int {
    switch verdict {
    case .compatible where health.notes.contains { $0.code == "lacks-tables" }: 3
    case .compatible, .repairable: 5
    case .outdated: 4
    // A version was found, but the store is newer or damaged.
    case .unavailable, .damaged, .incompatible, .missing:
      modelVersion != nil ? 2 : ["newer-model", "unknown-version"].contains(reason.code) ? 1 : 0
    }
  }
}

extension Examiner {
  /// Returns models with their fit, best first and stable.
  ///
  /// An unreadable store gives a fit of 0.
  package func ranked<Model>(
    _ models: [Model], for store: FilePath, _ appModel: (Model) -> AppModel
  ) -> [(model: Model, fit: Int)] {
    let fits = models.enumerated().map { index, model -> (model: Model, fit: Int, index: Int) in
      do {
        let fit = try examine(store, model: appModel(model), options: .init(countsRecords: false)).fit
        return (model, fit, index)
      } catch {
        return (model, 0, index)
      }
    }
    return fits.ordered { ($1.fit, $0.index) < ($0.fit, $1.index) }.map { ($0.model, $0.fit) }
  }
}
