package import Platform
package import SystemPackage

/// The folder of one store's backups: `Backups/<store>/` of a home, with the trash in `.trash`.
package struct FolderPlace: BackupPlace {
  package let path: FilePath

  /// The store; nil if the whole folder belongs to it.
  package var owner: PlaceOwner?

  let fileSystem: FileSystem

  /// Nil to see encrypted backups as stored.
  var keys: BackupKeys?

  /// Whether the folder existed with a note; if now missing, it was renamed.
  private(set) var isClaimed = false

  func claimed() -> FolderPlace {
    var place = self
    place.isClaimed = true
    return place
  }

  package func unlocked(with identities: [AgeIdentity]) -> FolderPlace {
    var place = self
    place.keys = identities.isEmpty ? nil : BackupKeys(identities)
    return place
  }

  /// The folder as seen by the key holder, if there are keys.
  private var sealed: SealedPlace? { keys.map { SealedPlace(base: unlocked(with: []), keys: $0) } }

  package init(_ path: FilePath, of owner: PlaceOwner? = nil, in fileSystem: FileSystem) {
    self.path = path
    self.owner = owner
    self.fileSystem = fileSystem
  }

  package init(_ path: FilePath) { self.init(path, in: FileSystem()) }

  package var location: String { path.string }

  func folder(_ section: BackupSection) -> FilePath { section == .kept ? path : path.appending(".trash") }

  func file(_ name: String, in section: BackupSection) throws -> FilePath {
    guard Self.isName(name), let component = FilePath.Component(name) else {
      throw BackupError(
        .request, operation: "find the file of a backup", path: path,
        detail: "\(printable(name)) is not a name that a backup's file can have", hint: "Check the backup's manifest.")
    }
    if let id = Self.supportIdentifier(name) { return support(of: id, in: section) }
    return folder(section).appending(component)
  }

  /// Returns whether the store's note is invalid, and so ignored.
  package func hasUnreadableNote() throws -> Bool {
    guard try fileSystem.status(of: path.appending(StorePlaceNote.name)) != nil else { return false }
    return try StorePlaceNote.read(in: path, fileSystem) == nil
  }

  /// Returns whether an object may have this name: not hidden, and no path.
  package static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, first != UInt8(ascii: "."), name.utf8.count <= 200 else { return false }
    return name.utf8.allSatisfy { $0.isOfWord && $0 != UInt8(ascii: "_") }
  }

  // MARK: The protocol

  /// Lists the files that can be objects.
  package func list(_ section: BackupSection) throws -> [BackupObject] {
    if let sealed { return try sealed.list(section) }
    let folder = folder(section)
    guard try fileSystem.isFolder(folder) else { return [] }
    var objects: [BackupObject] = []
    for name in try fileSystem.entries(of: folder) {
      if let support = try supportObject(name, in: folder) { objects.append(support) }
      guard Self.isName(name.string), try !isOnItsWay(name, in: folder) else { continue }
      guard let status = try fileSystem.entry(at: folder.appending(name)) else { continue }
      // Anything with a note's name keeps an original; unless a file, it counts 0 bytes and is never opened.
      guard status.kind == .regular || Self.isNote(name.string) else { continue }
      objects.append(BackupObject(name: name.string, bytes: status.kind == .regular ? status.size : 0))
    }
    return objects
  }

  package func contains(_ name: String, in section: BackupSection) throws -> Bool {
    if let sealed { return try sealed.contains(name, in: section) }
    return try fileSystem.hasEntry(at: file(name, in: section))
  }

  package func read(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8] {
    if let sealed { return try sealed.read(name, in: section, at: offset, length: length) }
    return try fileSystem.open(file(name, in: section)).bytes(at: offset, length: length)
  }

  /// Reads a part of a file, including altered bytes of an encrypted one.
  package func readUnproven(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws -> [UInt8] {
    if let sealed { return try sealed.readUnproven(name, in: section, at: offset, length: length) }
    return try read(name, in: section, at: offset, length: length)
  }

  /// Returns the outer manifest of an encrypted backup, if the place has keys.
  package func label(
    of id: BackupIdentifier
  ) throws -> (place: any BackupPlace, manifest: BackupManifest)? { try sealed?.label(of: id) }

  package func begin(_ name: String) throws -> any BackupUpload {
    let file = try file(name, in: .kept)
    try fileSystem.makeDirectory(path)
    return try FolderUpload(file, in: fileSystem)
  }

  package func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws {
    if let sealed { return try sealed.replace(name, with: bytes, in: section) }
    let file = try file(name, in: section)
    try fileSystem.makeDirectory(folder(section))
    try fileSystem.writeAtomically(bytes, to: file, replacing: true, permissions: .ownerReadWrite)
  }

  /// The file is always in at least one section.
  package func move(_ name: String, from: BackupSection, to: BackupSection) throws {
    if let sealed { return try sealed.move(name, from: from, to: to) }
    let (source, destination) = (try file(name, in: from), try file(name, in: to))
    try fileSystem.makeDirectory(folder(to))
    if Self.supportIdentifier(name) != nil { return try moveFolder(source, to: destination) }
    try fileSystem.install(source, at: destination, replacing: false)
    try fileSystem.synchronizeDirectory(folder(from))
  }

  package func delete(_ name: String, in section: BackupSection) throws {
    if let sealed { return try sealed.delete(name, in: section) }
    let file = try file(name, in: section)
    guard try fileSystem.hasEntry(at: file) else { return }
    if Self.supportIdentifier(name) != nil { try fileSystem.removeTree(file) } else { try fileSystem.unlink(file) }
    try fileSystem.synchronizeDirectory(folder(section))
  }

  /// Returns the future names of `.unfinished` files.
  package func unfinished() throws -> [String] {
    guard try fileSystem.isFolder(path) else { return [] }
    return try fileSystem.entries(of: path).map(\.string)
      .filter { $0.hasPrefix(".") && $0.hasSuffix(FolderUpload.suffix) }
      .map { String($0.dropFirst().dropLast(FolderUpload.suffix.count)) }
  }

  /// Deletes `.unfinished` files, and backups with such a manifest.
  package func removeUnfinished() throws {
    try removeHalfBackups()
    for section in BackupSection.allCases {
      let folder = folder(section)
      guard try fileSystem.isFolder(folder) else { continue }
      for name in try fileSystem.entries(of: folder)
      where name.string.hasPrefix(".") && name.string.hasSuffix(FolderUpload.suffix) {
        try fileSystem.unlink(folder.appending(name))
      }
    }
  }

  /// Deletes backups with a hidden manifest, which a killed run left.
  private func removeHalfBackups() throws {
    guard try fileSystem.isFolder(path) else { return }
    let entries = try fileSystem.entries(of: path)
    let suffix = BackupManifest.suffix + FolderUpload.suffix
    for name in entries.map(\.string) where name.hasPrefix(".") && name.hasSuffix(suffix) {
      guard let id = BackupIdentifier(String(name.dropFirst().dropLast(suffix.count))),
        !entries.contains(where: { $0.string == "\(id)\(BackupManifest.suffix)" })
      else { continue }
      for suffix in BackupManifest.File.Role.suffixes + [BackupProof.suffix] { try delete("\(id)\(suffix)", in: .kept) }
    }
  }

  /// Waits if another process has the lock.
  package func lock() throws -> any BackupPlaceLock {
    let before = try fileSystem.status(of: path)?.identity
    if isClaimed, before == nil { throw renamed() }
    try fileSystem.makeDirectory(path)
    let lock = try FolderLock(path, patience: 60_000, in: fileSystem)
    // The previous holder may have renamed the folder.
    if let before, try fileSystem.status(of: path)?.identity != before { throw renamed() }
    return FolderPlaceLock(lock)
  }

  private func renamed() -> FileError {
    FileError(
      .changed, operation: "lock the folder of the backups", path: path,
      detail: "another process has given it another name", hint: "Run the same command again.")
  }

  // MARK: The originals kept by migrations: a store's files under a backup's name

  private static let supportSuffix = BackupManifest.File.Role.originalSupport.suffix

  func support(of id: BackupIdentifier, in section: BackupSection) -> FilePath {
    original(id, in: section).path(of: .externalData)
  }

  func original(_ id: BackupIdentifier, in section: BackupSection) -> StoreFileSet {
    StoreFileSet(main: folder(section).appending("\(id).sqlite"))
  }

  /// Returns the original of an object that stands for a support folder.
  static func supportIdentifier(_ name: String) -> BackupIdentifier? {
    name.hasSuffix(supportSuffix) ? BackupIdentifier(String(name.dropLast(supportSuffix.count))) : nil
  }

  /// Returns the object that stands for a support folder.
  func supportObject(_ name: FilePath.Component, in folder: FilePath) throws(FileError) -> BackupObject? {
    let text = name.string
    guard text.hasPrefix("."), text.hasSuffix("_SUPPORT"),
      let id = BackupIdentifier(String(text.dropFirst().dropLast("_SUPPORT".count))),
      try fileSystem.entry(at: folder.appending(name))?.kind == .directory
    else { return nil }
    let bytes = try fileSystem.descendants(of: folder.appending(name)).files.reduce(Int64(0)) { $0 &+ $1.status.size }
    return BackupObject(name: "\(id)\(Self.supportSuffix)", bytes: bytes)
  }

  /// Returns whether an original's main file is still linked at the store's path, as a migration is about to replace
  /// it.
  func isOnItsWay(_ name: FilePath.Component, in folder: FilePath) throws(FileError) -> Bool {
    guard name.string.hasSuffix(BackupManifest.File.Role.originalMain.suffix),
      let status = try fileSystem.entry(at: folder.appending(name)), status.kind == .regular, status.linkCount > 1
    else { return false }
    // A killed drop or restore leaves two names here.
    let names = try BackupSection.allCases.count { (section) throws(FileError) in
      try fileSystem.entry(at: self.folder(section).appending(name))?.identity == status.identity
    }
    return names < status.linkCount
  }

  static func isNote(_ name: String) -> Bool { name.hasSuffix(BackupManifest.File.Role.originalOnlyHere.suffix) }

  func moveFolder(_ source: FilePath, to destination: FilePath) throws(FileError) {
    if try fileSystem.hasEntry(at: destination) {
      throw FileError(.alreadyExists, operation: "move the large values", path: destination)
    }
    try fileSystem.rename(source, to: destination)
    try fileSystem.synchronizeDirectory(destination.folder)
    try fileSystem.synchronizeDirectory(source.folder)
  }
}

