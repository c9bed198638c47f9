internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

extension DataCheck {
  /// The longest name of a file of a large value: a marker and a UUID, with room for what other versions write.
  private static let longestName = 80

  /// Looks for the files of the large values that records refer to (format section 3.7).
  ///
  /// - Parameter folder: the folder beside the store that holds the files.
  mutating func checkFiles(
    _ database: Database, _ layout: StoreLayout, in folder: FilePath, _ fileSystem: FileSystem
  ) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let key, _) = column.role,
          let attribute = layout.model.entities[key.entityName]?.properties[key.name]?.attribute,
          attribute.allowsExternalBinaryDataStorage, attribute.type == .binary || attribute.type == .transformable,
          let numbers = layout.entity(named: key.entityName)?.numbers,
          hasToCheck(table.name, ["Z_PK", "Z_ENT", column.name])
        else { continue }
        let rows = try Row.fetchCursor(
          database,
          sql: """
            SELECT o.Z_PK, o.\(column.sqlName) FROM \(Self.rows(table.name))
            WHERE o.Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound) AND typeof(o.\(column.sqlName)) = 'blob'
            AND length(o.\(column.sqlName)) BETWEEN 2 AND \(Self.longestName) AND substr(o.\(column.sqlName), 1, 1) = x'02'
            ORDER BY o.Z_PK
            """)
        var (count, keys): (Int, [[Int64]]) = (0, [])
        while let row = try rows.next() {
          let values = Array(row.databaseValues)
          guard let name = Data.fromDatabaseValue(values[1]),
            try !Self.isThere(name.dropFirst(), in: folder, fileSystem)
          else { continue }
          count += 1
          if keys.count < Self.listLimit { keys.append([Int64.fromDatabaseValue(values[0]) ?? 0]) }
        }
        guard count > 0 else { continue }
        findings.append(
          Finding(
            kind: .missingFile, table: table.name, columns: [column.name], property: key.description, count: count,
            keys: keys))
      }
    }
    sortFindings()
  }

  /// Whether the file of a name is there; a name that leads elsewhere is none.
  private static func isThere(_ name: Data, in folder: FilePath, _ fileSystem: FileSystem) throws -> Bool {
    let text = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
    guard let file = FilePath.Component(text), file.kind == .regular, FilePath(text).components.count == 1 else {
      return false
    }
    return try fileSystem.status(of: folder.appending("_EXTERNAL_DATA").appending(file)) != nil
  }
}
