import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage

/// The rules for all fields of tables and indexes, in storage order.
struct ColumnRules {
  var rules: [[FieldRule]] = []

  /// The field names in the report: attributes with a model, otherwise columns.
  private(set) var names: [[String]] = []

  var rowids: [FieldRule] = []

  var domains: [NumberDomains.Domain] = []

  private(set) var sequence: Int?

  /// The names of schema and model.
  private(set) var words: [String] = []

  /// Remarks on partial and expression indexes.
  private(set) var remarks: [String] = []

  /// - Throws: `unknown-column` if the caller names a missing column.
  init(_ survey: StoreSurvey, _ wanted: ScrubRules) throws {
    var used: Set<String> = []
    var known: Set<String> = []
    for tree in survey.trees {
      guard !tree.isIndex, let definition = tree.definition else {
        rules.append(tree.isIndex ? [] : [FieldRule](repeating: FieldRule(kind: .keep), count: 5))
        names.append(tree.isIndex ? [] : ["type", "name", "tbl_name", "rootpage", "sql"])
        continue
      }
      var fields: [FieldRule] = []
      var labels: [String] = []
      for place in definition.storedColumns {
        let column = definition.columns[place]
        var rule = FieldRule(kind: Self.kind(of: column, in: definition, survey.layout))
        let attribute = Self.attribute(column.name, tree.name, survey.layout)
        let spellings =
          [attribute, "\(tree.name).\(column.name)"].compactMap(\.self)
          + Self.inherited(column.name, tree.name, survey.layout)
        known.formUnion(spellings)
        for spelling in spellings {
          if wanted.keeping.contains(spelling) {
            rule.kind = .keep
            used.insert(spelling)
          } else if wanted.dropping.contains(spelling) {
            if rule.kind == .replace || rule.kind == .date { rule.kind = .drop }
            used.insert(spelling)
          }
        }
        fields.append(rule)
        labels.append(attribute ?? column.name)
      }
      rules.append(fields)
      names.append(labels)
    }
    if let unknown = wanted.keeping.union(wanted.dropping).subtracting(used).min() {
      throw Self.unknown(unknown, among: known)
    }
    words = Self.words(of: survey)
    sequence = survey.trees.firstIndex { !$0.isIndex && $0.name.lowercased() == "sqlite_sequence" }
    groupColumns(survey, wanted)
    orderColumns(survey)
  }

  private static func unknown(_ unknown: String, among known: Set<String>) -> SupportBundleError {
    SupportBundleError(
      .unknownColumn, detail: "there is no attribute \"\(printable(unknown))\"",
      hint: NameSuggestion.hint(for: unknown, among: Array(known), "attributes"))
  }

  private static func words(of survey: StoreSurvey) -> [String] {
    var words = survey.entries.filter(\.isTelling).map(\.name)
    for tree in survey.trees where !tree.isGuess {
      words.append(tree.name)
      words += tree.definition?.columns.map(\.name) ?? []
    }
    words += survey.layout?.entities.map(\.name) ?? []
    for table in survey.layout?.tables ?? [] { words += table.columns.compactMap { $0.role.property?.description } }
    return words + Array((survey.metadata?.versionHashes ?? [:]).keys)
  }

