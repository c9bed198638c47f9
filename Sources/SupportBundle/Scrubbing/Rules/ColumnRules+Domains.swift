import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat
internal import Salvage

extension ColumnRules {
  /// A column, or the numbers of a tree's rows.
  private struct Place: Hashable {
    var tree: Int
    /// The field of its records; -1 for the row numbers.
    var field: Int
  }

  /// Puts columns that refer to each other into groups, each of which replaces an integer alike.
  mutating func groupColumns(_ survey: StoreSurvey, _ wanted: ScrubRules) {
    var conditions: [String: TableConditions] = [:]
    var indexWords: [String: Set<String>] = [:]
    for entry in survey.entries {
      guard let sql = entry.sql else { continue }
      let table = entry.tableName.lowercased()
      switch entry.kind {
      case .table: conditions[table] = TableConditions(sql: sql)
      case .index: indexWords[table, default: []].formUnion(TableConditions.words(ofIndex: sql))
      case .view, .trigger: break
      }
    }
    makeDomains(survey, wanted, conditions, indexWords)
    joinReferences(survey, conditions)
  }

  /// Makes a group of its own for each column and for each tree's row numbers.
  private mutating func makeDomains(
    _ survey: StoreSurvey, _ wanted: ScrubRules, _ conditions: [String: TableConditions],
    _ indexWords: [String: Set<String>]
  ) {
    let virtual = Set(
      survey.entries.filter { $0.tableDefinition?.isVirtual == true }.map { $0.name.uppercased() })
    for (place, tree) in survey.trees.enumerated() {
      guard !tree.isIndex, let definition = tree.definition else {
        // The rows of the schema are numbered by SQLite.
        rowids.append(FieldRule(kind: .own))
        continue
      }
      let name = tree.name.lowercased()
      let words = (conditions[name]?.words ?? []).union(indexWords[name] ?? [])
      for (field, column) in definition.storedColumns.map({ definition.columns[$0] }).enumerated() {
        guard [.replace, .date, .drop].contains(rules[place][field].kind) else { continue }
        var domain = NumberDomains.Domain()
        domain.fixed =
          words.contains(column.name.lowercased())
          ? .condition : Self.isFlag(column, tree.name, survey.layout) ? .flag : nil
        domain.isLink = column.isPrimaryKey || conditions[name]?.targets[column.name.lowercased()] != nil
        // Those of dates that are stored in few bytes are replaced in their order.
        domain.isOrdered = rules[place][field].kind == .date
        if rules[place][field].kind == .replace, Self.isKey(column) {
          rules[place][field].kind = .key
          domain.isKey = true
        }
        rules[place][field].domain = domains.count
        domains.append(domain)
      }
      rowids.append(rowids(of: definition, survey, virtual, wanted))
    }
  }

  /// What happens to the numbers of a table's rows: those of Core Data's tables and of SQLite's are the software's own.
  private mutating func rowids(
    of definition: TableDefinition, _ survey: StoreSurvey, _ virtual: Set<String>, _ wanted: ScrubRules
  ) -> FieldRule {
    let name = definition.name.uppercased()
    let isOwn =
      survey.layout?.table(named: definition.name) != nil || definition.column(named: "Z_ENT") != nil
      || name.hasPrefix("Z_") || name.hasPrefix("SQLITE_") || name.hasPrefix("ANSCK")
      || ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(name) || Self.isShadow(name, virtual)
    if isOwn {
      guard Self.isShadow(name, virtual), !Self.isCoded(name, virtual) else { return FieldRule(kind: .own) }
      domains.append(NumberDomains.Domain(isOrdered: true, isKey: true))
      return FieldRule(kind: .own, domain: domains.count - 1)
    }
    let alias = definition.rowidAlias.map { definition.columns[$0].name } ?? "rowid"
    if wanted.keeping.contains("\(definition.name).\(alias)") { return FieldRule(kind: .keep) }
    domains.append(NumberDomains.Domain(isOrdered: true, isKey: true))
    return FieldRule(kind: .key, isOrdered: true, domain: domains.count - 1)
  }

  /// Whether a table holds the structure of a virtual one, whose module numbers its rows.
  private static func isShadow(_ name: String, _ virtual: Set<String>) -> Bool {
    ["DATA", "SEGDIR", "SEGMENTS", "STAT", "NODE", "CONFIG"].contains {
      name.hasSuffix("_\($0)") && virtual.contains(String(name.dropLast($0.count + 1)))
    }
  }

  /// Whether the numbers of a table's rows are codes of a virtual table's module, and no count.
  private static func isCoded(_ name: String, _ virtual: Set<String>) -> Bool {
    name.hasSuffix("_DATA") && virtual.contains(String(name.dropLast("_DATA".count)))
  }

  /// Whether a column of integers is a key that the app chooses, or leads to one, by its declaration or its name.
  private static func isKey(_ column: ColumnDefinition) -> Bool {
    guard column.affinity == .integer else { return false }
    let name = column.name
    // `userID` is one, `PAID` is not.
    return column.isPrimaryKey || name.lowercased() == "id" || name.lowercased().hasSuffix("_id")
      || (name.hasSuffix("Id") || name.hasSuffix("ID")) && name.dropLast(2).last?.isLowercase == true
  }

  private static func isFlag(_ column: ColumnDefinition, _ table: String, _ layout: StoreLayout?) -> Bool {
    if let found = layout?.table(named: table)?.column(named: column.name) {
      switch found.role {
      case .attribute(_, let type), .compositeLeaf(_, _, let type): if type == .boolean { return true }
      case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: break
      }
    }
    return column.declaredType.uppercased().hasPrefix("BOOL")
  }

