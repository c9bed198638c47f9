package import Platform
package import SystemPackage

/// The preparation of a store's folder before writing.
extension BackupPlaces {
  /// Returns the backup folder of an existing store, if necessary a new one, with a note of the store.
  ///
  /// A folder shared by several stores, as of earlier versions, is split: each store's folder is named once it has
  /// every linkable object; then the old one is cleared. A kill loses no backup, and the next call continues.
  ///
  /// - Parameter recipients: with any, a folder of only encrypted backups gets an opaque name.
  /// - Returns: the folder; for a missing store, that of ``find(_:)``, without writing.
  /// - Throws: file errors, also for a note of a later version.
  package func claim(_ store: FilePath, encryptedTo recipients: [AgeRecipient] = []) throws -> FolderPlace {
    let asked = try asked(store)
    guard asked.exists else { return try find(store) }
    let uuid = uuid(of: asked)
    let known = try folders()
    if let folder = try notedFolder(asked, known), let note = folder.note,
      try note == updated(note, of: folder, asked, uuid, recipients), try isHidden(folder, from: recipients),
      known.allSatisfy({ $0.note?.arriving == nil }), let place = try noted(asked, known)
    {
      return place.claimed()
    }
    try makeRoot(for: asked)
    let lock = try locked(root)
    try removeUnfinished()
    let place = try claimLocked(asked, uuid, recipients)
    for folder in try folders() where folder.note?.arriving != nil {
      do { try settle(folder) } catch  where BackupError(any: error).fileError?.kind == .locked {
        // A later call clears a folder in use by another process.
      }
    }
    let hidden = FolderPlace(try hide(place.path, from: recipients), of: place.owner, in: fileSystem)
    lock.release()
    return hidden.claimed()
  }

  /// Makes the root folder; the superuser makes it for the store folder's owner.
  private func makeRoot(for asked: Asked) throws {
    let missing = try [home, root].filter { try fileSystem.status(of: $0) == nil }
    try fileSystem.makeDirectory(root)
    try fileSystem.give(missing, toOwnerOf: asked.main.folder, .ownerReadWriteExecute)
  }

  /// The caller holds the lock of the root folder.
  private func claimLocked(_ asked: Asked, _ uuid: String?, _ recipients: [AgeRecipient]) throws -> FolderPlace {
    let folders = try folders()
    // The order of `find`.
    var known = try noted(asked, folders)
    var found = known == nil ? try surveyed(asked, folders) : nil
    if known == nil, found == nil { known = try moved(asked, folders) }
    if known == nil, found == nil { found = try surveyed(asked, folders, isMoved: true) }
    if let place = known {
      guard let folder = folders.first(where: { $0.path == place.path }), let note = folder.note else { return place }
      let new = try updated(note, of: folder, asked, uuid, recipients)
      let isUnfinished = folder.isOpaque ? try !isHidden(folder, from: recipients) : false
      if new != note || isUnfinished { try write(new, in: place.path, isOpaque: folder.isOpaque) }
      return place
    }
    if let found { return try bringOver(found, asked, uuid, folders) }
    let place = try fresh(asked)
    var note = StorePlaceNote(path: asked.relativeText, lastPath: PathText(asked.main), uuid: uuid)
    note.recipients = Self.texts(of: recipients)
    if note.recipients != nil { return FolderPlace(try makeOpaque(note), of: place.owner, in: fileSystem) }
    if try fileSystem.status(of: place.path) == nil {
      try make(place.path) { try write(note, in: $0, isNew: true) }
    } else {
      try write(note, in: place.path)
    }
    return place
  }

  private func updated(
    _ note: StorePlaceNote, of folder: Folder, _ asked: Asked, _ uuid: String?, _ recipients: [AgeRecipient]
  ) throws -> StorePlaceNote {
    var note = note
    if folder.isOpaque, !recipients.isEmpty { note.recipients = Self.texts(of: recipients) }
    // An unreadable store keeps its noted identifier.
    if let uuid { note.uuid = uuid }
    // The note may have another name of the same file.
    let noted = note.path.path.map { PlaceOwner.whole($0, in: asked.home) }
    let identity = try noted.flatMap { try fileSystem.status(of: $0)?.identity }
    if note.path.path != asked.relative, identity != nil, identity == asked.identity { return note }
    if note.path.path != asked.relative {
      let earlier = (note.earlierPaths ?? []).filter { $0.path != asked.relative && $0.path != note.path.path }
      note.earlierPaths = earlier + [note.path]
      note.path = asked.relativeText
    }
    if note.lastPath.path != asked.main { note.lastPath = PathText(asked.main) }
    return note
  }

  // MARK: Bringing over

  /// Splits a folder without a note of the store.
  private func bringOver(
    _ found: Surveyed, _ asked: Asked, _ uuid: String?, _ folders: [Folder]
  ) throws -> FolderPlace {
    var note = StorePlaceNote(path: asked.relativeText, lastPath: PathText(asked.main), uuid: uuid)
    let owner = found.place.owner
    note.earlierPaths = Self.sorted((owner?.relativePaths ?? []).subtracting([asked.relative]))
    note.manifestPaths = Self.sorted(owner?.absolutePaths ?? [])
    var claimed = PlaceOwner(note, home: asked.home)
    claimed.movedFrom = owner?.movedFrom
    guard found.folder.note == nil else {
      let folder = root.appending(try freeName(asked.stem))
      try build(folder, note, found.own, from: found)
      return FolderPlace(folder, of: claimed, in: fileSystem)
    }
    var others: Set<String> = []
    for view in try views(of: found.survey, folders, asked.home, isNoted: false) {
      guard let other = view.owner, other.path?.path != asked.relative else { continue }
      let isKnown = folders.contains { $0.note != nil && $0.note?.path.path == other.path?.path }
      if let path = other.path, let present = other.present, !isKnown {
        try bringOver(other, path, present, from: found)
      }
      // Objects without a manifest are moved later.
      if case .only(let ids) = other.unnamed { others.formUnion(ids.map(\.description)) }
    }
    // Objects of unknown stores stay unassigned.
    others.subtract(found.own.map(\.description))
    if !others.isEmpty { note.others = others.sorted() }
    try write(note, in: found.folder.path)
    claimed.unnamed = .allBut(Set(others.compactMap { BackupIdentifier($0) }))
    return FolderPlace(found.folder.path, of: claimed, in: fileSystem)
  }

