internal import GRDB
internal import PersistentStore
internal import StoreFiles

extension BrowsedStore {
  /// Looks for text in every text property of every record.
  ///
  /// Entities are searched from the top of each hierarchy, so that a record is found once. Each collection has a time of
  /// its own, and what was found until then is told.
  ///
  /// - Parameters:
  ///   - text: what is looked for; letters of ASCII match in either case.
  ///   - perCollection: the most finds of one collection.
  package func search(_ text: String, perCollection: Int = 20) throws(RecordBrowsingError) -> StoreSearch {
    guard !text.isEmpty else { throw .badQuery("there is nothing to look for", hint: "Type a word.") }
    let sought = SoughtText(text)
    var result = StoreSearch(finds: [])
    for collection in collections where collection.entityNumbers == nil {
      let texts = collection.columns.filter(\.isText)
      guard !texts.isEmpty else { continue }
      let found = try finds(of: text, sought, in: collection, texts, limit: perCollection)
      if !found.records.isEmpty || found.isCut { result.finds.append(found) }
    }
    return result
  }

  private func finds(
    of text: String, _ sought: SoughtText, in collection: RecordCollection, _ texts: [RecordColumn], limit: Int
  ) throws(RecordBrowsingError) -> StoreSearch.Finds {
    let entity = collection.isEntity ? "Z_ENT" : "NULL"
    let which = texts.enumerated().map { "WHEN \(sought.condition(on: $1.sql, isNumbered: true)) THEN \($0)" }
      .joined(separator: " ")
    let own = collection.condition.map { "\($0) AND " } ?? ""
    let any = texts.map { sought.condition(on: $0.sql, isNumbered: true) }.joined(separator: " OR ")
    let sql = """
      SELECT \(collection.keySQL.joined(separator: ", ")), \(entity), CASE \(which) END, \
      \(texts.map(\.sql).joined(separator: ", ")) FROM \(collection.tableSQL) WHERE \(own)(\(any))
      ORDER BY \(collection.keySQL.joined(separator: ", ")) LIMIT \(limit + 1)
      """
    var result = StoreSearch.Finds(collection: collection.name, records: [], hasMore: false, isCut: false)
    let keys = collection.keySQL.count
    do throws(RecordBrowsingError) {
      // What was found before the time ran out is kept, so it is gathered outside of the reading.
      let gathered = Gathered()
      defer { result.records = gathered.finds }
      try read(limits.search) { database in
        let cursor = try database.wholeCursor(sql, sought.arguments)
        while let row = try cursor.next() {
          guard gathered.finds.count < limit else {
            gathered.hasMore = true
            return
          }
          let index: Int = row[keys + 1] ?? 0
          let value = row.whole(keys + 2 + index)
          gathered.finds.append(
            StoreSearch.Find(
              key: RecordKey((0..<keys).map { row.whole($0) }),
              entity: Int.fromDatabaseValue(row[keys]).flatMap { self.entityNames[$0] } ?? collection.name,
              column: texts[index].name, excerpt: Self.excerpt(of: text, in: String.fromDatabaseValue(value) ?? "")))
        }
      }
      result.hasMore = gathered.hasMore
    } catch {
      guard error.kind == .timeLimit else { throw error }
      result.isCut = true
    }
    return result
  }

  private final class Gathered {
    var finds: [StoreSearch.Find] = []
    var hasMore = false
  }

  /// The text around a find.
  static func excerpt(of needle: String, in text: String) -> String {
    let around = 60
    let folded = Array(text.unicodeScalars)
    let wanted = Array(needle.unicodeScalars).map(Self.lowered)
    guard folded.count > 2 * around, !wanted.isEmpty, wanted.count <= folded.count else {
      return String(text.prefix(2 * around))
    }
    var place = 0
    for start in 0...(folded.count - wanted.count)
    where wanted.indices.allSatisfy({ Self.lowered(folded[start + $0]) == wanted[$0] }) {
      place = start
      break
    }
    let first = max(0, place - around / 2)
    let last = min(folded.count, first + 2 * around)
    var result = String.UnicodeScalarView()
    result.append(contentsOf: folded[first..<last])
    return (first > 0 ? "…" : "") + String(result) + (last < folded.count ? "…" : "")
  }

  private static func lowered(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    ("A"..."Z").contains(scalar) ? Unicode.Scalar(UInt8(scalar.value) + 32) : scalar
  }
}
