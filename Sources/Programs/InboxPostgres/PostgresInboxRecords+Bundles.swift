package import Inbox
internal import StoreFiles

extension PostgresInboxRecords {
  /// What pages of many bundles do not show, in a column of its own.
  private struct Details: Codable {
    var files: [InboxBundle.File]
    var account: BundleAccount?
  }

  /// A bundle as its columns have it: what lists show, and the rest.
  private static func texts(of bundle: InboxBundle) throws -> (summary: String, details: String) {
    var summary = bundle
    summary.files = []
    summary.account = nil
    let details = Details(files: bundle.files, account: bundle.account)
    return (try InboxRecordText.text(summary), try InboxRecordText.text(details))
  }

  /// Notes a bundle; false where the same one, or one of that name, is there.
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

  /// The bundle of the same sender and content, which was sent again.
  static func same(as bundle: InboxBundle, _ connection: PostgresConnection) throws -> InboxBundle {
    let result = try connection.query(
      """
      UPDATE lazaret.bundles SET received = greatest(coalesce(received, date), $4)
        WHERE sender = $1 AND sha256 = $2 AND bytes = $3 RETURNING summary, details
      """, [.text(bundle.sender), .text(bundle.sha256), .integer(bundle.bytes), .text(bundle.date)])
    // It was removed meanwhile: as if it had never been, and what is done is begun again.
    guard result.count > 0 else { throw PostgresFailure(.state("40001")) }
    return try Self.bundle(result, 0)
  }

  private static func bundle(_ result: borrowing PostgresResult, _ row: Int) throws -> InboxBundle {
    var bundle = try InboxRecordText.value(InboxBundle.self, try result.text(row, 0))
    let details = try InboxRecordText.value(Details.self, try result.text(row, 1))
    bundle.files = details.files
    bundle.account = details.account
    return bundle
  }

  package func bundleIDs() throws(InboxError) -> [String: Bool] {
    try database.readOnce("list the bundles") { connection in
      Dictionary(
        uniqueKeysWithValues: try connection.query("SELECT id, placed IS NOT NULL FROM lazaret.bundles")
          .map { (try $0.text($1, 0), try $0.text($1, 1) == "t") })
    }
  }

  package func bundleIDs(in state: InboxBundle.State) throws(InboxError) -> [String] {
    try database.readOnce("list the bundles") { connection in
      try connection.query(
        "SELECT id FROM lazaret.bundles WHERE state = $1 ORDER BY date, id", [.text(state.rawValue)]
      ).map { try $0.text($1, 0) }
    }
  }

  package func known(_ ids: [String]) throws(InboxError) -> Set<String> {
    try database.readOnce("look for bundles") { connection in
      Set(
        try connection.query("SELECT id FROM lazaret.bundles WHERE id = ANY($1::text[])", [.texts(ids)])
          .map { try $0.text($1, 0) })
    }
  }

  package func bundle(_ id: String) throws(InboxError) -> InboxBundle? {
    try database.readOnce("look for the bundle") { try Self.bundle(id, $0) }
  }

  /// A bundle; nil where there is none.
  static func bundle(_ id: String, _ connection: PostgresConnection) throws -> InboxBundle? {
    let result = try connection.query("SELECT summary, details FROM lazaret.bundles WHERE id = $1", [.text(id)])
    return result.count > 0 ? try Self.bundle(result, 0) : nil
  }

  package func entry(_ id: String) throws(InboxError) -> InboxEntry? {
    try database.read("look for the bundle") { connection in
      let result = try connection.query("SELECT summary, details FROM lazaret.bundles WHERE id = $1", [.text(id)])
      guard result.count > 0 else { return nil }
      return InboxEntry(bundle: try Self.bundle(result, 0), jobs: try PostgresJobQueue.jobs(of: id, connection))
    }
  }

  /// A text as `LIKE` takes it for itself.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      if ["\\", "%", "_"].contains(scalar) { escaped.append("\\") }
      escaped.unicodeScalars.append(scalar)
    }
  }

  package func bundleCount() throws(InboxError) -> Int { try bundleCounts().values.reduce(0, +) }

  package func bundleCounts() throws(InboxError) -> [InboxBundle.State: Int] {
    try PostgresTallies.counts("bundles", in: database).reduce(into: [:]) { counts, count in
      if let state = InboxBundle.State(rawValue: count.key), count.value > 0 { counts[state] = Int(count.value) }
    }
  }

  package func save(_ bundle: InboxBundle) throws(InboxError) {
    try database.write("note what became of the bundle", isRepeatable: true) { try Self.save(bundle, $0) }
  }

  private static func save(_ bundle: InboxBundle, _ connection: PostgresConnection) throws {
    let texts = try texts(of: bundle)
    _ = try connection.query(
      """
      UPDATE lazaret.bundles SET state = $1, damage = $2, words = $3, summary = $4, details = $5 WHERE id = $6
      """,
      [
        .text(bundle.state.rawValue), .maybe(bundle.fingerprint?.group), .shown(bundle.words), .text(texts.summary),
        .text(texts.details), .text(bundle.id),
      ])
  }

  /// Changes a bundle that is there, which no other transaction does meanwhile.
  static func change(
    _ id: String, _ connection: PostgresConnection, _ change: (inout InboxBundle) -> Void
  ) throws {
    let result = try connection.query(
      "SELECT summary, details FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(id)])
    guard result.count > 0 else { return }
    var bundle = try bundle(result, 0)
    change(&bundle)
    try save(bundle, connection)
  }

  package func change(_ id: String, _ change: (inout InboxBundle) -> Void) throws(InboxError) {
    try database.write("note what became of the bundle", isRepeatable: true) { try Self.change(id, $0, change) }
  }

  package func remove(_ bundle: String) throws(InboxError) {
    try database.write("forget the bundle", isRepeatable: true) { connection in
      _ = try connection.query("SELECT 1 FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(bundle)])
      try Self.forget(bundle, connection)
    }
  }

  /// Forgets a bundle, which is locked, and the uploads that became it.
  static func forget(_ bundle: String, _ connection: PostgresConnection) throws {
    let uploads = try connection.query(
      "SELECT content FROM lazaret.uploads WHERE bundle = $1 ORDER BY ordinal FOR UPDATE", [.text(bundle)]
    ).map { try InboxRecordText.value(InboxUpload.self, try $0.text($1, 0)) }
    for var upload in uploads {
      upload.state = .dropped
      upload.bundle = nil
      try Self.save(upload, connection)
    }
    _ = try connection.query("DELETE FROM lazaret.bundles WHERE id = $1", [.text(bundle)])
  }
}
