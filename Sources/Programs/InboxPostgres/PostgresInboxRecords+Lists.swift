package import Inbox

extension PostgresInboxRecords {
  /// In how many bundles words are looked for at a time that no index finds.
  package static let maximumLooked = 2000

  package func entries(
    _ filter: InboxFilter, after key: InboxKey?, limit: Int
  ) throws(InboxError) -> InboxList<InboxEntry> {
    // Only what is asked for is in the statement, and it is planned for these values, so that an index can serve it.
    var (conditions, values) = (["true"], [PostgresValue]())
    func place(_ value: PostgresValue) -> String {
      values.append(value)
      return "$\(values.count)"
    }
    if let key { conditions.append("(date, id) < (\(place(.text(key.date))), \(place(.text(key.id))))") }
    // A name that PostgreSQL cannot keep is one that no row has.
    if let group = filter.group { conditions.append("damage = \(place(.shown(group)))") }
    if let state = filter.state { conditions.append("state = \(place(.text(state.rawValue)))") }
    if let sender = filter.sender { conditions.append("sender = \(place(.shown(sender)))") }
    let pattern =
      filter.words.isEmpty ? nil : place(.shown("%\(Self.escaped(filter.words.lowercased()))%"))
    let most = place(.integer(Int64(max(0, limit)) + 1))
    let all = conditions.joined(separator: " AND ")
    return try database.readOnce("list the bundles") { connection in
      let isFoundByIndex = try pattern == nil || filter.hasThreeLetters && Self.hasIndexOfWords(connection)
      let looked: String
      if let pattern, !isFoundByIndex {
        looked = """
          looked AS MATERIALIZED (
            SELECT id, date, words FROM lazaret.bundles WHERE \(all) ORDER BY date DESC, id DESC LIMIT \(Self.maximumLooked)
          ), edge AS (
            SELECT date, id FROM looked WHERE (SELECT count(*) FROM looked) = \(Self.maximumLooked) ORDER BY date, id LIMIT 1
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

  /// The entries of rows with a job, a bundle and the last bundle that was looked at.
  private static func entries(_ result: borrowing PostgresResult, limit: Int) throws -> InboxList<InboxEntry> {
    let count = PostgresJobQueue.columnCount
    var entries: [InboxEntry] = []
    var edge: InboxKey?
    for row in 0..<result.count {
      if let date = try result.maybeText(row, count + 2) {
        edge = InboxKey(date: date, id: try result.text(row, count + 3))
      }
      guard let id = try result.maybeText(row, count + 1) else { continue }
      if entries.last?.bundle.id != id {
        let bundle = try InboxRecordText.value(InboxBundle.self, try result.text(row, count))
        entries.append(InboxEntry(bundle: bundle, jobs: []))
      }
      if let job = try PostgresJobQueue.job(result, row) { entries[entries.count - 1].jobs.append(job) }
    }
    var list = InboxList(entries, limit: limit) { InboxKey(date: $0.bundle.date, id: $0.bundle.id) }
    list.next = list.next ?? edge
    return list
  }

  /// Whether words are found by their groups of three letters.
  private static func hasIndexOfWords(_ connection: PostgresConnection) throws -> Bool {
    try connection.query("SELECT to_regclass('lazaret.bundles_by_words') IS NOT NULL").text(0, 0) == "t"
  }
}
