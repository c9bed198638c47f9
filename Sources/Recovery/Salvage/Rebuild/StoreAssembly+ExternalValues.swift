internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

extension StoreAssembly {
  /// The longest name of a file of a large value: a marker and a UUID, with room for what other versions write.
  private static let longestName = 80

  /// Counts the large values whose files are gone, by attribute; the records name them and stay as they are.
  ///
  /// - Parameter folder: the folder of the evidence that holds the files.
  mutating func countMissingFiles(in folder: FilePath, _ fileSystem: FileSystem) throws {
    for entity in layout.entities {
      let properties = layout.model.entities[entity.name]?.properties ?? [:]
      for (name, property) in properties.ordered(by: { $0.key < $1.key }) {
        guard let attribute = property.attribute, !attribute.traits.isTransient,
          attribute.allowsExternalBinaryDataStorage, attribute.type == .binary || attribute.type == .transformable,
          case .attribute(let columns) = layout.storage(of: name, in: entity.name), let column = columns.first
        else { continue }
        // A large value is two, and the name of its file (format section 3.7).
        let values = try Data.fetchCursor(
          database,
          sql: "SELECT \(column.sqlName) FROM main.\(SQLText.identifier(entity.tableName)) "
            + "WHERE typeof(\(column.sqlName)) = 'blob' AND length(\(column.sqlName)) BETWEEN 2 AND \(Self.longestName) "
            + "AND substr(\(column.sqlName), 1, 1) = x'02'")
        var missing = 0
        while let value = try values.next() {
          let text = String(decoding: value.dropFirst().prefix { $0 != 0 }, as: UTF8.self)
          // A name that leads elsewhere is none.
          guard let file = FilePath.Component(text), file.kind == .regular, FilePath(text).components.count == 1 else {
            missing += 1
            continue
          }
          if try fileSystem.status(of: folder.appending("_EXTERNAL_DATA").appending(file)) == nil { missing += 1 }
        }
        guard missing > 0 else { continue }
        missingFiles += missing
        remarks.append(
          "\(printable(entity.name)).\(printable(name)): \(missing) large \(missing == 1 ? "value is" : "values are") "
            + "gone; \(missing == 1 ? "its file is" : "their files are") not beside the store")
      }
    }
  }
}
