import Foundation
package import SystemPackage

/// The note that assigns a folder of backups to a store by path and identifier.
///
/// Kept as `store.json` in `Backups/<name>/`: versioned JSON, see `Documentation/BACKUP_FORMAT.md`. Folders of earlier
/// versions lack it; with encrypted backups it is encrypted.
public struct StorePlaceNote: Sendable, Hashable, Codable {
  /// The format's name: always `lazaret-backup-place`.
  public var format = StorePlaceNote.formatName

  /// The version of the format: 1.
  public var version = StorePlaceNote.currentVersion

  /// The store's path relative to the home; it begins with `..` outside.
  public var path: PathText

  /// The store's absolute path at the time of writing.
  public var lastPath: PathText

  /// The metadata's identifier (`NSStoreUUID`), if any.
  public var uuid: String?

  /// The store's earlier paths, relative to the home.
  public var earlierPaths: [PathText]?

  /// The store's absolute paths in manifests of earlier versions.
  public var manifestPaths: [PathText]?

  /// The entries named like backups that are not known to be of this store.
  public var others: [String]?

  /// An unfinished transfer from a folder of an earlier version.
  public var arriving: Arriving?

  /// The age public keys of an encrypted folder's note.
  public var recipients: [String]?

  /// Backups in transfer.
  public struct Arriving: Sendable, Hashable, Codable {
    /// The name of their old folder.
    public var from: String

    /// Their names.
    public var backups: [String]

    /// Makes a transfer.
    public init(from: String, backups: [String]) {
      self.from = from
      self.backups = backups
    }
  }

  /// Makes a note.
  public init(path: PathText, lastPath: PathText, uuid: String?) {
    self.path = path
    self.lastPath = lastPath
    self.uuid = uuid
  }

  /// The format's name.
  public static let formatName = "lazaret-backup-place"

  package static let currentVersion = 1

  package static func version(json bytes: [UInt8]) -> Int? {
    // A malformed note may be replaced.
    let head = try? JSONDecoder().decode(FormatHead.self, from: Data(bytes))
    return head?.format == formatName ? head?.version : nil
  }

  package static let name: FilePath.Component = "store.json"

  package static let limit = 1 << 20

  /// Parses a note; nil if it is malformed, altered or of a later version.
  package init?(json bytes: [UInt8]) {
    // Notes of earlier versions lack a digest.
    guard DigestedText.verdict(bytes) != .changed else { return nil }
    // Without a note, the backups identify their store.
    guard bytes.count <= Self.limit, let note = try? JSONDecoder().decode(StorePlaceNote.self, from: Data(bytes)),
      note.format == Self.formatName, note.version == Self.currentVersion, note.path.path != nil,
      note.lastPath.path != nil
    else { return nil }
    self = note
  }

  /// Includes the digest and a final newline.
  package func json() throws(FileError) -> [UInt8] {
    DigestedText.adding(to: try JSON.bytes(of: self, to: "note the store of the backups"))
  }

  /// Reads a folder's note; nil if it is missing or unreadable.
  package static func read(in folder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> StorePlaceNote? {
    try read(at: folder.appending(name), fileSystem)
  }

  package static func read(at path: FilePath, _ fileSystem: FileSystem) throws(FileError) -> StorePlaceNote? {
    guard let status = try fileSystem.status(of: path), status.kind == .regular, status.size <= Int64(limit) else {
      return nil
    }
    return StorePlaceNote(json: try fileSystem.open(path).bytes(at: 0, length: limit))
  }

  /// Writes the note, readable by the store's owner alone.
  ///
  /// - Parameter isNew: whether the folder is new; the superuser then gives it to the store's owner too.
  package func write(to path: FilePath, inNewFolder isNew: Bool, _ fileSystem: FileSystem) throws(FileError) {
    try fileSystem.writeAtomically(json(), to: path, replacing: true, permissions: .ownerReadWrite)
    guard FileSystem.effectiveUser == 0, let store = lastPath.path, var model = try fileSystem.status(of: store.folder)
    else { return }
    model.permissions = .ownerReadWrite
    try fileSystem.adoptAccess(of: model, to: path)
    model.permissions = .ownerReadWriteExecute
    if isNew { try fileSystem.adoptAccess(of: model, to: path.folder) }
  }
}

/// The format and version of a JSON file.
package struct FormatHead: Decodable {
  package var format: String
  package var version: Int
}

/// A JSON object with the SHA-256 of its other text in the last key, `digest`.
///
/// The text ends with `,"digest":"<64 hexadecimal digits>"}` and a newline. Removing it from that comma to the last
/// quotation mark gives the digested text, so that a reader can check it without knowing all keys.
package enum DigestedText {
  package enum Verdict: Sendable, Hashable { case right, changed, none }

  private static let end = Array("}\n".utf8)
  private static let key = Array(",\"digest\":\"".utf8)
  private static let last = Array("\"}\n".utf8)
  private static let digits = 64

  package static let addedLength = key.count + digits + last.count - end.count

  /// Expects a brace and a newline at the end.
  package static func adding(to text: [UInt8]) -> [UInt8] {
    guard text.suffix(end.count).elementsEqual(end) else { return text }
    return text.dropLast(end.count) + key + Array(FileDigest(of: text).hexadecimal.utf8) + last
  }

  package static func verdict(_ bytes: [UInt8]) -> Verdict {
    let tail = key.count + digits + last.count
    guard bytes.count > tail, bytes.suffix(last.count).elementsEqual(last),
      bytes.suffix(tail).prefix(key.count).elementsEqual(key)
    else { return .none }
    let written = bytes.suffix(digits + last.count).prefix(digits)
    let text = bytes.dropLast(tail) + end
    return written.elementsEqual(FileDigest(of: Array(text)).hexadecimal.utf8) ? .right : .changed
  }

  /// Returns the text's digest; nil if it is missing or wrong.
  package static func digest(of bytes: [UInt8]) -> String? {
    guard verdict(bytes) == .right else { return nil }
    return String(decoding: bytes.suffix(digits + last.count).prefix(digits), as: UTF8.self)
  }
}

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

/// The generation and origin of a store among the stores of one place.
///
/// Salvaged and restored stores keep their identifier; a generation lasts from one quarantine at the place to the next.
/// Receipts, recovery kits and backup manifests hold it, never the store.
public struct StoreLineage: Sendable, Hashable, Codable {
  /// The backup from which a generation was restored.
  public struct Restored: Sendable, Hashable, Codable {
    /// The backup's name.
    public var backup: String

