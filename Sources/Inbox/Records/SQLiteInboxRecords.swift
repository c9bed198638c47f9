internal import Foundation
internal import GRDB
internal import Platform

struct SQLiteInboxRecords: InboxRecords {
  let database: InboxDatabase

  // MARK: Senders

  func add(_ sender: InboxSender, tokenSum: [UInt8]) throws(InboxError) {
    try sender.checkName()
    try database.write("add a sender") { database in
      guard
        try Row.fetchOne(database, sql: "SELECT 1 FROM senders WHERE name = ?", arguments: [sender.name]) == nil
      else { throw InboxError.senderExists }
      try database.execute(
        sql: "INSERT INTO senders (name, quota, token, created) VALUES (?, ?, ?, ?)",
        arguments: [sender.name, sender.quota, Data(tokenSum), sender.created.secondsSince1970])
    }
  }

  func senders(after name: String?, limit: Int) throws(InboxError) -> [InboxSenderUsage] {
    try database.read("list the senders") { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT name, quota, created, revoked,
            coalesce((SELECT n FROM tallies WHERE kind = 'used' AND tallies.name = senders.name AND part = ''), 0) AS used
            FROM senders WHERE ?1 IS NULL OR name > ?1 ORDER BY name LIMIT ?2
          """, arguments: [name, max(0, limit)]
      ).map { InboxSenderUsage(sender: Self.sender($0), used: $0["used"]) }
    }
  }

  func sender(withTokenSum sum: [UInt8]) throws(InboxError) -> (sum: [UInt8], sender: InboxSender)? {
    try database.read("look for the sender") { database in
      try Row.fetchOne(
        database,
        sql: "SELECT token, name, quota, created, revoked FROM senders WHERE token = ? AND revoked IS NULL",
        arguments: [Data(sum)]
      ).map { row in
        let token: Data = row["token"]
        return (sum: [UInt8](token), sender: Self.sender(row))
      }
    }
  }

  private static func sender(_ row: Row) -> InboxSender {
    let revoked: Int64? = row["revoked"]
    return InboxSender(
      name: row["name"], quota: row["quota"], created: Timestamp(secondsSince1970: row["created"]),
      revoked: revoked.map { Timestamp(secondsSince1970: $0) })
  }

  func revokeSender(_ name: String, at date: Timestamp) throws(InboxError) {
    try database.write("revoke a token") { database in
      try database.execute(
        sql: "UPDATE senders SET revoked = coalesce(revoked, ?) WHERE name = ?",
        arguments: [date.secondsSince1970, name])
      guard database.changesCount > 0 else { throw InboxError.senderUnknown }
    }
  }

  func usage() throws(InboxError) -> [String: Int64] {
    try database.read("add up what is kept") { try InboxDatabase.counts("used", $0) }
  }

  func usedBytes() throws(InboxError) -> Int64 {
    try database.read("add up what is kept") { try InboxDatabase.count("all", "used", $0) }
  }

  /// A quota's use: received bundles, results, and open uploads at full length.
  private static func room(of sender: String, quota: Int64, _ database: Database) throws -> InboxRoom {
    InboxRoom(
      quota: quota, used: try InboxDatabase.count("used", sender, database),
      totalUsed: try InboxDatabase.count("all", "used", database))
  }

  // MARK: Uploads

  func admit(_ upload: InboxUpload, quota: Int64, limits: InboxLimits) throws(InboxError) -> InboxAdmission {
    try database.write("begin the upload") { database in
      if let sum = upload.sha256,
        let bundle = try String.fetchOne(
          database, sql: "SELECT id FROM bundles WHERE sender = ? AND sha256 = ? AND bytes = ?",
          arguments: [upload.sender, sum, upload.length])
      {
        try Self.noteReceived(bundle, at: upload.created, database)
        return .known(try Self.known(upload, bundle, database))
      }
      let open =
        try Int.fetchOne(
          database, sql: "SELECT count(*) FROM uploads WHERE state = 'open' AND sender = ?",
          arguments: [upload.sender]) ?? 0
      let room = try Self.room(of: upload.sender, quota: quota, database)
      let admission = room.admission(of: upload, open: open, limits)
      guard admission == .begun else { return admission }
      try Self.insert(upload, database)
      return .begun
    }
  }

  /// Records a resend, for retention.
  private static func noteReceived(_ bundle: String, at date: String, _ database: Database) throws {
    try database.execute(
      sql: "UPDATE bundles SET received = max(coalesce(received, date), ?) WHERE id = ?", arguments: [date, bundle])
  }

  /// The known bundle's upload; the new one replaces a forgotten one.
  private static func known(_ upload: InboxUpload, _ bundle: String, _ database: Database) throws -> InboxUpload {
    let known = try uploads(
      "bundle = ? AND sender = ? AND state = 'finished' ORDER BY rowid LIMIT 1", [bundle, upload.sender], database)
    if let known = known.first { return known }
    var upload = upload
    upload.finish(as: bundle)
    try insert(upload, database)
    return upload
  }

  private static func insert(_ upload: InboxUpload, _ database: Database) throws {
    try database.execute(
      sql: """
        INSERT INTO uploads (id, sender, length, position, sha256, state, bundle, expires, content)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
      arguments: [
        upload.id, upload.sender, upload.length, upload.offset, upload.sha256, upload.state.rawValue, upload.bundle,
        upload.expires, try InboxRecordText.text(upload),
      ])
  }

