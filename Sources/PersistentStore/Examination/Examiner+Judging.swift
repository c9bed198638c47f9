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
      examination.markDamaged(
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
        // The version is undeterminable, so not reported as a newer one.
        examination.markDamaged(
          .damage(
            "metadata-damaged",
            "The store's metadata contradicts itself: the version hashes of its entities are not those that its digest was made of.",
            sqlite: nil))
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

  /// Compares a plain store with the app's schema: every part is required.
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
          // The app's migrator creates it when it opens the store.
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

  /// Returns whether a store has tables, but none expected.
  private static func hasNone(of expected: SQLSchema, in found: Schema) -> Bool {
    let own = found.tables.filter { !$0.name.lowercased().hasPrefix("sqlite_") }
    return !own.isEmpty && !expected.tables.isEmpty && expected.tables.keys.allSatisfy { found.table(named: $0) == nil }
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

enum SchemaLacks {
  /// Returns missing parts, tables and columns first: `cars`, `cars.owner`, `cars.owner as TEXT` for another type,
  /// `index carsByOwner`, `view oldCars`.
  static func list(_ expected: SQLSchema, in found: Schema) -> [String] {
    columns(expected, in: found) + indexes(expected, in: found)
      + named(expected.triggers.keys, .trigger, in: found) + named(expected.views.keys, .view, in: found)
  }

  private static func columns(_ expected: SQLSchema, in found: Schema) -> [String] {
    var result: [String] = []
    for (name, table) in expected.tables.ordered(by: { $0.key < $1.key }) {
      guard let entry = found.table(named: name), let definition = entry.tableDefinition else {
        result.append(name)
        continue
      }
      guard !definition.isVirtual else { continue }
      for column in table.columns {
        guard let index = definition.column(named: column.name) else {
          result.append("\(name).\(column.name)")
          continue
        }
        if definition.columns[index].declaredType.uppercased() != column.declaredType.uppercased() {
          result.append("\(name).\(column.name) as \(column.declaredType)")
        }
      }
      if let wanted = TableDefinition(sql: table.statement) {
        result += constraints(wanted, in: definition, found).map { "\(name): \($0)" }
      }
    }
    return result
  }

  /// Returns missing constraints, without reading expressions.
  private static func constraints(
    _ expected: TableDefinition, in found: TableDefinition, _ schema: Schema
  ) -> [String] {
    func names(_ columns: [String]) -> String { columns.map { $0.lowercased() }.joined(separator: ", ") }
    var result: [String] = []
    if expected.isStrict, !found.isStrict { result.append("STRICT") }
    if names(expected.primaryKey) != names(found.primaryKey) {
      result.append("PRIMARY KEY (\(expected.primaryKey.joined(separator: ", ")))")
    }
    if expected.isAutoincrement, !found.isAutoincrement { result.append("AUTOINCREMENT") }
    let unique = Set(
      (found.uniqueConstraints + [found.primaryKey]).map(names)
        + schema.indexes(ofTable: found.name).compactMap(\.indexDefinition).filter { $0.isUnique && !$0.isPartial }
        .map { names($0.columns.map { $0.name ?? "" }) })
    for columns in expected.uniqueConstraints where !unique.contains(names(columns)) {
      result.append("UNIQUE (\(columns.joined(separator: ", ")))")
    }
    if expected.checkCount > found.checkCount { result.append("\(expected.checkCount - found.checkCount) CHECK") }
    for column in expected.columns {
      guard let place = found.column(named: column.name) else { continue }
      let other = found.columns[place]
      if column.isNotNull, !other.isNotNull { result.append("\(column.name) NOT NULL") }
      if column.generation != other.generation { result.append("\(column.name) as it is generated") }
      if column.referencedTable != nil, other.referencedTable == nil { result.append("\(column.name) REFERENCES") }
    }
    return result
  }

  /// Returns missing explicit indexes; another name with the same columns suffices.
  private static func indexes(_ expected: SQLSchema, in found: Schema) -> [String] {
    let there = found.entries.compactMap { entry in
      entry.kind == .index ? entry.sql.flatMap(IndexDefinition.init(sql:)) : nil
    }
    let missing = expected.indexes.values.filter { index in
      !index.name.lowercased().hasPrefix("sqlite_autoindex_") && !there.contains { stands($0, for: index) }
    }
    return missing.map { "\($0.isUnique ? "unique index" : "index") \($0.name)" }.sorted()
  }

  private static func stands(_ found: IndexDefinition, for expected: SQLIndex) -> Bool {
    guard isSame(found.tableName, expected.tableName), found.isUnique == expected.isUnique,
      found.isPartial == expected.isPartial, found.columns.count == expected.columns.count
    else { return false }
    if isSame(found.name, expected.name) { return true }
    // Conditions and expressions are not compared.
    return !expected.isPartial
      && zip(found.columns, expected.columns).allSatisfy {
        $0.name.map { [expected = $1] in isSame($0, expected) } ?? false
      }
  }

  private static func isSame(_ name: String, _ other: String) -> Bool { name.lowercased() == other.lowercased() }

  private static func named(
    _ names: some Sequence<String>, _ kind: SchemaEntry.Kind, in found: Schema
  ) -> [String] {
    let there = Set(found.entries.filter { $0.kind == kind }.map { $0.name.lowercased() })
    return names.filter { !there.contains($0.lowercased()) }.sorted().map { "\(kind.rawValue) \($0)" }
  }
}
