import Foundation
package import SystemPackage

/// What a migration writes beside an original that holds records which the migrated store has no place for: of which
/// entities, and how many.
///
/// Kept as `<id>.only-here.json` beside `<id>.sqlite` among the backups of a store: versioned JSON, described in
/// `Documentation/BACKUP_FORMAT.md`. As long as it lies there, pruning keeps the original, whatever the note says.
public struct OnlyHereNote: Sendable, Hashable, Codable {
  /// An entity that the migration removed.
  public struct Entity: Sendable, Hashable, Codable {
    /// What it is called.
    public var name: String

    /// How many records of it the original holds.
    public var rows: Int64

    /// An entity and the number of its records.
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

  /// The step of the migration that removed them, such as `V1 → V2`; nil where the note cannot be read.
  public var step: String?

  /// The removed entities; empty where the note cannot be read.
  public var entities: [Entity]

  /// A note of what a step of a migration removed.
  public init(step: String?, entities: [Entity]) {
    self.step = step
    self.entities = entities
  }

  /// What the name of a note has behind the identifier of the original.
  package static let suffix = ".only-here.json"

  /// The largest note that is read, in bytes.
  package static let limit = 64 << 10

  /// Where the note of an original lies.
  ///
  /// - Parameter original: its main file, `<id>.sqlite` among the backups.
  package static func path(beside original: FilePath) -> FilePath {
    original.folder.appending("\(original.stem ?? "Store")\(suffix)")
  }

  /// Reads a note; nil where it is none, names no entity, is too large to be one, or is of a later version.
  package init?(json bytes: [UInt8]) {
    // What it says cannot be told then; that it lies there is what keeps the original.
    guard bytes.count <= Self.limit, let note = try? JSONDecoder().decode(OnlyHereNote.self, from: Data(bytes)),
      note.version == 1, !note.entities.isEmpty, note.entities.allSatisfy({ $0.rows >= 0 })
    else { return nil }
    self = note
  }

  /// The note as the JSON text that is written, with a final newline.
  package func json() throws(FileError) -> [UInt8] {
    try JSON.bytes(of: self, .line, to: "note the records that the migration removes")
  }

  /// The records in words, such as `12 records of Person and 3 of Car`; nil where the note cannot be read.
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
  /// The name on one line of a terminal, cut where it is longer than any name is.
  fileprivate var printableName: String {
    let text = printable(name)
    return text.count > 80 ? "\(text.prefix(79))…" : text
  }
}
