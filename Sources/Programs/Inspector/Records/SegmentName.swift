import HTTPServer
import RecordBrowsing

/// The name of an entity, a table or a property as a segment of an address.
///
/// Names that no segment can have, with slashes or control characters in them, stand there by their place in the list: `~n3`.
enum SegmentName {
  /// The segment for a name at a place of a list.
  static func segment(_ name: String, at index: Int?) -> String {
    let isPlain = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20 && scalar.value != 0x7F && scalar != "/" && scalar != "\\"
    }
    let isUsable = !["", ".", ".."].contains(name) && !name.hasPrefix("~") && name.utf8.count <= 200
    return isPlain && isUsable ? name : "~n\(index ?? 0)"
  }

  /// The place in a list of names that a segment stands for; nil where there is none.
  static func index(of segment: String, in names: [String]) -> Int? {
    if segment.hasPrefix("~n"), let index = Int(segment.dropFirst(2)), names.indices.contains(index) { return index }
    return names.firstIndex(of: segment)
  }
}

extension BrowsedStore {
  /// The segment of an address for a collection.
  func segment(_ name: String) -> String {
    SegmentName.segment(name, at: collections.firstIndex { $0.name == name })
  }

  /// The collection that a segment of an address stands for.
  ///
  /// - Throws: `unknown-entity`.
  func collection(segment: String) throws -> RecordCollection {
    guard let index = SegmentName.index(of: segment, in: collections.map(\.name)) else {
      return try collection(segment)
    }
    return collections[index]
  }
}

extension RecordCollection {
  /// The segment of an address for a column.
  func segment(_ column: String) -> String {
    SegmentName.segment(column, at: columns.firstIndex { $0.name == column })
  }

  /// The column that a segment of an address stands for; nil where there is none.
  func column(segment: String) -> RecordColumn? {
    SegmentName.index(of: segment, in: columns.map(\.name)).map { columns[$0] }
  }
}
