internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SystemPackage

/// A step that fills a new store by whole-table SQL, in constant memory.
struct StoreRebuild {
  let layout: StepLayout

  /// In seconds since 2001-01-01T00:00:00Z.
  let referenceDate: Double

  /// The values earlier steps added, which are no loss.
  var made = MadeValues()

  /// Whether it is the last step; apps open its file.
  var isLast = true

  let custom: CustomStep?

  let stage: PolicyRun.Stage

  var name: String { stage.stepName }

  init(
    _ mapping: MappingModel, name: String, referenceDate: Double, policies: MigrationPolicies = MigrationPolicies(),
    attempt: Int = 1, userInfo: [String: String] = [:], layouts: LayoutCache = LayoutCache()
  ) throws {
    layout = try StepLayout(mapping, layouts: layouts)
    let isCustom = layout.isCustom || mapping.entityMappings.contains { policies.isNamed($0) }
    custom = isCustom ? try CustomStep(layout, policies: policies) : nil
    stage = PolicyRun.Stage(stepName: name, attempt: attempt, userInfo: userInfo)
    self.referenceDate = referenceDate
  }

  /// Makes the new store.
  ///
  /// - Parameters:
  ///   - source: A store of the source model, open nowhere else and without a WAL.
  ///   - target: The new file, without leftovers.
  /// - Returns: The outcome and the source's schema.
  /// - Throws: `migration-data-violation`, `migration-constraint-violation`, `migration-sqlite` or a file error.
  func run(from source: FilePath, to target: FilePath) throws -> (account: StepAccount, before: SQLSchema) {
    let old = try StepConnection(source, .immutable, cacheKilobytes: 2048)
    // Records can be counted during whole-table copies; else they must be known first.
    let hasAllEntities = custom == nil && layout.source.entities.allSatisfy { layout.numbers[$0.number] != nil }
    let contents = try old.read { database in
      hasAllEntities
        ? try SourceContents(schema: SQLSchema(database), database, layout) : try SourceContents(database, layout)
    }
    let (counted, built) = try concurrently {
      try old.read { database in
        try layout.refuseViolations(database)
        let losses =
          try StepForecast(of: layout, made: made).losses(database) + contents.unexpectedColumnLosses(database, layout)
        let counted = hasAllEntities ? try SourceContents(database, layout) : contents
        // Data on a damaged page would go missing silently.
        try FileIntegrity.check(source, in: FileSystem(), orThrow: .sourceDamaged)
        return (counted, losses)
      }
    } _: {
      try build(from: source, to: target, contents)
    }
    try old.close()
    var account = built
    account.losses = counted.1 + built.losses
    if custom == nil { count(counted.0, &account) }
    return (account, contents.schema)
  }

  private func build(from source: FilePath, to target: FilePath, _ contents: SourceContents) throws -> StepAccount {
    let new = try StepConnection(target, .create, referenceDate: referenceDate)
    let account = try new.run { database in
      var account = StepAccount(step: name, way: .rebuild)
      try database.execute(
        sql: """
          PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA encoding = '\(contents.encoding)';
          PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE
          """)
      try WorkingConnection.attach(source, .immutable, as: "old", to: database)
      try database.execute(sql: "BEGIN")
      try layout.destination.makeTables(on: database)
      let custom = try custom.map { try CustomRun($0, database, contents, stage) }
      defer { custom?.close() }
      if let custom { try custom.fill() } else { try fillTables(database, contents) }
      try fillPrimaryKeys(database)
      try writeMetadata(database, from: "old")
      try custom?.notePrimaryKeys()
      try copyForeign(database, contents, custom, &account)
      for index in layout.destination.indexes { try make(index, database) }
      try layout.destination.makeSpatialIndexes(on: database)
      if custom == nil { try joinNewInverses(database) }
      try computeDerivedValues(database)
      try custom?.validate()
      try custom?.count(&account)
      try layout.destination.makeTriggers(on: database)
      try recreateAppObjects(database, contents, &account)
      for pragma in ["user_version", "application_id"] {
        let value = try Int64.fetchOne(database, sql: "PRAGMA old.\(pragma)") ?? 0
        if value != 0 { try database.execute(sql: "PRAGMA main.\(pragma) = \(value)") }
      }
      try database.execute(sql: "COMMIT")
      try database.execute(sql: "DETACH DATABASE old")
      // Core Data stores say WAL in both version bytes (format section 3.1). The caller syncs during verification.
      try database.execute(sql: "PRAGMA main.locking_mode = NORMAL; PRAGMA main.journal_mode = WAL")
      try database.bringLogIntoMainFile()
      return account
    }
    try new.close()
    return account
  }

