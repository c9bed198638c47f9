internal import Platform

/// An inbox's records on a PostgreSQL server.
///
/// The lock order prevents deadlocks: the inbox's room, a bundle, an upload, its sender.
struct PostgresInboxRecords: InboxRecords {
  let database: PostgresDatabase

  // MARK: Senders

  func add(_ sender: InboxSender, tokenSum: [UInt8]) throws(InboxError) {
    try sender.checkName()
    try database.write("add a sender", isRepeatable: false) { connection in
      let added = try connection.query(
        """
        INSERT INTO lazaret.senders (name, quota, token, created) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING
        """, [.text(sender.name), .integer(sender.quota), .bytes(tokenSum), .integer(sender.created.secondsSince1970)])
      guard added.changed == 1 else { throw InboxError.senderExists }
    }
  }

  func senders(after name: String?, limit: Int) throws(InboxError) -> [InboxSenderUsage] {
    try database.readOnce("list the senders") { connection in
      try connection.query(
        """
        SELECT name, quota, created, revoked, used FROM lazaret.senders WHERE name > coalesce($1, '') ORDER BY name LIMIT $2
        """, [.maybe(name), .limit(limit)]
      ).map { InboxSenderUsage(sender: try Self.sender($0, $1), used: try $0.integer($1, 4)) }
    }
  }

  func sender(withTokenSum sum: [UInt8]) throws(InboxError) -> (sum: [UInt8], sender: InboxSender)? {
    try database.readOnce("look for the sender") { connection in
      try connection.query(
        "SELECT name, quota, created, revoked, token FROM lazaret.senders WHERE token = $1 AND revoked IS NULL",
        [.bytes(sum)]
      ).map { (sum: try $0.binary($1, 4), sender: try Self.sender($0, $1)) }.first
    }
  }

  private static func sender(_ result: borrowing PostgresResult, _ row: Int) throws -> InboxSender {
    InboxSender(
      name: try result.text(row, 0), quota: try result.integer(row, 1),
      created: Timestamp(secondsSince1970: try result.integer(row, 2)),
      revoked: try result.maybeInteger(row, 3).map { Timestamp(secondsSince1970: $0) })
  }

  func revokeSender(_ name: String, at date: Timestamp) throws(InboxError) {
    try database.write("revoke a token", isRepeatable: true) { connection in
      let revoked = try connection.query(
        "UPDATE lazaret.senders SET revoked = coalesce(revoked, $1) WHERE name = $2",
        [.integer(date.secondsSince1970), .text(name)])
      guard revoked.changed > 0 else { throw InboxError.senderUnknown }
    }
  }

  func usage() throws(InboxError) -> [String: Int64] {
    try database.readOnce("add up what is kept") { connection in
      // Names that differ in the database may be equal in Swift: é is one code point or two.
      Dictionary(
        try connection.query("SELECT name, used FROM lazaret.senders WHERE used <> 0")
          .map { (try $0.text($1, 0), try $0.integer($1, 1)) }, uniquingKeysWith: +)
    }
  }

  func usedBytes() throws(InboxError) -> Int64 { try database.counts("used")["bytes"] ?? 0 }

  // MARK: Room

