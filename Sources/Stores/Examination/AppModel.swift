package import ManagedObjectModel
package import PersistentStore
import StoreFiles
package import SystemPackage

/// What an app expects of its store: the versions of a managed object model, or the schema of a plain SQLite store.
package enum AppModel: Sendable {
  case coreData(ModelBundle)

  /// A plain SQLite store; the name is that of the schema file.
  case sqlite(SchemaScript, name: String)

  /// Loads a `.xcdatamodeld`, `.xcdatamodel`, `.momd` or `.mom`, or a `.sql` schema file.
  ///
  /// - Parameters:
  ///   - path: the file or folder.
  ///   - order: the names of all versions, oldest first; nil for their natural order with the current one last.
  /// - Throws: `ModelError`, `PersistentStoreError` or `FileError`.
  package static func load(_ path: FilePath, order: [String]? = nil) throws -> AppModel {
    guard path.extension?.lowercased() == "sql" else {
      return .coreData(try ModelBundle.load(path: path, order: order))
    }
    let bytes = try FileSystem().contents(of: path, limit: SchemaScript.maximumLength)
    do {
      return .sqlite(try SchemaScript(bytes: bytes), name: path.stem ?? "")
    } catch {
      throw error.at(path)
    }
  }

  /// Whether its stores are Core Data's, not plain ones.
  package var isCoreData: Bool {
    if case .coreData = self { true } else { false }
  }

  /// The name that stores in it are reported under: the current version's, or the schema file's.
  package var currentVersionName: String {
    switch self {
    case .coreData(let bundle): bundle.current.name
    case .sqlite(_, let name): name
    }
  }
}

extension PersistentStoreError {
  /// The same error, with the file it is about.
  fileprivate func at(_ path: FilePath) -> PersistentStoreError {
    var error = self
    error.path = path
    return error
  }
}
