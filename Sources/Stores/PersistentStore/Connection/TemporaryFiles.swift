internal import Compatibility
internal import Foundation
internal import GRDBSQLite

/// A bound on the files in which SQLite sorts and gathers rows.
///
/// In files that takes a few megabytes of memory, however many rows there are. SQLite knows no limit for them, and leaves them
/// in no folder where they could be counted; so a connection that runs what a person typed opens them through a virtual file
/// system (https://sqlite.org/vfs.html) that counts their bytes and hands everything on to SQLite's own.
final class TemporaryFiles: Sendable {
  /// The name by which SQLite knows the virtual file system; another copy of this code in the process has one of its own.
  private static let prefix = "lazaret-temporary-\(UUID().uuidString)"

  /// The most bytes that the files of all its connections have together.
  private let limit: Int64
  private let used = Mutex<Int64>(0)

  private init(limit: Int64) { self.limit = limit }

  /// What of these file systems SQLite knows, by their limits; they stay for as long as the process runs.
  private static let known = Mutex<[Int64: Int32]>([:])

  /// The name of a file system for SQLite's URI.
  ///
  /// - Parameter limit: the most bytes that the temporary files of all connections with the same limit have together; a
  ///   statement that needs more ends with `SQLITE_INTERRUPT`.
  /// - Returns: nil where SQLite takes no virtual file system.
  static func fileSystem(limit: Int64) -> String? {
    let name = "\(prefix)-\(limit)"
    let code = known.withLock { known in
      if let code = known[limit] { return code }
      let code = register(name, TemporaryFiles(limit: limit))
      known[limit] = code
      return code
    }
    return code == SQLITE_OK ? name : nil
  }

  private func take(_ bytes: Int64) -> Bool {
    used.withLock { used in
      guard bytes <= limit - used else { return false }
      used += bytes
      return true
    }
  }

  private func giveBack(_ bytes: Int64) { used.withLock { $0 -= bytes } }

  // MARK: What SQLite calls

  /// What the file system hands on to, and what it counts with.
  @unsafe private struct Parts {
    let usual: UnsafeMutablePointer<sqlite3_vfs>
    let files: Unmanaged<TemporaryFiles>
    let methods: UnsafePointer<sqlite3_io_methods>
  }

  /// An open file: what SQLite has there itself, then these, then the file of SQLite's own file system.
  @unsafe private struct Head {
    var own: sqlite3_file
    var files: Unmanaged<TemporaryFiles>

    /// How many bytes of it are counted.
    var end: Int64
  }

  private static let temporary =
    SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL | SQLITE_OPEN_SUBJOURNAL

  private static func head(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<Head> {
    unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
  }

  private static func inner(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
    unsafe UnsafeMutableRawPointer(file).advanced(by: MemoryLayout<Head>.stride)
      .assumingMemoryBound(to: sqlite3_file.self)
  }

  private static func register(_ name: String, _ files: TemporaryFiles) -> Int32 {
    guard let usual = unsafe sqlite3_vfs_find(nil), let name = unsafe strdup(name) else { return SQLITE_ERROR }
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe methods.initialize(to: TemporaryFiles.methods)
    let parts = UnsafeMutablePointer<Parts>.allocate(capacity: 1)
    unsafe parts.initialize(
      to: Parts(usual: usual, files: Unmanaged.passRetained(files), methods: UnsafePointer(methods)))
    var system = unsafe usual.pointee
    unsafe system.pNext = nil
    unsafe system.zName = UnsafePointer(name)
    unsafe system.pAppData = UnsafeMutableRawPointer(parts)
    unsafe system.iVersion = 1
    unsafe system.szOsFile += Int32(MemoryLayout<Head>.stride)
    unsafe system.xOpen = { system, name, file, flags, outFlags in
      guard let file = unsafe file, let system = unsafe system else { return SQLITE_CANTOPEN }
      let parts = unsafe system.pointee.pAppData.assumingMemoryBound(to: Parts.self).pointee
      guard let open = unsafe parts.usual.pointee.xOpen else { return SQLITE_CANTOPEN }
      guard flags & TemporaryFiles.temporary != 0 else {
        return unsafe open(parts.usual, name, file, flags, outFlags)
      }
      unsafe TemporaryFiles.head(file).initialize(
        to: Head(own: sqlite3_file(pMethods: nil), files: parts.files, end: 0))
      let inner = unsafe TemporaryFiles.inner(file)
      unsafe inner.pointee.pMethods = nil
      let code = unsafe open(parts.usual, name, inner, flags, outFlags)
      // SQLite closes what has methods, also where it could not be opened.
      if unsafe inner.pointee.pMethods != nil { unsafe file.pointee.pMethods = unsafe parts.methods }
      return code
    }
    let kept = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe kept.initialize(to: system)
    return unsafe sqlite3_vfs_register(kept, 0)
  }

  /// What SQLite does with an open temporary file (https://sqlite.org/c3ref/io_methods.html); none is mapped or shared.
  private static let methods: sqlite3_io_methods = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    unsafe methods.xClose = { file in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let head = unsafe TemporaryFiles.head(file)
      unsafe head.pointee.files.takeUnretainedValue().giveBack(head.pointee.end)
      unsafe head.pointee.end = 0
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xClose(inner)
    }
    unsafe methods.xRead = { file, target, count, offset in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xRead(inner, target, count, offset)
    }
    unsafe methods.xWrite = { file, source, count, offset in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let head = unsafe TemporaryFiles.head(file)
      let end = offset + Int64(count)
      if unsafe end > head.pointee.end {
        guard unsafe head.pointee.files.takeUnretainedValue().take(end - head.pointee.end) else {
          return SQLITE_INTERRUPT
        }
        unsafe head.pointee.end = end
      }
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xWrite(inner, source, count, offset)
    }
    unsafe methods.xTruncate = { file, size in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let head = unsafe TemporaryFiles.head(file)
      let inner = unsafe TemporaryFiles.inner(file)
      let code = unsafe inner.pointee.pMethods.pointee.xTruncate(inner, size)
      if code == SQLITE_OK, unsafe size < head.pointee.end {
        unsafe head.pointee.files.takeUnretainedValue().giveBack(head.pointee.end - size)
        unsafe head.pointee.end = size
      }
      return code
    }
    unsafe methods.xFileSize = { file, size in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xFileSize(inner, size)
    }
    // They go with the connection that alone has them: nothing is to be locked, and nothing has to be on the disk.
    unsafe methods.xSync = { _, _ in SQLITE_OK }
    unsafe methods.xLock = { _, _ in SQLITE_OK }
    unsafe methods.xUnlock = { _, _ in SQLITE_OK }
    unsafe methods.xCheckReservedLock = { _, result in
      if let result = unsafe result { unsafe result.pointee = 0 }
      return SQLITE_OK
    }
    unsafe methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    unsafe methods.xSectorSize = { _ in 4096 }
    unsafe methods.xDeviceCharacteristics = { _ in 0 }
    return methods
  }()
}