  /// A sender's room, locked for the transaction if some is to be taken.
  static func room(of sender: String, _ connection: PostgresConnection, isLocked: Bool) throws -> InboxRoom {
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

  func room(of sender: String, totalBytes: Int64) throws(InboxError) -> Int64 {
    try database.readOnce("look for room") { connection in
      try Self.room(of: sender, connection, isLocked: false).left(of: totalBytes)
    }
  }

  func place(_ bytes: Int64, of bundle: String, totalBytes: Int64?) throws(InboxError) -> Bool {
    try database.write("note what is placed", isRepeatable: true, tells: false) { connection in
      // Before the bundle, by the lock order.
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

  func placed(of bundle: String) throws(InboxError) -> Int64? {
    try database.readOnce("look what is placed") { connection in
      let result = try connection.query("SELECT placed FROM lazaret.bundles WHERE id = $1", [.text(bundle)])
      return result.count > 0 ? try result.maybeInteger(0, 0) : nil
    }
  }

  // MARK: Lists

  func entries(_ filter: InboxFilter, after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxEntry> {
    // Only requested conditions, planned for these values, so that an index can serve.
    var (conditions, values) = (["true"], [PostgresValue]())
    func place(_ value: PostgresValue) -> String {
      values.append(value)
      return "$\(values.count)"
    }
    if let key { conditions.append("(date, id) < (\(place(.text(key.date))), \(place(.text(key.id))))") }
    // PostgreSQL cannot store it, so no row matches.
    if let group = filter.group { conditions.append("damage = \(place(.shown(group)))") }
    if let state = filter.state { conditions.append("state = \(place(.text(state.rawValue)))") }
    if let sender = filter.sender { conditions.append("sender = \(place(.shown(sender)))") }
    let pattern = filter.words.isEmpty ? nil : place(.shown("%\(Self.escaped(filter.words.lowercased()))%"))
    let most = place(.integer(Int64(max(0, limit)) + 1))
    let all = conditions.joined(separator: " AND ")
    return try database.readOnce("list the bundles") { connection in
      let isFoundByIndex = try pattern == nil || filter.hasThreeLetters && Self.hasIndexOfWords(connection)
      let looked: String
      if let pattern, !isFoundByIndex {
        looked = """
          looked AS MATERIALIZED (
            SELECT id, date, words FROM lazaret.bundles WHERE \(all) ORDER BY date DESC, id DESC LIMIT \(PostgresDatabase.maximumLooked)
          ), edge AS (
            SELECT date, id FROM looked WHERE (SELECT count(*) FROM looked) = \(PostgresDatabase.maximumLooked) ORDER BY date, id LIMIT 1
          ), page AS MATERIALIZED (
            SELECT id, date FROM looked WHERE words LIKE \(pattern) ORDER BY date DESC, id DESC LIMIT \(most)
          )
          """
      } else {
        let words = pattern.map { " AND words LIKE \($0)" } ?? ""
        looked = """
          edge AS (SELECT NULL::text AS date, NULL::text AS id), page AS MATERIALIZED (
            SELECT id, date FROM lazaret.bundles WHERE \(all)\(words) ORDER BY date DESC, id DESC LIMIT \(most)
          )
          """
      }
      let result = try connection.query(
        """
        WITH \(looked) SELECT \(PostgresJobQueue.columns), bundles.summary, page.id, edge.date, edge.id
          FROM (SELECT 1) AS one LEFT JOIN edge ON true LEFT JOIN page ON true
          LEFT JOIN lazaret.bundles ON bundles.id = page.id LEFT JOIN lazaret.jobs ON jobs.bundle = page.id
          ORDER BY page.date DESC, page.id DESC, jobs.id
        """, values, isPlannedAnew: true)
      return try Self.entries(result, limit: limit)
    }
  }

  /// Decodes rows with a job, a bundle and the last bundle visited.
  private static func entries(_ result: borrowing PostgresResult, limit: Int) throws -> InboxList<InboxEntry> {
    let count = PostgresJobQueue.columnCount
    var entries: [InboxEntry] = []
    var edge: InboxKey?
    for row in 0..<result.count {
      if let date = try result.maybeText(row, count + 2) {
        edge = InboxKey(date: date, id: try result.text(row, count + 3))
      }
      guard let id = try result.maybeText(row, count + 1) else { continue }
      if entries.last?.bundle.id != id { entries.append(InboxEntry(bundle: try result.json(row, count), jobs: [])) }
      if let job = try PostgresJobQueue.job(result, row) { entries[entries.count - 1].jobs.append(job) }
    }
    return InboxList(entries, limit: limit, edge: edge, key: \.key)
  }

  /// Whether a trigram index serves the search.
  private static func hasIndexOfWords(_ connection: PostgresConnection) throws -> Bool {
    try connection.query("SELECT to_regclass('lazaret.bundles_by_words') IS NOT NULL").text(0, 0) == "t"
  }

  // MARK: Retention

  func retentionCandidates(after key: InboxKey?, newer: Int, limit: Int) throws(InboxError) -> [RetentionCandidate] {
    try database.readOnce("look what is kept") { connection in
      try Self.candidates(
        "(date, id) > ($2, $3) ORDER BY date, id LIMIT $4",
        [.text(key?.date ?? ""), .text(key?.id ?? ""), .limit(limit)], newer: newer, connection)
    }
  }

  /// Bundles for the retention rules.
  ///
  /// - Parameters:
  ///   - condition: selection and order in SQL, with values from `$2`.
  ///   - newer: the most newer ones to count.
  private static func candidates(
    _ condition: String, _ values: [PostgresValue], newer: Int, _ connection: PostgresConnection
  ) throws -> [RetentionCandidate] {
    try connection.query(
      """
      SELECT id, sender, date, sha256, damage, bytes + coalesce(placed, 0), (
          SELECT count(*) FROM (
            SELECT 1 FROM lazaret.bundles AS newer
              WHERE newer.damage = found.damage AND (newer.date, newer.id) > (found.date, found.id)
              AND (newer.state = 'quarantined' OR found.state <> 'quarantined') LIMIT $1
          ) AS counted
        ),
        state = 'received' OR EXISTS (
          SELECT 1 FROM lazaret.jobs WHERE jobs.bundle = found.id AND jobs.state IN ('waiting', 'running')
        ), coalesce(received, date)
        FROM lazaret.bundles AS found WHERE \(condition)
      """, [.limit(newer)] + values
    ).map { result, row in
      RetentionCandidate(
        id: try result.text(row, 0), sender: try result.text(row, 1), date: try result.text(row, 2),
        sha256: try result.text(row, 3), group: try result.maybeText(row, 4), bytes: try result.integer(row, 5),
        newer: Int(try result.integer(row, 6)), isAtWork: try result.text(row, 7) == "t",
        received: try result.text(row, 8))
    }
  }

  func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws(InboxError) -> InboxRemoval? {
    try database.write("remove the bundle", isRepeatable: false) { connection -> InboxRemoval? in
      // One removal at a time, so that newer bundles stay meanwhile. Batches lock the damage.
      try PostgresSchema.lockRemovals(connection)
      _ = try connection.query(
        "SELECT 1 FROM lazaret.damages WHERE damage = (SELECT damage FROM lazaret.bundles WHERE id = $1) FOR UPDATE",
        [.text(removal.bundle)])
      // Jobs first, as at a job's end. A concurrent restart waits and finds no bundle.
      let jobs = try connection.query(
        "SELECT state FROM lazaret.jobs WHERE bundle = $1 ORDER BY id FOR UPDATE", [.text(removal.bundle)]
      ).map { try $0.text($1, 0) }
      let found = try connection.query(
        "SELECT state FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(removal.bundle)]
      ).map { try $0.text($1, 0) }
      let bundles = try Self.candidates("id = $2", [.text(removal.bundle)], newer: newer, connection)
      guard let state = found.first, let bundle = bundles.first,
        !jobs.contains(where: { InboxJob.State(rawValue: $0).map { states.contains($0) } ?? true }),
        !states.contains(.waiting) || state != InboxBundle.State.received.rawValue, mayGo(bundle)
      else { return nil }
      let recorded = InboxRemoval(of: bundle, by: removal.rule, date: removal.date)
      _ = try connection.query(
        """
        INSERT INTO lazaret.removals (bundle, date, rule, sender, arrived, sha256, damage, bytes)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
          .text(recorded.bundle), .text(recorded.date), .text(recorded.rule.rawValue), .text(recorded.sender),
          .text(recorded.arrived), .text(recorded.sha256), .maybe(recorded.group), .integer(recorded.bytes),
        ])
      _ = try connection.query("DELETE FROM lazaret.jobs WHERE bundle = $1", [.text(recorded.bundle)])
      try Self.forget(recorded.bundle, connection)
      return recorded
    }
  }

  func removalsNotCleared() throws(InboxError) -> [String] {
    try database.readOnce("list what was removed") { connection in
      try connection.query("SELECT bundle FROM lazaret.removals WHERE NOT cleared ORDER BY number")
        .map { try $0.text($1, 0) }
    }
  }

  func noteCleared(_ bundle: String) throws(InboxError) {
    try database.write("note what was removed", isRepeatable: true, tells: false) { connection in
      _ = try connection.query(
        "UPDATE lazaret.removals SET cleared = true WHERE bundle = $1 AND NOT cleared", [.text(bundle)])
    }
  }

  func removals(after number: Int64?, limit: Int) throws(InboxError) -> [InboxRemoval] {
    try database.readOnce("list what was removed") { connection in
      try connection.query(
        """
        SELECT number, bundle, date, rule, sender, arrived, sha256, damage, bytes, cleared FROM lazaret.removals
          WHERE number < $1 ORDER BY number DESC LIMIT $2
        """, [.integer(number ?? .max), .limit(limit)]
      ).map { result, row -> InboxRemoval? in
        // A later software version may have more rules.
        guard let rule = InboxRemoval.Rule(rawValue: try result.text(row, 3)) else { return nil }
        return InboxRemoval(
          number: try result.integer(row, 0), bundle: try result.text(row, 1), date: try result.text(row, 2),
          rule: rule, sender: try result.text(row, 4), arrived: try result.text(row, 5),
          sha256: try result.text(row, 6), group: try result.maybeText(row, 7), bytes: try result.integer(row, 8),
          isCleared: try result.text(row, 9) == "t")
      }.compactMap(\.self)
    }
  }
}

/// The used room of a sender and the inbox.
struct InboxRoom: Sendable, Hashable {
  /// The sender's limit in bytes; 0 if unknown.
  var quota: Int64

  /// In bytes.
  var used: Int64

  /// In bytes.
  var totalUsed: Int64

  /// The bytes left, given the inbox's limit; 0 or less if full.
  func left(of totalBytes: Int64) -> Int64 { min(quota - used, totalBytes - totalUsed) }

  /// Decides whether a new upload may begin.
  ///
  /// - Parameter open: the sender's unfinished uploads.
  func admission(of upload: InboxUpload, open: Int, _ limits: InboxLimits) -> InboxAdmission {
    guard open < limits.openUploads else { return .tooMany }
    guard upload.length <= quota - used else { return .senderFull }
    return upload.length <= limits.totalBytes - totalUsed ? .begun : .full
  }
}
