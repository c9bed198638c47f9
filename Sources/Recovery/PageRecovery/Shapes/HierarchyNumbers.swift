internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// Finds out which entity each number of a table's rows stands for where no list of the store's says so.
///
/// A table with one entity has its rows alone. In a hierarchy, numbers follow the order of the model, and an entity's rows
/// have values only in its own columns and those it inherits. A number for which several entities are left stays unknown.
struct HierarchyNumbers {
  private let use: NumbersInUse
  private let table: TableLayout
  private let listed: [Int64: String]

  private var layout: StoreLayout { use.layout }

  private static let limit = 64

  init(_ use: NumbersInUse, _ table: TableLayout, listed: [Int64: String]) {
    self.use = use
    self.table = table
    self.listed = listed
  }

  /// The names of the entities whose numbers could be told.
  func find() -> [Int64: String] {
    let taken = Set(listed.values)
    let candidates = layout.entities.filter { entity in
      entity.tableName == table.name && layout.model.entities[entity.name]?.isAbstract != true
        && !taken.contains(entity.name)
    }
    guard !candidates.isEmpty, let used = use.numbers[table.name] else { return [:] }
    let numbers = used.keys.filter { listed[$0] == nil }.sorted()
    guard !numbers.isEmpty, numbers.count <= Self.limit else { return [:] }
    // As the layout has them they need no other explanation.
    let own = Dictionary(candidates.map { (Int64($0.number), $0.name) }) { first, _ in first }
    if numbers.allSatisfy({ number in own[number].map { fits(number, $0) } ?? false }) {
      return own.filter { numbers.contains($0.key) }
    }
    return assigned(numbers, candidates.map(\.name))
  }

  private func fits(_ number: Int64, _ entity: String) -> Bool {
    use.numbers[table.name]?[number].map { use.fits($0.columns, of: table, entity) } ?? false
  }

  /// Gives numbers to entities in the order of both, as far as there is one way only.
  private func assigned(_ numbers: [Int64], _ entities: [String]) -> [Int64: String] {
    guard numbers.count <= entities.count, entities.count <= Self.limit else { return [:] }
    let fit = numbers.map { number in entities.map { fits(number, $0) } }
    // Whether the numbers from one on can go to the entities from one on.
    var rest = [[Bool]](repeating: [Bool](repeating: false, count: entities.count + 1), count: numbers.count + 1)
    rest[numbers.count] = [Bool](repeating: true, count: entities.count + 1)
    for number in numbers.indices.reversed() {
      for entity in entities.indices.reversed() {
        rest[number][entity] = rest[number][entity + 1] || fit[number][entity] && rest[number + 1][entity + 1]
      }
    }
    var before = [[Bool]](repeating: [Bool](repeating: false, count: entities.count + 1), count: numbers.count + 1)
    before[0] = [Bool](repeating: true, count: entities.count + 1)
    for number in numbers.indices {
      for entity in entities.indices {
        before[number + 1][entity + 1] =
          before[number + 1][entity] || fit[number][entity] && before[number][entity]
      }
    }
    var result: [Int64: String] = [:]
    for number in numbers.indices {
      let possible = entities.indices.filter { entity in
        fit[number][entity] && before[number][entity] && rest[number + 1][entity + 1]
      }
      if possible.count == 1 { result[numbers[number]] = entities[possible[0]] }
    }
    return result
  }
}
