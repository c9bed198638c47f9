package import Platform

/// A file of a backup that is encrypted while it is written.
final class SealedUpload: BackupUpload {
  /// The name that its content has; the file's own ends in `.age`.
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

  init(
    _ name: String, _ base: any BackupUpload, to recipients: [AgeRecipient], _ files: SealedFiles
  ) throws(BackupError) {
    self.name = name
    self.base = base
    self.files = files
    do throws(AgeError) {
      let sealer = try AgeSealer(to: recipients)
      (beginning, content) = (sealer.beginning, sealer.content)
      state = Mutex(State(sealer: sealer))
    } catch {
      throw BackupError(.request, because: error, operation: "encrypt the backup")
    }
  }

  func append(_ bytes: ArraySlice<UInt8>) throws(BackupError) {
    try write { (sealer) throws(AgeError) in
      guard var open = sealer.take() else { return [] }
      let sealed = try open.seal(bytes)
      sealer = open
      return sealed
    }
  }

  func finish() throws(BackupError) {
    guard state.withLock({ $0.sealer != nil }) else { return try base.finish() }
    try write { (sealer) throws(AgeError) in try sealer.take()?.finish() ?? [] }
    try base.finish()
    let file = state.withLock { WrittenFile(bytes: $0.bytes, sha256: $0.digest.hexadecimal, beginning: beginning) }
    files.add(file, content, base.name)
  }

  func commit() throws(BackupError) {
    try finish()
    try base.commit()
  }

  func abandon() { base.abandon() }

  private func write(_ seal: (inout AgeSealer?) throws(AgeError) -> [UInt8]) throws(BackupError) {
    let sealed: [UInt8]
    do throws(AgeError) {
      sealed = try state.withLock { state throws(AgeError) in
        let sealed = try seal(&state.sealer)
        state.digest.add(sealed)
        state.bytes += Int64(sealed.count)
        return sealed
      }
    } catch {
      throw BackupError(.packing, because: error, operation: "encrypt the backup")
    }
    if !sealed.isEmpty { try base.append(sealed[...]) }
  }
}

/// The manifest of an encrypted backup that is being written: the whole one encrypted, and outside one that says what may be
/// known without a key.
final class SealedManifestUpload: BackupUpload {
  let name: String

  private let id: BackupIdentifier
  private let place: SealedPlace
  private let sealed: SealedUpload
  private let label: any BackupUpload
  private let state = Mutex(State())

  private struct State {
    var text: [UInt8] = []
    var isFinished = false
  }

  init(_ id: BackupIdentifier, in place: SealedPlace, _ sealed: SealedUpload) throws(BackupError) {
    self.id = id
    self.place = place
    self.sealed = sealed
    name = "\(id)\(BackupManifest.suffix)"
    label = try place.base.begin(name)
  }

  func append(_ bytes: ArraySlice<UInt8>) throws(BackupError) {
    state.withLock { $0.text += bytes }
    try sealed.append(bytes)
  }

  func finish() throws(BackupError) {
    let text = state.withLock { state -> [UInt8]? in
      guard !state.isFinished else { return nil }
      state.isFinished = true
      return state.text
    }
    guard let text else { return }
    try sealed.finish()
    let json = try place.label(of: BackupManifest(json: text, of: id)).json()
    // What is written is what can be read, or it is not written at all.
    _ = try BackupManifest(json: json, of: id)
    try label.append(json[...])
    try label.finish()
  }

  /// The manifest outside comes last: by it the backup is listed.
  func commit() throws(BackupError) {
    try finish()
    try sealed.commit()
    try label.commit()
  }

  func abandon() {
    sealed.abandon()
    label.abandon()
  }
}

/// An encrypted file, as far as its beginning tells.
struct SealedFile: Sendable {
  /// The bytes before the first chunk.
  var prologueLength: Int

  /// Its content; nil where no key that is there opens it.
  var content: AgeContent?
}

/// An encrypted file that was written in this process, as the manifest outside names it.
struct WrittenFile: Sendable {
  var bytes: Int64
  var sha256: String
  var beginning: [UInt8]
}

/// The encrypted files that are known, by section and name.
final class SealedFiles: Sendable {
  private let state = Mutex(State())

  private struct State {
    var opened: [String: SealedFile] = [:]
    var written: [String: WrittenFile] = [:]
  }

  /// More files are read anew, so that memory is bounded.
  private static let limit = 20_000

  /// What is known of a file; nil where nothing is.
  func known(_ name: String, _ section: BackupSection) -> SealedFile? {
    state.withLock { $0.opened["\(section.rawValue)/\(name)"] }
  }

  /// Takes down what a file's beginning told.
  func add(_ file: SealedFile, _ name: String, _ section: BackupSection) {
    state.withLock { state in
      if state.opened.count >= Self.limit { state.opened = [:] }
      state.opened["\(section.rawValue)/\(name)"] = file
    }
  }

  /// What is known of a file that was written here; nil where it was not.
  func written(_ name: String) -> WrittenFile? { state.withLock { $0.written[name] } }

  /// Takes down a file that was written.
  func add(_ file: WrittenFile, _ content: AgeContent, _ name: String) {
    state.withLock { $0.written[name] = file }
    add(SealedFile(prologueLength: content.prologueLength, content: content), name, .kept)
  }
}

/// A place of any kind as a holder of secret keys sees it.
package func sealedView(of place: any BackupPlace, with identities: [AgeIdentity]) -> any BackupPlace {
  SealedPlace(base: place, keys: BackupKeys(identities))
}
