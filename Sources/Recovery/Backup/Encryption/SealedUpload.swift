import AgeEncryption
import Compatibility
import StoreFiles

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
