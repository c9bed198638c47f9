package import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The system calls missing from swift-system; the module's only unsafe code.
enum SystemCalls {
  static func status(of path: FilePath, followingLinks: Bool) throws(Errno) -> FileStatus? {
    var raw = stat()
    let result = unsafe path.withPlatformString { name in unsafe followingLinks ? stat(name, &raw) : lstat(name, &raw) }
    if result == 0 { return FileStatus(raw) }
    let errno = lastErrno
    if errno == .noSuchFileOrDirectory || errno == .notDirectory { return nil }
    // A name too long cannot exist: SQLite's own files of a store with a long name.
    if errno == .fileNameTooLong, path.lastComponent?.isTooLong == true { return nil }
    throw errno
  }

  static var effectiveUser: UInt32 { geteuid() }

  static func status(of descriptor: FileDescriptor) throws(Errno) -> FileStatus {
    var raw = stat()
    try check(unsafe fstat(descriptor.rawValue, &raw))
    return FileStatus(raw)
  }

  static func link(_ source: FilePath, _ destination: FilePath) throws(Errno) {
    try unsafe call(source, destination) { unsafe linkat(AT_FDCWD, $0, AT_FDCWD, $1, 0) }
  }

  static func rename(_ source: FilePath, _ destination: FilePath) throws(Errno) {
    try unsafe call(source, destination) { unsafe renameat(AT_FDCWD, $0, AT_FDCWD, $1) }
  }

  static func unlink(_ path: FilePath) throws(Errno) { try unsafe call(path) { unsafe unlinkat(AT_FDCWD, $0, 0) } }

  static func removeDirectory(_ path: FilePath) throws(Errno) {
    try unsafe call(path) { unsafe unlinkat(AT_FDCWD, $0, AT_REMOVEDIR) }
  }

  static func makeDirectory(_ path: FilePath, permissions: FilePermissions) throws(Errno) {
    try unsafe call(path) { unsafe mkdirat(AT_FDCWD, $0, permissions.rawValue) }
  }

  static func synchronize(_ descriptor: FileDescriptor) throws(Errno) {
    #if canImport(Darwin)
      // Darwin's fsync leaves data in the drive's cache; F_FULLFSYNC does not, but is not supported everywhere.
      if fcntl(descriptor.rawValue, F_FULLFSYNC) == 0 { return }
    #endif
    while fsync(descriptor.rawValue) != 0 {
      let errno = lastErrno
      if errno != .interrupted { throw errno }
    }
  }

  static func realPath(_ path: FilePath) throws(Errno) -> FilePath {
    let resolved: FilePath? = unsafe path.withPlatformString { name in
      guard let raw = unsafe realpath(name, nil) else { return nil }
      defer { unsafe free(raw) }
      return unsafe FilePath(platformString: raw)
    }
    guard let resolved else { throw lastErrno }
    return resolved
  }

  static func linkTarget(_ path: FilePath) throws(Errno) -> FilePath {
    var buffer = [CChar](repeating: 0, count: 4097)
    let length = unsafe path.withPlatformString { name in
      unsafe buffer.withUnsafeMutableBufferPointer { target in
        guard let start = target.baseAddress else { return -1 }
        return unsafe readlink(name, start, target.count - 1)
      }
    }
    guard length >= 0 else { throw lastErrno }
    return FilePath(rawBytes: buffer.prefix(length).map { UInt8(bitPattern: $0) }) ?? ""
  }

