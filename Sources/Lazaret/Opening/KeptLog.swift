import Backup
import Platform
import Salvage
import SystemPackage

/// The copy of a log or journal, not fully understood, that SQLite would fold in or remove.
struct KeptLog {
  let place: StoreFileSet
  let home: FilePath?
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Copies log and journal byte for byte into `Evidence/` of the backup folder, once.
  func keep() throws -> [OpeningEvent] {
    var events: [OpeningEvent] = []
    for part in [StoreFileSet.Part.wal, .journal] {
      let source = place.path(of: part)
      guard let status = try fileSystem.status(of: source), status.size > 0 else { continue }
      let folder = try Backups(home: home ?? place.folder, surroundings: surroundings).claimPlace(of: place.main).path
        .appending("Evidence")
      try fileSystem.makeDirectory(folder)
      let name = part == .wal ? "write-ahead log" : "rollback journal"
      events.append(
        OpeningEvent(
          .backup, at: surroundings.now(),
          path: try copy(source, status.size, named: ".sqlite-\(part.rawValue)", into: folder),
          words: "The store's \(name) does not end as it should: it was kept as it was before the store was opened."))
    }
    return events
  }

  private func copy(_ source: FilePath, _ size: Int64, named ending: String, into folder: FilePath) throws -> FilePath {
    var digest: FileDigest?
    for entry in try fileSystem.entries(of: folder) where entry.string.hasSuffix(ending) {
      let other = folder.appending(entry)
      guard try fileSystem.status(of: other, followingLinks: false)?.size == size else { continue }
      let own = try digest ?? FileDigest(of: fileSystem.open(source))
      digest = own
      if try FileDigest(of: fileSystem.open(other)) == own { return other }
    }
    let unfinished = folder.appending(".log.unfinished")
    _ = try fileSystem.copy(source, to: unfinished)
    var number = 1
    while true {
      let path = folder.appending("\(BackupIdentifier(date: surroundings.now(), number: number))\(ending)")
      number += 1
      if try fileSystem.status(of: path, followingLinks: false) != nil { continue }
      try fileSystem.install(unfinished, at: path, replacing: false)
      try fileSystem.synchronizeDirectory(folder.folder)
      return path
    }
  }
}
