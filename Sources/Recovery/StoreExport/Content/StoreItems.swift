internal import BundleWriting
internal import StoreFiles
internal import SupportBundle

/// The files of a store as they lie in a bundle: `store/App.sqlite` and its companions, under a name that ends in `.sqlite`.
enum StoreItems {
  /// The files.
  ///
  /// - Parameters:
  ///   - name: the name of the main file in the bundle.
  ///   - manner: how they are there, such as `byte for byte`.
  static func items(of evidence: ExportEvidence, named name: String, _ manner: String) -> [BundleItem] {
    var items: [BundleItem] = []
    for member in evidence.members where member.status.kind == .regular {
      let (suffix, words) =
        switch member.part {
        case .main: ("", "the store")
        case .wal: ("-wal", "its write-ahead log")
        case .sharedMemory: ("-shm", "the index of the log")
        case .journal: ("-journal", "its rollback journal")
        // Where a folder should be there is a file; it is none of the store's.
        case .externalData: ("-external-data", "a file in the place of the folder with large values")
        }
      items.append(
        BundleItem(
          "store/\(name)\(suffix)", .file(member.path, size: member.status.size), words: "\(words), \(manner)"))
    }
    let stem = name.hasSuffix(".sqlite") ? String(name.dropLast(".sqlite".count)) : name
    for file in evidence.external {
      let rest = file.name.split(separator: "/").dropFirst().joined(separator: "/")
      items.append(
        BundleItem(
          "store/.\(stem)_SUPPORT/\(rest)", .file(file.path, size: file.size),
          words: "a large value in a file of its own, \(manner)"))
    }
    return items
  }
}
