import Platform
import SystemPackage

/// A folder of encrypted backups that reveals nothing about its store.
///
/// Its name is random. The store's note is encrypted in it (`store.age`), and plain in the home
/// (`BackupKeys/<folder>.store.json`) for the machine that takes backups without a secret key. A digest of the path
/// would be unsafe: anyone who reads its key or guesses the path has it.
struct OpaqueFolder {
  let path: FilePath

  let home: FilePath
  let fileSystem: FileSystem

  static let noteName: FilePath.Component = "store.age"

  private static let prefix = "place-"
  private static let digits = 32

  /// Padding hides the path's length.
  private static let stride = 1024

  var name: String { path.lastComponent?.string ?? "" }

  static func isName(_ name: String) -> Bool {
    guard name.hasPrefix(prefix) else { return false }
    let rest = name.utf8.dropFirst(prefix.utf8.count)
    return rest.count == digits && rest.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  static func newName(_ surroundings: Surroundings) -> String { prefix + surroundings.makeUUID().bytes.hexadecimal }

  /// The facts for the machine that takes backups, outside `Backups/`.
  static func keysFolder(of home: FilePath, _ fileSystem: FileSystem) -> FilePath {
    fileSystem.homeFolder("BackupKeys", of: home)
  }

  private static let localSuffix = ".store.json"

  var localNotePath: FilePath { keyPath(Self.localSuffix) }

  /// The key that allows the next backup to be a delta.
  var deltaKeyPath: FilePath { keyPath(".key") }

  private func keyPath(_ suffix: String) -> FilePath {
    let folder = Self.keysFolder(of: home, fileSystem)
    return FilePath.Component(name + suffix).map { folder.appending($0) } ?? folder
  }

  var sealedNotePath: FilePath { path.appending(Self.noteName) }

  /// The note before the folder becomes opaque.
  var plainNotePath: FilePath { path.appending(StorePlaceNote.name) }

  // MARK: Reading

  static func localNotes(
    of home: FilePath, _ fileSystem: FileSystem
  ) throws(FileError) -> [(name: String, note: StorePlaceNote)] {
    let folder = keysFolder(of: home, fileSystem)
    guard try fileSystem.isFolder(folder) else { return [] }
    var notes: [(name: String, note: StorePlaceNote)] = []
    for entry in try fileSystem.entries(of: folder) where entry.string.hasSuffix(localSuffix) {
      let name = String(entry.string.dropLast(localSuffix.count))
      guard isName(name), let component = FilePath.Component(name) else { continue }
      let known = OpaqueFolder(path: folder.appending(component), home: home, fileSystem: fileSystem)
      if let note = try known.localNote() { notes.append((name, note)) }
    }
    return notes
  }

  /// Returns the machine's note, if readable.
  func localNote() throws(FileError) -> StorePlaceNote? {
    do throws(FileError) { return try StorePlaceNote.read(at: localNotePath, fileSystem) } catch {
      // Another user's home needs a key.
      guard error.kind == .permissionDenied else { throw error }
      return nil
    }
  }

  /// Decrypts the folder's note, if a key fits.
  func sealedNote(_ identities: [AgeIdentity]) throws(FileError) -> StorePlaceNote? {
    guard !identities.isEmpty, let status = try fileSystem.entry(at: sealedNotePath),
      status.kind == .regular, status.size <= Int64(StorePlaceNote.limit)
    else { return nil }
    let bytes = try fileSystem.open(sealedNotePath).bytes(at: 0, length: StorePlaceNote.limit)
    do throws(FileError) {
      var opener = AgeOpener(with: identities)
      var text = try opener.open(bytes)
      text += try opener.finish()
      while text.last == UInt8(ascii: " ") { text.removeLast() }
      return StorePlaceNote(json: text)
    } catch {
      // The folder is then listed without its store's name.
      return nil
    }
  }

  // MARK: Writing

  func writeLocal(_ note: StorePlaceNote) throws(FileError) {
    let folder = Self.keysFolder(of: home, fileSystem)
    let isNew = try fileSystem.status(of: folder) == nil
    try fileSystem.makeDirectory(folder)
    try note.write(to: localNotePath, inNewFolder: isNew, fileSystem)
  }

  func writeSealed(_ note: StorePlaceNote, in folder: FilePath) throws {
    let sealed: [UInt8]
    do {
      var text = try note.json()
      text += [UInt8](repeating: UInt8(ascii: " "), count: (Self.stride - text.count % Self.stride) % Self.stride)
      var sealer = try AgeSealer(to: try (note.recipients ?? []).map { try AgeRecipient($0) })
      sealed = try sealer.seal(text) + sealer.finish()
    } catch let error as FileError {
      guard error.kind.subject == .age else { throw BackupError(error) }
      throw BackupError(.request, because: error, operation: "encrypt the note of the store")
    } catch {
      throw BackupError(.packing, operation: "encrypt the note of the store", detail: "it cannot be encrypted")
    }
    let path = folder.appending(Self.noteName)
    try fileSystem.writeAtomically(sealed, to: path, replacing: true, permissions: .ownerReadWrite)
    if let store = note.lastPath.path { try fileSystem.give([path], toOwnerOf: store.folder, .ownerReadWrite) }
  }
}

extension FileSystem {
  /// Gives paths to the owner of a folder, as only the superuser can.
  func give(_ paths: [FilePath], toOwnerOf folder: FilePath, _ permissions: FilePermissions) throws(FileError) {
    guard Self.effectiveUser == 0, !paths.isEmpty, var model = try status(of: folder) else { return }
    model.permissions = permissions
    for path in paths { try adoptAccess(of: model, to: path) }
  }
}
