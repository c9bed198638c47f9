internal import PersistentStore
package import Platform
package import SystemPackage

/// A reproducibly damaged copy of a store, for rehearsals.
package struct DamagedCopy: Sendable, Hashable, Codable {
  package struct Place: Sendable, Hashable, Codable {
    /// The kind, such as `zero:5`.
    var kind: String

    package var part: StoreFileSet.Part

    package var offset: Int64

    package var length: Int64

    /// The page, for damage within pages.
    package var page: UInt32?
  }

  var copy: PathText

  package var kinds: [String]

  var seed: UInt64

  /// The damaged places; the first 10,000.
  package var places: [Place]

  package var placeCount: Int

  /// Copies a store and damages the copy.
  ///
  /// - Parameters:
  ///   - store: the main file; log, journal and external data are copied too.
  ///   - copy: a free path.
  /// - Throws: `PersistentStoreError`, or `FileError` from copying; the copy is then removed.
  package static func make(
    of store: FilePath, at copy: FilePath, kinds: [DamageKind], seed: UInt64, fileSystem: FileSystem = FileSystem()
  ) throws -> DamagedCopy {
    let original = try StoreFileSet.locate(store, in: fileSystem)
    guard try fileSystem.status(of: original.main) != nil else {
      throw FileError(.notFound, operation: "copy the store", path: store)
    }
    let target = StoreFileSet(main: copy)
    for part in StoreFileSet.Part.allCases
    where try fileSystem.status(of: target.path(of: part), followingLinks: false) != nil {
      throw PersistentStoreError(
        .copyTaken, operation: "copy the store", path: target.path(of: part), detail: "there is a file already")
    }
    do {
      let lock = try SharedStoreLock(on: original, in: fileSystem)
      for part in [StoreFileSet.Part.main, .wal, .journal] {
        guard try fileSystem.status(of: original.path(of: part)) != nil else { continue }
        _ = try fileSystem.copy(original.path(of: part), to: target.path(of: part))
      }
      let values = original.path(of: .externalData)
      if try fileSystem.status(of: values)?.kind == .directory {
        try fileSystem.copyTree(values, to: target.path(of: .externalData))
      }
      lock.release()
      var run = try DamageRun(on: target, in: fileSystem)
      for (index, kind) in kinds.enumerated() { try run.apply(kind, seed: seed, index: index) }
      return DamagedCopy(
        copy: PathText(copy), kinds: kinds.map(\.description), seed: seed, places: run.places,
        placeCount: run.placeCount)
    } catch {
      // Report the first error.
      for part in [StoreFileSet.Part.main, .wal, .journal] { try? fileSystem.unlink(target.path(of: part)) }
      try? fileSystem.removeTree(target.path(of: .externalData))
      throw error
    }
  }
}
