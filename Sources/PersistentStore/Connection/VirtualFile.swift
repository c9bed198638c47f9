internal import Foundation
internal import GRDBSQLite
package import Platform

/// A byte source as an SQLite database, unpacked or fetched only as statements need.
///
/// Its read-only virtual file system opens no other file (https://sqlite.org/vfs.html).
package final class VirtualFile: Sendable {
  /// Unique to this copy of the code in the process.
  private static let fileSystemName = "lazaret-\(UUID().uuidString)"

  private let name = "/\(UUID().uuidString)"
  private let content: Content

  /// Registers the content while this value or a connection exists.
  ///
  /// - Parameter waited: the source's waiting time, such as for a server.
  /// - Throws: `other` if SQLite rejects the virtual file system.
  package init(_ source: any ByteSource, waited: @escaping @Sendable () -> Duration = { .zero }) throws(FileError) {
    guard Self.registration == SQLITE_OK else {
      throw FileError(
        .other, operation: "read the database", detail: "SQLite takes no virtual file system (\(Self.registration))")
    }
    content = Content(source)
    self.waited = waited
    Self.files.withLock { $0[name] = content }
  }

  deinit { Self.files.withLock { $0[name] = nil } }

  /// The SQLite URI to open or attach.
  package var address: String {
    "file:\(name)?vfs=\(Self.fileSystemName)&\(EvidenceConnection.Access.unchanging.parameters)"
  }

  var count: Int64 { content.source.count }

  /// The first read error; SQLite reports no reason.
  package var failure: FileError? { content.failure.withLock { $0 } }

  let waited: @Sendable () -> Duration

  // MARK: What SQLite calls

  private final class Content: Sendable {
    let source: any ByteSource
    let failure = Mutex<FileError?>(nil)

    init(_ source: any ByteSource) { self.source = source }

    /// Copies source bytes; bytes past the end are zero, as SQLite demands.
    func read(_ target: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
      do throws(FileError) {
        let bytes = try source.bytes(at: offset, length: target.count)
        unsafe target.copyBytes(from: bytes)
        guard bytes.count < target.count else { return SQLITE_OK }
        guard offset >= source.count || offset + Int64(bytes.count) >= source.count else {
          throw FileError(.changed, operation: "read the database", detail: "less of it came than there was")
        }
        unsafe target[bytes.count...].initializeMemory(as: UInt8.self, repeating: 0)
        return SQLITE_IOERR | (2 << 8)  // SQLITE_IOERR_SHORT_READ
      } catch {
        failure.withLock { if $0 == nil { $0 = error } }
        return SQLITE_IOERR | (1 << 8)  // SQLITE_IOERR_READ
      }
    }
  }

  private static let files = Mutex<[String: Content]>([:])

  private static let contentOffset = unsafe MemoryLayout<sqlite3_file>.stride

  private static func content(of file: UnsafeMutablePointer<sqlite3_file>) -> Unmanaged<Content>? {
    unsafe UnsafeRawPointer(file).load(fromByteOffset: contentOffset, as: UnsafeRawPointer?.self)
      .map { unsafe Unmanaged<Content>.fromOpaque($0) }
  }

  /// The file system stays registered for the process's lifetime.
  private static let registration: Int32 = {
    guard let usual = unsafe sqlite3_vfs_find(nil), let name = unsafe strdup(fileSystemName) else {
      return SQLITE_ERROR
    }
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe methods.initialize(to: VirtualFile.methods)
    var system = unsafe usual.pointee
    unsafe system.pNext = nil
    unsafe system.zName = UnsafePointer(name)
    unsafe system.pAppData = UnsafeMutableRawPointer(methods)
    unsafe system.iVersion = 1
    unsafe system.szOsFile = Int32(contentOffset + MemoryLayout<UnsafeRawPointer?>.stride)
    unsafe system.mxPathname = 64
    unsafe system.xOpen = { system, name, file, flags, outFlags in
      guard let file = unsafe file else { return SQLITE_CANTOPEN }
      unsafe file.pointee.pMethods = nil
      guard flags & SQLITE_OPEN_MAIN_DB != 0, let name = unsafe name, let system = unsafe system,
        let content = VirtualFile.files.withLock({ unsafe $0[String(cString: name)] })
      else { return SQLITE_CANTOPEN }
      unsafe UnsafeMutableRawPointer(file).storeBytes(
        of: UnsafeRawPointer(Unmanaged.passRetained(content).toOpaque()), toByteOffset: VirtualFile.contentOffset,
        as: UnsafeRawPointer?.self)
      unsafe file.pointee.pMethods = unsafe UnsafePointer(
        system.pointee.pAppData.assumingMemoryBound(to: sqlite3_io_methods.self))
      if let outFlags = unsafe outFlags { unsafe outFlags.pointee = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY }
      return SQLITE_OK
    }
    unsafe system.xDelete = { _, _, _ in SQLITE_READONLY }
    unsafe system.xAccess = { _, _, _, result in
      if let result = unsafe result { unsafe result.pointee = 0 }
      return SQLITE_OK
    }
    unsafe system.xFullPathname = { _, name, length, result in
      guard let name = unsafe name, let result = unsafe result, unsafe strlen(name) < length else {
        return SQLITE_CANTOPEN
      }
      unsafe strcpy(result, name)
      return SQLITE_OK
    }
    let kept = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe kept.initialize(to: system)
    return unsafe sqlite3_vfs_register(kept, 0)
  }()

  /// The methods of an open file (https://sqlite.org/c3ref/io_methods.html).
  private static let methods: sqlite3_io_methods = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    unsafe methods.xClose = { file in
      if let file = unsafe file { unsafe VirtualFile.content(of: file)?.release() }
      return SQLITE_OK
    }
    unsafe methods.xRead = { file, target, count, offset in
      guard let file = unsafe file, let target = unsafe target, let content = unsafe VirtualFile.content(of: file)
      else { return SQLITE_IOERR }
      return unsafe content.takeUnretainedValue().read(
        UnsafeMutableRawBufferPointer(start: target, count: Int(count)), at: offset)
    }
    unsafe methods.xWrite = { _, _, _, _ in SQLITE_READONLY }
    unsafe methods.xTruncate = { _, _ in SQLITE_READONLY }
    unsafe methods.xSync = { _, _ in SQLITE_OK }
    unsafe methods.xFileSize = { file, size in
      guard let file = unsafe file, let size = unsafe size, let content = unsafe VirtualFile.content(of: file) else {
        return SQLITE_IOERR
      }
      unsafe size.pointee = unsafe content.takeUnretainedValue().source.count
      return SQLITE_OK
    }
    // The content never changes, so locks are unnecessary.
    unsafe methods.xLock = { _, _ in SQLITE_OK }
    unsafe methods.xUnlock = { _, _ in SQLITE_OK }
    unsafe methods.xCheckReservedLock = { _, result in
      if let result = unsafe result { unsafe result.pointee = 0 }
      return SQLITE_OK
    }
    unsafe methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    unsafe methods.xSectorSize = { _ in 4096 }
    unsafe methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_IMMUTABLE }
    return methods
  }()
}
