internal import Failures
package import Inbox
package import StoreFiles
package import SystemPackage

extension Inbox {
  /// The inbox of a home whose records are in a database; the first home of a database is the only one.
  ///
  /// - Parameters:
  ///   - makesFolders: whether the folders are made where they are missing, as one that receives does.
  ///   - hasIdentity: whether the key of encrypted bundles is at hand.
  /// - Throws: `inbox-address` where home and database do not belong together; `inbox-records`; what the file system says.
  package convenience init(
    home: FilePath, database: PostgresDatabase, makesFolders: Bool = true, limits: InboxLimits = InboxLimits(),
    hasIdentity: Bool = false, surroundings: Surroundings = .machine
  ) throws {
    let folders = InboxFolders(home: home)
    if makesFolders { try folders.make(in: surroundings.fileSystem) }
    try database.join(folders, makesMark: makesFolders, surroundings)
    self.init(
      home: home, records: PostgresInboxRecords(database), queue: PostgresJobQueue(database), limits: limits,
      hasIdentity: hasIdentity, surroundings: surroundings)
  }
}

extension Inbox {
  /// The inbox whose records are in a database and whose bundles are in shared storage; any number of processes have it open.
  ///
  /// - Parameters:
  ///   - home: what this process has of its own: uploads on their way in, and copies.
  ///   - receives: whether this process receives; the first that does ties storage and database together.
  ///   - hasIdentity: whether the key of encrypted bundles is at hand.
  /// - Throws: `inbox-address` where home, storage and database do not belong together; `inbox-records`; what storage and
  ///   file system say.
  package convenience init(
    home: FilePath, database: PostgresDatabase, storage: any BundleStorage, receives: Bool,
    limits: InboxLimits = InboxLimits(), hasIdentity: Bool = false, surroundings: Surroundings = .machine
  ) throws {
    let mark = try database.join(storage, makesMark: receives)
    let folders = InboxFolders(home: home)
    try folders.make(in: surroundings.fileSystem)
    let name = "\(UniversalIdentifier.random())".lowercased()
    let frontEnd =
      receives
      ? try InboxPlace.frontEnd(of: folders, inboxMarked: mark, or: name, in: surroundings.fileSystem) : nil
    self.init(
      home: home, records: PostgresInboxRecords(database), queue: PostgresJobQueue(database), storage: storage,
      frontEnd: frontEnd, limits: limits, hasIdentity: hasIdentity, surroundings: surroundings)
  }
}

extension PostgresDatabase {
  /// Ties the database to shared storage, or sees that they belong together.
  ///
  /// The database has its mark first, and no other one puts the same into a storage: so of two databases one at most gets it.
  ///
  /// - Returns: the mark that both have.
  fileprivate func join(_ storage: any BundleStorage, makesMark: Bool) throws -> String {
    // In this order: the mark that another process of this database has just put there is in the database by then.
    var place = try storage.mark()
    var known = try placeMark()
    if known == nil, makesMark || place != nil {
      guard makesMark, place == nil, try storage.isEmpty() else {
        throw InboxError(
          .address, operation: "open the inbox",
          detail: "the database is empty, and the bundles there are another one's",
          hint: "Restore the database from its backup, or give the address of the right one.")
      }
      known = try adopt("\(UniversalIdentifier.random())".lowercased())
    }
    if place == nil, makesMark, let mark = known {
      // Killed before the storage had it: then nothing has been received. A storage that was emptied is another matter.
      let isNew = try storage.isEmpty() && !hasBundles()
      // Else another process of this database may have put it there, and received, since it was looked for.
      place = isNew ? try storage.makeMark(mark) : try storage.mark()
    }
    guard let known, known == place else {
      throw InboxError(
        .address, operation: "open the inbox",
        detail: known != nil && place == nil
          ? "the bundles of this database do not lie there" : "these bundles and this database do not belong together",
        hint: "Give --bundles and --database as the process did that received first.")
    }
    return known
  }

  /// Ties the database to a folder of bundles, or sees that they belong together.
  fileprivate func join(_ folders: InboxFolders, makesMark: Bool, _ surroundings: Surroundings) throws {
    let system = surroundings.fileSystem
    var known = try placeMark()
    var place = try InboxPlace.mark(of: folders, in: system)
    if place == nil, known == nil, makesMark {
      place = try InboxPlace.makeMark("\(UniversalIdentifier.random())".lowercased(), of: folders, in: system)
    }
    if known == nil, let place {
      // Killed before the database had it: then nothing has been received. A database that was emptied is another matter.
      guard makesMark, try system.entries(of: folders.bundles).isEmpty else {
        throw InboxError(
          .address, operation: "open the inbox", path: folders.root,
          detail: "the database is empty, and knows none of the bundles of this home",
          hint: "Restore the database from its backup, or give the address of the right one.")
      }
      known = try adopt(place)
    }
    guard let known, known == place else {
      throw InboxError(
        .address, operation: "open the inbox", path: folders.root,
        detail: "this home and this database do not belong together",
        hint: "Give the home whose bundles the database knows: the folder that all machines share.")
    }
  }

  private func placeMark() throws(InboxError) -> String? {
    try readOnce("look whose records they are") { connection in
      let result = try connection.query("SELECT id FROM lazaret.place")
      return result.count > 0 ? try result.text(0, 0) : nil
    }
  }

  private func hasBundles() throws(InboxError) -> Bool {
    try readOnce("look for bundles") { connection in
      try connection.query("SELECT 1 FROM lazaret.bundles LIMIT 1").count > 0
    }
  }

  /// Notes the mark of a place where there is none; gives the one that is there then.
  private func adopt(_ place: String) throws(InboxError) -> String? {
    try write("note whose records they are", isRepeatable: true, tells: false) { connection in
      _ = try connection.query("INSERT INTO lazaret.place (id) VALUES ($1) ON CONFLICT DO NOTHING", [.text(place)])
    }
    return try placeMark()
  }
}
