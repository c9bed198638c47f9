internal import ManagedObjectModel
internal import PersistentStore

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
