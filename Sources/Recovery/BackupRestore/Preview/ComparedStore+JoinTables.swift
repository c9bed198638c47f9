import Backup
import GRDB
import ManagedObjectModel
import PersistentStore
import StoreFiles

extension ComparedStore {
  /// A join table, with the relationship that its pairs are of.
  struct JoinTable {
    let table: Table

    /// The names of both sides of the relationship in the order of the alphabet, such as `Port.ships` and `Ship.ports`; one
    /// where it is its own inverse, none where no model that is known names it.
    let relationships: [String]

    /// What both sides are called by their renaming identifiers, in the same order; none where no model that is known names it.
    let identifiers: [String]

    /// The columns with the keys of both records, in the order of the sides.
    private(set) var keys: [String]

    /// The columns with the places in both relationships, in the same order; nil where there is no order.
    private(set) var places: [String?]

    /// Whether a model that is known names the relationship.
    var isNamed: Bool { !relationships.isEmpty }

    /// Its other columns, by their names in lower case.
    var others: [(key: String, name: String)] {
      let own = Set((keys + places.compactMap(\.self)).map { $0.lowercased() })
      return table.columns.map { ($0.name.lowercased(), $0.name) }.filter { !own.contains($0.0) }
    }

    /// It with its sides in the order of those of another store's table that holds the pairs of the same relationship; nil where
    /// that is of another one.
    ///
    /// - Parameter rule: what tells that they are the same.
    func aligned(with other: JoinTable, by rule: MatchRule) -> JoinTable? {
      switch rule {
      case .identifiers:
        guard isNamed, other.isNamed else { return nil }
        if identifiers == other.identifiers { return self }
        guard identifiers.reversed() == other.identifiers else { return nil }
        var turned = self
        turned.keys.reverse()
        turned.places.reverse()
        return turned
      case .names: return isNamed && relationships == other.relationships ? self : nil
      case .tables:
        guard !isNamed || !other.isNamed else { return nil }
        return table.name.lowercased() == other.table.name.lowercased() ? self : nil
      }
    }
  }

  /// What tells that two join tables hold the pairs of one relationship, the surest first.
  enum MatchRule: CaseIterable {
    /// The renaming identifiers of both sides, by which a migration finds them too.
    case identifiers

    /// The names of both sides.
    case names

    /// The name of the table, where no model that is known names the relationship in one of both stores.
    case tables
  }

  /// The join tables by name.
  ///
  /// - Parameters:
  ///   - models: the models by which relationships are named; else it is the one that the store carries.
  ///   - taken: the names of the entities' tables, in lower case.
  func joinTables(
    _ database: Database, models: [ModelBundle], leavingOut taken: Set<String>
  ) throws -> [JoinTable] {
    let layout = try model(database, models)
    let named = layout.map { Dictionary($0.joinTables.map { ($0.name.lowercased(), $0) }) { $1 } }
    return tables.filter { Self.isJoinTable($0.key) && !taken.contains($0.key) }.ordered { $0.key < $1.key }.map {
      name, table in
      named?[name].flatMap { Self.joinTable(table, $0, layout?.model) }
        ?? JoinTable(
          table: table, relationships: [], identifiers: [], keys: table.columns.prefix(2).map { $0.name }, places: [])
    }
  }

  private static func joinTable(
    _ table: Table, _ layout: JoinTableLayout, _ model: ManagedObjectModel?
  ) -> JoinTable? {
    func column(_ name: String?) -> String? {
      name.flatMap { name in table.columns.first { $0.name.lowercased() == name.lowercased() }?.name }
    }
    guard let source = column(layout.sourceColumn), let destination = column(layout.destinationColumn) else {
      return nil
    }
    let sides = [
      (key: layout.relationship, column: source, place: column(layout.destinationOrderColumn)),
      (key: layout.inverse, column: destination, place: column(layout.sourceOrderColumn)),
    ].ordered { ($0.key.entityName, $0.key.name) < ($1.key.entityName, $1.key.name) }
    let names = sides.map { "\($0.key.entityName).\($0.key.name)" }
    let identifiers = sides.map { side in
      let entity = model?.entities[side.key.entityName]
      let property = entity?.properties[side.key.name]
      return
        "\(entity?.renamingIdentifier ?? side.key.entityName).\(property?.traits.renamingIdentifier ?? side.key.name)"
    }
    return JoinTable(
      table: table, relationships: layout.isReflexive ? Array(names.prefix(1)) : names, identifiers: identifiers,
      keys: sides.map(\.column), places: sides.map(\.place))
  }

  private static func isJoinTable(_ name: String) -> Bool {
    let rest = name.dropFirst(2)
    return name.hasPrefix("z_") && rest.first?.isNumber == true
  }

  /// The layout of the store's model: of the version that its metadata name, else of the one that it carries.
  private func model(_ database: Database, _ models: [ModelBundle]) throws -> StoreLayout? {
    guard let metadata else { return nil }
    // A cache that does not unpack to a model, or to one that can be laid out, names no relationship.
    let cached = try modelCache(database).flatMap { try? ManagedObjectModel(modelCache: $0) }
    let known = models.lazy.compactMap { bundle in
      bundle.version(matching: metadata.versionHashes, identifiers: metadata.versionIdentifiers, cached: cached)?.model
    }.first
    return (known ?? cached).flatMap { try? StoreLayout($0) }
  }
}
