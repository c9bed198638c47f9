internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles

extension Examination: Encodable {
  /// Writes what `inspect --json` prints of it; keys may be added, never changed.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "verdict": verdict, "reason": reason, "kind": kind,
      // Present even where there is none, so that a program can rely on the key.
      "modelVersion": JSON.orNull(modelVersion), "versionIdentifiers": metadata?.versionIdentifiers,
      "storeUUID": metadata?.uuid, "entities": entities.map(Self.payload),
      "rowsOfNoEntity": rowsOfNoEntity.isEmpty ? nil : rowsOfNoEntity, "drift": drift,
      "notChecked": unchecked.isEmpty ? nil : unchecked, "health": health.payload(verdict),
    ])
  }

  /// A count; `rows` is null where they were not counted.
  private static func payload(_ count: EntityCount) -> JSON.Object {
    ["name": count.name, "table": count.table, "rows": JSON.orNull(count.rows)]
  }
}

extension Health {
  /// The physical state; nothing is said of pages that were not looked at.
  fileprivate func payload(_ verdict: Verdict) -> JSON.Object {
    let isKnown = isRead || isDamaged || verdict == .damaged
    return [
      "check": JSON.orNull(isRead ? depth : nil),
      "damaged": JSON.orNull(isKnown ? isDamaged || verdict == .damaged : nil),
      "notes": notes, "files": files, "fileKind": fileKind?.rawValue,
      "pageSize": pageSize, "pageCount": pageCount, "encoding": encoding?.nameInSQLite,
      "writtenBySQLite": writtenBySQLite, "wal": log, "journal": journal?.rawValue,
    ]
  }
}

extension TextEncoding {
  fileprivate var nameInSQLite: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}