private final class FolderPlaceLock: BackupPlaceLock {
  private let lock: FolderLock

  init(_ lock: consuming FolderLock) { self.lock = lock }
}

/// A backup file written under a hidden name.
final class FolderUpload: BackupUpload {
  static let suffix = ".unfinished"

  let name: String
  private let destination: FilePath
  private let unfinished: FilePath
  private let fileSystem: FileSystem
  private let file: WritableFile
  private let state = Mutex(State.open)

  /// The bytes appended, and those being written to disk.
  private let progress = Mutex((bytes: Int64(0), begun: Int64(0)))
  private static let stride: Int64 = 8 << 20

  private enum State { case open, synchronized, closed }

  init(_ destination: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.destination = destination
    name = destination.lastComponent?.string ?? ""
    self.fileSystem = fileSystem
    unfinished = destination.hiddenSibling(suffix: Self.suffix)
    // The remains may be a second link to a finished file, so they are never written into.
    try fileSystem.unlink(unfinished)
    // A backup has all of the store's data.
    file = try fileSystem.create(unfinished, permissions: .ownerReadWrite)
  }

  deinit {
    // On failure the next backup deletes it.
    if state.withLock({ $0 != .closed }) { try? fileSystem.unlink(unfinished) }
  }

  func append(_ bytes: ArraySlice<UInt8>) throws {
    try file.write(bytes)
    let range: Range<Int64>? = progress.withLock { progress in
      progress.bytes += Int64(bytes.count)
      guard progress.bytes - progress.begun >= Self.stride else { return nil }
      defer { progress.begun = progress.bytes }
      return progress.begun..<progress.bytes
    }
    // Writing early shortens the wait at the end.
    if let range { file.beginWriting(at: range.lowerBound, length: range.upperBound - range.lowerBound) }
  }

  func synchronize() throws {
    guard state.withLock({ $0 == .open }) else { return }
    try file.synchronize()
    state.withLock { $0 = .synchronized }
  }

  func commit() throws {
    try synchronize()
    try fileSystem.install(unfinished, at: destination, replacing: false)
    state.withLock { $0 = .closed }
  }
}