  /// Marks indexed columns, and derives index fields' rules.
  private mutating func orderColumns(_ survey: StoreSurvey) {
    for (place, tree) in survey.trees.enumerated() {
      if let definition = tree.definition, definition.isWithoutRowid {
        for field in 0..<min(definition.keyFields.count, rules[place].count) { order(place, field) }
      }
      guard tree.isIndex, let table = tree.table, let definition = survey.trees[table].definition else { continue }
      for name in tree.indexedColumns {
        guard let name else {
          remarks.append("the index \"\(printable(tree.name))\" is of an expression, whose order is not kept")
          continue
        }
        if let field = Self.field(name, definition) { order(table, field) }
      }
    }
    for entry in survey.entries where entry.indexDefinition?.isPartial == true {
      remarks.append("the index \"\(printable(entry.name))\" has a condition, which pseudonyms may meet differently")
    }
    for entry in survey.entries where entry.tableDefinition?.isVirtual == true {
      remarks.append("the tables behind the virtual table \"\(printable(entry.name))\" hold noise for blobs")
    }
    for (place, tree) in survey.trees.enumerated() where tree.isIndex {
      guard let table = tree.table, let definition = survey.trees[table].definition else { continue }
      // The fields of the table; nil for its rowids and for an expression.
      var fields = tree.indexedColumns.map { $0.flatMap { Self.field($0, definition) } }
      let expressions = tree.indexedColumns.indices.filter { tree.indexedColumns[$0] == nil }
      fields += definition.isWithoutRowid ? tree.keyColumns.compactMap { Self.field($0, definition) } : [nil]
      rules[place] = fields.map { copy(of: $0.map { rules[table][$0] } ?? rowids[table]) }
      for field in expressions { rules[place][field] = FieldRule() }
      names[place] = fields.map { field in field.map { names[table][$0] } ?? "rowid" }
    }
  }

  private func copy(of rule: FieldRule) -> FieldRule {
    var rule = rule
    rule.isCopy = true
    if rule.kind == .own { rule.domain = -1 }
    return rule
  }

  /// Returns the field of a column; nil for the rowid alias, which records omit.
  private static func field(_ name: String, _ definition: TableDefinition) -> Int? {
    guard let column = definition.column(named: name), column != definition.rowidAlias else { return nil }
    return definition.storedColumns.firstIndex(of: column)
  }

  private mutating func order(_ tree: Int, _ field: Int) {
    rules[tree][field].isOrdered = true
    let domain = rules[tree][field].domain
    if domain >= 0 { domains[domain].isOrdered = true }
  }

  private static func attribute(_ column: String, _ table: String, _ layout: StoreLayout?) -> String? {
    layout?.table(named: table)?.column(named: column)?.role.property?.description
  }

  /// Returns the attribute's names in inheriting entities.
  private static func inherited(_ column: String, _ table: String, _ layout: StoreLayout?) -> [String] {
    guard let layout, let key = layout.table(named: table)?.column(named: column)?.role.property else { return [] }
    return layout.entities.filter { layout.lineage(of: $0.name).contains(key.entityName) }
      .map { "\($0.name).\(key.name)" }
  }

  private static func kind(
    of column: ColumnDefinition, in definition: TableDefinition, _ layout: StoreLayout?
  ) -> FieldRule.Kind {
    let table = definition.name.uppercased()
    let name = column.name.uppercased()
    let isInteger = column.affinity == .integer
    switch table {
    case "Z_PRIMARYKEY", "SQLITE_SEQUENCE", "SQLITE_STAT1": return .own
    case "Z_MODELCACHE": return .model
    case "Z_METADATA": return name == "Z_PLIST" ? .metadata : name == "Z_UUID" ? .replace : .own
    case "SQLITE_STAT4", "SQLITE_STAT3": return name == "SAMPLE" ? .replace : .own
    case "ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING":
      return isInteger ? .key : column.declaredType.uppercased() == "TIMESTAMP" ? .date : .replace
    default: break
    }
    if let found = layout?.table(named: definition.name)?.column(named: column.name) {
      guard let type = attributeType(of: found) else { return .key }
      return type == .date ? .date : .replace
    }
    if isInteger, table.hasPrefix("Z_") || table.hasPrefix("ANSCK") { return .key }
    if definition.column(named: "Z_ENT") != nil, isInteger {
      // Without a model, use Core Data's names.
      let second = name.dropFirst().first
      if ["Z_PK", "Z_ENT", "Z_OPT"].contains(name) || name.hasPrefix("Z_FOK") || second?.isNumber == true {
        return .key
      }
    }
    return column.declaredType.uppercased() == "TIMESTAMP" ? .date : .replace
  }

