import ManagedObjectModel
import PersistentStore
import SQLiteFormat
import StoreFiles
import SystemPackage

/// The large values in files of their own that records of a store refer to, by the names of the files (format section 3.7).
struct ReferencedValues {
  /// The names of files that records refer to.
  private(set) var names: Set<String> = []

  /// These, and all else in records that a file could have as its name: enough to look for one, and not to miss one.
  private(set) var possibleNames: Set<String> = []

  /// The folder of the files, below that of the store's large values.
  private static let folder = "_EXTERNAL_DATA"

  /// How much of a row is read: a reference has 38 bytes, and stands among values that lie in the store.
  private static let rowLimit = 64 << 20

  /// Reads the references of a database; there are none in one that is no Core Data store.
  ///
  /// - Parameter columns: the columns that can have them, by table in lower case; all that are declared to hold bytes if nil.
  init(in content: any ByteSource, columns: [String: [String]]? = nil) throws(FormatError) {
    let database = try Database(main: content)
    let schema = try database.schema()
    guard schema.table(named: "Z_METADATA") != nil else { return }
    for table in schema.tables where table.name.lowercased().hasPrefix("z") && table.rootPage > 0 {
      guard let definition = table.tableDefinition, !definition.isWithoutRowid else { continue }
      let places =
        if let columns {
          (columns[table.name.lowercased()] ?? []).compactMap { definition.column(named: $0) }
        } else {
          definition.columns.indices.filter { definition.columns[$0].affinity == .blob }
        }
      if places.isEmpty { continue }
      var rows = try database.rows(root: table.rootPage, payloadLimit: Self.rowLimit)
      while let row = try rows.next() {
        let values = definition.values(of: row)
        for place in places where values.indices.contains(place) {
          if case .blob(let bytes) = values[place] { note(bytes) }
        }
      }
    }
  }

  private mutating func note(_ bytes: [UInt8]) {
    guard bytes.first == 2, (3...80).contains(bytes.count) else { return }
    if case .externalData(let name) = RecordValue(.blob(bytes), type: .binary, allowsExternalStorage: true) {
      names.insert(name)
      possibleNames.insert(name)
      return
    }
    let name = bytes.dropFirst().prefix { $0 != 0 }
    guard name.count >= 28, name.allSatisfy({ (0x21...0x7E).contains($0) }) else { return }
    possibleNames.insert(String(decoding: name, as: UTF8.self))
  }

  /// The files that records refer to and that are not below a folder of large values, in the order of their names, as a
  /// manifest has them.
  func missing(from folder: FilePath, in fileSystem: FileSystem) throws(FileError) -> [String] {
    var missing: [String] = []
    for name in names.sorted() {
      let path = folder.appending(Self.folder).appending(name)
      if try fileSystem.status(of: path)?.kind != .regular { missing.append(Self.path(name)) }
    }
    return missing
  }

  /// The files that records refer to and that a manifest does not list.
  func missing(from data: BackupManifest.ExternalData?) -> [String] {
    let known = Set(data?.items.map(\.name.text) ?? [])
    return names.sorted().map(Self.path).filter { !known.contains($0) }
  }

  /// The place of a file below the folder of large values.
  static func path(_ name: String) -> String { "\(folder)/\(name)" }
}
