import Platform
import SystemPackage

/// Completes a rebuilt manifest, with digests and external values, by reading all blocks.
package struct RebuiltManifest {
  let place: any BackupPlace
  let section: BackupSection

  package init(place: any BackupPlace, section: BackupSection) {
    self.place = place
    self.section = section
  }

  /// Adds the archive's external values; also returns its first unreadable block, by file.
  func withExternalData(
    _ manifest: BackupManifest
  ) throws -> (manifest: BackupManifest, damage: [String: [Int]]) {
    guard manifest.rebuilt == true, manifest.externalData == nil, let file = manifest.file(.externalData),
      let reader = try MemberReader(file, of: manifest, in: place, section)
    else { return (manifest, [:]) }
    var manifest = manifest
    var listing = ArchiveListing()
    var whole = 0
    // After a lost block no value's start is known.
    while whole < reader.blockCount, let bytes = try reader.block(whole), listing.read(bytes) { whole += 1 }
    manifest.externalData = .init(items: listing.items.sorted { $0.name.text < $1.name.text })
    // The end marker shows whether blocks are missing.
    return (manifest, whole == reader.blockCount && listing.isWhole ? [:] : [file.name: [whole]])
  }

  /// Returns the manifest with all digests, unless a block is damaged.
  func withDigests(_ manifest: BackupManifest) throws -> BackupManifest? {
    let (listed, damage) = try withExternalData(manifest)
    guard damage.isEmpty else { return nil }
    var manifest = listed
    for index in manifest.files.indices {
      let file = manifest.files[index]
      guard let reader = try MemberReader(file, of: manifest, in: place, section), let members = file.members else {
        return nil
      }
      var (whole, content) = (RunningDigest(), RunningDigest())
      var blocks: [String] = []
      for block in members.indices {
        guard let member = try reader.member(block) else { return nil }
        whole.add(member)
        guard reader.blockCount > 0 else { continue }
        guard let bytes = reader.unpack(member, block) else { return nil }
        content.add(bytes)
        blocks.append(FileDigest(of: bytes).hexadecimal)
      }
      manifest.files[index].sha256 = whole.hexadecimal
      if file.content != nil {
        manifest.files[index].content?.sha256 = content.hexadecimal
        manifest.files[index].content?.blocks = blocks
      } else {
        manifest.database?.sha256 = content.hexadecimal
        manifest.database?.blocks = blocks
      }
    }
    return manifest
  }
}

/// The files of an archive, read from its start.
private struct ArchiveListing {
  private(set) var items: [BackupManifest.ExternalData.Item] = []

  private var reader = TarReader(limits: .init(bytes: .max, ratio: .max, entries: 10_000_000))
  private var position: Int64 = 0
  private var entry: (name: PathText, bytes: Int64, offset: Int64)?
  private var digest = RunningDigest()

  /// The tar block size.
  private static let block = 512

  var isWhole: Bool {
    do throws(ArchiveError) {
      try reader.finish()
      return true
    } catch {
      return false
    }
  }

  /// Reads a piece; returns false if it is invalid.
  mutating func read(_ bytes: [UInt8]) -> Bool {
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Self.block)
      // A header's file content starts here.
      position += Int64(end - start)
      do {
        var found: [TarReader.Event] = []
        try reader.read(bytes[start..<end]) { found.append($0) }
        for event in found { note(event) }
      } catch {
        return false
      }
      start = end
    }
    return true
  }

  private mutating func note(_ event: TarReader.Event) {
    switch event {
    case .entry(let found):
      // The first component is the support folder.
      let components = found.components.dropFirst().compactMap { FilePath.Component($0) }
      let isItem = !found.isFolder && !components.isEmpty && components.count == found.components.count - 1
      entry = isItem ? (PathText(FilePath(root: nil, components)), found.size, position) : nil
      digest = RunningDigest()
    case .content(let bytes): digest.add(bytes)
    case .end:
      guard let entry else { return }
      items.append(
        .init(name: entry.name, bytes: entry.bytes, sha256: digest.hexadecimal, offset: entry.offset))
      self.entry = nil
    }
  }
}
