package import Platform
package import SystemPackage

/// A store in quarantine: where it lies, and its receipt.
package struct QuarantinedStore: Sendable, Hashable, Encodable {
  /// What it is called: its file name without extension, such as `2026-11-21-10-11-12`.
  package var id: String

  /// The files, under their names in quarantine.
  package var files: StoreFileSet

  /// The path of the receipt.
  package var receiptPath: FilePath

  /// The receipt; nil where it is missing or cannot be read.
  package var receipt: Receipt?

  /// Writes where it and its receipt are, with the receipt.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "store": PathText(files.main), "receiptPath": PathText(receiptPath), "receipt": receipt,
    ])
  }
}

extension QuarantinedStore {
  /// The command that puts the store back where it came from; nil where the receipt does not say where that is.
  ///
  /// It names everything by its path, so that it does the same in any folder.
  ///
  /// - Parameters:
  ///   - home: the folder with the catalogue of quarantined stores; nil for none.
  ///   - isReplacing: whether another store is in its place, which is quarantined first.
  package func undo(home: FilePath?, replacing isReplacing: Bool) -> String? {
    guard receipt?.originalPath.path != nil else { return nil }
    return command("release", home: home, isReplacing ? ["--replace"] : [])
  }

  /// A command of the command line about the store, by its path, so that it does the same in any folder.
  func command(_ verb: String, home: FilePath?, _ options: [String] = []) -> String {
    var words = ["lazaret quarantine", verb, shellQuoted(files.main)]
    if let home { words += ["--home", shellQuoted(home)] }
    return (words + options).joined(separator: " ")
  }
}

extension Quarantines {
  /// The command that puts a quarantined store back where it came from, as things are now; nil where its receipt does not
  /// say where that is, and where no file of it is there any more.
  ///
  /// - Throws: `FileError` where the home cannot be looked at.
  package func undo(of stored: QuarantinedStore) throws -> String? {
    guard let place = stored.receipt?.originalPath.path, try !stored.files.members(in: fileSystem).isEmpty else {
      return nil
    }
    let isTaken: Bool
    do throws(FileError) {
      isTaken = try !StoreFileSet(main: place).members(in: fileSystem).isEmpty
    } catch {
      // A place that cannot be looked at now may be taken; the command does the same where it is not.
      isTaken = true
    }
    return stored.undo(home: try Self.absolute(home, in: fileSystem), replacing: isTaken)
  }

  /// The path of a home from the root; a home that does not exist yet is named as it was given.
  static func absolute(_ home: FilePath, in fileSystem: FileSystem) throws -> FilePath {
    guard try fileSystem.status(of: home) != nil else { return home }
    return try fileSystem.realPath(home)
  }
}