  // MARK: Tables

  private func fillTables(_ database: Database, _ contents: SourceContents) throws {
    for table in layout.destination.tables {
      let routes = layout.routes(to: table)
      var done: Set<String> = []
      for name in routes.map(\.source.tableName) where done.insert(name).inserted {
        try fill(table, from: name, routes.filter { $0.source.tableName == name }, database, contents)
      }
    }
    for table in layout.destination.joinTables {
      for statement in layout.statements(filling: table, schema: contents.schema) {
        try database.execute(sql: statement)
      }
    }
  }

  private func fill(
    _ table: TableLayout, from oldName: String, _ routes: [StepLayout.Route], _ database: Database,
    _ contents: SourceContents
  ) throws {
    let expressions = table.columns.map { column in
      Self.choice(routes.map { ($0.source.number, layout.expression(column, $0)) })
    }
    let isWhole =
      Set(layout.source.entities.filter { $0.tableName == oldName }.map(\.number))
      .isSubset(of: routes.map(\.source.number))
      || contents.rows[oldName]?.allSatisfy { number, rows in
        rows == 0 || routes.contains { $0.source.number == number }
      } ?? false
    let target = "main.\(table.name.sqlName)"
    let origin = "old.\(oldName.sqlName)"
    let isSame =
      contents.schema.tables[oldName]?.columns.map { StepLayout.column($0.name) }
      == zip(table.columns, expressions).map { column, expression in
        // An unchanged number is the column itself.
        column.role == .entityNumber && routes.allSatisfy({ $0.source.number == $0.destination.number })
          ? StepLayout.column("Z_ENT") : expression
      }
    if isWhole, isSame, contents.hasSameTypes(oldName, table) {
      // SQLite copies whole records between tables of equal shape.
      try database.execute(sql: "INSERT INTO \(target) SELECT * FROM \(origin)")
      return
    }
    let condition = isWhole ? "" : " WHERE \(StepLayout.row).Z_ENT IN \(routes.map(\.source.number).sqlList)"
    try database.execute(
      sql: "INSERT INTO \(target) (\(table.columns.map(\.sqlName).joined(separator: ", "))) "
        + "SELECT \(expressions.joined(separator: ", ")) FROM \(origin) AS \(StepLayout.row)\(condition)")
  }

  private static func choice(_ expressions: [(number: Int, sql: String)]) -> String {
    guard let first = expressions.first else { return "NULL" }
    if expressions.allSatisfy({ $0.sql == first.sql }) { return first.sql }
    let cases = expressions.filter { $0.sql != "NULL" }.map { "WHEN \($0.number) THEN \($0.sql)" }
    return "CASE \(StepLayout.column("Z_ENT")) \(cases.joined(separator: " ")) END"
  }

  // MARK: Indexes

  func make(_ index: IndexLayout, _ database: Database) throws {
    do {
      try database.execute(sql: index.statement)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      throw try duplicates(index, database)
    }
  }

  private func duplicates(_ index: IndexLayout, _ database: Database) throws -> MigrationError {
    let rows = try database.count(from: index.collisions)
    let keys = try database.examples(from: index.collisions, key: "Z_PK")
    var entity: String?
    var properties: [String] = []
    if case .uniqueness(let name, let names) = index.purpose { (entity, properties) = (name, names) }
    return MigrationError(
      .constraintViolation,
      detail: "\(grouped(rows)) records of \(printable(entity ?? index.tableName)) are not unique in "
        + "\(printable(properties.joined(separator: ", "))), for instance those with the primary keys \(keys.sqlList)",
      entityName: entity, propertyName: properties.joined(separator: ","))
  }

  private func count(_ contents: SourceContents, _ account: inout StepAccount) {
    for route in layout.routes {
      let rows = contents.rows[route.source.tableName]?[route.source.number] ?? 0
      account.entities.append(.init(entity: route.destination.name, source: route.source.name, rows: rows))
    }
    for entity in layout.source.entities where layout.numbers[entity.number] == nil {
      let rows = contents.rows[entity.tableName]?[entity.number] ?? 0
      if rows > 0 { account.removedRows[entity.name] = rows }
    }
  }
}

