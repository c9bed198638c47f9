internal import Platform

extension PostgresInboxRecords {
  /// The fields that lists omit.
  private struct Details: Codable {
    var files: [InboxBundle.File]
    var account: BundleAccount?
  }

  private static func texts(of bundle: InboxBundle) throws -> (summary: String, details: String) {
    var summary = bundle
    summary.files = []
    summary.account = nil
    let details = Details(files: bundle.files, account: bundle.account)
    return (try InboxRecordText.text(summary), try InboxRecordText.text(details))
  }

  /// Inserts a bundle; false if its content or name exists.
  static func insert(_ bundle: InboxBundle, _ connection: PostgresConnection) throws -> Bool {
    let texts = try texts(of: bundle)
    return try connection.query(
      """
      INSERT INTO lazaret.bundles (id, sender, sha256, bytes, date, state, words, summary, details)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (sender, sha256, bytes) DO NOTHING
      """,
      [
        .text(bundle.id), .text(bundle.sender), .text(bundle.sha256), .integer(bundle.bytes), .text(bundle.date),
        .text(bundle.state.rawValue), .shown(bundle.words), .text(texts.summary), .text(texts.details),
      ]
    ).changed == 1
  }

  /// The existing bundle of a resent file.
  static func same(as bundle: InboxBundle, _ connection: PostgresConnection) throws -> InboxBundle {
    let result = try connection.query(
      """
      UPDATE lazaret.bundles SET received = greatest(coalesce(received, date), $4)
        WHERE sender = $1 AND sha256 = $2 AND bytes = $3 RETURNING summary, details
      """, [.text(bundle.sender), .text(bundle.sha256), .integer(bundle.bytes), .text(bundle.date)])
    // Removed meanwhile: retry as if it had never existed.
    guard result.count > 0 else { throw PostgresFailure(.state("40001")) }
    return try Self.bundle(result, 0)
  }

  private static func bundle(_ result: borrowing PostgresResult, _ row: Int) throws -> InboxBundle {
    var bundle: InboxBundle = try result.json(row, 0)
    let details: Details = try result.json(row, 1)
    bundle.files = details.files
    bundle.account = details.account
    return bundle
  }

  func bundleIDs() throws(InboxError) -> [String: Bool] {
    try database.readOnce("list the bundles") { connection in
      Dictionary(
        uniqueKeysWithValues: try connection.query("SELECT id, placed IS NOT NULL FROM lazaret.bundles")
          .map { (try $0.text($1, 0), try $0.text($1, 1) == "t") })
    }
  }

  func bundleIDs(in state: InboxBundle.State) throws(InboxError) -> [String] {
    try database.readOnce("list the bundles") { connection in
      try connection.query(
        "SELECT id FROM lazaret.bundles WHERE state = $1 ORDER BY date, id", [.text(state.rawValue)]
      ).map { try $0.text($1, 0) }
    }
  }

  func known(_ ids: [String]) throws(InboxError) -> Set<String> {
    try database.readOnce("look for bundles") { connection in
      Set(
        try connection.query("SELECT id FROM lazaret.bundles WHERE id = ANY($1::text[])", [.texts(ids)])
          .map { try $0.text($1, 0) })
    }
  }

  func bundle(_ id: String) throws(InboxError) -> InboxBundle? {
    try database.readOnce("look for the bundle") { try Self.bundle(id, $0) }
  }

  /// - Parameter isLocked: whether to lock its row for the transaction.
  private static func bundle(
    _ id: String, _ connection: PostgresConnection, isLocked: Bool = false
  ) throws -> InboxBundle? {
    try connection.query(
      "SELECT summary, details FROM lazaret.bundles WHERE id = $1\(isLocked ? " FOR UPDATE" : "")", [.text(id)]
    ).map { try bundle($0, $1) }.first
  }

  func entry(_ id: String) throws(InboxError) -> InboxEntry? {
    try database.read("look for the bundle") { connection in
      guard let bundle = try Self.bundle(id, connection) else { return nil }
      return InboxEntry(bundle: bundle, jobs: try PostgresJobQueue.jobs(of: id, connection))
    }
  }

