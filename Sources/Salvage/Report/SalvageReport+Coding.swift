internal import Foundation
public import Platform
public import SystemPackage

extension SalvageReport: Codable {
  private enum CodingKeys: String, CodingKey {
    case format, complete, store, output, coreData, entities, mayLackTables, unplacedRows, unplacedEntries, remarks
    case causes, pages, kit, backup, rebuild
  }

  /// Reads a report, without computed values.
  ///
  /// - Throws: `DecodingError`, also for a later format.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    format = try values.decode(Int.self, forKey: .format)
    guard format <= Self.currentFormat else {
      throw DecodingError.dataCorruptedError(
        forKey: .format, in: values, debugDescription: "a later version wrote this report")
    }
    isComplete = try values.decode(Bool.self, forKey: .complete)
    store = try values.decodeIfPresent(PathText.self, forKey: .store)
    output = try values.decodeIfPresent(PathText.self, forKey: .output)
    isCoreData = try values.decode(Bool.self, forKey: .coreData)
    entities = try values.decode([Entity].self, forKey: .entities)
    mayLackTables = try values.decodeIfPresent(Bool.self, forKey: .mayLackTables) ?? false
    unplacedRows = try values.decode(Int64.self, forKey: .unplacedRows)
    unplacedEntries = try values.decodeIfPresent(Int64.self, forKey: .unplacedEntries) ?? 0
    remarks = try values.decode([String].self, forKey: .remarks)
    causes = try values.decode([DamageCause].self, forKey: .causes)
    pages = try values.decode(PageStates.self, forKey: .pages)
    kit = try values.decodeIfPresent(KitUse.self, forKey: .kit)
    backup = try values.decodeIfPresent(BackupUse.self, forKey: .backup)
    rebuild = try values.decodeIfPresent(Rebuild.self, forKey: .rebuild)
  }

  /// Writes the command line's JSON keys.
  public func encode(to encoder: any Encoder) throws {
    func sum(_ number: (Entity) -> Int64) -> Int64 { records.reduce(0) { $0.addingClamped(number($1)) } }
    let summary: JSON.Object = [
      "recovered": count.recovered, "doubtful": count.doubtful,
      "doubtfulReasons": count.doubtReasons.isEmpty ? nil : DoubtReason.codes(count.doubtReasons),
      "recordsSetAside": count.setAside, "lost": count.lost, "lostIsExact": !count.isEstimate, "total": count.total,
      "percent": count.percent, "pairs": count.pairs.known, "words": count.words, "fromBackup": sum(\.fromBackup),
      "keptApart": sum(\.keptApart), "referencesCut": referencesCut, "score": score,
    ]
    try encoder.encode([
      "format": format, "complete": isComplete, "incompleteBecause": isComplete ? nil : reservations, "store": store,
      "output": output, "coreData": isCoreData, "summary": summary, "entities": entities,
      "mayLackTables": mayLackTables ? true : nil, "unplacedRows": unplacedRows, "unplacedEntries": unplacedEntries,
      "remarks": remarks, "causes": causes, "pages": pages, "kit": kit, "backup": backup, "rebuild": rebuild,
    ])
  }
}

extension SalvageReport {
  /// Returns `Rescued.salvage.json` for `Rescued.sqlite`, `2026-11-21-10-11-12.salvage.json` for
  /// `2026-11-21-10-11-12.salvaged.sqlite`.
  public static func path(beside output: FilePath) -> FilePath {
    var stem = output.lastComponent?.string ?? "result"
    for ending in [".sqlite", ".sqlite3", ".store", ".db", ".storedata"] where stem.hasSuffix(ending) {
      let shorter = String(stem.dropLast(ending.count))
      if !shorter.isEmpty { stem = shorter }
      break
    }
    if stem.hasSuffix(".salvaged"), stem.count > 9 { stem.removeLast(9) }
    guard let name = FilePath.Component(stem) else { return output.sibling(suffix: ".salvage.json") }
    return output.folder.appending(name.fitted(suffix: ".salvage.json"))
  }

