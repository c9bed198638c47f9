package import StoreFiles
internal import SystemPackage

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
    let isUsed =
      try fileSystem.status(of: folders.records) != nil || !fileSystem.entries(of: folders.bundles).isEmpty
      || !fileSystem.entries(of: folders.uploads).isEmpty
    guard !isUsed else {
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
