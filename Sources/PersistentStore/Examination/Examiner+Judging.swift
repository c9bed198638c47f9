import ManagedObjectModel
import Platform
import SQLiteFormat

extension Examiner {
  /// Compares a Core Data store with the app's model, first by version hashes.
  func judgeCoreData(
    _ database: Database, _ schema: Schema, into examination: inout Examination, model: AppModel?
  ) throws(FileError) {
    guard let metadata = examination.metadata else { return }
    let hashes = metadata.versionHashes
    guard !hashes.isEmpty else {
      examination.markMetadataDamaged("The store's metadata does not say which model it was written with.")
      return
    }
    let cached = examination.storeModel
    if let cached, cached.versionHashes() != hashes {
      examination.storeModel = nil
      examination.health.note(
        "model-cache-stale", .warning, "the model that the store carries is not the one its metadata names")
    }
    guard case .coreData(let bundle) = model else {
      if case .sqlite = model {
        judgePlain(schema, into: &examination, model: model)
      } else if examination.verdict != .damaged {
        try compare(database, schema, cached: cached, &examination)
        examination.accept(.looksSound)
      }
      return
    }
    let version = bundle.version(
      matching: hashes, identifiers: metadata.versionIdentifiers, cached: examination.storeModel)
    examination.isComparedWithModel = true
    if let version {
      examination.modelVersion = version.name
      examination.storeModel = version.model
    }
    try compare(database, schema, cached: cached, &examination)
    if bundle.current.versionHashes == hashes {
      examination.accept(.isCurrent(version?.name ?? bundle.current.name, current: bundle.current.name))
    } else if let version {
      if bundle.isNewer(version, than: bundle.current) {
        let lacking = version.model.surplus(over: [bundle.current.model])
        examination.giveNewer(
          bundle.isUnlisted(version)
            ? .unlistedVersion(version.name, current: bundle.current.name, lacking: lacking)
            : .newerVersion(version.name, current: bundle.current.name, lacking: lacking))
      } else {
        examination.give(.outdated, .olderVersion(version.name, current: bundle.current.name))
      }
    } else {
      if examination.storeModel == nil || examination.verdict == .damaged, Self.isContradictory(metadata) {
        // The version is undeterminable, so not reported as a newer one.
        examination.markMetadataDamaged(
          "The store's metadata contradicts itself: the version hashes of its entities are not those that its digest was made of."
        )
      } else {
        judgeUnknownVersion(hashes, bundle, &examination)
      }
    }
  }

  /// Returns whether the digest contradicts the version hashes (format section 4); older stores lack one.
  private static func isContradictory(_ metadata: StoreMetadata) -> Bool {
    guard let digest = metadata.versionHashesDigest else { return false }
    return digest != ManagedObjectModel.versionHashesDigest(of: metadata.versionHashes)
  }

  /// Judges an unknown version: intermediate, newer or another app's.
  private func judgeUnknownVersion(
    _ hashes: [String: VersionHash], _ bundle: ModelBundle, _ examination: inout Examination
  ) {
    if examination.storeModel == nil, let unreadable = bundle.unreadableVersions.first {
      // A damaged store may still be of that version.
      examination.giveNewer(.unreadableVersion(unreadable.name, unreadable.error))
      return
    }
    let known = bundle.versions(upTo: bundle.current)
    let knownEntities = Set(known.flatMap(\.model.entities.keys))
    guard known.contains(where: { Self.isRelated(hashes, $0.versionHashes) }) else {
      let shared = knownEntities.intersection(hashes.keys)
      examination.give(.incompatible, .otherModel(Array(hashes.keys), sharing: Array(shared)))
      return
    }
    let surplus: [String]
    if let model = examination.storeModel {
      surplus = model.surplus(over: known.map(\.model))
    } else {
      surplus = hashes.keys.filter { !knownEntities.contains($0) }.sorted()
    }
    if !surplus.isEmpty {
      let part = Self.mergedPart(hashes, bundle)
      examination.giveNewer(
        part.map { part in .mergedModel(hashes.keys.filter { part.versionHashes[$0] == nil }, of: part.name) }
          ?? .newerModel(surplus, current: bundle.current.name))
    } else if examination.storeModel != nil {
      examination.give(.outdated, .unknownOlderVersion(current: bundle.current.name))
    } else {
      examination.give(
        .incompatible, .unknownVersion(Self.changed(hashes, bundle.current), current: bundle.current.name))
    }
  }

  /// Returns whether models can be versions of one: an identical entity, or half the smaller one's names.
  ///
  /// One name such as Account occurs in many apps.
  private static func isRelated(_ one: [String: VersionHash], _ other: [String: VersionHash]) -> Bool {
    let shared = one.keys.filter { other[$0] != nil }
    return !shared.isEmpty
      && (2 * shared.count >= min(one.count, other.count) || shared.contains { one[$0] == other[$0] })
  }

  /// Returns a version fully contained, unchanged, in a merged model.
  private static func mergedPart(_ hashes: [String: VersionHash], _ bundle: ModelBundle) -> ModelVersion? {
    (bundle.versions + bundle.unorderedVersions).last { version in
      !version.versionHashes.isEmpty && version.versionHashes.allSatisfy { hashes[$0] == $1 }
    }
  }

  private static func changed(_ hashes: [String: VersionHash], _ current: ModelVersion) -> [String] {
    Set(hashes.keys).union(current.versionHashes.keys).filter { hashes[$0] != current.versionHashes[$0] }.sorted()
  }
}

extension Examination {
  mutating func give(_ verdict: Verdict, _ reason: VerdictReason) {
    guard self.verdict != .damaged else { return }
    self.verdict = verdict
    self.reason = reason
  }

  /// Marks the store as newer: unavailable, or damaged and newer.
  mutating func giveNewer(_ reason: VerdictReason) {
    newer = reason
    give(.unavailable, reason)
  }

  /// Accepts a store without a bad verdict; drift makes it repairable.
  mutating func accept(_ reason: VerdictReason) {
    if let drift, !drift.isEmpty {
      give(.repairable, .repairable(drift, isBeyondRepair: isBeyondRepair))
    } else {
      give(.compatible, reason)
    }
  }

  static func list(_ names: [String], showing most: Int = 5) -> String {
    let shown = names.prefix(most).map { printableName($0) }.joined(separator: ", ")
    return names.count > most ? "\(shown) and \(grouped(names.count - most)) more" : shown
  }
}
