internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

extension StoreRebuild {
  /// Gives the changes in the history the new numbers of their entities, and the bits of their changed properties their
  /// new places; the changes of removed entities go.
  func renumberHistory(_ database: Database, _ account: inout StepAccount) throws {
    let known = layout.numbers
    let removed = layout.source.entities.map(\.number).filter { known[$0] == nil }
    let condition = "WHERE ZENTITY IN \(removed.sqlList)"
    account.removedChanges = try Int.fetchOne(database, sql: "SELECT count(*) FROM main.ACHANGE \(condition)") ?? 0
    try database.execute(sql: "DELETE FROM main.ACHANGE \(condition)")
    if try database.columns(in: "ACHANGE").contains(where: { $0.name == "ZCOLUMNS" }) {
      try moveChangedProperties(database)
    }
    let moved = layout.routes.filter { $0.source.number != $0.destination.number }
    guard !moved.isEmpty else { return }
    let cases = moved.map { "WHEN \($0.source.number) THEN \($0.destination.number)" }.joined(separator: " ")
    try database.execute(
      sql: "UPDATE main.ACHANGE SET ZENTITY = CASE ZENTITY \(cases) ELSE ZENTITY END "
        + "WHERE ZENTITY IN \(moved.map(\.source.number).sqlList)")
  }

  private func moveChangedProperties(_ database: Database) throws {
    var moves: [Int64: ChangedProperties] = [:]
    for route in layout.routes {
      let move = ChangedProperties(route, layout)
      if !move.isIdentity { moves[Int64(route.source.number)] = move }
    }
    guard !moves.isEmpty else { return }
    let known = moves
    database.add(
      function: DatabaseFunction("lazaret_changed_properties", argumentCount: 2, pure: true) { values in
        guard let number = Int64.fromDatabaseValue(values[0]), let bits = Data.fromDatabaseValue(values[1]),
          let moved = known[number]?.moved([UInt8](bits))
        else { return nil }
        return Data(moved)
      })
    try database.execute(
      sql: "UPDATE main.ACHANGE SET ZCOLUMNS = lazaret_changed_properties(ZENTITY, ZCOLUMNS) "
        + "WHERE ZCOLUMNS IS NOT NULL AND ZENTITY IN \(moves.keys.sorted().sqlList)")
  }
}

/// Where the bits for the changed properties of an entity's records go.
///
/// A change in the history has a bit for each property, by its place in the alphabet, the highest bit of the first byte
/// first, in a byte more than whole bytes are full (format section 3.10).
struct ChangedProperties: Sendable {
  private let oldCount: Int
  private let newCount: Int

  private let places: [[Int]]

  init(_ route: StepLayout.Route, _ layout: StepLayout) {
    func names(_ model: ManagedObjectModel, _ entity: String) -> [String] {
      model.properties(of: entity).keys.inCodeUnitOrder()
    }
    let old = names(layout.source.model, route.source.name)
    let new = names(layout.destination.model, route.destination.name)
    var sources: [String: Set<String>] = [:]
    for mapping in route.mapping.propertyMappings {
      if let source = mapping.source { sources[mapping.destination.name, default: []].insert(source.name) }
    }
    oldCount = old.count
    newCount = new.count
    // Transient properties have no mapping; they keep their name.
    places = old.map { name in
      new.indices.filter { sources[new[$0]]?.contains(name) ?? (new[$0] == name) }
    }
  }

  /// Whether every bit stays where it is.
  var isIdentity: Bool { oldCount == newCount && places.enumerated().allSatisfy { $0.element == [$0.offset] } }

  /// The same changes by the new places; nil for bits that are not as the format says.
  func moved(_ bits: [UInt8]) -> [UInt8]? {
    guard bits.count == oldCount / 8 + 1 else { return nil }
    var result = [UInt8](repeating: 0, count: newCount / 8 + 1)
    for place in 0..<(bits.count * 8) where bits[place / 8] & (0x80 >> UInt8(place % 8)) != 0 {
      guard place < oldCount else { return nil }
      for new in places[place] { result[new / 8] |= 0x80 >> UInt8(new % 8) }
    }
    return result
  }
}