  /// - Parameter condition: selection and order in SQL.
  private static func uploads(
    _ condition: String, _ arguments: StatementArguments, _ database: Database
  ) throws -> [InboxUpload] {
    try String.fetchAll(database, sql: "SELECT content FROM uploads WHERE \(condition)", arguments: arguments)
      .map { try InboxRecordText.value($0) }
  }

  func pruneUploads(at date: Timestamp) throws(InboxError) {
    try database.write("forget old uploads") { database in
      try database.execute(
        sql: "DELETE FROM uploads WHERE state <> 'open' AND expires <= ?", arguments: [date.secondsSince1970])
      try database.execute(
        sql: """
          DELETE FROM uploads WHERE rowid IN (
            SELECT rowid FROM (
              SELECT rowid, row_number() OVER (PARTITION BY sender ORDER BY rowid DESC) AS place FROM uploads
                WHERE state <> 'open'
            ) WHERE place > ?)
          """, arguments: [InboxUpload.maximumEnded])
    }
  }

  // MARK: Room

  func room(of sender: String, totalBytes: Int64) throws(InboxError) -> Int64 {
    try database.read("look for room") { try Self.room(of: sender, totalBytes: totalBytes, $0) }
  }

  private static func room(of sender: String, totalBytes: Int64, _ database: Database) throws -> Int64 {
    let quota = try Int64.fetchOne(database, sql: "SELECT quota FROM senders WHERE name = ?", arguments: [sender]) ?? 0
    return try room(of: sender, quota: quota, database).left(of: totalBytes)
  }

  func place(_ bytes: Int64, of bundle: String, totalBytes: Int64?) throws(InboxError) -> Bool {
    try database.write("note what is placed") { database in
      guard
        let row = try Row.fetchOne(
          database, sql: "SELECT sender, coalesce(placed, 0) AS placed FROM bundles WHERE id = ?", arguments: [bundle])
      else { return true }
      let before: Int64 = row["placed"]
      if let totalBytes, bytes > before {
        guard bytes - before <= (try Self.room(of: row["sender"], totalBytes: totalBytes, database)) else {
          return false
        }
      }
      try database.execute(sql: "UPDATE bundles SET placed = ? WHERE id = ?", arguments: [bytes, bundle])
      return true
    }
  }

  func placed(of bundle: String) throws(InboxError) -> Int64? {
    try database.read("look what is placed") { database in
      try Int64.fetchOne(database, sql: "SELECT placed FROM bundles WHERE id = ?", arguments: [bundle])
    }
  }

  func upload(_ id: String) throws(InboxError) -> InboxUpload? {
    try database.read("look for the upload") { try Self.upload(id, $0) }
  }

  private static func upload(_ id: String, _ database: Database) throws -> InboxUpload? {
    try uploads("id = ?", [id], database).first
  }