  /// Returns an attribute's type; nil for a column of Core Data.
  private static func attributeType(of column: ColumnLayout) -> AttributeType? {
    switch column.role {
    case .attribute(_, let type), .compositeLeaf(_, _, let type): type
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
  }
}

struct FieldRule: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case replace

    case keep

    /// Bookkeeping of Core Data or SQLite, kept on pages reached from its root.
    case own

    /// Apparent bookkeeping elsewhere: schema words and short numbers stay.
    case word

    /// The app's model stays, other values are replaced.
    case model

    /// References: short integers stay; others only if software assigned them.
    case key

    /// Dates shift; other values get pseudonyms.
    case date

    case drop

    /// Core Data's metadata plist; only apps' entries are replaced.
    case metadata
  }

  var kind = Kind.replace

  /// Whether the column is indexed, so that order stays.
  var isOrdered = false

  /// The group in ``NumberDomains``, or -1.
  var domain = -1

  /// Whether it is an index's copy, which does not count.
  var isCopy = false

  func rule(for standing: RowStanding) -> FieldRule {
    guard standing != .reached else { return self }
    var rule = self
    switch kind {
    case .own: rule.kind = .word
    case .model: rule.kind = .replace
    case .keep where standing == .left, .metadata where standing == .left: rule.kind = .replace
    case .key where standing == .left && domain < 0: rule.kind = .word
    case .keep, .key, .replace, .word, .date, .drop, .metadata: break
    }
    return rule
  }
}

/// How a row is reached, which decides what stays.
enum RowStanding: Sendable, Hashable {
  /// From its table's root, by a cell pointer.
  case reached

  /// By a cell pointer of an older image, or of a page only attributed to its table.
  case numbered

  /// Unreferenced, with a guessed table.
  case left
}

extension ColumnRules {
  private struct Place: Hashable {
    var tree: Int
    /// The field; -1 for rowids.
    var field: Int
  }

  /// Groups columns that refer to each other, to replace equal integers alike.
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

