package import Inbox
package import StoreFiles

/// The records of an inbox in a database on a PostgreSQL server.
///
/// Locks are taken in one order, so that no two writers wait for each other: the room of the inbox, a bundle, an upload, its sender.
package struct PostgresInboxRecords: InboxRecords {
  let database: PostgresDatabase

  /// The records in a database.
  package init(_ database: PostgresDatabase) { self.database = database }

  // MARK: Senders

  package func add(_ sender: InboxSender, tokenSum: [UInt8]) throws(InboxError) {
    try sender.checkName()
    try database.write("add a sender", isRepeatable: false) { connection in
      let added = try connection.query(
        """
        INSERT INTO lazaret.senders (name, quota, token, created) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING
        """,
        [.text(sender.name), .integer(sender.quota), .bytes(tokenSum), .integer(sender.created.secondsSince1970)])
      guard added.changed == 1 else { throw InboxError.senderExists }
    }
  }

  package func senders() throws(InboxError) -> [InboxSender] {
    try database.readOnce("list the senders") { connection in
      try connection.query("SELECT name, quota, created, revoked FROM lazaret.senders ORDER BY name")
        .map { try Self.sender($0, $1) }
    }
  }

  package func senders(after name: String?, limit: Int) throws(InboxError) -> [InboxSenderUsage] {
    try database.readOnce("list the senders") { connection in
      try connection.query(
        """
        SELECT name, quota, created, revoked, used FROM lazaret.senders WHERE name > coalesce($1, '') ORDER BY name LIMIT $2
        """, [.maybe(name), .integer(Int64(max(0, limit)))]
      ).map { InboxSenderUsage(sender: try Self.sender($0, $1), used: try $0.integer($1, 4)) }
    }
  }

  package func sender(withTokenSum sum: [UInt8]) throws(InboxError) -> (sum: [UInt8], sender: InboxSender)? {
    try database.readOnce("look for the sender") { connection in
      try connection.query(
        """
        SELECT name, quota, created, revoked, token FROM lazaret.senders WHERE token = $1 AND revoked IS NULL
        """, [.bytes(sum)]
      ).map { (sum: try $0.binary($1, 4), sender: try Self.sender($0, $1)) }.first
    }
  }

  private static func sender(_ result: borrowing PostgresResult, _ row: Int) throws -> InboxSender {
    InboxSender(
      name: try result.text(row, 0), quota: try result.integer(row, 1),
      created: Timestamp(secondsSince1970: try result.integer(row, 2)),
      revoked: try result.maybeInteger(row, 3).map { Timestamp(secondsSince1970: $0) })
  }

  package func revokeSender(_ name: String, at date: Timestamp) throws(InboxError) {
    try database.write("revoke a token", isRepeatable: true) { connection in
      let revoked = try connection.query(
        "UPDATE lazaret.senders SET revoked = coalesce(revoked, $1) WHERE name = $2",
        [.integer(date.secondsSince1970), .text(name)])
      guard revoked.changed > 0 else { throw InboxError.senderUnknown }
    }
  }

  package func usage() throws(InboxError) -> [String: Int64] {
    try database.readOnce("add up what is kept") { connection in
      // Names that differ in the database may be equal here: é is one character or two.
      Dictionary(
        try connection.query("SELECT name, used FROM lazaret.senders WHERE used <> 0")
          .map { (try $0.text($1, 0), try $0.integer($1, 1)) }, uniquingKeysWith: +)
    }
  }

  package func usedBytes() throws(InboxError) -> Int64 {
    try PostgresTallies.counts("used", in: database)["bytes"] ?? 0
  }

  // MARK: Room

  /// The room of a sender; locked until the transaction ends where something is to be taken of it.
  static func room(
    of sender: String, _ connection: PostgresConnection, isLocked: Bool
  ) throws -> InboxRoom {
    if isLocked {
      try PostgresSchema.lockRoom(connection)
      _ = try connection.query("SELECT 1 FROM lazaret.senders WHERE name = $1 FOR UPDATE", [.text(sender)])
    }
    let result = try connection.query(
      """
      SELECT (SELECT quota FROM lazaret.senders WHERE name = $1), (SELECT used FROM lazaret.senders WHERE name = $1),
        (SELECT coalesce(sum(n), 0)::bigint FROM lazaret.tallies WHERE kind = 'used' AND name = 'bytes')
      """, [.text(sender)])
    return InboxRoom(
      quota: try result.maybeInteger(0, 0) ?? 0, used: try result.maybeInteger(0, 1) ?? 0,
      totalUsed: try result.integer(0, 2))
  }

  package func room(of sender: String, totalBytes: Int64) throws(InboxError) -> Int64 {
    try database.readOnce("look for room") { connection in
      try Self.room(of: sender, connection, isLocked: false).left(of: totalBytes)
    }
  }

  package func place(_ bytes: Int64, of bundle: String, totalBytes: Int64?) throws(InboxError) -> Bool {
    try database.write("note what is placed", isRepeatable: true, tells: false) { connection in
      // Before the bundle, as everywhere.
      if totalBytes != nil { try PostgresSchema.lockRoom(connection) }
      let result = try connection.query(
        "SELECT sender, coalesce(placed, 0) FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(bundle)])
      guard result.count > 0 else { return true }
      let (sender, before) = (try result.text(0, 0), try result.integer(0, 1))
      if let totalBytes, bytes > before {
        guard bytes - before <= (try Self.room(of: sender, connection, isLocked: true).left(of: totalBytes)) else {
          return false
        }
      }
      _ = try connection.query(
        "UPDATE lazaret.bundles SET placed = $1 WHERE id = $2", [.integer(bytes), .text(bundle)])
      return true
    }
  }

  package func placed(of bundle: String) throws(InboxError) -> Int64? {
    try database.readOnce("look what is placed") { connection in
      let result = try connection.query("SELECT placed FROM lazaret.bundles WHERE id = $1", [.text(bundle)])
      return result.count > 0 ? try result.maybeInteger(0, 0) : nil
    }
  }
}
