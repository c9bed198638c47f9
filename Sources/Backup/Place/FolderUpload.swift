import Platform
import SystemPackage

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
    // The remains may be a second link to a finished file, so they are never written into.
    try fileSystem.unlink(unfinished)
    // A backup has all of the store's data.
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
    // Writing early shortens the wait at the end.
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
    // On failure the next backup deletes it.
    if wasOpen { try? fileSystem.unlink(unfinished) }
  }
}
