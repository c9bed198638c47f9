import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage

/// What happens to each field of each table's and index's records, in the order in which they are stored.
struct ColumnRules {
  /// For each tree of the survey, the rules of its fields.
  var rules: [[FieldRule]] = []

  /// For each tree, the names of its fields as the report gives them: attributes where there is a model, else columns.
  private(set) var names: [[String]] = []

  /// For each tree, what happens to the numbers of its rows.
  var rowids: [FieldRule] = []

  /// The groups of columns that share the pseudonyms of their integers.
  var domains: [NumberDomains.Domain] = []

  /// The place of `sqlite_sequence`; nil where there is none.
  private(set) var sequence: Int?

  /// The names of the schema and of the model, which are not the user's.
  private(set) var words: [String] = []

  /// Indexes of which something is to be said: those of expressions, and those with a condition.
  private(set) var remarks: [String] = []

  /// Makes the rules.
  ///
  /// - Throws: `unknown-column` where the caller's rules name something that is not there.
  init(_ survey: StoreSurvey, _ wanted: ScrubRules) throws(ScrubbingError) {
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

  private static func unknown(_ unknown: String, among known: Set<String>) -> ScrubbingError {
    ScrubbingError(
      .unknownColumn, detail: "there is no attribute \"\(printable(unknown))\"",
      hint: NameSuggestion.hint(for: unknown, among: Array(known), "attributes"))
  }

  private static func words(of survey: StoreSurvey) -> [String] {
    var words = survey.entries.filter(\.isTelling).map(\.name)
    for tree in survey.trees {
      words.append(tree.name)
      words += tree.definition?.columns.map(\.name) ?? []
    }
    words += survey.layout?.entities.map(\.name) ?? []
    for table in survey.layout?.tables ?? [] {
      words += table.columns.compactMap { $0.role.property?.description }
    }
    return words + Array((survey.metadata?.versionHashes ?? [:]).keys)
  }

  /// Marks the columns that indexes have, and makes the rules of the indexes' own fields.
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

  /// The field of a record that holds a column; nil for the alias of the rowid, which records do not hold.
  private static func field(_ name: String, _ definition: TableDefinition) -> Int? {
    guard let column = definition.column(named: name), column != definition.rowidAlias else { return nil }
    return definition.storedColumns.firstIndex(of: column)
  }

  private mutating func order(_ tree: Int, _ field: Int) {
    rules[tree][field].isOrdered = true
    let domain = rules[tree][field].domain
    if domain >= 0 { domains[domain].isOrdered = true }
  }

  /// The attribute that a column holds, as `Entity.attribute`.
  private static func attribute(_ column: String, _ table: String, _ layout: StoreLayout?) -> String? {
    layout?.table(named: table)?.column(named: column)?.role.property?.description
  }

  /// The same attribute, by the names of the entities that inherit it.
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
    case "Z_PRIMARYKEY", "Z_MODELCACHE", "SQLITE_SEQUENCE", "SQLITE_STAT1": return .own
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
      // Without a model: what Core Data names itself.
      let second = name.dropFirst().first
      if ["Z_PK", "Z_ENT", "Z_OPT"].contains(name) || name.hasPrefix("Z_FOK") || second?.isNumber == true {
        return .key
      }
    }
    return column.declaredType.uppercased() == "TIMESTAMP" ? .date : .replace
  }
}

/// What happens to a column's values.
struct FieldRule: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case replace

    /// Values stay: the caller exempted them.
    case keep

    /// Values stay on pages that the root of this very table leads to: bookkeeping of Core Data or of SQLite.
    case own

    /// What seems to be bookkeeping, elsewhere: words of the schema and numbers of up to six digits stay.
    case word

    /// Integers lead to rows: those of up to six digits stay, others where the software numbered the rows and not the app.
    case key

    /// Numbers are dates and are shifted; anything else becomes a pseudonym.
    case date

    /// Values are overwritten with the same filling everywhere.
    case drop

    /// The property list of Core Data's metadata, of which only what apps put in is replaced.
    case metadata
  }

  var kind = Kind.replace

  /// Whether an index has the column, so that its values keep their order.
  var isOrdered = false

  /// The numbers that it shares its pseudonyms with: a place in ``NumberDomains``, or -1 for none.
  var domain = -1

  /// Whether it is a copy of a column's values in an index, which says nothing of how many there are.
  var isCopy = false

  /// The rule for a row, by what leads to it.
  func rule(for standing: RowStanding) -> FieldRule {
    guard standing != .reached else { return self }
    var rule = self
    switch kind {
    case .own: rule.kind = .word
    case .keep where standing == .left, .metadata where standing == .left: rule.kind = .replace
    case .key where standing == .left && domain < 0: rule.kind = .word
    case .keep, .key, .replace, .word, .date, .drop, .metadata: break
    }
    return rule
  }
}

/// What leads to a row, by which it is decided whether anything in it stays.
enum RowStanding: Sendable, Hashable {
  /// The root of its table, and a pointer of its page.
  case reached

  /// A pointer of an older image of a page of its table, or of one that was only found to belong to it.
  case numbered

  /// Nothing: it is on a free page, or between the rows of a page, and its table is a guess.
  case left
}
