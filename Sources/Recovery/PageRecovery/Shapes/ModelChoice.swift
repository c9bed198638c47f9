internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// Tells which model a store is of, and so which schema is to be expected.
///
/// In: what the caller knows, and what the store says of itself. Out: the layout that rows go into, and how it is known.
struct ModelChoice {
  /// How many earlier versions of a model are looked at.
  private static let historyLimit = 32

  /// What the caller knows of the store.
  let model: SalvageModel?

  /// Whether only a version of the caller's model will do.
  let fitsModel: Bool

  /// The schema that is to be expected; nil where nothing tells any.
  func expectedSchema(
    _ identity: StoreIdentity, _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> ExpectedSchema? {
    switch model {
    case .sqlite(let script): return try ExpectedSchema(script)
    case .coreData(let bundle):
      if let model = knownModel(identity, bundle) { return try ExpectedSchema(model) }
      return try bestFitting(bundle, schema, reader, map)
    case nil:
      guard let model = identity.model(in: nil) else { return nil }
      return try ExpectedSchema(model)
    }
  }

  /// The model that the store says it is of; nil where only one of the bundle's will do and it is none of them.
  private func knownModel(_ identity: StoreIdentity, _ bundle: ModelBundle) -> ManagedObjectModel? {
    guard let model = identity.model(in: bundle) else { return nil }
    return !fitsModel || bundle.version(matching: model.versionHashes()) != nil ? model : nil
  }

  /// The model that the store carries where its rows go into another one.
  func foreignModel(_ identity: StoreIdentity) -> ManagedObjectModel? {
    guard case .coreData(let bundle) = model, knownModel(identity, bundle) == nil else { return nil }
    return identity.model(in: bundle)
  }

  /// The layouts of the versions before one, oldest first; none where nothing tells which came before.
  func earlierLayouts(than model: ManagedObjectModel) throws(SalvageError) -> [StoreLayout] {
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

  /// How it is known which version the store is of.
  func basis(_ identity: StoreIdentity) -> SalvageReport.Rebuild.Basis {
    switch model {
    case .sqlite: return .schema
    case .coreData(let bundle):
      guard knownModel(identity, bundle) != nil else { return .bestFit }
      if identity.metadata == nil, identity.cachedModel == nil { return .recoveryKit }
      return identity.metadata.map { bundle.version(matching: $0.versionHashes) != nil } == true
        ? .versionHashes : .modelCache
    case nil: return identity.model(in: nil) == nil ? .asFound : .modelCache
    }
  }

  /// The version whose tables most of a sample of pages fit best; of equally good ones the current one, else the newest.
  private func bestFitting(
    _ bundle: ModelBundle, _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> ExpectedSchema? {
    var best: (score: Double, schema: ExpectedSchema)?
    var buffer = reader.makeBuffer()
    let leaves = Self.sample(of: map)
    // Where the rows have to go into a version that the app can open, none that is newer than its own will do.
    let possible = fitsModel ? bundle.versions(upTo: bundle.current) : bundle.versions
    for version in possible.filter({ !$0.isCurrent }) + possible.filter(\.isCurrent) {
      let expected = try ExpectedSchema(version.model)
      if possible.count == 1 { return expected }
      let list = TreeList(found: schema.entries, isWhole: schema.isWhole, expected: expected)
      let crawl = Crawl(reader: reader, map: map, trees: list.trees)
      // What is left of the store's own list of tables says more than the looks of their rows.
      var score = 1000 * Double(expected.agreement(with: schema.entries))
      for leaf in leaves {
        score += try crawl.choice(for: leaf, &buffer, where: { _ in true })?.score ?? 0
      }
      if score >= best?.score ?? -.infinity { best = (score, expected) }
    }
    return best?.schema
  }

  /// Some of the leaves of tables, from all over the store.
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
