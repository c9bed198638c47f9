package import ManagedObjectModel
import PersistentStore
package import Platform
package import SQLiteFormat

/// The file names of external values that records refer to (format section 3.7).
package struct ReferencedValues {
  package private(set) var names: Set<String> = []

  /// The names, and all values that may be names, to miss no reference.
  private(set) var possibleNames: Set<String> = []

  private static let folder = "_EXTERNAL_DATA"

  /// References have 38 bytes, but share rows with other values.
  private static let rowLimit = 64 << 20

  /// Reads the references of a Core Data store.
  ///
  /// They are in columns that allow external storage; without a model, any matching blob counts.
  ///
  /// - Parameters:
  ///   - model: the model; the one stored in the store if nil.
  ///   - seeksAll: whether to look for possible names in all blob columns.
  package init(in content: any ByteSource, model: ManagedObjectModel? = nil, seeksAll: Bool = false) throws(FormatError)
  {
    let database = try Database(main: content)
    let schema = try database.schema()
    guard schema.table(named: "Z_METADATA") != nil else { return }
    let known = if let model { model } else { try Self.ownModel(database, schema) }
    let columns = known.flatMap { Self.columns($0) }
    for table in schema.tables where table.name.lowercased().hasPrefix("z") && table.rootPage > 0 {
      guard let definition = table.tableDefinition, !definition.isWithoutRowid else { continue }
      let all = definition.columns.indices.filter { definition.columns[$0].affinity == .blob }
      let own = columns.map { ($0[table.name.lowercased()] ?? []).compactMap { definition.column(named: $0) } } ?? all
      let places = seeksAll ? Set(all).union(own) : Set(own)
      if places.isEmpty { continue }
      var rows = try database.rows(root: table.rootPage, payloadLimit: Self.rowLimit)
      while let row = try rows.next() {
        let values = definition.values(of: row)
        for place in places where values.indices.contains(place) {
          if case .blob(let bytes) = values[place] { note(bytes, isReference: own.contains(place)) }
        }
      }
    }
  }

  private mutating func note(_ bytes: [UInt8], isReference: Bool) {
    guard bytes.first == 2, (3...80).contains(bytes.count) else { return }
    if case .externalData(let name) = RecordValue(.blob(bytes), type: .binary, allowsExternalStorage: true) {
      if isReference { names.insert(name) }
      possibleNames.insert(name)
      return
    }
    let name = bytes.dropFirst().prefix { $0 != 0 }
    guard name.count >= 28, name.allSatisfy({ (0x21...0x7E).contains($0) }) else { return }
    possibleNames.insert(String(decoding: name, as: UTF8.self))
  }

  // MARK: The model

  /// Returns the columns that allow external storage, by lower-case table, if the model has a valid layout.
  private static func columns(_ model: ManagedObjectModel) -> [String: [String]]? {
    guard let layout = try? StoreLayout(model) else { return nil }
    var columns: [String: [String]] = [:]
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let key, _) = column.role,
          model.entities[key.entityName]?.properties[key.name]?.attribute?.allowsExternalBinaryDataStorage == true
        else { continue }
        columns[table.name.lowercased(), default: []].append(column.name)
      }
    }
    return columns
  }

  /// Returns the stored model, unless of another version.
  private static func ownModel(_ database: Database, _ schema: Schema) throws(FormatError) -> ManagedObjectModel? {
    guard let cache = try bytes("Z_CONTENT", of: "Z_MODELCACHE", database, schema),
      let list = try bytes("Z_PLIST", of: "Z_METADATA", database, schema)
    else { return nil }
    guard let model = try? ManagedObjectModel(modelCache: cache),
      let metadata = try? StoreMetadata(uuid: "", propertyList: list)
    else { return nil }
    return model.versionHashes() == metadata.versionHashes ? model : nil
  }

  private static func bytes(
    _ column: String, of table: String, _ database: Database, _ schema: Schema
  ) throws(FormatError) -> [UInt8]? {
    guard let table = schema.table(named: table), table.rootPage > 0, let definition = table.tableDefinition,
      let place = definition.column(named: column)
    else { return nil }
    var rows = try database.rows(root: table.rootPage, payloadLimit: rowLimit)
    guard let row = try rows.next() else { return nil }
    let values = definition.values(of: row)
    guard values.indices.contains(place), case .blob(let bytes) = values[place] else { return nil }
    return bytes
  }

  // MARK: The files

  package func missing(from store: StoreFileSet, in fileSystem: FileSystem) throws(FileError) -> [String] {
    names.subtracting(try store.largeValueNames(in: fileSystem)).sorted().map(Self.path)
  }

  package func missing(from data: BackupManifest.ExternalData?) -> [String] {
    let known = Set(data?.items.map(\.name.text) ?? [])
    return names.sorted().map(Self.path).filter { !known.contains($0) }
  }

  package static func path(_ name: String) -> String { "\(folder)/\(name)" }
}
