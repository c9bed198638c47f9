import HTTPServer
import RecordBrowsing

/// The addresses that many rows of a table lead to, of which only the last part differs.
struct RecordLinks {
  private let place: RecordPlace
  private let collection: RecordCollection
  private let own: HTML
  private var others: [String: HTML?] = [:]
  private var columns: [String: HTML] = [:]

  init(_ place: RecordPlace, _ collection: RecordCollection) {
    self.place = place
    self.collection = collection
    own = "\(place.records(collection.name))/"
  }

  /// The address of a record of the table; keys have no character that an address would have to encode.
  func record(_ key: RecordKey) -> HTML { "\(own)\(key.description)" }

  /// The address of a record of another collection; nil where there is no such collection.
  mutating func record(_ key: String, in destination: String) -> HTML? {
    if let known = others[destination] { return known.map { "\($0)\(key)" } }
    let isThere = place.opened.store.collections.contains { $0.name == destination }
    let prefix: HTML? = isThere ? "\(place.records(destination))/" : nil
    others[destination] = prefix
    return prefix.map { "\($0)\(key)" }
  }

  /// The address of a value's own page.
  mutating func view(_ column: String, of key: RecordKey) -> HTML {
    let suffix = columns[column] ?? "/values/\(PercentEncoding.encode(collection.segment(column)))/view"
    columns[column] = suffix
    return "\(own)\(key.description)\(suffix)"
  }
}