  /// Gives another store in the claimed folder its own.
  private func bringOver(_ owner: PlaceOwner, _ path: PathText, _ present: FilePath, from found: Surveyed) throws {
    var own: Set<BackupIdentifier> = []
    for group in found.survey.groups {
      let isOwn =
        group.relative.map { owner.relativePaths.contains($0) }
        ?? group.absolute.map { owner.absolutePaths.contains($0) } ?? false
      if isOwn { own.formUnion(group.all) }
    }
    own.subtract(found.own)
    guard !own.isEmpty else { return }
    var note = StorePlaceNote(path: path, lastPath: PathText(present), uuid: owner.uuid)
    note.earlierPaths = Self.sorted(owner.relativePaths.subtracting([path.path].compactMap(\.self)))
    note.manifestPaths = Self.sorted(owner.absolutePaths)
    try build(root.appending(try freeName(present.stem ?? "Store")), note, own, from: found)
  }

  private static func sorted(_ paths: Set<FilePath>) -> [PathText]? {
    let texts = paths.map { PathText($0) }
    return texts.isEmpty ? nil : texts.ordered { ($0.text, $0.bytes ?? "") < ($1.text, $1.bytes ?? "") }
  }

  /// Makes a folder of links to backups and their ancestors.
  private func build(
    _ folder: FilePath, _ note: StorePlaceNote, _ own: Set<BackupIdentifier>, from found: Surveyed
  ) throws {
    let source = FolderPlace(found.folder.path, in: fileSystem)
    let contents = try SectionContents.all(of: source)
    let wanted = SectionContents.needs(of: own, in: contents)
    var note = note
    note.arriving = .init(from: found.folder.name, backups: own.sorted().map(\.description))
    try make(folder) { unfinished in
      let target = FolderPlace(unfinished, in: fileSystem)
      for content in contents {
        let objects = content.objects.filter { $0.isLinked && wanted.contains($0.id) }
        guard !objects.isEmpty else { continue }
        let folder = target.folder(content.section)
        try fileSystem.makeDirectory(folder)
        for object in objects {
          try link(source.folder(content.section).appending(object.name), to: folder.appending(object.name))
        }
        try fileSystem.synchronizeDirectory(folder)
      }
      try write(note, in: unfinished, isNew: true)
    }
  }

  /// Makes a folder, which gets its name once `fill` has written its note and content.
  func make(_ folder: FilePath, _ fill: (FilePath) throws -> Void) throws {
    let unfinished = folder.hiddenSibling(suffix: Self.arriving)
    try fileSystem.makeDirectory(unfinished)
    try fill(unfinished)
    try fileSystem.rename(unfinished, to: folder)
    try fileSystem.synchronizeDirectory(root)
  }

  /// Writes a folder's note; the superuser does so for the store's owner.
  ///
  /// - Parameter isOpaque: whether the folder has an encrypted note, and the home a plain one.
  func write(_ note: StorePlaceNote, in folder: FilePath, isNew: Bool = false, isOpaque: Bool = false) throws {
    if isOpaque {
      try opaque(folder).writeLocal(note)
      // Without its public keys the sealed note stays.
      if note.recipients != nil { try opaque(folder).writeSealed(note, in: folder) }
      return
    }
    let path = folder.appending(StorePlaceNote.name)
    try refuseLaterVersion(path)
    try note.write(to: path, inNewFolder: isNew, fileSystem)
  }

  /// Throws if a later version of this software wrote the note.
  private func refuseLaterVersion(_ path: FilePath) throws(FileError) {
    guard try fileSystem.status(of: path) != nil,
      let version = StorePlaceNote.version(json: try fileSystem.contents(of: path, limit: StorePlaceNote.limit)),
      version > StorePlaceNote.currentVersion
    else { return }
    throw FileError(
      .other, operation: "note the store of the backups", path: path,
      detail: "it is of version \(version), and this software knows version \(StorePlaceNote.currentVersion)",
      hint: "Use a newer version of this software.")
  }

  /// Links a file, or copies it if links are unsupported.
  private func link(_ source: FilePath, to destination: FilePath) throws(FileError) {
    do throws(FileError) {
      try fileSystem.link(source, to: destination)
    } catch  where error.meansLinksAreUnsupported {
      try fileSystem.duplicate(source, to: destination)
      try fileSystem.synchronizeFile(destination)
    }
  }

  /// Deletes remains of killed processes; their content exists elsewhere.
  private func removeUnfinished() throws {
    for name in try fileSystem.entries(of: root)
    where name.string.hasPrefix(".") && name.string.hasSuffix(Self.arriving) {
      try fileSystem.removeTree(root.appending(name))
    }
  }

  func locked(_ folder: FilePath) throws -> FolderLock { try FolderLock(folder, patience: 60_000, in: fileSystem) }
}