  /// Lists a folder without `.` and `..`, sorted by bytes.
  static func entries(of path: FilePath) throws(Errno) -> [FilePath.Component] {
    guard let directory = unsafe path.withPlatformString({ unsafe opendir($0) }) else { throw lastErrno }
    defer { unsafe _ = closedir(directory) }
    var names: [FilePath.Component] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(directory) else {
        let errno = lastErrno
        if errno.rawValue != 0 { throw errno }
        break
      }
      let component = unsafe withUnsafePointer(to: &entry.pointee.d_name) { tuple in
        let start = unsafe UnsafeRawPointer(tuple).assumingMemoryBound(to: CChar.self)
        return unsafe FilePath.Component(platformString: start)
      }
      if let component, component.kind == .regular { names.append(component) }
    }
    return names.sorted { $0.string < $1.string }
  }

  static func freeSpace(at path: FilePath) throws(Errno) -> Int64 {
    var raw = statvfs()
    try check(unsafe path.withPlatformString { unsafe statvfs($0, &raw) })
    let (bytes, overflow) = Int64(clamping: raw.f_bavail).multipliedReportingOverflow(by: Int64(clamping: raw.f_frsize))
    return overflow ? .max : bytes
  }

  /// Shares blocks between files; false if unsupported.
  static func shareBlocks(from source: FileDescriptor, to destination: FileDescriptor) -> Bool {
    #if canImport(Glibc)
      // FICLONE of <linux/fs.h>: _IOW(0x94, 9, int).
      return ioctl(destination.rawValue, 0x4004_9409, source.rawValue) == 0
    #else
      return false
    #endif
  }

  /// Finds the next data range from an offset; nil if only holes follow.
  ///
  /// Without support by the system, everything is data.
  static func nextData(in descriptor: FileDescriptor, from offset: Int64, to end: Int64) -> Range<Int64>? {
    guard offset < end else { return nil }
    #if canImport(Darwin)
      let (seekData, seekHole): (CInt, CInt) = (4, 3)
    #else
      let (seekData, seekHole): (CInt, CInt) = (3, 4)
    #endif
    let start = Int64(lseek(descriptor.rawValue, off_t(offset), seekData))
    if start < 0 { return lastErrno == .noSuchAddressOrDevice ? nil : offset..<end }
    guard start < end else { return nil }
    let hole = Int64(lseek(descriptor.rawValue, off_t(start), seekHole))
    return start..<(hole > start ? min(hole, end) : end)
  }

  static func setPermissions(_ permissions: FilePermissions, of path: FilePath) throws(Errno) {
    try unsafe call(path) { unsafe chmod($0, permissions.rawValue) }
  }

  static func setOwner(_ owner: UInt32, group: UInt32, of path: FilePath) throws(Errno) {
    try unsafe call(path) { unsafe lchown($0, owner, group) }
  }

  // MARK: Locks

  static func conflictingLock(
    on descriptor: FileDescriptor, range: LockRange, exclusive: Bool
  ) throws(Errno) -> LockOwner? {
    var request = lockRequest(range, exclusive: exclusive)
    try check(unsafe fcntl(descriptor.rawValue, getOpenFileLock, &request))
    if request.l_type == Int16(F_UNLCK) { return nil }
    return LockOwner(processID: request.l_pid > 0 ? request.l_pid : nil, isExclusive: request.l_type == Int16(F_WRLCK))
  }

  /// Takes an OFD lock; false on conflict.
  static func lock(_ descriptor: FileDescriptor, range: LockRange, exclusive: Bool) throws(Errno) -> Bool {
    var request = lockRequest(range, exclusive: exclusive)
    if unsafe fcntl(descriptor.rawValue, setOpenFileLock, &request) == 0 { return true }
    let errno = lastErrno
    if errno == .resourceTemporarilyUnavailable || errno == .permissionDenied { return false }
    throw errno
  }

  /// Releases every lock of an open file, including a child's copies.
  static func unlock(_ descriptor: FileDescriptor) {
    // Closing would release them too, but only after a child has executed its program.
    unlock(descriptor, range: .everything)
    let unlockWholeFile: (CInt, CInt) -> CInt = flock
    _ = unlockWholeFile(descriptor.rawValue, LOCK_UN)
  }

  static func unlock(_ descriptor: FileDescriptor, range: LockRange) {
    var request = lockRequest(range, exclusive: false)
    request.l_type = Int16(F_UNLCK)
    unsafe _ = fcntl(descriptor.rawValue, setOpenFileLock, &request)
  }

  /// Takes a folder's exclusive advisory lock; false if another process holds it.
  static func lockDirectory(_ descriptor: FileDescriptor) throws(Errno) -> Bool {
    // The explicit type selects the function over the structure of the same name.
    let lockWholeFile: (CInt, CInt) -> CInt = flock
    if lockWholeFile(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 { return true }
    let errno = lastErrno
    if errno == .wouldBlock || errno == .resourceTemporarilyUnavailable { return false }
    throw errno
  }

  #if os(Linux)
    static func processWithOpenFile(_ identity: FileIdentity) -> Int32? {
      let own = processID
      return firstProcess { $0 != own && hasOpen(identity, process: $0) }
    }

    private static func firstProcess(where holds: (Int32) -> Bool) -> Int32? {
      guard let processes = unsafe opendir("/proc") else { return nil }
      defer { unsafe _ = closedir(processes) }
      while let entry = unsafe readdir(processes) {
        if let id = unsafe Int32(name(of: entry)), holds(id) { return id }
      }
      return nil
    }

    private static func hasOpen(_ identity: FileIdentity, process: Int32) -> Bool {
      // Other users' and ended processes cannot be inspected.
      guard let descriptors = unsafe opendir("/proc/\(process)/fd") else { return false }
      defer { unsafe _ = closedir(descriptors) }
      let folder = unsafe dirfd(descriptors)
      while let entry = unsafe readdir(descriptors) {
        var raw = stat()
        let isKnown = unsafe withUnsafePointer(to: &entry.pointee.d_name) { tuple in
          unsafe fstatat(folder, UnsafeRawPointer(tuple).assumingMemoryBound(to: CChar.self), &raw, 0) == 0
        }
        if isKnown, FileStatus(raw).identity == identity { return true }
      }
      return false
    }

    /// Finds a process with a file open and another one deleted from a path.
    static func process(holding identity: FileIdentity, andDeleted path: FilePath) -> Int32? {
      firstProcess { id in
        // Other users' and ended processes cannot be inspected.
        let folder = FilePath("/proc/\(id)/fd")
        guard let names = try? entries(of: folder),
          names.contains(where: { (try? linkTarget(folder.appending($0)).string) == path.string + " (deleted)" })
        else { return false }
        return names.contains { (try? status(of: folder.appending($0), followingLinks: true))?.identity == identity }
      }
    }
  #endif

  private static func name(of entry: UnsafeMutablePointer<dirent>) -> String {
    unsafe withUnsafePointer(to: &entry.pointee.d_name) { tuple in
      unsafe String(cString: UnsafeRawPointer(tuple).assumingMemoryBound(to: CChar.self))
    }
  }

  static func openFiles(excluding own: Set<CInt>) -> Set<FileIdentity>? {
    guard let directory = unsafe opendir("/dev/fd") else { return nil }
    defer { unsafe _ = closedir(directory) }
    let listing = unsafe dirfd(directory)
    var open: Set<FileIdentity> = []
    while let entry = unsafe readdir(directory) {
      guard let number = unsafe CInt(name(of: entry)), number != listing, !own.contains(number) else { continue }
      // Skip descriptors closed meanwhile.
      if let status = try? status(of: FileDescriptor(rawValue: number)) { open.insert(status.identity) }
    }
    return open
  }

  // MARK: Reading, writing

  /// Reads into the start of a buffer; short only at the end of the file.
  static func read(
    _ descriptor: FileDescriptor, at offset: Int64, length: Int, into buffer: inout [UInt8]
  ) throws(Errno) -> Int {
    try errno {
      try unsafe buffer.withUnsafeMutableBytes { bytes in
        var done = 0
        while done < length {
          let got = try unsafe descriptor.read(
            fromAbsoluteOffset: offset + Int64(done),
            into: UnsafeMutableRawBufferPointer(rebasing: bytes[done..<length]))
          if got == 0 { break }
          done += got
        }
        return done
      }
    }
  }

  /// Starts writeback of a range, to shorten the final wait.
  static func beginWriting(_ descriptor: FileDescriptor, at offset: Int64, length: Int64) {
    #if canImport(Glibc)
      // On Linux this starts the writeback of dirty pages; the final synchronization makes up for a failure.
      _ = posix_fadvise(descriptor.rawValue, off_t(offset), off_t(length), POSIX_FADV_DONTNEED)
    #endif
  }

  // MARK: Clock, randomness

  static func now() -> Timestamp {
    var time = timespec()
    unsafe _ = clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(secondsSince1970: Int64(time.tv_sec), nanoseconds: Int32(clamping: time.tv_nsec))
  }

  static func sleep(milliseconds: Int) {
    var pause = timespec(tv_sec: milliseconds / 1000, tv_nsec: (milliseconds % 1000) * 1_000_000)
    unsafe _ = nanosleep(&pause, nil)
  }

  /// Lowers the priority of the calling thread, and of those it starts, for good.
  static func giveWay() {
    #if canImport(Darwin)
      // PRIO_DARWIN_THREAD and PRIO_DARWIN_BG of <sys/resource.h>.
      _ = setpriority(3, 0, 0x1000)
    #else
      // PRIO_PROCESS is 0; on Linux it means the thread (setpriority(2), "C library/kernel differences").
      _ = setpriority(0, 0, 5)
    #endif
  }

  static func lacksDescriptors(_ needed: Int) -> Bool {
    var taken: [Int32] = []
    defer { for descriptor in taken { _ = close(descriptor) } }
    while taken.count < needed {
      let descriptor = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return errno == EMFILE || errno == ENFILE }
      taken.append(descriptor)
    }
    return false
  }

  static var processID: Int32 { getpid() }

  // MARK: Helpers

  private static var lastErrno: Errno { Errno(rawValue: errno) }

  private static func check(_ result: CInt) throws(Errno) { if result != 0 { throw lastErrno } }

  private static func call(_ path: FilePath, _ body: (UnsafePointer<CInterop.PlatformChar>) -> CInt) throws(Errno) {
    try check(unsafe path.withPlatformString { unsafe body($0) })
  }

  private static func call(
    _ first: FilePath, _ second: FilePath,
    _ body: (UnsafePointer<CInterop.PlatformChar>, UnsafePointer<CInterop.PlatformChar>) -> CInt
  ) throws(Errno) {
    try check(unsafe first.withPlatformString { a in unsafe second.withPlatformString { b in unsafe body(a, b) } })
  }

  private static func lockRequest(_ range: LockRange, exclusive: Bool) -> SystemFlock {
    var request = SystemFlock()
    request.l_type = Int16(exclusive ? F_WRLCK : F_RDLCK)
    request.l_whence = Int16(SEEK_SET)
    request.l_start = off_t(range.start)
    request.l_len = off_t(range.length)
    request.l_pid = 0
    return request
  }

  #if canImport(Darwin)
    // F_OFD_SETLK and F_OFD_GETLK of <sys/fcntl.h>, not visible in every SDK.
    private static let setOpenFileLock: CInt = 90
    private static let getOpenFileLock: CInt = 92
  #else
    private static let setOpenFileLock: CInt = 37
    private static let getOpenFileLock: CInt = 36
  #endif
}

