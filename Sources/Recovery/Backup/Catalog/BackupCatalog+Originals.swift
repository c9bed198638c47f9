import SQLiteFormat
import StoreFiles
import SystemPackage

extension BackupCatalog {
  /// The role of an object among the parts of an original; nil for any other object.
  static func originalRole(of name: String, _ id: BackupIdentifier) -> BackupManifest.File.Role? {
    // Few names end like this, and the text of the identifier is made for these alone.
    let original = BackupManifest.File.Role.originals.first { name.hasSuffix($0.suffix) && name == "\(id)\($0.suffix)" }
    return original?.role
  }

  /// The original that an object of that name is the note of; nil for any other object.
  static func noteIdentifier(of name: String) -> BackupIdentifier? {
    name.hasSuffix(OnlyHereNote.suffix) ? BackupIdentifier(String(name.dropLast(OnlyHereNote.suffix.count))) : nil
  }

  /// Tells the parts of an original from the objects of a backup of the same name.
  ///
  /// - Returns: the objects of the backup or of the original, whichever there is, and what belongs to neither.
  static func sorted(
    _ objects: [BackupObject], of id: BackupIdentifier
  ) -> (own: [BackupObject], strays: [BackupObject]) {
    let parts = objects.filter { originalRole(of: $0.name, id) != nil }
    if parts.isEmpty { return (objects, []) }
    let others = objects.filter { originalRole(of: $0.name, id) == nil }
    // A proof alone makes no backup.
    guard others.allSatisfy({ $0.name == "\(id)\(BackupProof.suffix)" }) else { return (others, parts) }
    // Without its main file it is still on its way, or has lost it.
    return parts.contains { originalRole(of: $0.name, id) == .originalMain } ? (objects, []) : ([], objects)
  }

  /// What a manifest would say of an original; nil where the objects are none.
  static func originalManifest(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> BackupManifest? {
    let files = objects.compactMap { object in
      originalRole(of: object.name, id).map {
        BackupManifest.File(role: $0, name: object.name, bytes: object.bytes, sha256: "")
      }
    }
    guard let main = files.first(where: { $0.role == .originalMain }) else { return nil }
    var manifest = BackupManifest(
      id: id, kind: .original, reason: .beforeMigration, store: .init(path: PathText(""), kind: "unknown"),
      files: files, check: .init(isSound: true), versions: .init(library: "", operatingSystem: ""))
    let header = DatabaseHeader(
      try place.read(main.name, in: section, at: 0, length: DatabaseHeader.length))
    let pageSize = header?.pageSize ?? 4096
    manifest.database = BackupManifest.Content(
      bytes: main.bytes, sha256: "", blocks: [], pageSize: pageSize,
      pageCount: UInt32(clamping: main.bytes / Int64(pageSize)))
    return manifest
  }

  /// The note of the records that are only in an original; nil where none lies beside it.
  ///
  /// That it lies there is what counts: one that cannot be read, or is no such note, names no entity.
  static func onlyHereNote(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) -> OnlyHereNote? {
    guard let object = objects.first(where: { originalRole(of: $0.name, id) == .originalOnlyHere }) else { return nil }
    let unreadable = OnlyHereNote(step: nil, entities: [])
    guard object.bytes > 0, object.bytes <= Int64(OnlyHereNote.limit) else { return unreadable }
    do throws(BackupError) {
      let bytes = try place.read(object.name, in: section, at: 0, length: OnlyHereNote.limit)
      return OnlyHereNote(json: bytes) ?? unreadable
    } catch {
      // What it says cannot be told for now, and the original is kept all the same.
      return unreadable
    }
  }
}
