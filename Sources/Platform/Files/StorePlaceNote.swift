import Foundation
package import SystemPackage

/// What a folder of backups says of the store whose backups lie in it: its path in the home, and its identifier.
///
/// Kept as `store.json` in `Backups/<name>/`: versioned JSON, described in `Documentation/BACKUP_FORMAT.md`. A folder of an
/// earlier version has none, and one of encrypted backups has it encrypted.
public struct StorePlaceNote: Sendable, Hashable, Codable {
  /// The name of the format: always `lazaret-backup-place`.
  public var format = StorePlaceNote.formatName

  /// The version of the format: 1.
  public var version = StorePlaceNote.currentVersion

  /// The path of the store from the home on; it begins with `..` where the store lies outside.
  public var path: PathText

  /// Where the store was from the root on when this was written.
  public var lastPath: PathText

  /// The identifier in its metadata (`NSStoreUUID`); nil for a store that has none.
  public var uuid: String?

  /// The paths from the home on at which the store was before it moved.
  public var earlierPaths: [PathText]?

  /// The paths from the root on that manifests of earlier versions in the folder give this store.
  public var manifestPaths: [PathText]?

  /// What lies in the folder under the name of a backup, names no store, and is not known to be of this one.
  public var others: [String]?

  /// What is being brought here from a folder of an earlier version; nil once all of it is here.
  public var arriving: Arriving?

  /// The age public keys to which the note of a folder of encrypted backups is encrypted; nil in the note of any other one.
  public var recipients: [String]?

  /// Backups that are being brought over.
  public struct Arriving: Sendable, Hashable, Codable {
    /// The name of the folder that they come from.
    public var from: String

    /// What they are called.
    public var backups: [String]

    /// Backups of a folder.
    public init(from: String, backups: [String]) {
      self.from = from
      self.backups = backups
    }
  }

  /// A note of a store.
  public init(path: PathText, lastPath: PathText, uuid: String?) {
    self.path = path
    self.lastPath = lastPath
    self.uuid = uuid
  }

  /// The name of the format.
  public static let formatName = "lazaret-backup-place"

  /// The version of the format that this software writes.
  package static let currentVersion = 1

  /// The version that a note says it is of; nil for what is no note.
  package static func version(json bytes: [UInt8]) -> Int? {
    struct Head: Decodable {
      var format: String
      var version: Int
    }
    // What is no note at all may be replaced by one.
    let head = try? JSONDecoder().decode(Head.self, from: Data(bytes))
    return head?.format == formatName ? head?.version : nil
  }

  /// The name of the note in the folder.
  package static let name: FilePath.Component = "store.json"

  /// The largest note that is read, in bytes.
  package static let limit = 1 << 20

  /// Reads a note; nil where it is none, is not what was written, or is of a later version.
  package init?(json bytes: [UInt8]) {
    // Notes of earlier versions have no digest.
    guard DigestedText.verdict(bytes) != .changed else { return nil }
    // What it says cannot be told then: the backups in the folder tell of which store they are.
    guard bytes.count <= Self.limit, let note = try? JSONDecoder().decode(StorePlaceNote.self, from: Data(bytes)),
      note.format == Self.formatName, note.version == Self.currentVersion, note.path.path != nil,
      note.lastPath.path != nil
    else { return nil }
    self = note
  }

  /// The note as the JSON text that is written, with its own digest and a final newline.
  package func json() throws(FileError) -> [UInt8] {
    DigestedText.adding(to: try JSON.bytes(of: self, to: "note the store of the backups"))
  }

