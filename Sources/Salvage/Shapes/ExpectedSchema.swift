internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles

/// The tables and indexes that a store should have, by its model or schema file and not by its own bytes.
struct ExpectedSchema {
  /// The entries, tables before their indexes; no root pages.
  var entries: [SchemaEntry] = []

  /// The layout of the model, for Core Data stores.
  var layout: StoreLayout?

  /// The schema of one version of a model.
  init(_ model: ManagedObjectModel) throws(SalvageError) {
    do throws(PersistentStoreError) {
      let layout = try StoreLayout(model)
      self.layout = layout
      entries = Self.entries(of: layout.statements)
    } catch {
      throw SalvageError(error)
    }
  }

  /// The schema that a script creates.
  init(_ script: SchemaScript) throws(SalvageError) {
    do {
      let image = try StoreCreation.bytes(of: script)
      entries = try Database(main: MemoryBytes(image)).schema().entries
      for index in entries.indices { entries[index].rootPage = 0 }
    } catch let error as PersistentStoreError {
      throw SalvageError(error)
    } catch let error as FormatError {
      throw SalvageError(error)
    } catch {
      throw SalvageError(
        .model, operation: "read the schema", detail: "an unforeseen failure", hint: "Check the schema file.")
    }
  }

  private static func entries(of statements: [String]) -> [SchemaEntry] {
    var entries: [SchemaEntry] = []
    for statement in statements {
      if let table = TableDefinition(sql: statement) {
        entries.append(
          SchemaEntry(kind: .table, name: table.name, tableName: table.name, rootPage: 0, sql: statement))
        guard !table.isWithoutRowid, table.rowidAlias == nil, !table.primaryKey.isEmpty else { continue }
        entries.append(
          SchemaEntry(
            kind: .index, name: "sqlite_autoindex_\(table.name)_1", tableName: table.name, rootPage: 0, sql: nil))
      } else if let index = IndexDefinition(sql: statement) {
        entries.append(
          SchemaEntry(kind: .index, name: index.name, tableName: index.tableName, rootPage: 0, sql: statement))
      }
    }
    return entries
  }

  /// How many tables of another list are also in this one with the same columns, less those that have others.
  func agreement(with found: [SchemaEntry]) -> Int {
    func columns(_ entry: SchemaEntry) -> Set<String>? {
      entry.tableDefinition.map { Set($0.columns.map { $0.name.lowercased() }) }
    }
    var own: [String: Set<String>] = [:]
    for entry in entries where entry.kind == .table { own[entry.name.lowercased()] = columns(entry) }
    var agreement = 0
    for entry in found where entry.kind == .table {
      guard let here = own[entry.name.lowercased()], let there = columns(entry) else { continue }
      agreement += here == there ? 1 : -1
    }
    return agreement
  }

  /// The entity numbers of a table's rows; nil where the table is no entity's.
  func entityNumbers(ofTable name: String) -> ClosedRange<Int64>? {
    guard let layout, let table = layout.tables.first(where: { isSame($0.name, name) }),
      let entity = layout.entity(named: table.rootEntityName)
    else { return nil }
    return Int64(entity.numbers.lowerBound)...Int64(entity.numbers.upperBound)
  }
}
