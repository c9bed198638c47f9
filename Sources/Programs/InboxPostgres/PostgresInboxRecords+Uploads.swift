package import Inbox
package import StoreFiles

extension PostgresInboxRecords {
  package func admit(
    _ upload: InboxUpload, quota: Int64, limits: InboxLimits
  ) throws(InboxError) -> InboxAdmission {
    try database.write("begin the upload", isRepeatable: false, tells: false) { connection in
      if let known = try Self.known(upload, connection) { return .known(known) }
      var room = try Self.room(of: upload.sender, connection, isLocked: true)
      room.quota = quota
      // Another process may have had the same file finished while this one waited for the lock.
      if let known = try Self.known(upload, connection) { return .known(known) }
      let open = try connection.query(
        "SELECT count(*) FROM lazaret.uploads WHERE state = 'open' AND sender = $1", [.text(upload.sender)])
      let admission = room.admission(of: upload, open: Int(try open.integer(0, 0)), limits)
      if admission == .begun { try Self.insert(upload, connection) }
      return admission
    }
  }

  /// The upload that became a bundle of the same content; where that was forgotten, the one that is announced takes its place.
  private static func known(_ upload: InboxUpload, _ connection: PostgresConnection) throws -> InboxUpload? {
    guard let sum = upload.sha256 else { return nil }
    // It stays until the upload is noted; that it was sent again is for retention.
    let bundles = try connection.query(
      """
      UPDATE lazaret.bundles SET received = greatest(coalesce(received, date), $4)
        WHERE sender = $1 AND sha256 = $2 AND bytes = $3 RETURNING id
      """, [.text(upload.sender), .text(sum), .integer(upload.length), .text(upload.created)])
    guard bundles.count > 0 else { return nil }
    let bundle = try bundles.text(0, 0)
    let uploads = try connection.query(
      """
      SELECT content FROM lazaret.uploads WHERE bundle = $1 AND sender = $2 AND state = 'finished' ORDER BY ordinal LIMIT 1
      """,
      [.text(bundle), .text(upload.sender)])
    if uploads.count > 0 { return try InboxRecordText.value(InboxUpload.self, try uploads.text(0, 0)) }
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
        .maybe(upload.bundle), .integer(upload.expires), .text(try InboxRecordText.text(upload)),
      ])
  }

  package func pruneUploads(at date: Timestamp) throws(InboxError) {
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

  package func upload(_ id: String) throws(InboxError) -> InboxUpload? {
    try database.readOnce("look for the upload") { connection in
      let result = try connection.query("SELECT content FROM lazaret.uploads WHERE id = $1", [.text(id)])
      return result.count > 0 ? try InboxRecordText.value(InboxUpload.self, try result.text(0, 0)) : nil
    }
  }

  /// An upload that no other transaction changes until this one ends.
  private static func locked(_ id: String, _ connection: PostgresConnection) throws -> InboxUpload? {
    let result = try connection.query("SELECT content FROM lazaret.uploads WHERE id = $1 FOR UPDATE", [.text(id)])
    return result.count > 0 ? try InboxRecordText.value(InboxUpload.self, try result.text(0, 0)) : nil
  }

  private func change(
    _ operation: String, _ id: String, _ change: (inout InboxUpload) -> Void
  ) throws(InboxError) {
    try database.write(operation, isRepeatable: true, tells: false) { connection in
      guard var upload = try Self.locked(id, connection) else { return }
      change(&upload)
      try Self.save(upload, connection)
    }
  }

  static func save(_ upload: InboxUpload, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      "UPDATE lazaret.uploads SET state = $1, bundle = $2, expires = $3, content = $4 WHERE id = $5",
      [
        .text(upload.state.rawValue), .maybe(upload.bundle), .integer(upload.expires),
        .text(try InboxRecordText.text(upload)), .text(upload.id),
      ])
  }

  package func advance(_ id: String, to offset: Int64, expires: Timestamp) throws(InboxError) {
    try change("note how much has come", id) { upload in
      upload.offset = offset
      upload.expires = expires.secondsSince1970
    }
  }

  @discardableResult
  package func drop(_ id: String) throws(InboxError) -> Bool {
    try database.write("end the upload", isRepeatable: true, tells: false) { connection in
      guard var upload = try Self.locked(id, connection), upload.state == .open else { return false }
      upload.state = .dropped
      try Self.save(upload, connection)
      return true
    }
  }

  package func openUploads(limit: Int?) throws(InboxError) -> [InboxUpload] {
    try database.readOnce("list the uploads") { connection in
      // A limit of null is none.
      try connection.query(
        "SELECT content FROM lazaret.uploads WHERE state = 'open' ORDER BY ordinal LIMIT $1",
        [limit.map { .integer(Int64(max(0, $0))) } ?? .null]
      ).map { try InboxRecordText.value(InboxUpload.self, try $0.text($1, 0)) }
    }
  }

  package func openUploads(after id: String?, limit: Int) throws(InboxError) -> [InboxUpload] {
    try database.readOnce("list the uploads") { connection in
      try connection.query(
        "SELECT content FROM lazaret.uploads WHERE state = 'open' AND id > $1 ORDER BY id LIMIT $2",
        [.text(id ?? ""), .integer(Int64(max(0, limit)))]
      ).map { try InboxRecordText.value(InboxUpload.self, try $0.text($1, 0)) }
    }
  }

  package func finish(_ id: String, as bundle: InboxBundle) throws(InboxError) -> InboxBundle {
    try database.write("note the bundle", isRepeatable: true) { connection in
      let over = InboxError.noBundle("note the bundle")
      guard var upload = try Self.locked(id, connection) else { throw over }
      switch upload.state {
      case .open: break
      case .finished:
        guard let known = upload.bundle, let bundle = try Self.bundle(known, connection) else { throw over }
        return bundle
      case .dropped: throw over
      }
      let kept = try Self.insert(bundle, connection) ? bundle : try Self.same(as: bundle, connection)
      upload.finish(as: kept.id)
      try Self.save(upload, connection)
      return kept
    }
  }
}