    /// The time of the backup, in RFC 3339.
    public var date: String

    /// The backed-up generation, if known.
    public var generation: String?

    /// Makes a reference to a backup.
    public init(backup: String, date: Timestamp, generation: String?) {
      self.backup = backup
      self.date = date.rfc3339
      self.generation = generation
    }
  }

  /// The generation: a random UUID.
  public var generation: String

  /// The start of the generation, in RFC 3339; without a preceding quarantine, when it was first named.
  public var since: String

  /// The quarantined predecessor; nil for the place's first store.
  public var parent: String?

  /// The restored backup, if any.
  public var restored: Restored?

  /// Makes a generation.
  public init(generation: String, since: Timestamp, parent: String? = nil, restored: Restored? = nil) {
    self.generation = generation
    self.since = since.rfc3339
    self.parent = parent
    self.restored = restored
  }
}

/// The evidence that counts for a store: kits and backups of its generation from before an event.
public struct EvidenceScope: Sendable, Hashable {
  /// The reason to exclude a kit or backup.
  public enum Exclusion: String, Sendable, Hashable {
    case later

    case otherGeneration = "other-generation"

    /// The reason, as a predicate to the kit or the backup.
    public var words: String {
      switch self {
      case .later: "was made after the store was quarantined"
      case .otherGeneration: "is of another generation of the store: of one that was at its place at another time"
      }
    }
  }

  /// The store's generation; nil if unknown, so that dates decide.
  public var lineage: StoreLineage?

  /// The time of quarantine, if any.
  public var event: Timestamp?

  /// Makes the scope of a store.
  public init(lineage: StoreLineage?, event: Timestamp?) {
    self.lineage = lineage
    self.event = event
  }

  /// Returns the reason to exclude a kit or backup, if any.
  public func exclusion(generation: String?, date: Timestamp) -> Exclusion? {
    // Names and receipts have whole seconds.
    let made = date.secondsSince1970
    if let event, made > event.secondsSince1970 { return .later }
    guard let lineage, generation != lineage.generation else { return nil }
    if let restored = lineage.restored, restored.generation == generation,
      let taken = Timestamp(restored.date), made <= taken.secondsSince1970
    {
      return nil
    }
    guard let since = Timestamp(lineage.since)?.secondsSince1970 else { return .otherGeneration }
    // Older evidence of a place's first store counts under any generation.
    if lineage.parent == nil, made < since || made == since && generation == nil { return nil }
    // Evidence without a generation is from an earlier version, or its restorer.
    return generation == nil && made > since ? nil : .otherGeneration
  }
}

/// The record count of an entity, or the row count of a table.
public struct EntityCount: Sendable, Hashable, Codable {
  /// The entity, or the table if no entity is known.
  public var name: String

  /// The SQL table, such as `ZCAR`.
  public var table: String

  /// The count; nil if not counted or the table is unreadable.
  public var rows: Int64?

  /// Makes a count.
  public init(name: String, table: String, rows: Int64? = nil) {
    self.name = name
    self.table = table
    self.rows = rows
  }
}
