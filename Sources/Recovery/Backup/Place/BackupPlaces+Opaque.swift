import AgeEncryption
import StoreFiles
import SystemPackage

/// Folders of encrypted backups, whose names tell nothing.
extension BackupPlaces {
  func opaque(_ folder: FilePath) -> OpaqueFolder {
    OpaqueFolder(path: folder, home: home, fileSystem: fileSystem)
  }

  /// A folder with its note, from wherever that can be read.
  func folder(at path: FilePath) throws(FileError) -> Folder {
    guard OpaqueFolder.isName(path.lastComponent?.string ?? "") else {
      return Folder(path: path, note: try StorePlaceNote.read(in: path, fileSystem))
    }
    let folder = opaque(path)
    if let note = try folder.localNote() { return Folder(path: path, note: note, isOpaque: true) }
    let isOpaque = try fileSystem.status(of: folder.sealedNotePath, followingLinks: false) != nil
    // One that was just given its name has the plain note still.
    var note = try folder.sealedNote(identities)
    if note == nil { note = try StorePlaceNote.read(in: path, fileSystem) }
    return Folder(path: path, note: note, isOpaque: isOpaque, isNotedHere: !isOpaque)
  }

  /// Whether nothing is left to be done for a folder to tell no more of its store than it has to.
  func isHidden(_ folder: Folder, from recipients: [AgeRecipient]) throws(BackupError) -> Bool {
    guard folder.isOpaque else { return recipients.isEmpty ? true : try !holdsOnlyEncrypted(folder.path) }
    let opaque = opaque(folder.path)
    return try wrapping(BackupError.init) { () throws(FileError) in
      guard folder.isNotedHere, try fileSystem.status(of: opaque.plainNotePath, followingLinks: false) == nil else {
        return false
      }
      return try fileSystem.status(of: opaque.sealedNotePath, followingLinks: false) != nil
    }
  }

  /// Whether every backup in a folder is encrypted, those in its trash too: nothing else in it names the store.
  private func holdsOnlyEncrypted(_ path: FilePath) throws(BackupError) -> Bool {
    let place = FolderPlace(path, in: fileSystem)
    let ending = BackupManifest.Encryption.fileEnding
    let outside = [BackupManifest.suffix, BackupProof.suffix, BackupCatalog.releaseSuffix]
    for section in BackupSection.allCases {
      let names = try place.list(section).map(\.name)
      let sealed = Set(names.filter { $0.hasSuffix(ending) }.compactMap { BackupCatalog.identifier(of: $0) })
      for name in names where !name.hasSuffix(ending) {
        guard let id = BackupCatalog.identifier(of: name) else { continue }
        guard sealed.contains(id), outside.contains(where: { name == "\(id)\($0)" }) else { return false }
      }
    }
    return true
  }

  // MARK: Making

  /// A name for a folder of a store: one that this machine has chosen for it before and that nothing has, or a new one.
  private func opaqueName(for note: StorePlaceNote) throws(BackupError) -> FilePath.Component {
    let known = try wrapping(BackupError.init) { () throws(FileError) in
      try OpaqueFolder.localNotes(of: home, fileSystem)
    }
    let names = known.filter { $0.note.path.path == note.path.path }.map(\.name)
    for name in names + (1...100).map({ _ in OpaqueFolder.newName(surroundings) }) {
      guard let component = FilePath.Component(name) else { continue }
      let path = root.appending(component)
      let isThere = try wrapping(BackupError.init) { () throws(FileError) in
        try fileSystem.status(of: path, followingLinks: false) != nil
      }
      if !isThere { return component }
    }
    throw BackupError(
      .nameTaken, operation: "name the folder of the backups", path: root, detail: "every name that was tried is taken",
      hint: "Choose another home with --home.")
  }

  /// Makes a folder for a store of which there are no backups yet; it has its name only when its note is in it.
  func makeOpaque(_ note: StorePlaceNote) throws(BackupError) -> FilePath {
    let path = root.appending(try opaqueName(for: note))
    let folder = opaque(path)
    try wrapping(BackupError.init) { () throws(FileError) in try folder.writeLocal(note) }
    let unfinished = path.hiddenSibling(suffix: Self.arriving)
    try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.makeDirectory(unfinished) }
    try folder.writeSealed(note, in: unfinished)
    try wrapping(BackupError.init) { () throws(FileError) in
      if FileSystem.effectiveUser == 0, let store = note.lastPath.path,
        var model = try fileSystem.status(of: store.folder)
      {
        model.permissions = .ownerReadWriteExecute
        try fileSystem.adoptAccess(of: model, to: unfinished)
      }
      try fileSystem.rename(unfinished, to: path)
      try fileSystem.synchronizeDirectory(root)
    }
    return path
  }

  /// Gives a folder that holds nothing but encrypted backups a name that tells nothing, and hides its note.
  ///
  /// The folder is renamed as a whole, so that its backups are there at every moment; after a kill the next call does the
  /// rest. Where another process is at it, that is left to the next call too. The caller holds the lock of the folder with
  /// all folders.
  ///
  /// - Returns: where the folder is now.
  func hide(_ path: FilePath, from recipients: [AgeRecipient]) throws(BackupError) -> FilePath {
    let folders = try folders()
    guard !recipients.isEmpty, let folder = folders.first(where: { $0.path == path }), let note = folder.note,
      try !isHidden(folder, from: recipients),
      !folders.contains(where: { $0.note?.arriving?.from == folder.name || $0.path == path && $0.note?.arriving != nil }
      )
    else { return path }
    let lock: FolderLock
    do throws(FileError) {
      lock = try FolderLock(path, patience: 0, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw BackupError(error) }
      return path
    }
    let hidden = try hideLocked(folder, note, recipients)
    _ = consume lock
    return hidden
  }

  private func hideLocked(
    _ folder: Folder, _ note: StorePlaceNote, _ recipients: [AgeRecipient]
  ) throws(BackupError) -> FilePath {
    var note = note
    note.recipients = Self.texts(of: recipients)
    let path = folder.isOpaque ? folder.path : root.appending(try opaqueName(for: note))
    let opaque = opaque(path)
    try wrapping(BackupError.init) { () throws(FileError) in try opaque.writeLocal(note) }
    try opaque.writeSealed(note, in: folder.path)
    try wrapping(BackupError.init) { () throws(FileError) in
      if path != folder.path {
        let key = self.opaque(folder.path).deltaKeyPath
        if try fileSystem.status(of: key) != nil { try fileSystem.rename(key, to: opaque.deltaKeyPath) }
        try fileSystem.rename(folder.path, to: path)
        try fileSystem.synchronizeDirectory(root)
      }
      try fileSystem.unlink(opaque.plainNotePath)
      try fileSystem.synchronizeDirectory(path)
    }
    return path
  }

  /// Public keys as a note has them.
  static func texts(of recipients: [AgeRecipient]) -> [String]? {
    recipients.isEmpty ? nil : Set(recipients.map(\.description)).sorted()
  }
}
