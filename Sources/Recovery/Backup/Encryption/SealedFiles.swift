import AgeEncryption
import Compatibility
import StoreFiles

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
