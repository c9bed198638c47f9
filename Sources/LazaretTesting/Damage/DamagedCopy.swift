package import Platform
package import SystemPackage

/// A damaged copy of a store, for rehearsing what an app and its makers do on the day: the same store, kinds and seed give
/// the same bytes.
package struct DamagedCopy: Sendable, Hashable, Codable {
  /// A place that was damaged.
  package struct Place: Sendable, Hashable, Codable {
    /// The kind of damage, such as `zero:5`.
    package var kind: String

    /// The part of the store: `main`, `wal` or `journal`.
    package var part: StoreFileSet.Part

    /// The first byte concerned, counted when it was done; a later kind may have moved it.
    package var offset: Int64

    /// The number of bytes concerned.
    package var length: Int64

    /// The page, where the damage is to whole pages or to part of one.
    package var page: UInt32?
  }

  /// The copy's main file.
  package var copy: PathText

  /// What was done, in order.
  package var kinds: [String]

  /// What the random choices were drawn from.
  package var seed: UInt64

  /// Every place that was damaged; of more than 10,000 the first.
  package var places: [Place]

  /// How many there are in all.
  package var placeCount: Int

  /// Copies a store and damages the copy; the store itself is only read.
  ///
  /// - Parameters:
  ///   - store: the main file; its log, journal and large values are copied with it.
  ///   - copy: where the copy goes; nothing may be there.
  ///   - kinds: what is done to it, in this order.
  ///   - seed: what random choices are drawn from.
  /// - Throws: `DamageError`, or `FileError` where copying or writing fails; what was made of the copy is then removed.
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
      throw DamageError(
        .placeTaken, operation: "copy the store", path: target.path(of: part), detail: "there is a file already")
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
      _ = consume lock
      var run = try DamageRun(on: target, in: fileSystem)
      for (index, kind) in kinds.enumerated() { try run.apply(kind, seed: seed, index: index) }
      return DamagedCopy(
        copy: PathText(copy), kinds: kinds.map(\.description), seed: seed, places: run.places,
        placeCount: run.placeCount)
    } catch {
      // The first error is the one to report.
      for part in [StoreFileSet.Part.main, .wal, .journal] { try? fileSystem.unlink(target.path(of: part)) }
      try? fileSystem.removeTree(target.path(of: .externalData))
      throw error
    }
  }
}
