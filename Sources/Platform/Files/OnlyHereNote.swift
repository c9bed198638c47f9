import Foundation
package import SystemPackage

/// The note beside a migration's original with records of removed entities.
///
/// Kept as `<id>.only-here.json` beside `<id>.sqlite` among a store's backups: versioned JSON, see
/// `Documentation/BACKUP_FORMAT.md`. Pruning keeps the original while the note exists, even an unreadable one.
public struct OnlyHereNote: Sendable, Hashable, Codable {
  /// An entity removed by the migration.
  public struct Entity: Sendable, Hashable, Codable {
    /// The entity's name.
    public var name: String

    /// The number of its records in the original.
    public var rows: Int64

    /// Makes an entity.
    public init(name: String, rows: Int64) {
      self.name = name
      self.rows = rows
    }

    private enum CodingKeys: String, CodingKey {
      case name = "entity"
      case rows
    }
  }

  /// The version of the format: 1.
  public var version = 1

  /// The migration step, such as `V1 → V2`; nil if the note is unreadable.
  public var step: String?

  /// The removed entities; empty if the note is unreadable.
  public var entities: [Entity]

  /// Makes a note.
  public init(step: String?, entities: [Entity]) {
    self.step = step
    self.entities = entities
  }

  package static let suffix = ".only-here.json"

  package static let limit = 64 << 10

  package static func path(beside original: FilePath) -> FilePath {
    original.folder.appending("\(original.stem ?? "Store")\(suffix)")
  }

  /// Parses a note; nil if it is malformed, without entities, too large or of a later version.
  package init?(json bytes: [UInt8]) {
    // The original is kept even so, because the note exists.
    guard bytes.count <= Self.limit, let note = try? JSONDecoder().decode(OnlyHereNote.self, from: Data(bytes)),
      note.version == 1, !note.entities.isEmpty, note.entities.allSatisfy({ $0.rows >= 0 })
    else { return nil }
    self = note
  }

  /// Ends with a newline.
  package func json() throws(FileError) -> [UInt8] {
    try JSON.bytes(of: self, .line, to: "note the records that the migration removes")
  }

  /// The records in words, such as `12 records of Person and 3 of Car`; nil if the note is unreadable.
  package var records: String? {
    guard let first = entities.first else { return nil }
    var parts = ["\(grouped(first.rows)) \(first.rows == 1 ? "record" : "records") of \(first.printableName)"]
    parts += entities.dropFirst().prefix(2).map { "\(grouped($0.rows)) of \($0.printableName)" }
    let others = entities.dropFirst(3)
    if !others.isEmpty {
      let rows = others.reduce(Int64(0)) { sum, entity in
        let (next, isTooLarge) = sum.addingReportingOverflow(entity.rows)
        return isTooLarge ? .max : next
      }
      parts.append("\(grouped(rows)) of \(others.count) other \(others.count == 1 ? "entity" : "entities")")
    }
    let last = parts.removeLast()
    return parts.isEmpty ? last : "\(parts.joined(separator: ", ")) and \(last)"
  }
}

extension OnlyHereNote.Entity {
  fileprivate var printableName: String {
    let text = printable(name)
    return text.count > 80 ? "\(text.prefix(79))…" : text
  }
}
