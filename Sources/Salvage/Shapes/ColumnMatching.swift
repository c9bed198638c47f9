/// The possible columns of each field, and the column orders that remain.
struct ColumnMatching {
  /// The columns in the order of a fresh table.
  let columns: [String]

  /// The possible columns by field.
  private let fits: [[Bool]]

  init(columns: [String], fits: [[Bool]]) {
    self.columns = columns
    self.fits = fits
  }

  func allows(_ order: [String]) -> Bool {
    guard order.count == columns.count, let places = places(of: order) else { return false }
    return order.indices.allSatisfy { fits[$0][places[$0]] }
  }

  var isPossible: Bool { matching(given: [:]) != nil }

  /// Returns the possible order most like a fresh table's; nil without any.
  func best() -> [String]? {
    guard var current = matching(given: [:]) else { return nil }
    var settled: [Int: Int] = [:]
    for place in columns.indices {
      for column in columns.indices where fits[place][column] && !settled.values.contains(column) {
        if current[place] == column {
          settled[place] = column
          break
        }
        settled[place] = column
        if let other = matching(given: settled) {
          current = other
          break
        }
        settled[place] = nil
      }
    }
    return current.map { columns[$0] }
  }

  /// Returns the columns of an order that could also be in another field, among fields with values.
  func ambiguous(_ order: [String], _ hasValues: (Int) -> Bool) -> Set<String> {
    guard let places = places(of: order) else { return [] }
    var placeOf = [Int](repeating: 0, count: columns.count)
    for (place, column) in places.enumerated() { placeOf[column] = place }
    var result: Set<String> = []
    for place in places.indices where hasValues(place) {
      // Whether a cycle of exchanges returns to this field.
      var seen = [Bool](repeating: false, count: places.count)
      var pending = [place]
      var isExchangeable = false
      while let next = pending.popLast(), !isExchangeable {
        for column in columns.indices where fits[next][column] && column != places[next] {
          let other = placeOf[column]
          if other == place {
            isExchangeable = true
            break
          }
          if !seen[other] {
            seen[other] = true
            pending.append(other)
          }
        }
      }
      if isExchangeable { result.insert(order[place]) }
    }
    return result
  }

  /// Returns the groups of interchangeable fields, with or without values.
  func exchangeable(_ order: [String]) -> [[Int]] {
    guard let places = places(of: order) else { return [] }
    var placeOf = [Int](repeating: 0, count: columns.count)
    for (place, column) in places.enumerated() { placeOf[column] = place }
    let reached = places.indices.map { start in
      var seen = [Bool](repeating: false, count: places.count)
      var pending = [start]
      while let next = pending.popLast() {
        for column in columns.indices where fits[next][column] && !seen[placeOf[column]] {
          seen[placeOf[column]] = true
          pending.append(placeOf[column])
        }
      }
      return seen
    }
    var grouped = Set<Int>()
    var groups: [[Int]] = []
    for place in places.indices where grouped.insert(place).inserted {
      let others = places.indices.filter { $0 > place && reached[place][$0] && reached[$0][place] }
      grouped.formUnion(others)
      if !others.isEmpty { groups.append([place] + others) }
    }
    return groups
  }

  /// Returns the cycles of exchanged fields between two orders.
  static func cycles(from order: [String], to other: [String]) -> [[Int]] {
    let placeOf = Dictionary(zip(other, other.indices)) { first, _ in first }
    var seen = Set<Int>()
    var groups: [[Int]] = []
    for start in order.indices where seen.insert(start).inserted {
      var group = [start]
      var place = start
      while let next = placeOf[order[place]], seen.insert(next).inserted {
        group.append(next)
        place = next
      }
      if group.count > 1 { groups.append(group) }
    }
    return groups
  }

  private func places(of order: [String]) -> [Int]? {
    let numbers = Dictionary(zip(columns, columns.indices)) { first, _ in first }
    let places = order.compactMap { numbers[$0] }
    return places.count == columns.count && Set(places).count == places.count ? places : nil
  }

  /// - Parameter given: fixed columns by field; nil if impossible.
  private func matching(given: [Int: Int]) -> [Int]? {
    var owner = [Int?](repeating: nil, count: columns.count)
    for (place, column) in given { owner[column] = place }
    for place in columns.indices where given[place] == nil {
      var seen = [Bool](repeating: false, count: columns.count)
      guard assign(place, &owner, &seen, given) else { return nil }
    }
    var result = [Int](repeating: 0, count: columns.count)
    for (column, place) in owner.enumerated() {
      guard let place else { return nil }
      result[place] = column
    }
    return result
  }

  /// Finds a column for a field, moving others; the depth is bounded by the columns.
  private func assign(_ place: Int, _ owner: inout [Int?], _ seen: inout [Bool], _ given: [Int: Int]) -> Bool {
    for column in columns.indices where fits[place][column] && !seen[column] {
      seen[column] = true
      guard let other = owner[column] else {
        owner[column] = place
        return true
      }
      if given[other] == nil, assign(other, &owner, &seen, given) {
        owner[column] = place
        return true
      }
    }
    return false
  }
}
