import ManagedObjectModel
package import Platform

/// The room on the disk that a salvage of a store needs.
package struct SalvageNeeds: Sendable, Hashable {
  /// The bytes of the database and of what its log adds.
  package var storeBytes: Int64 = 0

  /// The bytes of the large values in files.
  package var externalBytes: Int64 = 0

  /// Looks at the sizes of a store's files.
  package init(of files: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    for part in [StoreFileSet.Part.main, .wal] {
      storeBytes += try fileSystem.status(of: files.path(of: part))?.occupiedSize ?? 0
    }
    let external = files.path(of: .externalData)
    guard try fileSystem.status(of: external, followingLinks: false)?.kind == .directory else { return }
    for file in try fileSystem.descendants(of: external).files { externalBytes += file.status.occupiedSize }
  }

  /// What is in the folder of the result at most, while it is made.
  package func workingBytes(_ model: SalvageModel?, migrates: Bool) -> Int64 {
    var copies: Int64 = 1
    if migrates, case .coreData(let bundle)? = model, bundle.versions.count > 1 { copies = 2 }
    return copies * storeBytes + externalBytes
  }

  /// What a salvage needs whose result is kept, and of which a copy gets the place of the store.
  package func installingBytes(_ model: SalvageModel?) -> Int64 {
    max(workingBytes(model, migrates: true), 2 * storeBytes + 2 * externalBytes)
  }
}
