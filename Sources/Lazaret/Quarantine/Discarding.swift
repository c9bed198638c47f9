package import Platform
package import SystemPackage

/// The removals of a discard, and the remaining copies.
package struct Discarding: Sendable, Hashable {
  /// A file, or a folder with its content.
  package struct Item: Sendable, Hashable, Encodable {
    /// The name in the quarantine folder.
    package var name: PathText

    package var bytes: Int64
  }

  package var items: [Item]

  /// The store's path after a release, if a store is there.
  var released: FilePath?

  /// The path of an installed salvaged store, if a store is there.
  package var installed: FilePath?

  package var bytes: Int64 { items.reduce(0) { $0 + $1.bytes } }

  /// The known copies elsewhere, in a sentence.
  package var words: String {
    if let released {
      return "The store itself was released to \(printable(released.string)), and a store is there now."
    }
    return installed.map { "A salvaged store was installed at \(printable($0.string)), and a store is there now." }
      ?? "Warning: no installed copy was found. Without a backup, the records in these files are lost."
  }
}

extension QuarantineFolder {
  /// Returns the removals of a discard: the store, its receipts, and its salvaged stores.
  package func discarding(_ store: QuarantinedStore) throws -> Discarding {
    let id = store.id
    let folders = [files(of: id).path(of: .externalData), workingFolder(of: id)].compactMap(\.lastComponent)
    var items: [Discarding.Item] = []
    for name in try fileSystem.entries(of: path) {
      let isOfStore =
        name.string.hasPrefix("\(id).") || folders.contains(name) || SalvageFiles.number(of: name.string, id) != nil
      let place = path.appending(name)
      guard isOfStore, let status = try fileSystem.status(of: place, followingLinks: false) else { continue }
      var bytes = status.size
      if status.kind == .directory {
        bytes = try fileSystem.descendants(of: place).files.reduce(0) { $0 + $1.status.size }
      }
      items.append(Discarding.Item(name: PathText(FilePath(root: nil, [name])), bytes: bytes))
    }
    return Discarding(
      items: items.sorted { $0.name.text < $1.name.text }, released: try copy(by: store.receipt?.released),
      installed: try copy(by: store.receipt?.salvage?.installed))
  }

  /// Returns the path of a release or installation, if a store is there.
  private func copy(by release: Receipt.Release?) throws -> FilePath? {
    guard let place = release?.path.path, try fileSystem.status(of: place)?.kind == .regular else { return nil }
    return place
  }
}
