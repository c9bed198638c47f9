package import Platform
package import SystemPackage

/// What goes when a quarantined store is discarded, and what stays of it elsewhere.
package struct Discarding: Sendable, Hashable {
  /// A file, or a folder with what is in it.
  package struct Item: Sendable, Hashable, Encodable {
    /// Its name in the folder of quarantined stores.
    package var name: PathText

    /// Its size in bytes; of a folder that of the files in it.
    package var bytes: Int64
  }

  /// Everything that goes, by name.
  package var items: [Item]

  /// Where the store itself was put back, and a store is now; nil where it was not, or there is none.
  package var released: FilePath?

  /// Where a salvaged store was installed, and a store is now; nil where there is none.
  package var installed: FilePath?

  /// The sizes of all items in bytes.
  package var bytes: Int64 { items.reduce(0) { $0 + $1.bytes } }

  /// What is known of copies elsewhere, in a sentence.
  package var words: String {
    if let released {
      return "The store itself was released to \(printable(released.string)), and a store is there now."
    }
    return installed.map { "A salvaged store was installed at \(printable($0.string)), and a store is there now." }
      ?? "Warning: no installed copy was found. Without a backup, the records in these files are lost."
  }
}

extension QuarantineFolder {
  /// What discarding a store removes: the store, its receipts, and everything that was salvaged of it.
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
      items: items.sorted { $0.name.text < $1.name.text }, released: try releasedPlace(of: store),
      installed: try installedCopy(of: store))
  }

  /// Where a store was put back, as its receipt says; nil where nothing is there any more.
  private func releasedPlace(of store: QuarantinedStore) throws -> FilePath? {
    guard let place = store.receipt?.released?.path.path, try fileSystem.status(of: place)?.kind == .regular else {
      return nil
    }
    return place
  }

  /// Where a salvaged store was installed, as the receipt says; nil where nothing is there any more.
  private func installedCopy(of store: QuarantinedStore) throws -> FilePath? {
    guard let place = store.receipt?.salvage?.installed?.path.path,
      try fileSystem.status(of: place)?.kind == .regular
    else { return nil }
    return place
  }
}
