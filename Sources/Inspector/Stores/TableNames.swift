import Salvage

/// The displayed names of tables and indexes.
struct TableNames: Sendable {
  /// The entities by uppercase table name.
  private let entities: [String: String]
  private let isCoreData: Bool

  init(_ report: SalvageReport) {
    isCoreData = report.isCoreData
    var names: [String: [String]] = [:]
    for entity in report.entities where entity.name != entity.table {
      names[entity.table.uppercased(), default: []].append(entity.name)
    }
    entities = names.reduce(into: [:]) { $0[$1.key] = Self.root($1.value, of: $1.key) }
  }

  /// The entity that the table is named after, else the first.
  private static func root(_ names: [String], of table: String) -> String {
    if let own = names.first(where: { "Z" + $0.uppercased() == table }) { return own }
    return names.count > 1 ? "\(names.min() ?? "") and others" : names.first ?? table
  }

  func words(_ owner: PageStates.Owner) -> String {
    guard owner.isIndex else { return table(owner.name) }
    if owner.name.lowercased().hasPrefix("sqlite_autoindex_") { return "key of \(table(owner.table))" }
    return "index \(indexName(owner)) of \(table(owner.table))"
  }

  /// Returns a table's entity or role in Core Data.
  func table(_ name: String) -> String {
    let key = name.uppercased()
    if key == "SQLITE_SCHEMA" || key == "SQLITE_MASTER" { return "the schema" }
    guard isCoreData else { return name }
    if let entity = entities[key] { return entity }
    switch key {
    case "Z_METADATA": return "Core Data's metadata"
    case "Z_PRIMARYKEY": return "Core Data's highest keys"
    case "Z_MODELCACHE": return "Core Data's copy of the model"
    case "ACHANGE": return "Core Data's history: changes"
    case "ATRANSACTION": return "Core Data's history: transactions"
    case "ATRANSACTIONSTRING": return "Core Data's history: names"
    default: break
    }
    // A many-to-many join table: `Z_`, a number, and its name.
    let rest = key.hasPrefix("Z_") ? key.dropFirst(2).drop { $0.isNumber } : ""
    return rest.isEmpty || rest.count + 2 == key.count ? name : "relationship \(rest.lowercased())"
  }

  /// The index name without the table's.
  private func indexName(_ owner: PageStates.Owner) -> String {
    guard isCoreData else { return owner.name }
    let ending = "_INDEX"
    let start = owner.table + "_Z"
    if owner.name.hasPrefix(start), owner.name.hasSuffix(ending), owner.name.utf8.count > start.utf8.count + 6 {
      let column = owner.name.dropFirst(start.count).dropLast(ending.count).lowercased()
      return column == "_ent" ? "entity" : String(column.drop { $0 == "_" || $0.isNumber })
    }
    // `Z_Entity_name`, Core Data's name for a model's fetch index.
    let parts = owner.name.split(separator: "_", maxSplits: 2, omittingEmptySubsequences: false)
    return parts.count == 3 && parts[0] == "Z" ? String(parts[2]) : owner.name
  }
}
