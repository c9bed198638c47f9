import ManagedObjectModel
import PersistentStore
import SQLiteFormat
import StoreFiles

extension Examiner {
  /// Compares a Core Data store with the app's model, by version hashes first.
  func judgeCoreData(
    _ database: Database, _ schema: Schema, into examination: inout Examination, model: AppModel?
  ) throws(FormatError) {
    guard let metadata = examination.metadata else { return }
    let hashes = metadata.versionHashes
    guard !hashes.isEmpty else {
      examination.condemn(
        .damage("metadata-damaged", "The store's metadata does not say which model it was written with.", sqlite: nil))
      return
    }
    let cached = examination.storeModel
    if let cached, cached.versionHashes() != hashes {
      examination.storeModel = nil
      examination.health.notes.append(
        HealthNote("model-cache-stale", .warning, "the model that the store carries is not the one its metadata names"))
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
        // Not an unknown version, which might be a newer one: there is no telling which one it is.
        examination.condemn(
          .damage(
            "metadata-damaged",
            "The store's metadata contradicts itself: the version hashes of its entities are not those that its digest was made of.",
            sqlite: nil))
      } else {
        judgeUnknownVersion(hashes, bundle, &examination)
      }
    }
  }

  /// Whether the digest that the metadata holds is not that of the version hashes in it (format section 4); older stores
  /// have none.
  private static func isContradictory(_ metadata: StoreMetadata) -> Bool {
    guard let digest = metadata.versionHashesDigest else { return false }
    return digest != ManagedObjectModel.versionHashesDigest(of: metadata.versionHashes)
  }

  /// The store's version is none of the app's: an unknown step between them, a newer one, or another app's.
  private func judgeUnknownVersion(
    _ hashes: [String: VersionHash], _ bundle: ModelBundle, _ examination: inout Examination
  ) {
    if examination.storeModel == nil, let unreadable = bundle.unreadableVersions.first {
      // Where it is damaged as well, it may be of that version all the same.
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

  /// Whether two models can be versions of one: an entity is the same in both, or half of those of the smaller one share names.
  ///
  /// A name such as Account alone is in many apps' models.
  private static func isRelated(_ one: [String: VersionHash], _ other: [String: VersionHash]) -> Bool {
    let shared = one.keys.filter { other[$0] != nil }
    return !shared.isEmpty
      && (2 * shared.count >= min(one.count, other.count) || shared.contains { one[$0] == other[$0] })
  }

  /// The version of which the store has every entity, unchanged, beside others: another model was merged in.
  private static func mergedPart(_ hashes: [String: VersionHash], _ bundle: ModelBundle) -> ModelVersion? {
    (bundle.versions + bundle.unorderedVersions).last { version in
      !version.versionHashes.isEmpty && version.versionHashes.allSatisfy { hashes[$0] == $1 }
    }
  }

  private static func changed(_ hashes: [String: VersionHash], _ current: ModelVersion) -> [String] {
    Set(hashes.keys).union(current.versionHashes.keys).filter { hashes[$0] != current.versionHashes[$0] }.sorted()
  }

  /// Compares a plain SQLite store with the app's schema: every part of it must be there.
  func judgePlain(_ schema: Schema, into examination: inout Examination, model: AppModel?) {
    guard examination.verdict != .damaged else { return }
    switch model {
    case nil:
      if schema.entries.isEmpty {
        examination.accept(.emptyDatabase)
      } else {
        examination.accept(.looksSound)
      }
    case .coreData(let bundle):
      examination.give(.incompatible, .notCoreData(isEmpty: schema.entries.isEmpty, model: bundle.name))
    case .sqlite(let script, let name):
      do {
        let expected = try SQLSchema(script)
        let missing = SchemaLacks.list(expected, in: schema)
        if missing.isEmpty {
          examination.modelVersion = name
          examination.accept(.hasSchema(name))
        } else if Self.hasNone(of: expected, in: schema) {
          examination.give(.incompatible, .otherSchema(schema.tables.map(\.name), schema: name))
        } else {
          // What an app's own migrator makes when it opens the store.
          examination.health.notes.append(
            HealthNote(
              "lacks-tables", .note, "the store lacks \(Examination.list(missing, showing: 50)) of the schema",
              count: missing.count))
          examination.accept(.lacksTables(missing, schema: name))
        }
      } catch {
        examination.give(
          .unavailable,
          VerdictReason(
            error.code, words: "The app's schema file cannot be used: \(error.detail).", hint: error.hint))
      }
    }
  }

  /// Whether a store has tables, and none of a schema's.
  private static func hasNone(of expected: SQLSchema, in found: Schema) -> Bool {
    let own = found.tables.filter { !$0.name.lowercased().hasPrefix("sqlite_") }
    return !own.isEmpty && !expected.tables.isEmpty && expected.tables.keys.allSatisfy { found.table(named: $0) == nil }
  }
}

extension Examination {
  /// Gives a verdict, unless the store has been found damaged.
  mutating func give(_ verdict: Verdict, _ reason: VerdictReason) {
    guard self.verdict != .damaged else { return }
    self.verdict = verdict
    self.reason = reason
  }

  /// Finds the store newer than the app: unavailable, or damaged and newer.
  mutating func giveNewer(_ reason: VerdictReason) {
    newer = reason
    give(.unavailable, reason)
  }

  /// Finds nothing wrong, unless something has been found wrong.
  ///
  /// What lacks something of its own model is repairable instead.
  mutating func accept(_ reason: VerdictReason) {
    if let drift, !drift.isEmpty {
      give(.repairable, .repairable(drift, isBeyondRepair: isBeyondRepair))
    } else {
      give(.compatible, reason)
    }
  }

  /// The first names of a list, and how many more there are.
  static func list(_ names: [String], showing most: Int = 5) -> String {
    let shown = names.prefix(most).map { printableName($0) }.joined(separator: ", ")
    return names.count > most ? "\(shown) and \(grouped(names.count - most)) more" : shown
  }
}
