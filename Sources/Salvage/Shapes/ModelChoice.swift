internal import ManagedObjectModel
internal import PersistentStore

/// Tells which model a store is of, and so which schema is to be expected.
///
/// In: what the caller knows, and what the store says of itself. Out: the layout that rows go into, and how it is known.
struct ModelChoice {
  /// How many earlier versions of a model are looked at.
  private static let historyLimit = 32

  private let model: SalvageModel?

  private let identity: StoreIdentity

  /// Whether only a version of the caller's model will do.
  private let fitsModel: Bool

  /// Whether rows may stay in a model all the same.
  private let keepsModel: @Sendable (ManagedObjectModel) -> Bool

  /// The model that the store says it is of and that its rows go into; nil where nothing tells, or where another one's version
  /// has to do.
  private let known: ManagedObjectModel?

  /// The model that the store carries where its rows go into another one.
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

  /// The schema that is to be expected; nil where nothing tells any.
  func expectedSchema(
    _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> ExpectedSchema? {
    if case .sqlite(let script) = model { return try ExpectedSchema(script) }
    if let known { return try ExpectedSchema(known) }
    guard case .coreData(let bundle) = model else { return nil }
    return try bestFitting(bundle, schema, reader, map)
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

  /// The version whose tables most of a sample of pages fit best; of equally good ones the current one, else the newest.
  private func bestFitting(
    _ bundle: ModelBundle, _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> ExpectedSchema? {
    var best: (score: Double, schema: ExpectedSchema)?
    var buffer = reader.makeBuffer()
    let leaves = Self.sample(of: map)
    var agreement = Int.min
    // Where the rows have to go into a version that the app can open, none that is newer than its own will do.
    // Versions that the order leaves out have stores too.
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
      // What is left of the store's own list of tables says more than the looks of their rows.
      var score = 1000 * Double(expected.agreement(with: schema.entries))
      for leaf in leaves {
        score += try crawl.choice(for: leaf, &buffer, where: { _ in true })?.fit.score ?? 0
      }
      if score >= best?.score ?? -.infinity { best = (score, expected) }
    }
    return try newer(bundle, schema, than: agreement) ?? best?.schema
  }

  /// The version newer than the current one that a whole list of tables shows the store to be of, where newer ones are kept; nil for none.
  ///
  /// - Parameter agreement: how much the list agrees with any other version, which has to be less.
  private func newer(
    _ bundle: ModelBundle, _ schema: SchemaSearch, than agreement: Int
  ) throws(SalvageError) -> ExpectedSchema? {
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
