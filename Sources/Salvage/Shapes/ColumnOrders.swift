internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Determines the column order of tables with lost definitions.
///
/// The model has the columns, but added columns and other writers change their order. Evidence comes from remains of
/// definitions in the files, then from rows: storage classes, value ranges of attributes and references, and index
/// entries. Indistinguishable columns are marked as doubtful.
struct ColumnOrders {
  /// The doubts by lowercase table name.
  private(set) var doubts: [String: ColumnDoubt] = [:]

  private let layout: StoreLayout
  private let schema: ExpectedSchema

  /// The orders that earlier model versions lead to, by table.
  private let histories: [String: [[String]]]

  private let lost: [TableLayout]

  /// Whether some table's order fits no version of the model.
  private var isOtherWriter = false

  private static let columnLimit = 128

  /// Reorders the columns of expected tables by the evidence.
  ///
  /// - Parameters:
  ///   - found: the readable schema.
  ///   - settled: lowercase names of tables read by the store's own definitions.
  ///   - earlier: the layouts of earlier model versions, oldest first.
  static func settle(
    _ schema: inout ExpectedSchema, found: [SchemaEntry], settled: Set<String>, earlier: [StoreLayout],
    _ reader: PageReader, _ map: PageMap, _ evidence: Evidence
  ) throws -> ColumnOrders? {
    guard let layout = schema.layout, map.pageCount >= 1 else { return nil }
    var definitions: [String: TableDefinition] = [:]
    for entry in found where entry.kind == .table { definitions[entry.name.lowercased()] = entry.tableDefinition }
    let lost = layout.tables.filter { table in
      !settled.contains(table.name.lowercased())
        && definitions[table.name.lowercased()]?.columns.count != table.columns.count
    }
    guard !lost.isEmpty else { return nil }
    var orders = ColumnOrders(layout, schema, earlier: earlier, lost: lost)
    for table in layout.tables {
      guard let own = definitions[table.name.lowercased()], own.columns.count == table.columns.count else { continue }
      let names = own.columns.map { $0.name.uppercased() }
      let known = [orders.modelOrder(table)] + (orders.histories[table.name] ?? [])
      if Set(names) == Set(known[0]), !known.contains(names) { orders.isOtherWriter = true }
    }
    let seen = try ColumnEvidence.gather(lost, schema, reader, map)
    guard !seen.isEmpty else { return nil }
    let texts = try DefinitionTexts.find(evidence, tables: Set(lost.map { $0.name.uppercased() }))
    try orders.decide(&schema, seen, texts)
    return orders
  }

  private init(_ layout: StoreLayout, _ schema: ExpectedSchema, earlier: [StoreLayout], lost: [TableLayout]) {
    self.layout = layout
    self.schema = schema
    self.lost = lost
    var histories: [String: [[String]]] = [:]
    for table in lost {
      let model = table.columns.map { schema.names.column($0.name, of: table.name).uppercased() }
      for start in earlier.indices {
        var order: [String] = []
        for version in earlier[start...] {
          guard let then = version.table(of: table.rootEntityName) else { continue }
          for name in then.columns.map({ $0.name.uppercased() }) where model.contains(name) && !order.contains(name) {
            order.append(name)
          }
        }
        guard !order.isEmpty else { continue }
        order += model.filter { !order.contains($0) }
        if order != model, histories[table.name]?.contains(order) != true {
          histories[table.name, default: []].append(order)
        }
      }
    }
    self.histories = histories
  }

  private func modelOrder(_ table: TableLayout) -> [String] {
    table.columns.map { schema.names.column($0.name, of: table.name).uppercased() }
  }

  // MARK: Deciding

