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
    for table in survey.layout?.tables ?? [] {
      words += table.columns.compactMap { $0.role.property?.description }
    }
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
      var fields: [FieldRule] = []
      var labels: [String] = []
      for name in tree.indexedColumns {
        let field = name.flatMap { Self.field($0, definition) }
        fields.append(field.map { copy(of: rules[table][$0]) } ?? (name == nil ? FieldRule() : copy(of: rowids[table])))
        labels.append(field.map { names[table][$0] } ?? "rowid")
      }
      if definition.isWithoutRowid {
        for name in tree.keyColumns {
          guard let field = Self.field(name, definition) else { continue }
          fields.append(copy(of: rules[table][field]))
          labels.append(names[table][field])
        }
      } else {
        fields.append(copy(of: rowids[table]))
        labels.append("rowid")
      }
      rules[place] = fields
      names[place] = labels
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
      switch found.role {
      case .attribute(_, let type), .compositeLeaf(_, _, let type): return type == .date ? .date : .replace
      case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: return .key
      }
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
