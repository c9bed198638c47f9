import Platform
package import SystemPackage

/// Everything in a folder, down to the last byte: what tests compare to see that nothing was touched.
package struct FolderContents: Hashable, CustomStringConvertible {
  /// Relative path → what is there: `folder`, `link to …`, or size and digest.
  package var entries: [String: String] = [:]

  /// - Parameter ignoring: names of entries to leave out, wherever they are.
  package init(of folder: FilePath, ignoring: Set<String> = []) throws {
    try read(folder, prefix: "", ignoring: ignoring)
  }

  private mutating func read(_ folder: FilePath, prefix: String, ignoring: Set<String>) throws {
    let system = FileSystem()
    for name in try system.entries(of: folder) where !ignoring.contains(name.string) {
      let path = folder.appending(name)
      let key = prefix + name.string
      guard let status = try system.status(of: path, followingLinks: false) else { continue }
      switch status.kind {
      case .directory:
        entries[key] = "folder"
        try read(path, prefix: key + "/", ignoring: ignoring)
      case .symbolicLink: entries[key] = "link to \(try system.linkTarget(path))"
      case .regular:
        let modified = "\(status.modified.secondsSince1970).\(status.modified.nanoseconds)"
        entries[key] = "\(status.size) bytes \(try FileDigest(of: system.open(path)).hexadecimal) written \(modified)"
      case .other: entries[key] = "other"
      }
    }
  }

  package var description: String {
    entries.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
  }
}
