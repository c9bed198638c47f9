package import Platform
package import SystemPackage

package struct QuarantinedStore: Sendable, Hashable, Encodable {
  /// The file name without extension, such as `2026-11-21-10-11-12`.
  package var id: String

  package var files: StoreFileSet

  package var receiptPath: FilePath

  /// Nil if missing or unreadable.
  package var receipt: Receipt?

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "store": PathText(files.main), "receiptPath": PathText(receiptPath), "receipt": receipt,
    ])
  }
}

extension QuarantinedStore {
  /// Returns the command that puts the store back; nil if the receipt does not name its path.
  ///
  /// Absolute paths make it work in any folder.
  ///
  /// - Parameter isReplacing: first quarantines another store at the path.
  package func undo(home: FilePath?, replacing isReplacing: Bool) -> String? {
    guard receipt?.originalPath.path != nil else { return nil }
    return command("release", home: home, isReplacing ? ["--replace"] : [])
  }

  func command(_ verb: String, home: FilePath?, _ options: [String] = []) -> String {
    var words = ["lazaret quarantine", verb, shellQuoted(files.main)]
    if let home { words += ["--home", shellQuoted(home)] }
    return (words + options).joined(separator: " ")
  }
}

extension Quarantines {
  /// Returns the command that puts a store back in the present state; nil without its path or files.
  package func undo(of stored: QuarantinedStore) throws -> String? {
    guard let place = stored.receipt?.originalPath.path, try !stored.files.members(in: fileSystem).isEmpty else {
      return nil
    }
    let isTaken: Bool
    do throws(FileError) {
      isTaken = try !StoreFileSet(main: place).members(in: fileSystem).isEmpty
    } catch {
      // An unreadable place may be taken; replacing works on an empty one too.
      isTaken = true
    }
    return stored.undo(home: try Self.absolute(home, in: fileSystem), replacing: isTaken)
  }

  static func absolute(_ home: FilePath, in fileSystem: FileSystem) throws -> FilePath {
    guard try fileSystem.status(of: home) != nil else { return home }
    return try fileSystem.realPath(home)
  }
}
