internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
import SQLiteFormat

/// Whether a model has anything of what a store holds.
///
/// A store of another app would give an empty store by it, with every record set aside: that is no salvage. Where too little
/// of the store is left to tell, any model may be its own.
struct ModelFit {
  private let model: SalvageModel?
  private let evidence: Evidence

  init(_ model: SalvageModel?, _ evidence: Evidence) {
    self.model = model
    self.evidence = evidence
  }

  /// The error to report where a model has nothing of what the store holds; nil where it has, or nothing tells.
  func problem(_ identity: StoreIdentity, _ schema: SchemaSearch) throws(SalvageError) -> SalvageError? {
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

  /// The error to report where rows were found and none fits any table of the model; nil else.
  ///
  /// Where nothing is left of the store's own list of tables, its rows are all that tells.
  func problem(_ outcome: RowOutcome) throws(SalvageError) -> SalvageError? {
    let crawl = outcome.crawl
    // Tables that only rows tell of are none of the model's.
    let hasRows = zip(crawl.trees, outcome.tallies).contains { tree, tally in
      !tree.isKnownByRows
        && (tally.recovered != 0 || tally.keptApart != 0 || tally.deleted != 0 || tally.destroyed != 0)
    }
    guard let model, outcome.unplacedRows > 0, !hasRows else { return nil }
    var buffer = outcome.reader.makeBuffer()
    // Pages that fit two tables as well are unplaced too: those are of the model.
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

  /// How many pages are compared with the model's tables.
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

  /// The entities that a store says it has; none where nothing of that is left.
  private static func entities(of identity: StoreIdentity) -> Set<String> {
    var names = Set(identity.metadata?.versionHashes.keys.map(\.self) ?? [])
    if let cached = identity.cachedModel { names.formUnion(cached.entities.keys) }
    if names.isEmpty, let noted = identity.notedHashes { names.formUnion(noted.keys) }
    return names
  }

  /// The entities of all versions of a model, with the names that they had before.
  private static func entities(of bundle: ModelBundle) -> Set<String> {
    var names: Set<String> = []
    for version in bundle.versions + bundle.unorderedVersions {
      for entity in version.model.entities.values { names.formUnion([entity.name, entity.renamingIdentifier]) }
    }
    return names
  }

  /// The tables that a store's own schema lists, where all of it could be read; those of SQLite and Core Data itself left
  /// out.
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
