package import Platform
package import SystemPackage

/// The random mark that ties a bundle folder to its database.
///
/// An inbox removes files unknown to its records at start: with an empty database or another home's, that would be
/// every bundle.
enum InboxPlace {
  /// Returns a folder's mark; nil without one, as with records in a file.
  ///
  /// - Throws: `inbox-address` if malformed.
  static func mark(of folders: InboxFolders, in fileSystem: FileSystem) throws -> String? {
    guard try fileSystem.status(of: folders.place) != nil else { return nil }
    let text = String(decoding: try fileSystem.contents(of: folders.place, limit: 100), as: UTF8.self)
    let mark = String(text.prefix { $0 != "\n" })
    guard InboxFolders.isID(mark) else {
      throw InboxError(
        .address, operation: "open the inbox", path: folders.place, detail: "that is no mark of a place",
        hint: "Restore the file from a backup of the home.")
    }
    return mark
  }

  /// Marks a folder, or returns the mark that another process set first.
  ///
  /// - Throws: `inbox-address` if the folder has its own records or bundles.
  static func makeMark(_ mark: String, of folders: InboxFolders, in fileSystem: FileSystem) throws -> String {
    if let known = try Self.mark(of: folders, in: fileSystem) { return known }
    guard try !isUsed(folders, in: fileSystem) else {
      throw InboxError(
        .address, operation: "open the inbox", path: folders.root,
        detail: "the records of this inbox are in records.sqlite, and the database knows none of its bundles",
        hint: "Begin with a home whose inbox is empty, or leave --database and LAZARET_DATABASE away.")
    }
    do {
      try fileSystem.writeAtomically(
        Array("\(mark)\n".utf8), to: folders.place, replacing: false, permissions: .ownerReadWrite)
      return mark
    } catch {
      guard error.kind == .alreadyExists else { throw error }
      return try Self.mark(of: folders, in: fileSystem) ?? mark
    }
  }

  /// The name of a receiving process with shared storage, kept in its home.
  ///
  /// The home's mark differs from the inbox's, so that it does not pass for the bundles' place.
  ///
  /// - Parameters:
  ///   - mark: the inbox's mark.
  ///   - name: for a home without name.
  /// - Throws: `inbox-address` if the home is another inbox's or has its own bundles.
  static func frontEnd(
    of folders: InboxFolders, inboxMarked mark: String, or name: String, in fileSystem: FileSystem
  ) throws -> String {
    if let known = try Self.mark(of: folders, in: fileSystem) {
      let text = String(decoding: try fileSystem.contents(of: folders.place, limit: 100), as: UTF8.self)
      let lines = text.split(separator: "\n")
      guard lines.count == 2, lines[1] == mark else {
        throw InboxError(
          .address, operation: "open the inbox", path: folders.root,
          detail: lines.count == 2
            ? "this home receives for another inbox" : "the bundles of this home's inbox lie in the home",
          hint: "Give a home of its own to each process that receives with --bundles.")
      }
      return known
    }
    guard try !isUsed(folders, in: fileSystem) else {
      throw InboxError(
        .address, operation: "open the inbox", path: folders.root,
        detail: "this home has an inbox of its own, whose records are in records.sqlite",
        hint: "Give a home of its own to each process that receives with --bundles.")
    }
    try fileSystem.writeAtomically(
      Array("\(name)\n\(mark)\n".utf8), to: folders.place, replacing: false, permissions: .ownerReadWrite)
    return name
  }

  private static func isUsed(_ folders: InboxFolders, in fileSystem: FileSystem) throws -> Bool {
    try fileSystem.status(of: folders.records) != nil || !fileSystem.entries(of: folders.bundles).isEmpty
      || !fileSystem.entries(of: folders.uploads).isEmpty
  }

  /// Refuses a folder with records in a database.
  ///
  /// - Throws: `inbox-address`.
  static func refuse(_ folders: InboxFolders, in fileSystem: FileSystem) throws {
    guard try fileSystem.status(of: folders.place) != nil else { return }
    throw InboxError(
      .address, operation: "open the inbox", path: folders.root,
      detail: "the records of this inbox are in a PostgreSQL database",
      hint: "Give its address with --database or in LAZARET_DATABASE.")
  }
}

/// `Inbox/` in a home, for its owner only.
package struct InboxFolders: Sendable, Hashable {
  package let root: FilePath

  package init(home: FilePath) { root = home.appending("Inbox") }

  var records: FilePath { root.appending("records.sqlite") }

  /// The database server's mark, if used.
  var place: FilePath { root.appending("place") }

  /// Incoming uploads, a file each.
  package var uploads: FilePath { root.appending("Uploads") }

  /// Received bundles, a folder each.
  package var bundles: FilePath { root.appending("Bundles") }

  /// Orders and results of workers.
  package var work: FilePath { root.appending("Work") }

  func work(_ id: String) -> FilePath { work.appending(id) }

  package func upload(_ id: String) -> FilePath { uploads.appending(id) }

  package func bundle(_ id: String) -> FilePath { bundles.appending(id) }

  package func received(_ id: String, encrypted isEncrypted: Bool) -> FilePath {
    bundle(id).appending(Self.receivedName(encrypted: isEncrypted))
  }

  static func receivedName(encrypted isEncrypted: Bool) -> String {
    isEncrypted ? "bundle.lazaret.tar.gz.age" : "bundle.lazaret.tar.gz"
  }

  /// The names of received files.
  static let receivedNames: Set<String> = [receivedName(encrypted: true), receivedName(encrypted: false)]

  func bag(_ id: String) -> FilePath { bundle(id).appending("bag") }

  package func make(in fileSystem: FileSystem) throws(FileError) {
    for folder in [root, uploads, bundles, work] {
      try fileSystem.makeDirectory(folder, permissions: .ownerReadWriteExecute)
    }
  }

  /// Whether a text is an identifier safe as a file name: hexadecimal digits and hyphens.
  package static func isID(_ text: String) -> Bool {
    text.utf8.count == 36
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (97...102).contains(byte) || byte == UInt8(ascii: "-")
      }
  }
}
