import StoreFiles
import SystemPackage

extension BackupExtraction {
  /// Writes the large values of a backup below a folder.
  ///
  /// - Parameter find: gives the manifest of a backup whose archive holds some of them; nil where it is gone.
  mutating func writeValues(
    of manifest: BackupManifest, to folder: FilePath, find: (BackupIdentifier) -> BackupManifest?
  ) throws(BackupError) {
    guard let external = manifest.externalData else { return }
    var readers: [BackupIdentifier: BlockReader] = [:]
    for item in external.items {
      let holder = item.backup ?? manifest.id
      if readers[holder] == nil, let file = find(holder)?.file(.externalData), let content = file.content {
        readers[holder] = BlockReader(file, content: content, in: place)
      }
      if try write(item, from: readers[holder], to: folder) { continue }
      guard manner == .salvage else {
        throw BackupError(
          .damaged, operation: "restore backup \(manifest.id)",
          detail: "the large value \(printable(item.name.text)) is damaged or missing",
          hint: "Restore another backup, or what is left of this one with --salvage.")
      }
      lose(value: item.name.text)
    }
    try synchronize(folder)
  }

  /// Writes one value; false where it is not what it was, and nothing is left of it then.
  private mutating func write(
    _ item: BackupManifest.ExternalData.Item, from reader: BlockReader?, to folder: FilePath
  ) throws(BackupError) -> Bool {
    guard let reader, let name = item.name.path, Self.isInside(name), item.offset >= 0, item.bytes >= 0,
      item.offset <= reader.content.bytes - item.bytes
    else { return false }
    let path = folder.pushing(name)
    do throws(FileError) { try fileSystem.makeDirectory(path.folder) } catch { throw BackupError(error) }
    let file = try create(path)
    var digest = RunningDigest()
    var offset = item.offset
    let end = item.offset + item.bytes
    while offset < end {
      let number = Int(offset / Int64(BackupManifest.blockLength))
      let start = Int(offset % Int64(BackupManifest.blockLength))
      guard let block = try cached(number, of: reader), start < block.count else { break }
      let piece = Array(block[start..<min(block.count, start + Int(min(end - offset, Int64(block.count))))])
      digest.add(piece)
      try write(piece[...], at: offset - item.offset, to: file)
      offset += Int64(piece.count)
    }
    if offset == end, digest.hexadecimal == item.sha256 {
      try commit(file)
      return true
    }
    do throws(FileError) { try fileSystem.unlink(path) } catch { throw BackupError(error) }
    return false
  }

  /// Whether a name leads nowhere but below the folder.
  private static func isInside(_ name: FilePath) -> Bool {
    name.isRelative && !name.components.isEmpty && name.components.count <= 16
      && name.components.allSatisfy { $0.kind == .regular }
  }

  private func synchronize(_ folder: FilePath) throws(BackupError) {
    do throws(FileError) {
      guard try fileSystem.status(of: folder) != nil else { return }
      for below in try fileSystem.descendants(of: folder).folders {
        try fileSystem.synchronizeDirectory(folder.appending(below))
      }
      try fileSystem.synchronizeDirectory(folder)
    } catch {
      throw BackupError(error)
    }
  }

  // MARK: Evidence

  /// Writes the files of evidence, byte for byte.
  mutating func writeEvidence(_ manifest: BackupManifest, to files: StoreFileSet) throws(BackupError) {
    for part in manifest.files {
      guard let member = part.role.part, let content = part.content else { continue }
      try copy(BlockReader(part, content: content, in: place), to: files.path(of: member), manifest.id)
    }
  }
}