  @discardableResult
  func changeUpload(
    _ id: String, to operation: String, _ change: (inout InboxUpload) -> Bool
  ) throws(InboxError) -> Bool {
    try database.write(operation) { database in
      guard var upload = try Self.upload(id, database), change(&upload) else { return false }
      try Self.save(upload, database)
      return true
    }
  }

  private static func save(_ upload: InboxUpload, _ database: Database) throws {
    try database.execute(
      sql: "UPDATE uploads SET position = ?, state = ?, bundle = ?, expires = ?, content = ? WHERE id = ?",
      arguments: [
        upload.offset, upload.state.rawValue, upload.bundle, upload.expires, try InboxRecordText.text(upload),
        upload.id,
      ])
  }

  func openUploads(limit: Int) throws(InboxError) -> [InboxUpload] {
    try database.read("list the uploads") { database in
      try Self.uploads("state = 'open' ORDER BY rowid LIMIT ?", [max(0, limit)], database)
    }
  }

  func openUploads(after id: String?, limit: Int) throws(InboxError) -> [InboxUpload] {
    try database.read("list the uploads") { database in
      try Self.uploads("state = 'open' AND id > ? ORDER BY id LIMIT ?", [id ?? "", max(0, limit)], database)
    }
  }

  func makeBundle(_ bundle: InboxBundle, of id: String) throws(InboxError) -> InboxBundle {
    try database.write("note the bundle") { database in
      let over = InboxError.noBundle("note the bundle")
      guard var upload = try Self.upload(id, database), upload.state != .dropped else { throw over }
      if upload.state == .finished {
        guard let known = upload.bundle, let bundle = try Self.bundle(known, database) else { throw over }
        return bundle
      }
      let known = try String.fetchOne(
        database, sql: "SELECT content FROM bundles WHERE sender = ? AND sha256 = ? AND bytes = ?",
        arguments: [bundle.sender, bundle.sha256, bundle.bytes])
      let kept = try known.map { try InboxRecordText.value($0) } ?? bundle
      if known != nil {
        try Self.noteReceived(kept.id, at: bundle.date, database)
      } else {
        try database.execute(
          sql: """
            INSERT INTO bundles (id, sender, sha256, bytes, date, state, words, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
          arguments: [
            bundle.id, bundle.sender, bundle.sha256, bundle.bytes, bundle.date, bundle.state.rawValue, bundle.words,
            try InboxRecordText.text(bundle),
          ])
      }
      upload.finish(as: kept.id)
      try Self.save(upload, database)
      return kept
    }
  }

  // MARK: Bundles

  func bundleIDs() throws(InboxError) -> [String: Bool] {
    try database.read("list the bundles") { database in
      try Row.fetchAll(database, sql: "SELECT id, placed IS NOT NULL AS known FROM bundles")
        .reduce(into: [:]) { known, row in known[row["id"]] = row["known"] }
    }
  }

  func bundleIDs(in state: InboxBundle.State) throws(InboxError) -> [String] {
    try database.read("list the bundles") { database in
      try String.fetchAll(
        database, sql: "SELECT id FROM bundles WHERE state = ? ORDER BY date, id", arguments: [state.rawValue])
    }
  }

  func known(_ ids: [String]) throws(InboxError) -> Set<String> {
    try database.read("look for bundles") { database in
      let statement = try database.makeStatement(sql: "SELECT 1 FROM bundles WHERE id = ?")
      return Set(try ids.filter { try Int.fetchOne(statement, arguments: [$0]) != nil })
    }
  }

  func bundle(_ id: String) throws(InboxError) -> InboxBundle? {
    try database.read("look for the bundle") { try Self.bundle(id, $0) }
  }

  private static func bundle(_ id: String, _ database: Database) throws -> InboxBundle? {
    try String.fetchOne(database, sql: "SELECT content FROM bundles WHERE id = ?", arguments: [id])
      .map { try InboxRecordText.value($0) }
  }

  func entry(_ id: String) throws(InboxError) -> InboxEntry? {
    try database.read("look for the bundle") { database in
      try Self.bundle(id, database).map { try Self.entry($0, database) }
    }
  }

  static func entry(_ bundle: InboxBundle, _ database: Database) throws -> InboxEntry {
    InboxEntry(bundle: bundle, jobs: try SQLiteJobQueue.jobs(of: bundle.id, database))
  }

  func bundleCounts() throws(InboxError) -> [InboxBundle.State: Int] {
    try database.read("count the bundles") { try InboxDatabase.counts("bundles", $0) }.byState()
  }

  private static func save(_ bundle: InboxBundle, _ database: Database) throws {
    try database.execute(
      sql: "UPDATE bundles SET state = ?, damage = ?, words = ?, content = ? WHERE id = ?",
      arguments: [
        bundle.state.rawValue, bundle.fingerprint?.group, bundle.words, try InboxRecordText.text(bundle), bundle.id,
      ])
  }

  static func change(_ id: String, _ database: Database, _ change: (inout InboxBundle) -> Void) throws {
    guard var bundle = try bundle(id, database) else { return }
    change(&bundle)
    try save(bundle, database)
  }

  func change(_ id: String, _ change: (inout InboxBundle) -> Void) throws(InboxError) {
    try database.write("note what became of the bundle") { try Self.change(id, $0, change) }
  }

  func remove(_ bundle: String) throws(InboxError) {
    try database.write("forget the bundle") { try Self.forget(bundle, $0) }
  }

  /// Deletes a bundle and its uploads.
  static func forget(_ bundle: String, _ database: Database) throws {
    for var upload in try uploads("bundle = ?", [bundle], database) {
      upload.state = .dropped
      upload.bundle = nil
      try Self.save(upload, database)
    }
    try database.execute(sql: "DELETE FROM bundles WHERE id = ?", arguments: [bundle])
  }

  // MARK: Lists

  func entries(_ filter: InboxFilter, after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxEntry> {
    // SQLite binds up to the first NUL, which no name has: it would match another name.
    guard ![filter.group, filter.sender].contains(where: { $0?.utf8.contains(0) == true }) else {
      return InboxList(items: [], next: nil)
    }
    // Only requested conditions, so that an index can serve.
    var (conditions, arguments) = (["true"], [(any DatabaseValueConvertible)?]())
    func add(_ condition: String, _ values: any DatabaseValueConvertible...) {
      conditions.append(condition)
      arguments += values.map { .some($0) }
    }
    if let key { add("(date, id) < (?, ?)", key.date, key.id) }
    if let group = filter.group { add("damage = ?", group) }
    if let state = filter.state { add("state = ?", state.rawValue) }
    if let sender = filter.sender { add("sender = ?", sender) }
    let rest = "FROM bundles WHERE \(conditions.joined(separator: " AND ")) ORDER BY date DESC, id DESC LIMIT ?"
    let most = max(0, limit) + 1
    let words = filter.words.lowercased()
    return try database.read("list the bundles") { [arguments] database in
      guard !words.isEmpty else {
        let entries = try String.fetchAll(
          database, sql: "SELECT \(Self.summary) \(rest)", arguments: StatementArguments(arguments + [most])
        ).map { try Self.entry(try InboxRecordText.value($0), database) }
        return InboxList(entries, limit: limit, key: \.key)
      }
      var entries: [InboxEntry] = []
      var edge: InboxKey?
      var looked = 0
      let content = try database.makeStatement(sql: "SELECT \(Self.summary) FROM bundles WHERE id = ?")
      let rows = try Row.fetchCursor(
        database, sql: "SELECT id, date, instr(words, ?) > 0 AS fits \(rest)",
        arguments: StatementArguments([words] + arguments + [InboxDatabase.maximumLooked]))
      while entries.count < most, let row = try rows.next() {
        looked += 1
        if looked == InboxDatabase.maximumLooked { edge = InboxKey(date: row["date"], id: row["id"]) }
        let id: String = row["id"]
        guard row["fits"], let text = try String.fetchOne(content, arguments: [id]) else { continue }
        entries.append(try Self.entry(try InboxRecordText.value(text), database))
      }
      return InboxList(entries, limit: limit, edge: edge, key: \.key)
    }
  }

  /// A bundle without files and salvage account.
  private static let summary = "json_set(json_remove(content, '$.account'), '$.files', json('[]'))"
}
