package import Platform
package import SystemPackage

/// The recipients of a backup.
package struct BackupEncryption: Sendable, Hashable {
  package var recipients: [AgeRecipient]

  /// The file of the key that allows a delta next; nil for full backups only.
  ///
  /// It opens only the newest backup's page hashes and manifest.
  package var deltaKeyFile: FilePath?

  package init(to recipients: [AgeRecipient], deltaKeyFile: FilePath? = nil) {
    self.recipients = recipients
    self.deltaKeyFile = deltaKeyFile
  }
}

/// The keys to read and write encrypted backups.
///
/// Its reflection is empty, so that no log holds a key.
final class BackupKeys: Sendable, CustomReflectable {
  let identities: [AgeIdentity]

  /// The recipients of new backups; nil for plain ones.
  let writing: Writing?

  struct Writing: Sendable {
    var recipients: [AgeRecipient]

    /// An extra recipient of page hashes and manifest, for a delta.
    var delta: AgeRecipient?
  }

  let files = SealedFiles()

  init(_ identities: [AgeIdentity], writing: Writing? = nil) {
    self.identities = identities
    self.writing = writing
  }

  var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The key of the newest backup's page hashes and manifest, stored outside the place.
struct DeltaKey {
  let file: FilePath
  let fileSystem: FileSystem

  private static let limit = 4096

  /// Returns the previous key; without it the next backup is full.
  func read() -> AgeIdentity? {
    guard let bytes = try? fileSystem.contents(of: file, limit: Self.limit) else { return nil }
    return try? AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self)).first
  }

  /// Replaces the previous key.
  func write(_ identity: AgeIdentity, of id: BackupIdentifier) {
    let text = "# opens the hashes of pages and the manifest of \(id), and nothing else\n\(identity.secretText)\n"
    do throws(FileError) {
      try fileSystem.makeDirectory(file.removingLastComponent())
      try fileSystem.writeAtomically(Array(text.utf8), to: file, replacing: true, permissions: .ownerReadWrite)
    } catch {
      // Without the key the next backup is full.
    }
  }
}

extension BackupError {
  static func locked(_ id: BackupIdentifier, _ operation: String) -> BackupError {
    BackupError(.locked, operation: operation, detail: "backup \(id) is encrypted, and no key that opens it was given")
  }
}

/// A backup file encrypted while it is written.
final class SealedUpload: BackupUpload {
  /// Without `.age`.
  let name: String

  private let base: any BackupUpload
  private let files: SealedFiles
  private let state: Mutex<State>
  private let beginning: [UInt8]
  private let content: AgeContent

  private struct State {
    var sealer: AgeSealer?
    var digest = RunningDigest()
    var bytes: Int64 = 0
  }

  init(_ name: String, _ base: any BackupUpload, to recipients: [AgeRecipient], _ files: SealedFiles) throws {
    self.name = name
    self.base = base
    self.files = files
    do throws(FileError) {
      let sealer = try AgeSealer(to: recipients)
      (beginning, content) = (sealer.beginning, sealer.content)
      state = Mutex(State(sealer: sealer))
    } catch { throw BackupError(.request, because: error, operation: "encrypt the backup") }
  }

  func append(_ bytes: ArraySlice<UInt8>) throws {
    try write { (sealer) throws(FileError) in
      guard var open = sealer.take() else { return [] }
      let sealed = try open.seal(bytes)
      sealer = open
      return sealed
    }
  }

  func synchronize() throws {
    guard state.withLock({ $0.sealer != nil }) else { return try base.synchronize() }
    try write { (sealer) throws(FileError) in try sealer.take()?.finish() ?? [] }
    try base.synchronize()
    let file = state.withLock { WrittenFile(bytes: $0.bytes, sha256: $0.digest.hexadecimal, beginning: beginning) }
    files.add(file, content, base.name)
  }

  func commit() throws {
    try synchronize()
    try base.commit()
  }

  private func write(_ seal: (inout AgeSealer?) throws(FileError) -> [UInt8]) throws {
    let sealed: [UInt8]
    do throws(FileError) {
      sealed = try state.withLock { state throws(FileError) in
        let sealed = try seal(&state.sealer)
        state.digest.add(sealed)
        state.bytes += Int64(sealed.count)
        return sealed
      }
    } catch { throw BackupError(.packing, because: error, operation: "encrypt the backup") }
    if !sealed.isEmpty { try base.append(sealed[...]) }
  }
}

/// Writes the full manifest encrypted, and the public outer one.
final class SealedManifestUpload: BackupUpload {
  let name: String

  private let id: BackupIdentifier
  private let place: SealedPlace
  private let sealed: SealedUpload
  private let label: any BackupUpload
  private let state = Mutex((text: [UInt8](), isFinished: false))

  init(_ id: BackupIdentifier, in place: SealedPlace, _ sealed: SealedUpload) throws {
    self.id = id
    self.place = place
    self.sealed = sealed
    name = "\(id)\(BackupManifest.suffix)"
    label = try place.base.begin(name)
  }

  func append(_ bytes: ArraySlice<UInt8>) throws {
    state.withLock { $0.text += bytes }
    try sealed.append(bytes)
  }

  func synchronize() throws {
    let text = state.withLock { state -> [UInt8]? in
      guard !state.isFinished else { return nil }
      state.isFinished = true
      return state.text
    }
    guard let text else { return }
    try sealed.synchronize()
    let json = try place.label(of: BackupManifest(json: text, of: id)).json()
    // Parsing first prevents writing an unreadable manifest.
    _ = try BackupManifest(json: json, of: id)
    try label.append(json[...])
    try label.synchronize()
  }

  /// The outer manifest comes last, as it lists the backup.
  func commit() throws {
    try synchronize()
    try sealed.commit()
    try label.commit()
  }
}

/// The content of an encrypted file's prologue.
struct SealedFile: Sendable {
  var prologueLength: Int

  var content: AgeContent?
}

/// A file written by this process, for the outer manifest.
struct WrittenFile: Sendable {
  var bytes: Int64
  var sha256: String
  var beginning: [UInt8]
}

/// A cache of encrypted files by section and name.
final class SealedFiles: Sendable {
  private let state = Mutex((opened: [String: SealedFile](), written: [String: WrittenFile]()))

  /// Bounds the memory; further files are read again.
  private static let limit = 20_000

  func known(_ name: String, _ section: BackupSection) -> SealedFile? {
    state.withLock { $0.opened["\(section.rawValue)/\(name)"] }
  }

  func add(_ file: SealedFile, _ name: String, _ section: BackupSection) {
    state.withLock { state in
      if state.opened.count >= Self.limit { state.opened = [:] }
      state.opened["\(section.rawValue)/\(name)"] = file
    }
  }

  func written(_ name: String) -> WrittenFile? { state.withLock { $0.written[name] } }

  func add(_ file: WrittenFile, _ content: AgeContent, _ name: String) {
    state.withLock { $0.written[name] = file }
    add(SealedFile(prologueLength: content.prologueLength, content: content), name, .kept)
  }
}

package func sealedView(of place: any BackupPlace, with identities: [AgeIdentity]) -> any BackupPlace {
  SealedPlace(base: place, keys: BackupKeys(identities))
}
