internal import GRDB

extension SQLiteInboxRecords {
  /// In how many bundles words are looked for at a time: no index finds them.
  package static let maximumLooked = 10_000

  package func entries(
    _ filter: InboxFilter, after key: InboxKey?, limit: Int
  ) throws(InboxError) -> InboxList<InboxEntry> {
    // A text is bound up to its first NUL, which no name has: it would be another's name.
    guard ![filter.group, filter.sender].contains(where: { $0?.utf8.contains(0) == true }) else {
      return InboxList([InboxEntry](), limit: limit) { InboxKey(date: $0.bundle.date, id: $0.bundle.id) }
    }
    // Only what is asked for is in the statement, so that an index can serve it.
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
        ).map { try Self.entry(try InboxRecordText.value(InboxBundle.self, $0), database) }
        return InboxList(entries, limit: limit) { InboxKey(date: $0.bundle.date, id: $0.bundle.id) }
      }
      var entries: [InboxEntry] = []
      var edge: InboxKey?
      var looked = 0
      let content = try database.makeStatement(sql: "SELECT \(Self.summary) FROM bundles WHERE id = ?")
      let rows = try Row.fetchCursor(
        database, sql: "SELECT id, date, instr(words, ?) > 0 AS fits \(rest)",
        arguments: StatementArguments([words] + arguments + [Self.maximumLooked]))
      while entries.count < most, let row = try rows.next() {
        looked += 1
        if looked == Self.maximumLooked { edge = InboxKey(date: row["date"], id: row["id"]) }
        let id: String = row["id"]
        guard row["fits"], let text = try String.fetchOne(content, arguments: [id]) else { continue }
        entries.append(try Self.entry(try InboxRecordText.value(InboxBundle.self, text), database))
      }
      var list = InboxList(entries, limit: limit) { InboxKey(date: $0.bundle.date, id: $0.bundle.id) }
      list.next = list.next ?? edge
      return list
    }
  }

  /// A bundle without its files and without the account of its salvage.
  private static let summary = "json_set(json_remove(content, '$.account'), '$.files', json('[]'))"
}
