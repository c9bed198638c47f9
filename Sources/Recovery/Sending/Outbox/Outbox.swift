internal import Quarantine
public import StoreFiles
internal import SupportBundle
public import SystemPackage

/// The bundles that are to be sent, are being sent, or were: `Outbox/` in the home.
///
/// Each has a folder of its own with the bundle and `entry.json`; after a kill at any moment an entry is there whole or not at all,
/// and nothing that a receiver has acknowledged is forgotten.
public struct Outbox: Sendable {
  /// The name of the folder.
  public static let name: FilePath.Component = "Outbox"

  /// How many bytes all bundles together may have, unless told otherwise: 2 GiB.
  public static let usualLimit: Int64 = 2 << 30

  /// For how many days an entry is kept that nothing more happens to.
  public static let keptDays = 90

  /// The folder that holds the outbox.
  public let home: FilePath

  /// How many bytes all bundles together may have.
  public let limit: Int64
  let surroundings: Surroundings

  /// The outbox of a home, whether it is there or not.
  public init(home: FilePath, limit: Int64 = Self.usualLimit, surroundings: Surroundings = .machine) {
    self.home = home
    self.limit = limit
    self.surroundings = surroundings
  }

  /// The folder.
  public var path: FilePath { home.appending(Self.name) }

  var fileSystem: FileSystem { surroundings.fileSystem }

  func folder(of id: String) -> FilePath { path.appending(id) }
  func entryPath(of id: String) -> FilePath { folder(of: id).appending("entry.json") }

  /// Where the bundle of an entry lies, as long as it is needed.
  public func bundlePath(of id: String) -> FilePath { folder(of: id).appending("bundle") }

  /// What lies in an outbox.
  public struct Listing: Sendable, Hashable {
    /// The entries, newest first.
    public var entries: [OutboxEntry]

    /// The names of entries that cannot be read.
    public var unreadable: [String]

    /// A listing.
    public init(entries: [OutboxEntry], unreadable: [String]) {
      self.entries = entries
      self.unreadable = unreadable
    }
  }

  /// What lies in the outbox; nothing is changed.
  ///
  /// An entry whose process ended while it was sending is shown as waiting.
  public func listing() throws(SendingError) -> Listing {
    do {
      var listing = Listing(entries: [], unreadable: [])
      for id in try names() {
        guard var entry = try read(id) else {
          listing.unreadable.append(id)
          continue
        }
        if entry.state == .sending, try !isHeld(id) { entry.state = .waiting }
        listing.entries.append(entry)
      }
      listing.entries.sort { ($0.created, $0.id) > ($1.created, $1.id) }
      return listing
    } catch {
      throw SendingError.told(error, operation: "list the outbox", path: path)
    }
  }

  /// The entry of a name, of the beginning of one, or of the first digits of a bundle's SHA-256.
  ///
  /// - Throws: `not-in-outbox` where there is none, or several.
  public func entry(_ name: String) throws(SendingError) -> OutboxEntry {
    let entries = try listing().entries
    if let entry = entries.first(where: { $0.id == name }) { return entry }
    let found = entries.filter { !name.isEmpty && ($0.id.hasPrefix(name) || $0.sha256.hasPrefix(name.lowercased())) }
    guard found.count <= 1 else { throw Self.notFound(path, "\(found.count) entries have names that begin like that") }
    guard let entry = found.first else { throw Self.notFound(path, "there is no entry \(printable(name))") }
    return entry
  }

  /// The entry of a bundle that a receiver has already, as far as this outbox knows; nil for none.
  public func sent(
    _ preview: BundlePreview, to receiver: ReceiverAddress, by method: OutboxEntry.Method = .tus
  ) throws(SendingError) -> OutboxEntry? {
    try listing().entries.first { entry in
      entry.state == .sent && entry.sha256 == preview.sha256 && entry.bytes == preview.bytes
        && entry.endpoint == receiver.withoutQuery && entry.method == method
    }
  }

  static func notFound(_ path: FilePath, _ detail: String) -> SendingError {
    SendingError(.notFound, operation: "find the entry of the outbox", path: path, detail: detail)
  }

  // MARK: Looking

  /// The names of all entries.
  func names() throws -> [String] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    return try fileSystem.entries(of: path).map(\.string).filter(Self.isID)
  }

  /// An entry; nil where it cannot be read.
  func read(_ id: String) throws -> OutboxEntry? {
    do {
      return try OutboxEntry(at: entryPath(of: id), id: id, in: fileSystem)
    } catch let error as SendingError {
      guard error.kind == .entryUnreadable else { throw error }
      return nil
    } catch let error as FileError {
      guard error.kind == .notFound || error.kind == .tooLarge || error.kind == .notRegularFile else { throw error }
      return nil
    }
  }

  private func isHeld(_ id: String) throws -> Bool {
    do {
      let lock = try FolderLock(folder(of: id), patience: 0, in: fileSystem)
      _ = consume lock
      return false
    } catch {
      guard error.kind == .locked else { throw error }
      return true
    }
  }

  /// Whether text is a name that an outbox gives.
  static func isID(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard text.utf8.count <= 64, parts.count >= 7, Timestamp(String(text.prefix(19))) != nil else { return false }
    return parts[6...].allSatisfy { part in
      !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
  }
}