extension StoreRebuild {
  /// Renumbers entities and changed-property bits in the history; drops removed entities' changes.
  func renumberHistory(_ database: Database, _ account: inout StepAccount) throws {
    let known = layout.numbers
    let removed = layout.source.entities.map(\.number).filter { known[$0] == nil }
    let condition = "WHERE ZENTITY IN \(removed.sqlList)"
    account.removedChanges = try database.count(from: "main.ACHANGE \(condition)")
    try database.execute(sql: "DELETE FROM main.ACHANGE \(condition)")
    if try database.columns(in: "ACHANGE").contains(where: { $0.name == "ZCOLUMNS" }) {
      try moveChangedProperties(database)
    }
    let moved = layout.routes.filter { $0.source.number != $0.destination.number }
    guard !moved.isEmpty else { return }
    let cases = moved.map { "WHEN \($0.source.number) THEN \($0.destination.number)" }.joined(separator: " ")
    try database.execute(
      sql: "UPDATE main.ACHANGE SET ZENTITY = CASE ZENTITY \(cases) ELSE ZENTITY END "
        + "WHERE ZENTITY IN \(moved.map(\.source.number).sqlList)")
  }

  private func moveChangedProperties(_ database: Database) throws {
    var moves: [Int64: ChangedProperties] = [:]
    for route in layout.routes {
      let move = ChangedProperties(route, layout)
      if !move.isIdentity { moves[Int64(route.source.number)] = move }
    }
    guard !moves.isEmpty else { return }
    let known = moves
    database.add(
      function: DatabaseFunction("lazaret_changed_properties", argumentCount: 2, pure: true) { values in
        guard let number = Int64.fromDatabaseValue(values[0]), let bits = Data.fromDatabaseValue(values[1]),
          let moved = known[number]?.moved([UInt8](bits))
        else { return nil }
        return Data(moved)
      })
    try database.execute(
      sql: "UPDATE main.ACHANGE SET ZCOLUMNS = lazaret_changed_properties(ZENTITY, ZCOLUMNS) "
        + "WHERE ZCOLUMNS IS NOT NULL AND ZENTITY IN \(moves.keys.sorted().sqlList)")
  }
}

extension StoreRebuild {
  /// The first of Core Data's own entity numbers: history, mirroring, index tracking.
  static let firstReservedNumber = 16000

  /// Keeps the source's highest keys (format section 3.3).
  private func fillPrimaryKeys(_ database: Database) throws {
    for entity in layout.destination.entities {
      var highest: Int64 = 0
      if entity.isRoot {
        highest = try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM main.\(entity.tableName.sqlName)") ?? 0
        let roots = Set(
          layout.routes.filter { $0.destination.rootName == entity.name }
            .compactMap { layout.source.entity(named: $0.source.rootName)?.number })
        let before =
          try Int64.fetchOne(
            database, sql: "SELECT max(Z_MAX) FROM old.Z_PRIMARYKEY WHERE Z_ENT IN \(roots.sorted().sqlList)") ?? 0
        highest = max(highest, before)
      }
      try StoreLayout.notePrimaryKey(highest, of: entity, on: database)
    }
    try database.execute(
      sql: """
        INSERT INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX)
        SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM old.Z_PRIMARYKEY WHERE Z_ENT > \(Self.firstReservedNumber)
        """)
  }