  /// The note of a folder; nil where none is there, or none that can be read.
  package static func read(in folder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> StorePlaceNote? {
    try read(at: folder.appending(name), fileSystem)
  }

  /// The note in a file; nil where none is there, or none that can be read.
  package static func read(at path: FilePath, _ fileSystem: FileSystem) throws(FileError) -> StorePlaceNote? {
    guard let status = try fileSystem.status(of: path), status.kind == .regular, status.size <= Int64(limit) else {
      return nil
    }
    return StorePlaceNote(json: try fileSystem.open(path).bytes(at: 0, length: limit))
  }

  /// Writes the note into a file that the store's owner alone can read.
  ///
  /// - Parameter isNew: whether the folder was made for it; the superuser gives it to the store's owner then, like the note.
  package func write(to path: FilePath, inNewFolder isNew: Bool, _ fileSystem: FileSystem) throws(FileError) {
    try fileSystem.writeAtomically(json(), to: path, replacing: true, permissions: .ownerReadWrite)
    guard FileSystem.effectiveUser == 0, let store = lastPath.path,
      var model = try fileSystem.status(of: store.folder)
    else { return }
    model.permissions = .ownerReadWrite
    try fileSystem.adoptAccess(of: model, to: path)
    model.permissions = .ownerReadWriteExecute
    if isNew { try fileSystem.adoptAccess(of: model, to: path.folder) }
  }
}

extension FileSystem {
  /// A path from the root on, links resolved as far as there is anything.
  package func resolved(_ path: FilePath) throws(FileError) -> FilePath {
    var (there, rest) = (path, [FilePath.Component]())
    while true {
      if there.isEmpty { there = "." }
      if try status(of: there) != nil { return try realPath(there).appending(rest).lexicallyNormalized() }
      guard let last = there.lastComponent else { return path.lexicallyNormalized() }
      rest.insert(last, at: 0)
      there.removeLastComponent()
    }
  }
}

extension FilePath {
  /// The way from a folder to this path, both from the root on; it begins with `..` where this lies outside.
  package func relative(to folder: FilePath) -> FilePath {
    let (from, to) = (Array(folder.components), Array(components))
    let common = zip(from, to).prefix { $0 == $1 }.count
    var relative = FilePath()
    for _ in from.dropFirst(common) { relative.append("..") }
    relative.append(to.dropFirst(common))
    return relative
  }

  /// Whether a relative path leads out of the folder that it begins in.
  package var leadsOutside: Bool { isAbsolute || components.first?.kind == .parentDirectory }

  /// Whether the path ends with all components of another one.
  package func ends(withAll other: FilePath) -> Bool {
    let (own, theirs) = (Array(components), Array(other.components))
    return !theirs.isEmpty && own.count >= theirs.count && Array(own.suffix(theirs.count)) == theirs
  }
}

/// A JSON object as text whose last key, `digest`, is the SHA-256 of the text as it is without that key.
///
/// The text ends with `,"digest":"<64 hexadecimal digits>"}` and a newline. Without what stands from that comma to the last
/// quotation mark it is the text that the digest is of, so that no reader has to know all keys to check it.
package enum DigestedText {
  /// What a text says of itself.
  package enum Verdict: Sendable, Hashable {
    case right

    /// It has a digest, and is not what the digest is of.
    case changed

    /// It does not end with a digest.
    case none
  }

  private static let end = Array("}\n".utf8)
  private static let key = Array(",\"digest\":\"".utf8)
  private static let last = Array("\"}\n".utf8)
  private static let digits = 64

  /// The bytes that a digest adds to a text.
  package static let addedLength = key.count + digits + last.count - end.count

  /// The text of an object, which ends with a brace and a newline, with its digest.
  package static func adding(to text: [UInt8]) -> [UInt8] {
    guard text.suffix(end.count).elementsEqual(end) else { return text }
    return text.dropLast(end.count) + key + Array(FileDigest(of: text).hexadecimal.utf8) + last
  }

  /// Whether a text ends with a digest, and whether that is its own.
  package static func verdict(_ bytes: [UInt8]) -> Verdict {
    let tail = key.count + digits + last.count
    guard bytes.count > tail, bytes.suffix(last.count).elementsEqual(last),
      bytes.suffix(tail).prefix(key.count).elementsEqual(key)
    else { return .none }
    let written = bytes.suffix(digits + last.count).prefix(digits)
    let text = bytes.dropLast(tail) + end
    return written.elementsEqual(FileDigest(of: Array(text)).hexadecimal.utf8) ? .right : .changed
  }

  /// The digest that a text ends with; nil where it has none, or one that is not its own.
  package static func digest(of bytes: [UInt8]) -> String? {
    guard verdict(bytes) == .right else { return nil }
    return String(decoding: bytes.suffix(digits + last.count).prefix(digits), as: UTF8.self)
  }
}