  /// Creates a group for each column and each tree's rowids.
  private mutating func makeDomains(
    _ survey: StoreSurvey, _ wanted: ScrubRules, _ conditions: [String: TableConditions],
    _ indexWords: [String: Set<String>]
  ) {
    let virtual = Set(survey.entries.filter { $0.tableDefinition?.isVirtual == true }.map { $0.name.uppercased() })
    for (place, tree) in survey.trees.enumerated() {
      guard !tree.isIndex, let definition = tree.definition else {
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
        // Dates in few bytes are replaced in order.
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

  /// Returns the rule for rowids; Core Data and SQLite assign their own.
  private mutating func rowids(
    of definition: TableDefinition, _ survey: StoreSurvey, _ virtual: Set<String>, _ wanted: ScrubRules
  ) -> FieldRule {
    let name = definition.name.uppercased()
    let isShadow = Self.isShadow(name, virtual)
    let isOwn =
      survey.layout?.table(named: definition.name) != nil || definition.column(named: "Z_ENT") != nil
      || name.hasPrefix("Z_") || name.hasPrefix("SQLITE_") || name.hasPrefix("ANSCK")
      || ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(name) || isShadow
    if isOwn, !isShadow || Self.isCoded(name, virtual) { return FieldRule(kind: .own) }
    let alias = definition.rowidAlias.map { definition.columns[$0].name } ?? "rowid"
    if !isOwn, wanted.keeping.contains("\(definition.name).\(alias)") { return FieldRule(kind: .keep) }
    domains.append(NumberDomains.Domain(isOrdered: true, isKey: true))
    return FieldRule(kind: isOwn ? .own : .key, isOrdered: !isOwn, domain: domains.count - 1)
  }

  /// Whether a table is a virtual table's shadow, numbered by the module.
  private static func isShadow(_ name: String, _ virtual: Set<String>) -> Bool {
    ["DATA", "SEGDIR", "SEGMENTS", "STAT", "NODE", "CONFIG"].contains {
      name.hasSuffix("_\($0)") && virtual.contains(String(name.dropLast($0.count + 1)))
    }
  }

  /// Whether rowids are a module's codes, not counts.
  private static func isCoded(_ name: String, _ virtual: Set<String>) -> Bool {
    name.hasSuffix("_DATA") && virtual.contains(String(name.dropLast("_DATA".count)))
  }

  /// Whether declaration or name marks an app-chosen key or reference.
  private static func isKey(_ column: ColumnDefinition) -> Bool {
    guard column.affinity == .integer else { return false }
    let name = column.name
    // `userID` is a key, `PAID` is not.
    return column.isPrimaryKey || name.lowercased() == "id" || name.lowercased().hasSuffix("_id")
      || (name.hasSuffix("Id") || name.hasSuffix("ID")) && name.dropLast(2).last?.isLowercase == true
  }

  private static func isFlag(_ column: ColumnDefinition, _ table: String, _ layout: StoreLayout?) -> Bool {
    if let found = layout?.table(named: table)?.column(named: column.name), attributeType(of: found) == .boolean {
      return true
    }
    return column.declaredType.uppercased().hasPrefix("BOOL")
  }

  /// Joins the groups of references and their targets.
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
        // References follow their target's order.
        if domain != rules[tree][field].domain || isShared(domain, joined) { rules[tree][field].isOrdered = true }
        rules[tree][field].domain = domain
        // If one refers to rows, all are keys: all stay, or none.
        if domains[domain].isKey, rules[tree][field].kind == .replace { rules[tree][field].kind = .key }
      }
      if rowids[tree].domain >= 0 { rowids[tree].domain = root(rowids[tree].domain) }
    }
  }

  private func isShared(_ domain: Int, _ joined: [Int]) -> Bool {
    domains[domain].isOrdered && joined.indices.contains { $0 != domain && joined[$0] == domain }
  }

  private static func place(_ target: TableConditions.Target, _ survey: StoreSurvey) -> Place? {
    let tree = survey.trees.firstIndex {
      !$0.isIndex && $0.definition != nil && $0.name.lowercased() == target.table.lowercased()
    }
    guard let tree, let definition = survey.trees[tree].definition,
      let name = target.column ?? (definition.primaryKey.count == 1 ? definition.primaryKey[0] : nil),
      let column = definition.column(named: name)
    else { return nil }
    if column == definition.rowidAlias { return Place(tree: tree, field: -1) }
    return definition.storedColumns.firstIndex(of: column).map { Place(tree: tree, field: $0) }
  }
}

extension ColumnRules {
  /// Returns the kept columns of the app's tables, and the column count.
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
        let reason: ScrubReport.Staying.Reason?
        switch rule.kind {
        case .own, .word, .model, .metadata: continue
        case .keep: reason = .kept
        case .key where rule.domain < 0: continue
        case .replace, .key, .date, .drop:
          reason = rule.kind != .drop || rule.isOrdered ? domains.staying(rule.domain) : nil
        }
        count += 1
        if let reason { staying.append(.init(name: name(names[place][field]), reason: reason)) }
      }
    }
    return (staying, count)
  }
}

/// The caller's choice of columns to keep or overwrite.
public struct ScrubRules: Sendable, Hashable {
  /// The attributes to keep: `Entity.attribute`, or `table.column` without a model.
  public var keeping: Set<String>

  /// The attributes to overwrite with one filler, named alike.
  public var dropping: Set<String>

  /// Creates rules; by default all values are replaced.
  public init(keeping: Set<String> = [], dropping: Set<String> = []) {
    self.keeping = keeping
    self.dropping = dropping
  }
}