  /// Writes the new model's metadata; keeps the identifier and foreign entries.
  ///
  /// - Parameter schema: The database of the old metadata; the new one is always `main`.
  func writeMetadata(_ database: Database, from schema: String) throws {
    let model = layout.destination.model
    guard let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM \(schema).Z_METADATA LIMIT 1") else {
      throw MigrationError(.dataViolation, detail: "the store has no metadata")
    }
    let uuid: DatabaseValue = row[0]
    var metadata = try StoreMetadata(row)
    let fresh = StoreMetadata(model: model, uuid: metadata.uuid)
    for key in [
      StoreMetadata.Key.versionHashes, StoreMetadata.Key.versionHashesVersion, StoreMetadata.Key.versionIdentifiers,
      StoreMetadata.Key.versionHashesDigest, StoreMetadata.Key.versionChecksum, StoreMetadata.Key.autoVacuumLevel,
    ] {
      metadata.entries[key] = fresh.entries[key]
    }
    let bytes = Data(try metadata.propertyListBytes())
    try database.execute(sql: "DELETE FROM main.Z_METADATA; DELETE FROM main.Z_MODELCACHE")
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)", arguments: [uuid, bytes])
    // Compiling a model costs as much as a small step; only the last one is read.
    guard isLast else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [Data(try model.modelCache())])
  }

  func computeDerivedValues(_ database: Database) throws {
    for entity in layout.destination.entities {
      for property in layout.destinationSide.properties[entity.name] ?? []
      where property.declaringEntityName == entity.name && property.attribute?.isDerived == true {
        let numbers =
          layout.routes(of: property.key).filter { route in
            let old = layout.sourceSide.property(property.path, of: route.source.name)
            return !layout.keepsDerivedValue(old, property, route.destination.name)
          }.map(\.destination.number) + (layout.isCustom ? Array(entity.numbers) : [])
        guard !numbers.isEmpty, let attribute = property.attribute,
          case .attribute(let columns) = layout.destination.storage(of: property.key), let column = columns.first,
          let value = layout.destination.derivedValue(of: attribute, entity)
        else { continue }
        try database.execute(
          sql: "UPDATE main.\(entity.tableName.sqlName) AS o SET \(column.sqlName) = \(value) "
            + "WHERE o.Z_ENT IN \(numbers.sqlList)")
      }
    }
  }
}

/// The new positions of changed-property bits.
///
/// A history change has a bit per property in alphabetical order, highest bit of the first byte first, in one byte more
/// than the full ones (format section 3.10).
struct ChangedProperties: Sendable {
  private let oldCount: Int
  private let newCount: Int

  private let places: [[Int]]

  init(_ route: StepLayout.Route, _ layout: StepLayout) {
    func names(_ model: ManagedObjectModel, _ entity: String) -> [String] {
      model.properties(of: entity).keys.inCodeUnitOrder()
    }
    let old = names(layout.source.model, route.source.name)
    let new = names(layout.destination.model, route.destination.name)
    var sources: [String: Set<String>] = [:]
    for mapping in route.mapping.propertyMappings {
      if let source = mapping.source { sources[mapping.destination.name, default: []].insert(source.name) }
    }
    oldCount = old.count
    newCount = new.count
    // Transient properties have no mapping and keep their name.
    places = old.map { name in new.indices.filter { sources[new[$0]]?.contains(name) ?? (new[$0] == name) } }
  }

  var isIdentity: Bool { oldCount == newCount && places.enumerated().allSatisfy { $0.element == [$0.offset] } }

  /// The moved bits; nil if the format is violated.
  func moved(_ bits: [UInt8]) -> [UInt8]? {
    guard bits.count == oldCount / 8 + 1 else { return nil }
    var result = [UInt8](repeating: 0, count: newCount / 8 + 1)
    for place in 0..<(bits.count * 8) where bits[place / 8] & (0x80 >> UInt8(place % 8)) != 0 {
      guard place < oldCount else { return nil }
      for new in places[place] { result[new / 8] |= 0x80 >> UInt8(new % 8) }
    }
    return result
  }
}

/// A cache of models' tables, because consecutive steps share a model.
final class LayoutCache: Sendable {
  final class Entry: Sendable {
    let layout: StoreLayout
    let side: InferenceSide
    private let schema = Mutex<SQLSchema?>(nil)

    fileprivate init(_ model: ManagedObjectModel) throws {
      layout = try StoreLayout(model)
      side = InferenceSide(model)
    }

    func newSchema() throws(PersistentStoreError) -> SQLSchema {
      if let known = schema.withLock({ $0 }) { return known }
      let made = try SQLSchema(layout)
      schema.withLock { $0 = made }
      return made
    }
  }

  private let entries = Mutex<[Entry]>([])

  /// A step needs two; the next step shares one.
  private static let capacity = 3

  func entry(for model: ManagedObjectModel) throws -> Entry {
    // Models of a bundle share storage, so comparing them is cheap.
    if let known = entries.withLock({ entries in entries.first { $0.layout.model == model } }) { return known }
    let made: Entry
    do { made = try Entry(model) } catch { throw MigrationError(any: error) }
    entries.withLock { entries in
      entries.append(made)
      if entries.count > Self.capacity { entries.removeFirst() }
    }
    return made
  }
}
