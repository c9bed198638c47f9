import ManagedObjectModel
import Platform
import SQLiteFormat
import SystemPackage

/// Packs external values: large values in files of their own.
///
/// These files never change, so those in the parent are omitted.
struct ExternalDataJob {
  let job: BackupJob
  let packer: BlockPacker
  let parent: StoredBackup?

  struct Packed {
    var data: BackupManifest.ExternalData
    /// The archive of files new in the chain.
    var archive: BlockPacker.Packed?
  }

  private var fileSystem: FileSystem { job.surroundings.fileSystem }

  /// Packs the external values, if any are present or referenced.
  ///
  /// - Parameters:
  ///   - content: the database with the references; nil for evidence.
  ///   - model: its model, if known.
  /// - Throws: `changed-meanwhile` if referenced files have disappeared.
  func run(_ content: DatabaseContent?, model: ManagedObjectModel?) throws -> Packed? {
    let found = try job.files.largeValues(in: fileSystem).files.filter { $0.status.kind == .regular }
    let referenced = try content.map { content in try references(content, model) }
    let names = Set(found.compactMap { $0.relative.last?.string })
    let missing = (referenced ?? []).subtracting(names).sorted()
    if !missing.isEmpty, packer.snapshot.isInUse, job.attempt < 3 {
      throw BackupError(
        FileError(.changed, operation: "copy the store's large values", path: job.files.path(of: .externalData)))
    }
    if found.isEmpty, missing.isEmpty { return nil }
    var data = BackupManifest.ExternalData(items: [], missing: missing)
    var archive = TarArchive(date: job.id.date, folder: job.files.path(of: .externalData).lastComponent, fileSystem)
    let known = knownItems()
    let total = found.reduce(Int64(0)) { $0 + $1.status.size }
    var done: Int64 = 0
    for file in found {
      let name = PathText(file.relative.reduce(into: FilePath("")) { $0.append($1) })
      let digest = try digest(of: file.path) { bytes in
        try job.advance(.externalData, done + bytes, total * 2)
      }
      done += file.status.size
      if let item = known[name], item.bytes == file.status.size, item.sha256 == digest {
        data.items.append(item)
      } else {
        let offset = archive.append(file)
        data.items.append(.init(name: name, bytes: file.status.size, sha256: digest, offset: offset))
      }
      if file.isLink { data.links = (data.links ?? []) + [name] }
    }
    archive.finish()
    let packed = archive.isEmpty ? nil : try packer.pack(archive, as: .externalData, hashes: nil)
    return Packed(data: data, archive: packed)
  }

  private func digest(
    of path: FilePath, progress: (Int64) throws -> Void
  ) throws -> String {
    try FileDigest(of: fileSystem.open(path)) { try progress($0) }.hexadecimal
  }

  private func knownItems() -> [PathText: BackupManifest.ExternalData.Item] {
    guard let parent else { return [:] }
    var known: [PathText: BackupManifest.ExternalData.Item] = [:]
    for var item in parent.manifest?.externalData?.items ?? [] {
      item.backup = item.backup ?? parent.id
      known[item.name] = item
    }
    return known
  }

  private func references(
    _ content: DatabaseContent, _ model: ManagedObjectModel?
  ) throws -> Set<String> {
    do throws(FormatError) {
      return try ReferencedValues(in: content, model: model).names
    } catch {
      throw BackupError(error, store: job.files.main)
    }
  }
}
