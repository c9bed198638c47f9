import Platform
import SystemPackage

/// Makes a manifest that was read from blocks whole, by reading all of them: digests, and the names of large values.
package struct RebuiltManifest {
  let place: any BackupPlace
  let section: BackupSection

  /// Of a backup in a section of a place.
  package init(place: any BackupPlace, section: BackupSection) {
    self.place = place
    self.section = section
  }

  /// The manifest with the large values that its archive holds, and the damaged block of the archive, by its file, from which on
  /// nothing can be told.
  func withExternalData(
    _ manifest: BackupManifest
  ) throws(BackupError) -> (manifest: BackupManifest, damage: [String: [Int]]) {
    guard manifest.rebuilt == true, manifest.externalData == nil, let file = manifest.file(.externalData),
      let reader = try MemberReader(file, of: manifest, in: place, section)
    else { return (manifest, [:]) }
    var manifest = manifest
    var listing = ArchiveListing()
    var whole = 0
    // Without a block it cannot be told where in the rest a value begins.
    while whole < reader.blockCount, let bytes = try reader.block(whole), listing.read(bytes) { whole += 1 }
    manifest.externalData = .init(items: listing.items.sorted { $0.name.text < $1.name.text })
    // An archive says where it ends: its last blocks may be lost too.
    return (manifest, whole == reader.blockCount && listing.isWhole ? [:] : [file.name: [whole]])
  }

  /// The manifest with the digests of all files and blocks, as it is written anew; nil where a block is damaged.
  package func withDigests(_ manifest: BackupManifest) throws(BackupError) -> BackupManifest? {
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

/// The files of an archive that is read from its beginning on.
private struct ArchiveListing {
  private(set) var items: [BackupManifest.ExternalData.Item] = []

  private var reader = TarReader(limits: .init(bytes: .max, ratio: .max, entries: 10_000_000))
  private var position: Int64 = 0
  private var entry: (name: PathText, bytes: Int64, offset: Int64)?
  private var digest = RunningDigest()

  /// The bytes of a header, which is what the archive consists of.
  private static let block = 512

  /// Whether its end was read.
  var isWhole: Bool {
    do throws(ArchiveError) {
      try reader.finish()
      return true
    } catch {
      return false
    }
  }

  /// Adds a piece of the archive; false where it is none.
  mutating func read(_ bytes: [UInt8]) -> Bool {
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Self.block)
      // What follows the header that ends here is the content of the file that it names.
      position += Int64(end - start)
      do {
        var found: [TarReader.Event] = []
        try reader.read(bytes[start..<end]) { found.append($0) }
        for event in found { note(event) }
      } catch {
        // What is no archive has no large values that could be told.
        return false
      }
      start = end
    }
    return true
  }

  private mutating func note(_ event: TarReader.Event) {
    switch event {
    case .entry(let found):
      // The first part is the store's folder of large values.
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
