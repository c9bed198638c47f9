/// The kind of value that a column prefers (SQLite, "Datatypes In SQLite", section 3.1).
public enum Affinity: String, Sendable, Hashable {
  /// Integers, then reals.
  case integer

  /// Text.
  case text

  /// Values as they are.
  case blob

  /// Reals, even where an integer was stored to save space.
  case real

  /// Numbers where text looks like one.
  case numeric

  /// The affinity of a declared type.
  public init(declaredType: String) {
    let type = declaredType.utf8.map(lowercased)
    func has(_ part: String) -> Bool {
      let part = Array(part.utf8)
      return type.count >= part.count
        && (0...(type.count - part.count)).contains { type[$0..<($0 + part.count)].elementsEqual(part) }
    }
    if has("int") {
      self = .integer
    } else if has("char") || has("clob") || has("text") {
      self = .text
    } else if has("blob") || type.isEmpty {
      self = .blob
    } else if has("real") || has("floa") || has("doub") {
      self = .real
    } else {
      self = .numeric
    }
  }
}
