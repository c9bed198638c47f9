import Platform
import SystemPackage

/// A file of a backup that is being written under a hidden name.
final class FolderUpload: BackupUpload {
  static let suffix = ".unfinished"

  let name: String
  private let destination: FilePath
  private let unfinished: FilePath
  private let fileSystem: FileSystem
  private let file: WritableFile
  private let state = Mutex(State.open)

  /// How much was appended, and how much of it the system was asked to bring to the disk.
  private let progress = Mutex((bytes: Int64(0), begun: Int64(0)))
  private static let stride: Int64 = 8 << 20

  private enum State {
    case open
    case finished
    case closed
  }

  init(_ destination: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.destination = destination
    name = destination.lastComponent?.string ?? ""
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
    let range: Range<Int64>? = progress.withLock { progress in
      progress.bytes += Int64(bytes.count)
      guard progress.bytes - progress.begun >= Self.stride else { return nil }
      defer { progress.begun = progress.bytes }
      return progress.begun..<progress.bytes
    }
    // So that the disk works while the processors do, and there is less to wait for at the end.
    if let range { file.beginWriting(at: range.lowerBound, length: range.upperBound - range.lowerBound) }
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
