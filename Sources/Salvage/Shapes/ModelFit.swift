internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
import SQLiteFormat

/// Checks that a model has any content of a store.
///
/// Another app's store would give an empty result with every record set aside. With too little evidence any model is
/// accepted.
struct ModelFit {
  private let model: SalvageModel?
  private let evidence: Evidence

  init(_ model: SalvageModel?, _ evidence: Evidence) {
    self.model = model
    self.evidence = evidence
  }

  /// Returns the error for a model without any content of the store.
  func problem(_ identity: StoreIdentity, _ schema: SchemaSearch) throws -> SalvageError? {
    switch model {
    case nil: return nil
    case .sqlite(let script):
      return unfit(
        holds: tables(of: schema), knows: try Self.tables(of: ExpectedSchema(script)), "the schema has no table")
    case .coreData(let bundle):
      let entities = Self.entities(of: identity)
      guard entities.isEmpty else {
        return unfit(holds: entities, knows: Self.entities(of: bundle), "the model has no entity")
      }
      var known: Set<String> = []
      for version in bundle.versions + bundle.unorderedVersions {
        known.formUnion(try Self.tables(of: ExpectedSchema(version.model)))
      }
      return unfit(holds: tables(of: schema), knows: known, "the model has no table")
    }
  }

  /// Returns the error for rows that all fit no table of the model.
  ///
  /// Without the store's own list of tables, only rows are evidence.
  func problem(_ outcome: RowOutcome) throws -> SalvageError? {
    let crawl = outcome.crawl
    // Tables known by rows alone are not the model's.
    let hasRows = zip(crawl.trees, outcome.tallies).contains { tree, tally in
      !tree.isKnownByRows
        && (tally.recovered != 0 || tally.keptApart != 0 || tally.deleted != 0 || tally.destroyed != 0)
    }
    guard let model, outcome.unplacedRows > 0, !hasRows else { return nil }
    var buffer = outcome.reader.makeBuffer()
    // Pages that fit two tables are unplaced too, but belong to the model.
    for page in crawl.unplaced.prefix(Self.sample) {
      let fits = try crawl.choice(for: page, &buffer) { index in
        let tree = crawl.trees[index]
        return tree.kind != .index && !tree.isInternal && !tree.isKnownByRows
      }
      if fits != nil { return nil }
    }
    let name = if case .sqlite = model { "schema" } else { "model" }
    return SalvageError(
      .unfitModel, path: evidence.files.main,
      detail: "the \(name) has no table that any of the \(counted(outcome.unplacedRows, "row")) fits that were found")
  }

  private static let sample = 1024

  private func unfit(holds: Set<String>, knows: Set<String>, _ words: String) -> SalvageError? {
    let known = Set(knows.map { $0.lowercased() })
    guard !holds.isEmpty, !known.isEmpty, !holds.contains(where: { known.contains($0.lowercased()) }) else {
      return nil
    }
    let names = holds.sorted()
    let list = names.prefix(5).map { printable(String($0.prefix(80))) }.joined(separator: ", ")
    let rest = names.count > 5 ? " and \(grouped(names.count - 5)) more" : ""
    return SalvageError(
      .unfitModel, path: evidence.files.main, detail: "\(words) of the store, which has \(list)\(rest)")
  }

  private static func entities(of identity: StoreIdentity) -> Set<String> {
    var names = Set(identity.metadata?.versionHashes.keys.map(\.self) ?? [])
    if let cached = identity.cachedModel { names.formUnion(cached.entities.keys) }
    if names.isEmpty, let noted = identity.notedHashes { names.formUnion(noted.keys) }
    return names
  }

  /// Returns the entities of all versions, with former names.
  private static func entities(of bundle: ModelBundle) -> Set<String> {
    var names: Set<String> = []
    for version in bundle.versions + bundle.unorderedVersions {
      for entity in version.model.entities.values { names.formUnion([entity.name, entity.renamingIdentifier]) }
    }
    return names
  }

  /// Returns the tables of a complete schema, without SQLite's and Core Data's own.
  private func tables(of schema: SchemaSearch) -> Set<String> {
    schema.isWhole ? Self.names(schema.entries.filter { $0.kind == .table }.map(\.name)) : []
  }

  private static func tables(of expected: ExpectedSchema) -> Set<String> {
    names(expected.entries.filter { $0.kind == .table }.map(\.name))
  }

  private static func names(_ names: [String]) -> Set<String> {
    Set(
      names.filter { name in
        let name = name.uppercased()
        return !name.hasPrefix("SQLITE_") && !StoreLayout.bookkeepingTableNames.contains(name)
      })
  }
}
