import StoreFiles
import Synchronization
import SystemPackage

/// A file of a backup that is being written under a hidden name.
final class FolderUpload: BackupUpload {
  static let suffix = ".unfinished"

  private let destination: FilePath
  private let unfinished: FilePath
  private let fileSystem: FileSystem
  private let file: WritableFile
  private let state = Mutex(State.open)

  private enum State {
    case open
    case finished
    case closed
  }

  init(_ destination: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.destination = destination
    self.fileSystem = fileSystem
    unfinished = destination.hiddenSibling(suffix: Self.suffix)
    // What a killed process left may be a second name of a finished file: it is removed, never written into.
    try fileSystem.unlink(unfinished)
    // A backup holds all that the store holds, and is its owner's alone.
    file = try fileSystem.create(unfinished, permissions: .ownerReadWrite)
  }

  deinit { abandon() }

  func append(_ bytes: ArraySlice<UInt8>) throws(BackupError) {
    do throws(FileError) { try file.write(bytes) } catch { throw BackupError(error) }
  }

  func finish() throws(BackupError) {
    guard state.withLock({ $0 == .open }) else { return }
    do throws(FileError) { try file.synchronize() } catch { throw BackupError(error) }
    state.withLock { $0 = .finished }
  }

  func commit() throws(BackupError) {
    try finish()
    do throws(FileError) {
      try fileSystem.install(unfinished, at: destination, replacing: false)
    } catch {
      throw BackupError(error)
    }
    state.withLock { $0 = .closed }
  }

  func abandon() {
    let wasOpen = state.withLock { state in
      defer { state = .closed }
      return state != .closed
    }
    // What cannot be removed now is removed by the next backup.
    if wasOpen { try? fileSystem.unlink(unfinished) }
  }
}
