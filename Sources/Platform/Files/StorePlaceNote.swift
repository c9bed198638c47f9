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
    struct Head: Decodable {
      var format: String
      var version: Int
    }
    // A malformed note may be replaced.
    let head = try? JSONDecoder().decode(Head.self, from: Data(bytes))
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
  /// Resolves links in the existing part of an absolute path.
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
  /// Makes the path relative to a folder; both are absolute.
  package func relative(to folder: FilePath) -> FilePath {
    let (from, to) = (Array(folder.components), Array(components))
    let common = zip(from, to).prefix { $0 == $1 }.count
    var relative = FilePath()
    for _ in from.dropFirst(common) { relative.append("..") }
    relative.append(to.dropFirst(common))
    return relative
  }

  package var leadsOutside: Bool { isAbsolute || components.first?.kind == .parentDirectory }

  package func ends(withAll other: FilePath) -> Bool {
    let (own, theirs) = (Array(components), Array(other.components))
    return !theirs.isEmpty && own.count >= theirs.count && Array(own.suffix(theirs.count)) == theirs
  }
}

/// A JSON object with the SHA-256 of its other text in the last key, `digest`.
///
/// The text ends with `,"digest":"<64 hexadecimal digits>"}` and a newline. Removing it from that comma to the last
/// quotation mark gives the digested text, so that a reader can check it without knowing all keys.
package enum DigestedText {
  package enum Verdict: Sendable, Hashable {
    case right

    case changed

    case none
  }

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
