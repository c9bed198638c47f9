package import SQLiteFormat

/// A structure of a store whose content is made of rows, and that nothing has held against them.
package struct Unchecked: Sendable, Hashable, Encodable {
  /// What it is.
  package enum Kind: String, Sendable, Hashable, Encodable {
    /// A full-text index, of the modules fts3 to fts5.
    case fullText = "full-text"

    case rTree = "r-tree"

    /// A virtual table of another module.
    case virtualTable = "virtual-table"

    /// An index of an expression, with a condition that is not simple, or of a table without rowids.
    case index
  }

  /// What it is.
  package var kind: Kind

  /// Its name.
  package var name: String

  /// The virtual tables of a schema: what their modules have made of rows is not looked at.
  package static func all(in schema: Schema) -> [Unchecked] {
    schema.tables.compactMap { table in
      guard let module = table.tableDefinition?.module?.lowercased() else { return nil }
      let kind: Kind =
        module.hasPrefix("fts") ? .fullText : module.hasPrefix("rtree") || module == "geopoly" ? .rTree : .virtualTable
      return Unchecked(kind: kind, name: table.name)
    }
  }

  /// `full-text index doc`.
  package var words: String {
    let name = printableName(name)
    return switch kind {
    case .fullText: "full-text index \(name)"
    case .rTree: "R-tree \(name)"
    case .virtualTable: "virtual table \(name)"
    case .index: "index \(name)"
    }
  }

  /// `Not checked: full-text index doc, index byName.`; nil for none.
  package static func words(_ list: [Unchecked]) -> String? {
    guard !list.isEmpty else { return nil }
    let shown = list.prefix(5).map(\.words).joined(separator: ", ")
    return "Not checked: \(shown)\(list.count > 5 ? " and \(list.count - 5) more" : "")."
  }
}
