internal import SQLiteFormat

/// Which entity numbers the rows of each table have by the store's own list of entities, where no model tells.
struct EntityList {
  private struct Entity {
    var name: String
    var above: Int64
  }

  /// The numbers of the entities of each table, by its name in lower case.
  private var numbers: [String: ClosedRange<Int64>] = [:]

  private var known: Set<Int64> = []

  /// From here on the numbers are those of Core Data's own entities, whose tables have names that begin with an A.
  private static let firstOwnNumber: Int64 = 16000

  private static let depthLimit = 64

  /// Reads the list of a store; it is empty where its tree is not whole.
  ///
  /// - Parameter entries: the store's schema, as far as it could be read.
  static func find(
    _ reader: PageReader, _ map: PageMap, _ entries: [SchemaEntry]
  ) throws(SalvageError) -> EntityList {
    var list = EntityList()
    guard let entry = entries.first(where: { $0.kind == .table && isSame($0.name, "Z_PRIMARYKEY") }),
      let definition = entry.tableDefinition, entry.rootPage > 1,
      definition.columns.map({ $0.name.uppercased() }) == ["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"]
    else { return list }
    let rows = PageRows(reader)
    let shape = RecordShape(definition, isCoreData: true)
    let (leaves, isWhole) = try rows.leaves(of: entry.rootPage, shape: shape, map)
    guard isWhole else { return list }
    var entities: [Int64: Entity] = [:]
    for page in leaves {
      try rows.forEach(on: page) { row in
        guard row.rowid > 0, let name = row.record.value(at: 1)?.string, let above = row.record.value(at: 2)?.integer
        else { return }
        entities[row.rowid] = Entity(name: name, above: above)
      }
    }
    list.add(entities)
    return list
  }

  private mutating func add(_ entities: [Int64: Entity]) {
    // A list that does not agree with itself is damaged, or is another page.
    guard entities.values.allSatisfy({ $0.above == 0 || entities[$0.above] != nil }) else { return }
    known = Set(entities.keys)
    for (number, entity) in entities {
      var root = entity
      for _ in 0..<Self.depthLimit {
        guard root.above != 0, let next = entities[root.above] else { break }
        root = next
      }
      guard root.above == 0 else { continue }
      let table = (number < Self.firstOwnNumber ? "z" : "a") + root.name.lowercased()
      let range = numbers[table] ?? number...number
      numbers[table] = min(range.lowerBound, number)...max(range.upperBound, number)
    }
  }

  /// The entity numbers that rows of a table can have; nil where the list does not tell.
  ///
  /// - Parameter seen: the rows that its root leads to. A number that no entity has shows that the list is damaged, or that
  ///   they are.
  func entityNumbers(ofTable name: String, _ seen: TableRows?) -> ClosedRange<Int64>? {
    guard let range = numbers[name.lowercased()] else { return nil }
    let isKnown = seen?.rows.allSatisfy { row in row.entity.map { known.contains($0) } ?? false } ?? true
    return isKnown ? range : nil
  }
}
