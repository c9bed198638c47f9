import ManagedObjectModel
import PersistentStore
import SQLiteFormat
internal import StoreFiles

extension Examiner {
  /// Reads schema and metadata, and compares the store with the app's model.
  func readContent(
    _ database: Database, into examination: inout Examination, model: AppModel?
  ) throws(FormatError) -> Schema {
    let schema = try database.schema()
    examination.health.add(schema.findings)
    if schema.findings.hasDamage {
      examination.condemn(
        .damage("schema-damaged", "The list of tables on the store's first pages is damaged."))
    }
    try checkRoots(of: schema, in: database, examination: &examination)
    try askSQLite(about: schema, of: database, &examination)
    let isCoreData = schema.table(named: "Z_PRIMARYKEY") != nil || schema.table(named: "Z_METADATA") != nil
    if isCoreData {
      examination.kind = .coreData
      try readCoreData(database, schema, into: &examination, model: model)
    } else {
      examination.kind = schema.entries.isEmpty && examination.verdict == .damaged ? .unknown : .sqlite
      judgePlain(schema, into: &examination, model: model)
    }
    examination.entities = Self.entities(of: schema, examination)
    examination.unchecked = Unchecked.all(in: schema)
    return schema
  }

  /// Every root page must be of the kind that its table or index needs.
  private func checkRoots(
    of schema: Schema, in database: Database, examination: inout Examination
  ) throws(FormatError) {
    let findings = try database.rootFindings(of: schema)
    guard !findings.isEmpty else { return }
    examination.health.add(findings)
    examination.condemn(
      .damage(
        "roots-damaged",
        findings.total == 1
          ? "One table or index of the store does not begin where its schema says."
          : "\(grouped(findings.total)) of the store's tables and indexes do not begin where its schema says."))
  }

  // MARK: Core Data

  private func readCoreData(
    _ database: Database, _ schema: Schema, into examination: inout Examination, model: AppModel?
  ) throws(FormatError) {
    let cached = try cachedModel(database, schema, &examination)
    examination.storeModel = cached
    guard let table = schema.table(named: "Z_METADATA"), table.rootPage > 0 else {
      examination.condemn(.damage("metadata-missing", "The table with the store's metadata is missing.", sqlite: nil))
      return
    }
    var rows = try database.rows(root: table.rootPage, payloadLimit: Self.blobLimit)
    guard let row = try rows.next(), let values = table.tableDefinition?.values(of: row) else {
      examination.health.add(rows.findings)
      examination.condemn(.damage("metadata-missing", "The store's metadata cannot be found.", sqlite: nil))
      return
    }
    let columns = table.tableDefinition
    if columns?.column(named: "Z_UUID") == nil {
      examination.condemn(
        .damage(
          "metadata-damaged",
          "The store's metadata has no column for the store's identifier, which nothing else shows.",
          sqlite: nil))
    }
    let uuid = columns?.column(named: "Z_UUID").flatMap { values[safe: $0]?.string } ?? ""
    let list = columns?.column(named: "Z_PLIST").flatMap { values[safe: $0]?.bytes } ?? []
    do {
      examination.metadata = try StoreMetadata(uuid: uuid, propertyList: list)
    } catch {
      examination.condemn(
        .damage("metadata-damaged", "The store's metadata cannot be read: \(error.detail).", sqlite: nil))
      return
    }
    try judgeCoreData(database, schema, into: &examination, model: model)
  }

  /// The longest metadata or model cache that is read, in bytes; the largest real ones are far below.
  static let blobLimit = 64 << 20

  private func cachedModel(
    _ database: Database, _ schema: Schema, _ examination: inout Examination
  ) throws(FormatError) -> ManagedObjectModel? {
    guard let table = schema.table(named: "Z_MODELCACHE"), table.rootPage > 0 else { return nil }
    var rows = try database.rows(root: table.rootPage, payloadLimit: Self.blobLimit)
    guard let row = try rows.next(), let values = table.tableDefinition?.values(of: row),
      let bytes = table.tableDefinition?.column(named: "Z_CONTENT").flatMap({ values[safe: $0]?.bytes })
    else { return nil }
    do {
      return try ManagedObjectModel(modelCache: bytes)
    } catch {
      examination.health.notes.append(
        HealthNote(
          "model-cache-unreadable", .warning, "the model that the store carries cannot be read (\(error.detail))"))
      return nil
    }
  }

  /// The layout of a model; nil for one that cannot be laid out, whose tables are then listed as they are.
  static func layout(of model: ManagedObjectModel) -> StoreLayout? { try? StoreLayout(model) }
}

extension Array {
  fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
