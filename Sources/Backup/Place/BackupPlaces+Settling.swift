import Platform
import SystemPackage

/// The objects in one section of a folder.
struct SectionContents {
  struct Object {
    var name: String
    var bytes: Int64
    var id: BackupIdentifier

    /// Whether it can be linked; parts of an original cannot, as their links are counted.
    var isLinked: Bool
  }

  let section: BackupSection
  let objects: [Object]

  let needs: [BackupIdentifier: [BackupIdentifier]]

  init(_ section: BackupSection, of place: FolderPlace) throws(BackupError) {
    self.section = section
    let catalog = try BackupCatalog(of: place, section: section)
    var needs: [BackupIdentifier: [BackupIdentifier]] = [:]
    for backup in catalog.backups { needs[backup.id] = backup.needs }
    self.needs = needs
    objects = try place.list(section).compactMap { object in
      let record = object.name.hasSuffix(TrashRecord.suffix) ? object.name.dropLast(TrashRecord.suffix.count) : nil
      guard let id = record.flatMap({ BackupIdentifier(String($0)) }) ?? BackupCatalog.identifier(of: object.name)
      else { return nil }
      return Object(
        name: object.name, bytes: object.bytes, id: id,
        isLinked: BackupCatalog.originalRole(of: object.name, id) == nil)
    }
  }

  static func all(of place: FolderPlace) throws(BackupError) -> [SectionContents] {
    var all: [SectionContents] = []
    for section in BackupSection.allCases { all.append(try SectionContents(section, of: place)) }
    return all
  }

  /// Adds all backups that restoring these needs.
  static func needs(of backups: Set<BackupIdentifier>, in contents: [SectionContents]) -> Set<BackupIdentifier> {
    var (all, waiting) = (backups, Array(backups))
    while let next = waiting.popLast() {
      for needed in contents.flatMap({ $0.needs[next] ?? [] }) where all.insert(needed).inserted {
        waiting.append(needed)
      }
    }
    return all
  }
}

/// The completion of a split.
extension BackupPlaces {
  /// Deletes copied objects from the old folder, and moves unlinkable ones.
  ///
  /// Objects that others need stay. The caller holds the lock of the root folder.
  func settle(_ folder: Folder) throws(BackupError) {
    guard var note = folder.note, let arriving = note.arriving else { return }
    if let name = FilePath.Component(arriving.from), name.kind == .regular, root.appending(name) != folder.path {
      let source = FolderPlace(root.appending(name), in: fileSystem)
      let isThere = try wrapping(BackupError.init) { () throws(FileError) in
        try fileSystem.status(of: source.path)?.kind == .directory
      }
      if isThere {
        let lock = try locked(source.path)
        let own = Set(arriving.backups.compactMap { BackupIdentifier($0) })
        try settle(own, from: source, to: FolderPlace(folder.path, in: fileSystem))
        lock.release()
      }
    }
    note.arriving = nil
    try write(note, in: folder.path, isOpaque: folder.isOpaque)
  }

  private func settle(
    _ own: Set<BackupIdentifier>, from source: FolderPlace, to target: FolderPlace
  ) throws(BackupError) {
    let contents = try SectionContents.all(of: source)
    let rest = Set(contents.flatMap(\.objects).map(\.id)).subtracting(own)
    let needed = SectionContents.needs(of: rest, in: contents)
    for content in contents {
      let there = Dictionary(
        try target.list(content.section).map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
      for id in own.sorted(by: >) {
        let objects = content.objects.filter { $0.id == id }
        let parts = objects.filter { !$0.isLinked }.map(\.name)
        if !parts.isEmpty || isArriving(id, target, content.section) {
          try moveOriginal(id, parts, content.section, from: source, to: target)
        }
        guard !needed.contains(id) else { continue }
        // With the manifest last, a half-deleted backup is never whole, but stays identifiable.
        let manifest = "\(id)\(BackupManifest.suffix)"
        let names = objects.filter { object in
          guard object.isLinked else { return false }
          let isProof = object.name == "\(id)\(BackupProof.suffix)" && there[manifest] != nil
          return isProof || there[object.name] == object.bytes
        }.map(\.name)
        for name in names.filter({ $0 != manifest }) + names.filter({ $0 == manifest }) {
          try source.delete(name, in: content.section)
        }
      }
    }
  }

  /// The temporary name of an original's main file.
  private func hidden(_ id: BackupIdentifier, _ place: FolderPlace, _ section: BackupSection) -> FilePath {
    place.folder(section).appending(".\(id).sqlite\(Self.arriving)")
  }

  private func isArriving(_ id: BackupIdentifier, _ place: FolderPlace, _ section: BackupSection) -> Bool {
    // Errors are left to the next call.
    (try? fileSystem.status(of: hidden(id, place, section), followingLinks: false)) ?? nil != nil
  }

  /// Moves an original, whose main file stays hidden until all parts have arrived.
  private func moveOriginal(
    _ id: BackupIdentifier, _ parts: [String], _ section: BackupSection, from source: FolderPlace,
    to target: FolderPlace
  ) throws(BackupError) {
    let main = "\(id)\(BackupManifest.File.Role.originalMain.suffix)"
    let (folder, hidden) = (target.folder(section), hidden(id, target, section))
    try wrapping(BackupError.init) { () throws(FileError) in
      try fileSystem.makeDirectory(folder)
      if parts.contains(main) {
        try fileSystem.rename(source.folder(section).appending(main), to: hidden)
        try fileSystem.synchronizeDirectory(folder)
      }
    }
    for name in parts where name != main { try rename(name, section, from: source, to: target) }
    try wrapping(BackupError.init) { () throws(FileError) in
      try fileSystem.synchronizeDirectory(folder)
      if try fileSystem.status(of: hidden, followingLinks: false) != nil {
        try fileSystem.rename(hidden, to: folder.appending(main))
        try fileSystem.synchronizeDirectory(folder)
      }
      try fileSystem.synchronizeDirectory(source.folder(section))
    }
  }

  private func rename(
    _ name: String, _ section: BackupSection, from source: FolderPlace, to target: FolderPlace
  ) throws(BackupError) {
    let (old, new) = (try source.file(name, in: section), try target.file(name, in: section))
    try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.rename(old, to: new) }
  }
}
