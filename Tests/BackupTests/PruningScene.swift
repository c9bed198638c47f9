import Backup
import Platform
import SystemPackage
import TestSupport

/// A place with backups that have manifests and sizes, and nothing in them that is unpacked.
final class PruningScene {
  let folder: TemporaryFolder
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  var path: FilePath { folder.appending("Backups").appending("App") }

  func place(_ fileSystem: FileSystem = FileSystem()) -> FolderPlace { FolderPlace(path, in: fileSystem) }

  /// The identifier of a day of November 2026, at noon.
  func id(_ day: Int) throws -> BackupIdentifier {
    let text = "2026-11-\(day < 10 ? "0" : "")\(day)-12-00-00"
    guard let id = BackupIdentifier(text) else { throw FileError(.other, operation: "name a backup", path: nil) }
    return id
  }

  private static let digest = String(repeating: "0", count: 64)

  /// Puts a backup there: a full one, or a delta where it has a parent.
  func add(
    _ day: Int, parent: Int? = nil, depth: Int = 1, result: BackupProof.Result? = .proven, isSound: Bool = true,
    evidence: Bool = false, valuesIn holder: Int? = nil, tags: [String] = []
  ) throws {
    let id = try id(day)
    let content = BackupManifest.Content(
      bytes: 512, sha256: Self.digest, blocks: [Self.digest], pageSize: 512, pageCount: 1)
    let role: BackupManifest.File.Role = evidence ? .evidenceMain : parent == nil ? .database : .delta
    let file = BackupManifest.File(
      role: role, name: "\(id)\(role.suffix)", bytes: 100, sha256: Self.digest, members: [100],
      content: role == .database ? nil : content)
    var manifest = BackupManifest(
      id: id, kind: evidence ? .evidence : parent == nil ? .full : .delta, reason: .manual,
      store: .init(path: PathText("/App.sqlite"), kind: "core-data"), files: [file], check: .init(isSound: isSound),
      versions: .init(library: "1", operatingSystem: "test"))
    manifest.tags = tags
    if !evidence { manifest.database = content }
    if let parent {
      manifest.parent = try self.id(parent)
      manifest.depth = depth
      manifest.pages = [1, 1]
    }
    if let holder {
      manifest.externalData = .init(items: [
        .init(
          name: PathText("_EXTERNAL_DATA/A"), bytes: 1, sha256: Self.digest, backup: try self.id(holder), offset: 0)
      ])
    }
    let place = place()
    try place.replace(file.name, with: Array(repeating: UInt8(day), count: 100), in: .kept)
    if let result {
      let proof = BackupProof(id: id, date: id.date, result: result, depth: .restored)
      try place.replace("\(id).proof.json", with: try proof.json(), in: .kept)
    }
    try place.replace("\(id).json", with: try manifest.json(), in: .kept)
  }

  /// Every object of the place, with its content.
  func contents(_ section: BackupSection) throws -> [String: [UInt8]] {
    let place = place()
    var result: [String: [UInt8]] = [:]
    for object in try place.list(section) {
      result[object.name] = try place.read(object.name, in: section, at: 0, length: Int(object.bytes))
    }
    return result
  }

  /// The days of the backups that are listed as whole.
  func wholeDays() throws -> Set<String> {
    Set(try BackupCatalog(of: place()).backups.filter(\.isWhole).map { String($0.id.description.prefix(10).suffix(2)) })
  }
}
