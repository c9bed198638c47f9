/// The expression of a derived attribute, as far as triggers are made for it.
package enum DerivationExpression: Hashable {
  /// `now()`: the time of the save.
  case now

  /// A key path: `name`, or `author.name` through a to-one relationship.
  case keyPath([String])

  /// A function of one key path: `count:(pages)`, `sum:(pages.number)`, `lowercase:(name)`.
  case function(String, [String])

  /// Reads an expression as it is typed in a model (`pages.@count`) or printed by a compiled one (`count:(pages)`).
  ///
  /// Nil for everything else.
  package init?(_ text: String) {
    guard text.utf8.count <= 4096 else { return nil }
    let text = text.filter { $0 != " " }
    if text == "now()" {
      self = .now
      return
    }
    if let opening = text.firstIndex(of: "("), text.hasSuffix(")") {
      let name = text[..<opening]
      let argument = text[text.index(after: opening)...].dropLast()
      guard name.hasSuffix(":"), let path = Self.keyPath(argument) else { return nil }
      self = .function(String(name.dropLast()), path)
      return
    }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    if let position = parts.firstIndex(where: { $0.hasPrefix("@") }) {
      let rest = Array(parts[..<position] + parts[(position + 1)...])
      guard !rest.isEmpty, rest.allSatisfy(Self.isName) else { return nil }
      self = .function(String(parts[position].dropFirst()), rest)
    } else if let path = Self.keyPath(text[...]) {
      self = .keyPath(path)
    } else {
      return nil
    }
  }

  private static func keyPath(_ text: Substring) -> [String]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return parts.allSatisfy(isName) ? parts : nil
  }

  private static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
  }
}