  private mutating func decide(
    _ schema: inout ExpectedSchema, _ seen: [String: ColumnEvidence], _ texts: [String: [[String]]]
  ) throws {
    var open: [(table: TableLayout, evidence: ColumnEvidence, matching: ColumnMatching)] = []
    for table in lost {
      guard let evidence = seen[table.name], table.columns.count <= Self.columnLimit else { continue }
      let model = modelOrder(table)
      var matching = ColumnMatching(columns: model, fits: evidence.fits(table, layout, schema, isStrict: true))
      if !matching.isPossible {
        matching = ColumnMatching(columns: model, fits: evidence.fits(table, layout, schema, isStrict: false))
      }
      let written = (texts[table.name.uppercased()] ?? []).filter { Set($0) == Set(model) && matching.allows($0) }
      if let first = written.first, Set(written).count == 1 {
        schema.reorder(table, first)
        if first != model, histories[table.name]?.contains(first) != true { isOtherWriter = true }
        continue
      }
      open.append((table, evidence, matching))
      let known = [model] + (histories[table.name] ?? [])
      if !known.contains(where: matching.allows), matching.isPossible { isOtherWriter = true }
    }
    for (table, evidence, matching) in open {
      let model = modelOrder(table)
      var known = histories[table.name] ?? []
      // All rows of a fresh table have all columns.
      if known.isEmpty || !evidence.hasShortRows || !known.contains(where: matching.allows) {
        known.insert(model, at: 0)
      }
      known = known.filter(matching.allows)
      let order: [String]
      var unsure: Set<String> = []
      var groups: [[Int]] = []
      if let first = known.first {
        order = first
        for other in known.dropFirst() {
          for place in order.indices where other[place] != order[place] && evidence.hasValues(place) {
            unsure.formUnion([order[place], other[place]])
          }
          groups += ColumnMatching.cycles(from: order, to: other)
        }
        // Columns were added, and no model version shows which.
        let isAltered = evidence.hasShortRows && first == model && histories[table.name] == nil
        if isOtherWriter || isAltered {
          unsure.formUnion(matching.ambiguous(order, evidence.hasValues))
          groups += matching.exchangeable(order)
        }
      } else if let best = matching.best() {
        order = best
        unsure = matching.ambiguous(order, evidence.hasValues)
        groups = matching.exchangeable(order)
      } else {
        doubts[table.name.lowercased()] = ColumnDoubt(
          words: "the order of the table's columns is lost, and could not be found out")
        continue
      }
      schema.reorder(table, order)
      guard !unsure.isEmpty else { continue }
      let list = unsure.sorted().prefix(6).map { printable($0) }.joined(separator: ", ")
      doubts[table.name.lowercased()] = ColumnDoubt(
        words: "the order of the table's columns is lost, and nothing tells some of them apart: \(list)"
          + (unsure.count > 6 ? " and others" : ""), groups: groups)
    }
  }
}

/// Finds `CREATE TABLE` statements anywhere in a store's files: in free space, obsolete frames and pages.
enum DefinitionTexts {
  private static let words = Array("CREATE TABLE ".utf8)

  private static let statementLimit = 1 << 16

  private static let limit = 4096

  /// Returns the column orders by table; all names in upper case.
  static func find(_ evidence: Evidence, tables: Set<String>) throws -> [String: [[String]]] {
    var orders: [String: [[String]]] = [:]
    var count = 0
    for source in [evidence.main, evidence.log, evidence.journal].compactMap(\.self) {
      var start: Int64 = 0
      let piece = 1 << 20
      while start < source.count, count < limit {
        let bytes = try source.bytes(at: start, length: piece + statementLimit)
        var offset = 0
        while let hit = next(bytes.span, from: offset, before: min(piece, bytes.count)), count < limit {
          offset = hit + words.count
          guard let statement = statement(bytes, from: hit), let table = TableDefinition(sql: statement),
            tables.contains(table.name.uppercased())
          else { continue }
          count += 1
          let order = table.columns.map { $0.name.uppercased() }
          if orders[table.name.uppercased()]?.contains(order) != true {
            orders[table.name.uppercased(), default: []].append(order)
          }
        }
        start += Int64(piece)
      }
    }
    return orders
  }

  private static func next(_ bytes: Span<UInt8>, from start: Int, before end: Int) -> Int? {
    var offset = start
    let first = words[0]
    while offset < end {
      if bytes[offset] == first, offset + words.count <= bytes.count {
        var length = 1
        while length < words.count, bytes[offset + length] == words[length] { length += 1 }
        if length == words.count { return offset }
      }
      offset += 1
    }
    return nil
  }

  /// Returns the statement at an offset up to its closing parenthesis; nil if unclosed or not text.
  private static func statement(_ bytes: [UInt8], from start: Int) -> String? {
    var depth = 0
    var quote: UInt8?
    var offset = start
    let end = min(bytes.count, start + statementLimit)
    while offset < end {
      let byte = bytes[offset]
      if byte == 0 { return nil }
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") || byte == UInt8(ascii: "`") {
        quote = byte
      } else if byte == UInt8(ascii: "(") {
        depth += 1
      } else if byte == UInt8(ascii: ")") {
        depth -= 1
        if depth == 0 { return String(utf8: bytes[start...offset]) }
        if depth < 0 { return nil }
      }
      offset += 1
    }
    return nil
  }
}

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
