import PersistentStore
package import SQLiteFormat
internal import StoreFiles

extension Examiner {
  /// Has SQLite itself read the schema: a store whose schema it refuses no app can open, however sound its pages are.
  ///
  /// A store that was found damaged before is not asked for, since SQLite would say no more than is known.
  func askSQLite(
    about schema: Schema, of database: Database, _ examination: inout Examination
  ) throws(FormatError) {
    guard examination.verdict != .damaged else { return }
    let tables = schema.tables.filter { $0.rootPage > 0 }.map {
      ($0.name, $0.tableDefinition?.isWithoutRowid == true)
    }
    let refusal: SchemaReading.Refusal?
    do throws(FileError) {
      refusal = try SchemaReading(DatabaseContent(database)).refusal(of: Dictionary(tables) { first, _ in first })
    } catch {
      throw FormatError(error)
    }
    guard let refusal else { return }
    examination.isSchemaRefused = true
    // A name that is no entry's may be anything.
    let entry = schema.entries.first { $0.name == refusal.entry }.map { printableName($0.name) }
    let words =
      switch refusal.kind {
      case .schema:
        "SQLite refuses to open the store, since it cannot read its schema"
          + (entry.map { ": the statement of \($0) is damaged, or what it needs is missing" } ?? "")
      case .indexMissing:
        "SQLite refuses to use \(entry.map { "the table \($0)" } ?? "a table"), whose statement asks for an index that is not in the schema"
      }
    examination.health.notes.append(HealthNote(refusal.kind.rawValue, .damage, words))
    examination.condemn(.damage(refusal.kind.rawValue, "\(words).", sqlite: refusal.code))
  }
}

extension IndexReport {
  /// Has SQLite compare the indexes that could not be compared here, such as those of tables without rowids.
  ///
  /// Those whose entries an expression or a condition decides stay uncompared: none is evaluated.
  ///
  /// - Throws: what reading failed with; `cancelled` where the work was to end.
  package mutating func askSQLite(
    about schema: Schema, of content: DatabaseContent, isCancelled: @escaping () -> Bool = { false }
  ) throws(FormatError) {
    guard isSound, !uncompared.isEmpty else { return }
    let names = Set(uncompared)
    let indexes = schema.indexes.filter { names.contains($0.name) }
    let found: [String: SchemaReading.Check]
    do throws(FileError) {
      found = try SchemaReading(content).checkIndexes(
        of: Set(indexes.map(\.tableName)).sorted(), isCancelled: isCancelled)
    } catch {
      throw FormatError(error)
    }
    if isCancelled() { throw FormatError.cancelled("compare the indexes") }
    for index in indexes {
      switch found[index.tableName] {
      case .sound:
        uncompared.removeAll { $0 == index.name }
        compared += 1
      case .damaged:
        uncompared.removeAll { $0 == index.name }
        findings.append(Finding(.indexEntriesDiffer, root: index.rootPage))
      case .unchecked, nil: break
      }
    }
  }
}