  /// Joins the groups of columns that refer to others with the groups of those.
  private mutating func joinReferences(_ survey: StoreSurvey, _ conditions: [String: TableConditions]) {
    var joined = Array(domains.indices)
    for (place, tree) in survey.trees.enumerated() {
      guard !tree.isIndex, let definition = tree.definition else { continue }
      for (name, target) in conditions[tree.name.lowercased()]?.targets ?? [:] {
        guard let parent = Self.place(target, survey) else { continue }
        let rule = parent.field < 0 ? rowids[parent.tree] : rules[parent.tree][parent.field]
        let child = definition.column(named: name).flatMap { definition.storedColumns.firstIndex(of: $0) }
        let isAlias = definition.rowidAlias != nil && definition.column(named: name) == definition.rowidAlias
        let own = isAlias ? rowids[place] : child.map { rules[place][$0] }
        guard let own, [.replace, .key].contains(own.kind) else { continue }
        if own.domain >= 0, rule.domain >= 0, rule.kind != .own {
          let (first, second) = (Self.root(own.domain, joined), Self.root(rule.domain, joined))
          joined[max(first, second)] = min(first, second)
        } else if [.own, .keep].contains(rule.kind) {
          // What it refers to stays.
          if isAlias { rowids[place] = FieldRule(kind: rule.kind) }
          if let child, !isAlias {
            rules[place][child].kind = rule.kind == .keep ? .keep : .key
            rules[place][child].domain = -1
          }
        }
      }
    }
    takeOver(joined)
  }

  /// The first of the groups that a group was joined with.
  private static func root(_ domain: Int, _ joined: [Int]) -> Int {
    var domain = domain
    while joined[domain] != domain { domain = joined[domain] }
    return domain
  }

  private mutating func takeOver(_ joined: [Int]) {
    func root(_ domain: Int) -> Int { Self.root(domain, joined) }
    for domain in domains.indices where root(domain) != domain {
      let other = root(domain)
      domains[other].fixed = domains[other].fixed ?? domains[domain].fixed
      domains[other].isKey = domains[other].isKey || domains[domain].isKey
      domains[other].isOrdered = true
    }
    for tree in rules.indices {
      for field in rules[tree].indices where rules[tree][field].domain >= 0 {
        let domain = root(rules[tree][field].domain)
        // What refers to others is ordered as they are.
        if domain != rules[tree][field].domain || isShared(domain, joined) { rules[tree][field].isOrdered = true }
        rules[tree][field].domain = domain
        // Where one of them leads to rows all are keys: either all of them stay or none.
        if domains[domain].isKey, rules[tree][field].kind == .replace { rules[tree][field].kind = .key }
      }
      if rowids[tree].domain >= 0 { rowids[tree].domain = root(rowids[tree].domain) }
    }
  }

  private func isShared(_ domain: Int, _ joined: [Int]) -> Bool {
    domains[domain].isOrdered && joined.indices.contains { $0 != domain && joined[$0] == domain }
  }

  private static func place(_ target: TableConditions.Target, _ survey: StoreSurvey) -> Place? {
    guard
      let tree = survey.trees.firstIndex(where: {
        !$0.isIndex && $0.definition != nil && $0.name.lowercased() == target.table.lowercased()
      }), let definition = survey.trees[tree].definition
    else { return nil }
    guard let name = target.column ?? (definition.primaryKey.count == 1 ? definition.primaryKey[0] : nil),
      let column = definition.column(named: name)
    else { return nil }
    if column == definition.rowidAlias { return Place(tree: tree, field: -1) }
    return definition.storedColumns.firstIndex(of: column).map { Place(tree: tree, field: $0) }
  }
}

extension ColumnRules {
  /// The columns of the app's own tables that stay, and how many columns these tables have.
  func staying(_ survey: StoreSurvey, _ domains: NumberDomains) -> (staying: [ScrubReport.Staying], count: Int) {
    var (staying, count) = ([ScrubReport.Staying](), 0)
    for (place, tree) in survey.trees.enumerated() {
      guard !tree.isIndex, let definition = tree.definition, !tree.name.lowercased().hasPrefix("sqlite_") else {
        continue
      }
      let name = { (label: String) in label.contains(".") ? label : "\(tree.name).\(label)" }
      if let alias = definition.rowidAlias, rowids[place].kind != .own {
        count += 1
        if rowids[place].kind == .keep {
          staying.append(.init(name: name(definition.columns[alias].name), reason: .kept))
        }
      }
      for (field, rule) in rules[place].enumerated() where field < definition.storedColumns.count {
        if definition.storedColumns[field] == definition.rowidAlias { continue }
        let label = name(names[place][field])
        switch rule.kind {
        case .own, .word, .metadata: continue
        case .keep:
          count += 1
          staying.append(.init(name: label, reason: .kept))
        case .key where rule.domain < 0: continue
        case .replace, .key, .date, .drop:
          count += 1
          guard rule.kind != .drop || rule.isOrdered, let reason = domains.staying(rule.domain) else { continue }
          staying.append(.init(name: label, reason: reason))
        }
      }
    }
    return (staying, count)
  }
}

/// What the caller decides about a scrub: which columns stay, and which are emptied.
public struct ScrubRules: Sendable, Hashable {
  /// Attributes whose values stay, as `Entity.attribute`, or `table.column` where there is no model.
  public var keeping: Set<String>

  /// Attributes whose values are all overwritten with the same filling, named alike.
  public var dropping: Set<String>

  /// Rules; all values are replaced unless told otherwise.
  public init(keeping: Set<String> = [], dropping: Set<String> = []) {
    self.keeping = keeping
    self.dropping = dropping
  }
}
