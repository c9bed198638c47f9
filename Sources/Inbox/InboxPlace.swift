package import Platform
package import SystemPackage

/// What ties a folder of bundles to the database server that has their records: a random mark, in both.
///
/// Files that no record knows are removed at the start of an inbox. So an inbox is only opened with the records that belong to
/// its bundles: with an empty database, or another home's, every bundle would be such a file.
package enum InboxPlace {
  /// The mark of a folder; nil where it has none, as where its records are in a file.
  ///
  /// - Throws: `inbox-address` where there is something else.
  package static func mark(of folders: InboxFolders, in fileSystem: FileSystem) throws -> String? {
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

  /// Gives a folder a mark, or finds the one that another process has just given it.
  ///
  /// - Throws: `inbox-address` where records of its own or bundles are in it.
  package static func makeMark(_ mark: String, of folders: InboxFolders, in fileSystem: FileSystem) throws -> String {
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

  /// What a process is known by that receives in a home of its own, for an inbox whose bundles are in shared storage.
  ///
  /// The home's mark is another than that of the inbox, so that nothing takes the home for the place of the bundles.
  ///
  /// - Parameters:
  ///   - mark: the mark of the inbox.
  ///   - name: the name that a home gets which has none yet.
  /// - Throws: `inbox-address` where the home is one of another inbox, or has bundles of its own.
  package static func frontEnd(
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

  /// Refuses a folder whose records are in a database.
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

/// Where an inbox keeps what: `Inbox/` in a home, its owner's alone.
package struct InboxFolders: Sendable, Hashable {
  /// `Inbox/`.
  package let root: FilePath

  /// The folders of a home's inbox.
  package init(home: FilePath) { root = home.appending("Inbox") }

  /// The database file.
  package var records: FilePath { root.appending("records.sqlite") }

  /// The mark of the database server's records; there where these are not in a file.
  package var place: FilePath { root.appending("place") }

  /// What is on its way in, a file for each upload.
  package var uploads: FilePath { root.appending("Uploads") }

  /// What arrived, a folder for each bundle.
  package var bundles: FilePath { root.appending("Bundles") }

  /// What workers are told, and what they answer.
  package var work: FilePath { root.appending("Work") }

  /// What the workers of a bundle are told, answer and keep for a while.
  package func work(_ id: String) -> FilePath { work.appending(id) }

  /// The file of an upload.
  package func upload(_ id: String) -> FilePath { uploads.appending(id) }

  /// The folder of a bundle.
  package func bundle(_ id: String) -> FilePath { bundles.appending(id) }

  /// The file of a bundle as it was received.
  package func received(_ id: String, encrypted isEncrypted: Bool) -> FilePath {
    bundle(id).appending(isEncrypted ? "bundle.lazaret.tar.gz.age" : "bundle.lazaret.tar.gz")
  }

  /// The bag, once it was unpacked.
  package func bag(_ id: String) -> FilePath { bundle(id).appending("bag") }

  /// Makes the folders.
  package func make(in fileSystem: FileSystem) throws(FileError) {
    for folder in [root, uploads, bundles, work] {
      try fileSystem.makeDirectory(folder, permissions: .ownerReadWriteExecute)
    }
  }

  /// Whether a text can be an identifier, and so a name of a file: hexadecimal digits and hyphens only.
  package static func isID(_ text: String) -> Bool {
    text.utf8.count == 36
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (97...102).contains(byte) || byte == UInt8(ascii: "-")
      }
  }
}
