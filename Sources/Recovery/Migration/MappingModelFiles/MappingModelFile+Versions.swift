internal import ManagedObjectModel
internal import StoreFiles

extension MappingModelFile {
  /// The two versions of a model that a mapping model leads from and to.
  struct VersionPair {
    let source: ModelVersion
    let destination: ModelVersion
  }

  /// Which of the two models something is about.
  enum End: String {
    case source, destination
  }

  /// The versions that the file was made for.
  ///
  /// Compiled mapping models apply where every version hash in them is that of the entity in the version. Sources embed
  /// both models, and Xcode's compiler takes the hashes from those; where they are not there or not understood, the
  /// version that the file names counts. Where several pairs fit, because the file maps only some of the entities, the
  /// versions that it names come first, then those closest to each other, then the newest.
  ///
  /// - Throws: `mapping-stale`; it names the side and the first entity that differs.
  func versions(in bundle: ModelBundle) throws(MigrationError) -> VersionPair {
    let sources = candidates(.source, in: bundle)
    let destinations = candidates(.destination, in: bundle)
    guard !sources.isEmpty else { throw stale(.source, in: bundle) }
    guard !destinations.isEmpty else { throw stale(.destination, in: bundle) }
    typealias Rank = (isBackwards: Bool, distance: Int, age: Int)
    var best: (pair: VersionPair, rank: Rank)?
    for from in sources {
      for to in destinations where from != to {
        let pair = VersionPair(source: bundle.versions[from], destination: bundle.versions[to])
        guard pair.source.versionHashes != pair.destination.versionHashes else { continue }
        let rank: Rank = (from > to, abs(to - from), bundle.versions.count - from)
        if let best, !Self.precedes(rank, best.rank) { continue }
        best = (pair, rank)
      }
    }
    if let best { return best.pair }
    throw MigrationError(
      .mappingStale, operation: Self.operation, path: path,
      detail: """
        it leads from version "\(printable(bundle.versions[sources[0]].name))" to versions with the same version hashes
        """)
  }

  private static func precedes(
    _ first: (isBackwards: Bool, distance: Int, age: Int), _ second: (isBackwards: Bool, distance: Int, age: Int)
  ) -> Bool {
    if first.isBackwards != second.isBackwards { return !first.isBackwards }
    if first.distance != second.distance { return first.distance < second.distance }
    return first.age < second.age
  }

  // MARK: One side

  private func side(_ end: End) -> Side { end == .source ? source : destination }

  /// The entities that are mapped on one side, each with the version hash that it had, where that is known.
  private func mapped(_ end: End) -> [(name: String, hash: VersionHash?)] {
    let embedded = embeddedHashes(end)
    return entityMappings.compactMap { record in
      guard let name = end == .source ? record.sourceName : record.destinationName else { return nil }
      return (name, (end == .source ? record.sourceHash : record.destinationHash) ?? embedded?[name])
    }
  }

  /// The hashes of the embedded model, unless something in it was not understood.
  private func embeddedHashes(_ end: End) -> [String: VersionHash]? {
    guard let model = side(end).model, model.isComplete else { return nil }
    return model.model.versionHashes()
  }

  /// The places in the bundle of the versions that one side fits.
  private func candidates(_ end: End, in bundle: ModelBundle) -> [Int] {
    let named = bundle.versions.indices.filter { bundle.versions[$0].name == side(end).versionName }
    if let embedded = embeddedHashes(end) {
      let whole = bundle.versions.indices.filter { bundle.versions[$0].versionHashes == embedded }
      if !whole.isEmpty { return Self.narrowed(whole, to: named) }
    }
    let mapped = mapped(end)
    let fitting = bundle.versions.indices.filter { place in
      let version = bundle.versions[place]
      return mapped.allSatisfy { name, hash in
        guard let found = version.versionHashes[name] else { return false }
        return hash == nil || hash == found
      }
    }
    return Self.narrowed(fitting, to: named)
  }

  private static func narrowed(_ places: [Int], to named: [Int]) -> [Int] {
    let both = places.filter(named.contains)
    return both.isEmpty ? places : both
  }

  // MARK: Staleness

  /// The error of a file that fits no version: against the version that it names, or else the one that is most like it.
  private func stale(_ end: End, in bundle: ModelBundle) -> MigrationError {
    let mapped = mapped(end)
    func differing(_ version: ModelVersion) -> [(name: String, hash: VersionHash?)] {
      mapped.filter { name, hash in version.versionHashes[name].map { hash != nil && hash != $0 } ?? true }
    }
    let named = bundle.versions.first { $0.name == side(end).versionName }
    let closest = named ?? bundle.versions.min { differing($0).count < differing($1).count } ?? bundle.current
    let wrong = differing(closest).map(\.name).inCodeUnitOrder()
    let first = wrong.first ?? ""
    let more = wrong.count > 1 ? " (and \(wrong.count - 1) more)" : ""
    let version = "version \"\(printable(closest.name))\""
    let what =
      closest.model.entities[first] == nil
      ? "\(version) has no entity \"\(printable(first))\", which it maps"
      : "entity \"\(printable(first))\" of \(version) has another version hash than the one it maps"
    return MigrationError(
      .mappingStale, operation: Self.operation, path: path,
      detail: """
        it was made for another \(end.rawValue) model: \(what)\(more)
        """,
      entityName: first)
  }
}
