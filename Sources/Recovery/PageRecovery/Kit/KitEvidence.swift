internal import ManagedObjectModel
internal import PersistentStore
internal import RecoveryKit
internal import SQLiteFormat
internal import StoreFiles

/// A recovery kit of the store that is being salvaged.
struct KitEvidence {
  let kit: RecoveryKit

  /// How it served, for the report.
  var use: SalvageReport.KitUse

  /// Whether it was noted of the very state that is salvaged, so that no log of that can be missing.
  let isOfThisState: Bool

  /// Whether the files that are here are as it notes them, but for what is damaged: what it lists and is not there is lost
  /// of these files, though changes may be lost too where it is not known to be current.
  var isAsNoted = false

  /// The first of some kits that is the store's; says of the others why they are not used.
  ///
  /// - Parameters:
  ///   - kits: the newest first.
  ///   - isOfThisState: whether they were noted of the very state that is salvaged.
  ///   - scope: which of them say something of the store; nil for all.
  ///   - remarks: what is to be said is added to it.
  static func choose(
    from kits: [RecoveryKit], isOfThisState: Bool, _ scope: EvidenceScope?, _ reader: PageReader,
    _ identity: StoreIdentity, _ schema: SchemaSearch,
    _ remarks: inout [String]
  ) throws(SalvageError) -> KitEvidence? {
    for kit in kits {
      if let exclusion = scope?.exclusion(generation: kit.generation, date: kit.date) {
        remarks.append("the recovery kit of \(kit.date.rfc3339) \(exclusion.words), and was not used")
        continue
      }
      guard try isOwn(kit, reader, identity, schema) else {
        remarks.append("the recovery kit of \(kit.date.rfc3339) is another store's, and was not used")
        continue
      }
      return KitEvidence(kit: kit, use: SalvageReport.KitUse(date: kit.date.rfc3339), isOfThisState: isOfThisState)
    }
    return nil
  }

  /// Whether a kit is the store's: by its identifier, else by its list of tables or the sums of its pages.
  private static func isOwn(
    _ kit: RecoveryKit, _ reader: PageReader, _ identity: StoreIdentity, _ schema: SchemaSearch
  ) throws(SalvageError) -> Bool {
    guard kit.file.pageSize == reader.pageSize else { return false }
    if let known = identity.metadata?.uuid, let noted = kit.storeUUID {
      return known.uppercased() == noted.uppercased()
    }
    let statements = Set(kit.entries.compactMap { $0.kind == "table" ? $0.sql : nil })
    // The tables of one model are those of all its stores; with an identifier in the kit they prove little.
    if kit.storeUUID == nil, schema.entries.contains(where: { $0.sql.map(statements.contains) == true }) { return true }
    var buffer = reader.makeBuffer()
    var tried = 0
    for table in kit.tables where table.root != 1 && !table.sums.isEmpty {
      for (page, sum) in zip(table.leaves, table.sums).prefix(200) {
        guard tried < 1000 else { return false }
        tried += 1
        guard try reader.readPlace(page, into: &buffer) else { continue }
        if RecoveryKit.sum(of: buffer) == sum { return true }
      }
    }
    return false
  }

  /// The entries of the schema that only the kit has, added to those that were found.
  func supplemented(_ found: [SchemaEntry], pageCount: UInt32) -> [SchemaEntry] {
    var result = found
    var roots = Set(found.map(\.rootPage))
    let names = Set(found.map { "\($0.kind.rawValue) \($0.name.lowercased())" })
    for entry in kit.entries {
      guard let kind = SchemaEntry.Kind(rawValue: entry.kind),
        !names.contains("\(entry.kind) \(entry.name.lowercased())")
      else { continue }
      let isFree = entry.root > 1 && entry.root <= pageCount && roots.insert(entry.root).inserted
      result.append(
        SchemaEntry(
          kind: kind, name: entry.name, tableName: entry.tableName, rootPage: isFree ? entry.root : 0, sql: entry.sql))
    }
    return result
  }

  /// The version hashes that the kit noted; nil where it noted none.
  var versionHashes: [String: VersionHash]? {
    let hashes = kit.versionHashes.compactMapValues { VersionHash(bytes: $0) }
    return hashes.isEmpty ? nil : hashes
  }
}
