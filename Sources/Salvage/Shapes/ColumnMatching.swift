/// Which columns can stand in which places of a table's rows, and the orders that this leaves.
struct ColumnMatching {
  /// The columns in the order of a fresh table.
  let columns: [String]

  /// For each place, which of them can stand there.
  private let fits: [[Bool]]

  init(columns: [String], fits: [[Bool]]) {
    self.columns = columns
    self.fits = fits
  }

  /// Whether each column of an order can stand in its place.
  func allows(_ order: [String]) -> Bool {
    guard order.count == columns.count, let places = places(of: order) else { return false }
    return order.indices.allSatisfy { fits[$0][places[$0]] }
  }

  /// Whether any order is left.
  var isPossible: Bool { matching(given: [:]) != nil }

  /// The order that is left, or of several the one most like that of a fresh table; nil where there is none.
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

  /// The columns of an order that could stand in another place as well, where the place has values.
  func ambiguous(_ order: [String], _ hasValues: (Int) -> Bool) -> Set<String> {
    guard let places = places(of: order) else { return [] }
    var placeOf = [Int](repeating: 0, count: columns.count)
    for (place, column) in places.enumerated() { placeOf[column] = place }
    var result: Set<String> = []
    for place in places.indices where hasValues(place) {
      // Whether some exchange of columns comes back to this place.
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

  /// The places of an order whose columns could be exchanged with each other, group by group, whether or not they have
  /// values.
  func exchangeable(_ order: [String]) -> [[Int]] {
    guard let places = places(of: order) else { return [] }
    var placeOf = [Int](repeating: 0, count: columns.count)
    for (place, column) in places.enumerated() { placeOf[column] = place }
    // Which places the columns that could stand here come from, and so on; those that lead to each other are a group.
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

  /// The places in which two orders of the same columns differ, group by group: those that exchange columns.
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

  /// A column for each place, some of them given; nil where that is impossible.
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

  /// Finds a column for a place, moving others out of its way; no deeper than there are columns.
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