  /// A text, literal in a `LIKE` pattern.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      if ["\\", "%", "_"].contains(scalar) { escaped.append("\\") }
      escaped.unicodeScalars.append(scalar)
    }
  }

  func bundleCounts() throws(InboxError) -> [InboxBundle.State: Int] {
    try database.counts("bundles").byState()
  }

  private static func save(_ bundle: InboxBundle, _ connection: PostgresConnection) throws {
    let texts = try texts(of: bundle)
    _ = try connection.query(
      "UPDATE lazaret.bundles SET state = $1, damage = $2, words = $3, summary = $4, details = $5 WHERE id = $6",
      [
        .text(bundle.state.rawValue), .maybe(bundle.fingerprint?.group), .shown(bundle.words), .text(texts.summary),
        .text(texts.details), .text(bundle.id),
      ])
  }

  /// Changes a bundle under its row lock.
  static func change(_ id: String, _ connection: PostgresConnection, _ change: (inout InboxBundle) -> Void) throws {
    guard var bundle = try bundle(id, connection, isLocked: true) else { return }
    change(&bundle)
    try save(bundle, connection)
  }

  func change(_ id: String, _ change: (inout InboxBundle) -> Void) throws(InboxError) {
    try database.write("note what became of the bundle", isRepeatable: true) { try Self.change(id, $0, change) }
  }

  func remove(_ bundle: String) throws(InboxError) {
    try database.write("forget the bundle", isRepeatable: true) { connection in
      _ = try connection.query("SELECT 1 FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(bundle)])
      try Self.forget(bundle, connection)
    }
  }

  /// Deletes a bundle and its uploads.
  static func forget(_ bundle: String, _ connection: PostgresConnection) throws {
    for var upload in try uploads("bundle = $1 ORDER BY ordinal FOR UPDATE", [.text(bundle)], connection) {
      upload.state = .dropped
      upload.bundle = nil
      try Self.save(upload, connection)
    }
    _ = try connection.query("DELETE FROM lazaret.bundles WHERE id = $1", [.text(bundle)])
  }

  // MARK: Uploads

  func admit(_ upload: InboxUpload, quota: Int64, limits: InboxLimits) throws(InboxError) -> InboxAdmission {
    try database.write("begin the upload", isRepeatable: false, tells: false) { connection in
      if let known = try Self.known(upload, connection) { return .known(known) }
      var room = try Self.room(of: upload.sender, connection, isLocked: true)
      room.quota = quota
      // Another process may have finished the same file during the wait for the lock.
      if let known = try Self.known(upload, connection) { return .known(known) }
      let open = try connection.query(
        "SELECT count(*) FROM lazaret.uploads WHERE state = 'open' AND sender = $1", [.text(upload.sender)])
      let admission = room.admission(of: upload, open: Int(try open.integer(0, 0)), limits)
      if admission == .begun { try Self.insert(upload, connection) }
      return admission
    }
  }

  /// The known bundle's upload; the new one replaces a forgotten one.
  private static func known(_ upload: InboxUpload, _ connection: PostgresConnection) throws -> InboxUpload? {
    guard let sum = upload.sha256 else { return nil }
    // Locked until the upload is recorded; retention counts the resend.
    let bundles = try connection.query(
      """
      UPDATE lazaret.bundles SET received = greatest(coalesce(received, date), $4)
        WHERE sender = $1 AND sha256 = $2 AND bytes = $3 RETURNING id
      """, [.text(upload.sender), .text(sum), .integer(upload.length), .text(upload.created)])
    guard bundles.count > 0 else { return nil }
    let bundle = try bundles.text(0, 0)
    let known = try uploads(
      "bundle = $1 AND sender = $2 AND state = 'finished' ORDER BY ordinal LIMIT 1",
      [.text(bundle), .text(upload.sender)], connection)
    if let known = known.first { return known }
    var upload = upload
    upload.finish(as: bundle)
    try insert(upload, connection)
    return upload
  }

  private static func insert(_ upload: InboxUpload, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      """
      INSERT INTO lazaret.uploads (id, sender, length, state, bundle, expires, content) VALUES ($1, $2, $3, $4, $5, $6, $7)
      """,
      [
        .text(upload.id), .text(upload.sender), .integer(upload.length), .text(upload.state.rawValue),
        .maybe(upload.bundle), .integer(upload.expires), .json(upload),
      ])
  }

  func pruneUploads(at date: Timestamp) throws(InboxError) {
    try database.write("forget old uploads", isRepeatable: true, tells: false) { connection in
      _ = try connection.query(
        "DELETE FROM lazaret.uploads WHERE state <> 'open' AND expires <= $1", [.integer(date.secondsSince1970)])
      _ = try connection.query(
        """
        DELETE FROM lazaret.uploads USING lazaret.senders, LATERAL (
            SELECT ordinal FROM lazaret.uploads AS kept WHERE kept.sender = senders.name AND kept.state <> 'open'
              ORDER BY ordinal DESC OFFSET $1 LIMIT 1
          ) AS first
          WHERE uploads.sender = senders.name AND uploads.state <> 'open' AND uploads.ordinal <= first.ordinal
        """, [.integer(Int64(InboxUpload.maximumEnded))])
    }
  }

  func upload(_ id: String) throws(InboxError) -> InboxUpload? {
    try database.readOnce("look for the upload") { try Self.uploads("id = $1", [.text(id)], $0).first }
  }

  /// Locks an upload for the transaction.
  private static func locked(_ id: String, _ connection: PostgresConnection) throws -> InboxUpload? {
    try uploads("id = $1 FOR UPDATE", [.text(id)], connection).first
  }

  /// - Parameter condition: selection and order in SQL.
  private static func uploads(
    _ condition: String, _ values: [PostgresValue], _ connection: PostgresConnection
  ) throws -> [InboxUpload] {
    try connection.query("SELECT content FROM lazaret.uploads WHERE \(condition)", values)
      .map { try $0.json($1, 0) }
  }

  @discardableResult
  func changeUpload(
    _ id: String, to operation: String, _ change: (inout InboxUpload) -> Bool
  ) throws(InboxError) -> Bool {
    try database.write(operation, isRepeatable: true, tells: false) { connection in
      guard var upload = try Self.locked(id, connection), change(&upload) else { return false }
      try Self.save(upload, connection)
      return true
    }
  }

  private static func save(_ upload: InboxUpload, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      "UPDATE lazaret.uploads SET state = $1, bundle = $2, expires = $3, content = $4 WHERE id = $5",
      [.text(upload.state.rawValue), .maybe(upload.bundle), .integer(upload.expires), .json(upload), .text(upload.id)])
  }

  func openUploads(limit: Int) throws(InboxError) -> [InboxUpload] {
    try database.readOnce("list the uploads") { connection in
      try Self.uploads("state = 'open' ORDER BY ordinal LIMIT $1", [.limit(limit)], connection)
    }
  }

  func openUploads(after id: String?, limit: Int) throws(InboxError) -> [InboxUpload] {
    try database.readOnce("list the uploads") { connection in
      try Self.uploads("state = 'open' AND id > $1 ORDER BY id LIMIT $2", [.text(id ?? ""), .limit(limit)], connection)
    }
  }

  func makeBundle(_ bundle: InboxBundle, of id: String) throws(InboxError) -> InboxBundle {
    try database.write("note the bundle", isRepeatable: true) { connection in
      let over = InboxError.noBundle("note the bundle")
      guard var upload = try Self.locked(id, connection), upload.state != .dropped else { throw over }
      if upload.state == .finished {
        guard let known = upload.bundle, let bundle = try Self.bundle(known, connection) else { throw over }
        return bundle
      }
      let kept = try Self.insert(bundle, connection) ? bundle : try Self.same(as: bundle, connection)
      upload.finish(as: kept.id)
      try Self.save(upload, connection)
      return kept
    }
  }
}