  /// Writes the report beside the result, replacing an older one.
  ///
  /// - Throws: `FileError`.
  @discardableResult
  public func write(beside result: FilePath, in fileSystem: FileSystem = FileSystem()) throws -> FilePath {
    let path = Self.path(beside: result)
    let bytes = try JSON.bytes(of: self, to: "write the report", at: path)
    try fileSystem.writeAtomically(bytes, to: path, replacing: true, permissions: .ownerReadWrite)
    return path
  }

  /// Removes the report of a result that could not be installed.
  static func remove(beside result: FilePath, in fileSystem: FileSystem) {
    try? fileSystem.unlink(path(beside: result))
  }

  /// Reads the report beside a result.
  ///
  /// - Throws: `FileError`, or ``SalvageError`` if it is no report.
  public static func read(_ path: FilePath, in fileSystem: FileSystem = FileSystem()) throws -> SalvageReport {
    let bytes = try fileSystem.contents(of: path, limit: 64 << 20)
    do {
      return try JSONDecoder().decode(SalvageReport.self, from: Data(bytes))
    } catch {
      throw SalvageError(
        .output, operation: "read the report", path: path,
        detail: "it is no report of a salvage, or of a later version", hint: "Salvage the store once more.")
    }
  }
}

extension SalvageReport.Entity: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, table, recovered, doubtful, doubtfulReasons, rebuilt, fromBackup, setAside, lost, lostBasis
    case lostKeys, lostKeysKnown, lostKeysEstimated, keptApart, keptParts, deleted, outsideModel
  }

  /// Reads an account.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    name = try values.decode(String.self, forKey: .name)
    table = try values.decode(String.self, forKey: .table)
    recovered = try values.decode(Int64.self, forKey: .recovered)
    doubts = DoubtReason.counts(
      try values.decodeIfPresent([String: Int64].self, forKey: .doubtfulReasons),
      of: try values.decode(Int64.self, forKey: .doubtful))
    rebuilt = try values.decode(Int64.self, forKey: .rebuilt)
    fromBackup = try values.decode(Int64.self, forKey: .fromBackup)
    setAside = try values.decodeIfPresent(Int64.self, forKey: .setAside) ?? 0
    lost = try values.decode(Int64.self, forKey: .lost)
    lostBasis = try values.decode(Basis.self, forKey: .lostBasis)
    lostKeys = try values.decodeIfPresent(KeyRanges.self, forKey: .lostKeys) ?? KeyRanges()
    lostKeysKnown = try values.decodeIfPresent(Int64.self, forKey: .lostKeysKnown) ?? 0
    lostKeysEstimated = try values.decodeIfPresent(KeyRanges.self, forKey: .lostKeysEstimated) ?? KeyRanges()
    keptApart = try values.decode(Int64.self, forKey: .keptApart)
    keptParts = max(0, try values.decodeIfPresent(Int64.self, forKey: .keptParts) ?? 0)
    deleted = try values.decode(Int64.self, forKey: .deleted)
    isOutsideModel = try values.decodeIfPresent(Bool.self, forKey: .outsideModel) ?? false
  }

  /// Writes an account, without unknown rowids.
  public func encode(to encoder: any Encoder) throws {
    let hasKeys = !lostKeys.isEmpty
    try encoder.encode([
      "name": name, "table": table, "recovered": recovered, "doubtful": doubtful,
      "doubtfulReasons": doubts.isEmpty ? nil : DoubtReason.codes(doubts), "rebuilt": rebuilt,
      "fromBackup": fromBackup, "setAside": setAside > 0 ? setAside : nil, "lost": lost, "lostIsExact": isLostExact,
      "lostBasis": lostBasis, "lostKeys": hasKeys ? lostKeys : nil, "lostKeysKnown": hasKeys ? lostKeysKnown : nil,
      "lostKeysEstimated": lostKeysEstimated.isEmpty ? nil : lostKeysEstimated, "keptApart": keptApart,
      "keptParts": keptParts > 0 ? keptParts : nil, "deleted": deleted, "outsideModel": isOutsideModel ? true : nil,
    ])
  }
}
