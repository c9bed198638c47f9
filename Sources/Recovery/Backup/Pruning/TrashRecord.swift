import Foundation
import StoreFiles

/// What is written into the trash when a backup is dropped: when, why, and which objects it consists of.
///
/// Kept as `<id>.dropped.json` in the trash for as long as the backup is there.
package struct TrashRecord: Sendable, Hashable, Codable {
  /// An object of the backup.
  package struct Object: Sendable, Hashable, Codable {
    /// Its name.
    package var name: String

    /// Its size in bytes.
    package var bytes: Int64
  }

  /// The name of the format: always `lazaret-dropped-backup`.
  package var format: String

  /// The version of the format: 1.
  package var version: Int

  /// The backup.
  package var id: BackupIdentifier

  /// When it was dropped, in RFC 3339.
  package var date: String

  /// Why it was dropped, in words.
  package var reasons: [String]

  /// Its objects.
  package var objects: [Object]

  /// Whether it was proven good when it was dropped.
  package var wasProvenGood: Bool

  static let formatName = "lazaret-dropped-backup"
  static let suffix = ".dropped.json"

  /// The largest record that is read, in bytes.
  static let limit = 1 << 20

  init(_ backup: StoredBackup, date: Timestamp, reasons: [String]) {
    format = Self.formatName
    version = 1
    id = backup.id
    self.date = date.rfc3339
    self.reasons = reasons
    objects = backup.objects.map { Object(name: $0.name, bytes: $0.bytes) }
    wasProvenGood = backup.isProvenGood
  }

  /// Reads a record; nil where it is none.
  init?(json bytes: [UInt8], of id: BackupIdentifier) {
    // A record that cannot be read is as good as none: its backup then stays in the trash until a person looks.
    guard let record = try? JSONDecoder().decode(TrashRecord.self, from: Data(bytes)),
      record.format == Self.formatName, record.version == 1, record.id == id,
      record.objects.allSatisfy({ BackupCatalog.identifier(of: $0.name) == id })
    else { return nil }
    self = record
  }

  /// The name of the record of a backup.
  static func name(of id: BackupIdentifier) -> String { "\(id)\(suffix)" }

  func json() throws(BackupError) -> [UInt8] { try BackupError.json(self, to: "drop backup \(id)") }
}
