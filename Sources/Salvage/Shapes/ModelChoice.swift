internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
import SQLiteFormat

/// Chooses the model of a store, and so the expected schema.
struct ModelChoice {
  private static let historyLimit = 32

  private let model: SalvageModel?

  private let identity: StoreIdentity

  /// Whether only a version of the caller's model is acceptable.
  private let fitsModel: Bool

  /// Whether rows may stay in a certain model anyway.
  private let keepsModel: @Sendable (ManagedObjectModel) -> Bool

  /// The store's own model if its rows go into it; nil if unknown or replaced by the caller's.
  private let known: ManagedObjectModel?

  /// The store's own model if its rows go into another one.
  let foreignModel: ManagedObjectModel?

  init(_ model: SalvageModel?, _ identity: StoreIdentity, _ options: Salvager.Options) {
    self.model = model
    self.identity = identity
    (fitsModel, keepsModel) = (options.fitsModel, options.keepsModel)
    guard case .coreData(let bundle) = model else {
      known = identity.model(in: nil)
      foreignModel = nil
      return
    }
    let own = identity.model(in: bundle)
    let isKept = own.map { own in
      !options.fitsModel || bundle.version(matching: own.versionHashes()) != nil || options.keepsModel(own)
    }
    (known, foreignModel) = isKept == true ? (own, nil) : (nil, own)
  }

  /// Returns the expected schema; nil if unknown.
  func expectedSchema(
    _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws -> ExpectedSchema? {
    if case .sqlite(let script) = model { return try ExpectedSchema(script) }
    if let known { return try ExpectedSchema(known) }
    guard case .coreData(let bundle) = model else { return nil }
    return try bestFitting(bundle, schema, reader, map)
  }

  /// Returns the layouts of the versions before a model, oldest first; empty without a known order.
  func earlierLayouts(than model: ManagedObjectModel) throws -> [StoreLayout] {
    guard case .coreData(let bundle) = self.model else { return [] }
    let hashes = model.versionHashes()
    guard let own = bundle.version(matching: hashes, identifiers: model.versionIdentifiers, cached: model) else {
      return []
    }
    let earlier = bundle.order.names(from: nil, to: own.name).compactMap { bundle.version(named: $0) }
    var layouts: [StoreLayout] = []
    for version in earlier.suffix(Self.historyLimit) {
      if let layout = try ExpectedSchema(version.model).layout { layouts.append(layout) }
    }
    return layouts
  }

  var basis: SalvageReport.Rebuild.Basis {
    switch model {
    case .sqlite: return .schema
    case .coreData(let bundle):
      guard known != nil else { return .bestFit }
      if identity.metadata == nil, identity.cachedModel == nil { return .recoveryKit }
      return identity.metadata.map { bundle.version(matching: $0.versionHashes) != nil } == true
        ? .versionHashes : .modelCache
    case nil: return known == nil ? .asFound : .modelCache
    }
  }

  /// Returns the version that fits a sample of pages best; among equals the current, else the newest one.
  private func bestFitting(
    _ bundle: ModelBundle, _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws -> ExpectedSchema? {
    var best: (score: Double, schema: ExpectedSchema)?
    var buffer = reader.makeBuffer()
    let leaves = Self.sample(of: map)
    var agreement = Int.min
    // If the app must open the result, newer versions than its own are excluded. Versions missing from the order have
    // stores too.
    let possible =
      fitsModel
      ? bundle.unorderedVersions.filter { !bundle.isNewer($0, than: bundle.current) }
        + bundle.versions(upTo: bundle.current) : bundle.unorderedVersions + bundle.versions
    for version in possible.filter({ !$0.isCurrent }) + possible.filter(\.isCurrent) {
      let expected = try ExpectedSchema(version.model)
      agreement = max(agreement, expected.agreement(with: schema.entries))
      if possible.count == 1 {
        best = (0, expected)
        break
      }
      let list = TreeList(found: schema.entries, isWhole: schema.isWhole, expected: expected)
      let crawl = Crawl(reader: reader, map: map, trees: list.trees)
      // Remains of the store's own list of tables outweigh the rows.
      var score = 1000 * Double(expected.agreement(with: schema.entries))
      for leaf in leaves {
        score += try crawl.choice(for: leaf, &buffer, where: { _ in true })?.fit.score ?? 0
      }
      if score >= best?.score ?? -.infinity { best = (score, expected) }
    }
    return try newer(bundle, schema, than: agreement) ?? best?.schema
  }

  /// Returns the newer version that a complete list of tables shows, if newer ones are kept.
  ///
  /// - Parameter agreement: the list's agreement with other versions, which must be lower.
  private func newer(
    _ bundle: ModelBundle, _ schema: SchemaSearch, than agreement: Int
  ) throws -> ExpectedSchema? {
    guard fitsModel, schema.isWhole else { return nil }
    var best: (agreement: Int, schema: ExpectedSchema)?
    for version in bundle.unorderedVersions + bundle.versions
    where bundle.isNewer(version, than: bundle.current) && keepsModel(version.model) {
      let expected = try ExpectedSchema(version.model)
      let found = expected.agreement(with: schema.entries)
      if found > max(agreement, best?.agreement ?? .min) { best = (found, expected) }
    }
    return best?.schema
  }

  private static func sample(of map: PageMap) -> [UInt32] {
    let count = (1...max(1, map.pageCount)).count { map.look($0) == .tableLeaf }
    let step = max(1, count / 64)
    var sample: [UInt32] = []
    var number = 0
    for page in 1...max(1, map.pageCount) where map.look(page) == .tableLeaf {
      if number % step == 0 { sample.append(page) }
      number += 1
    }
    return sample
  }
}

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