/// An alias of the `fcntl` lock structure, which shares its name with a function.
private typealias SystemFlock = flock

extension FilePath {
  /// Makes an environment variable's path, byte for byte; nil if it is unset or empty.
  package init?(environment variable: String) {
    guard let text = unsafe getenv(variable), unsafe text.pointee != 0 else { return nil }
    unsafe self.init(platformString: text)
  }
}

extension FileStatus {
  fileprivate init(_ raw: stat) {
    let kind: Kind =
      switch raw.st_mode & mode_t(S_IFMT) {
      case mode_t(S_IFREG): .regular
      case mode_t(S_IFDIR): .directory
      case mode_t(S_IFLNK): .symbolicLink
      default: .other
      }
    #if canImport(Darwin)
      let modified = raw.st_mtimespec
      let changed = raw.st_ctimespec
    #else
      let modified = raw.st_mtim
      let changed = raw.st_ctim
    #endif
    self.init(
      kind: kind, size: Int64(raw.st_size),
      allocatedSize: Int64(clamping: raw.st_blocks).multipliedReportingOverflow(by: 512).partialValue,
      identity: FileIdentity(device: UInt64(truncatingIfNeeded: raw.st_dev), inode: UInt64(raw.st_ino)),
      linkCount: Int(clamping: raw.st_nlink), permissions: FilePermissions(rawValue: raw.st_mode & 0o7777),
      owner: raw.st_uid, group: raw.st_gid,
      modified: Timestamp(secondsSince1970: Int64(modified.tv_sec), nanoseconds: Int32(clamping: modified.tv_nsec)),
      statusChanged: Timestamp(secondsSince1970: Int64(changed.tv_sec), nanoseconds: Int32(clamping: changed.tv_nsec)))
  }
}
