import ManagedObjectModel
package import Platform

/// The disk space for a salvage.
package struct SalvageNeeds: Sendable, Hashable {
  /// The database and its WAL.
  package var storeBytes: Int64 = 0

  /// The large values in files.
  package var externalBytes: Int64 = 0

  package init(of files: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    for part in [StoreFileSet.Part.main, .wal] {
      storeBytes += try fileSystem.status(of: files.path(of: part))?.occupiedSize ?? 0
    }
    let external = files.path(of: .externalData)
    guard try fileSystem.status(of: external, followingLinks: false)?.kind == .directory else { return }
    for file in try fileSystem.descendants(of: external).files { externalBytes += file.status.occupiedSize }
  }

  /// The largest size of the result's folder during a salvage.
  package func workingBytes(_ model: SalvageModel?, migrates: Bool) -> Int64 {
    var copies: Int64 = 1
    if migrates, case .coreData(let bundle)? = model, bundle.versions.count > 1 { copies = 2 }
    return copies * storeBytes + externalBytes
  }

  /// The space for a kept result and its copy at the store's path.
  package func installingBytes(_ model: SalvageModel?) -> Int64 {
    max(workingBytes(model, migrates: true), 2 * storeBytes + 2 * externalBytes)
  }
}
