import GRDBSQLite
import Platform
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A fault of the file system under SQLite, at a chosen call, for files below one folder only.
///
/// A file system of our own is put before SQLite's, for the whole process and for good. It only touches files below the
/// folder of a trouble that is going on, so that other tests are not disturbed. Files for sorting have no name, and are
/// left alone.
final class SQLiteTrouble: Sendable {
  /// What SQLite asks of its file system.
  enum Call: String, Sendable, CaseIterable {
    case open, read, write, truncate, synchronize, size, lock, mapIndex, lockIndex, delete, access
  }

  /// What goes wrong: a call, and the code that it gives.
  struct Fault: Sendable, CustomTestStringConvertible {
    let call: Call
    let name: String
    let code: Int32

    init(_ call: Call, _ name: String, _ code: Int32) {
      self.call = call
      self.name = name
      self.code = code
    }

    var testDescription: String { "\(name) at \(call.rawValue)" }
  }

  private let fault: Fault
  private let number: Int
  private let isLasting: Bool
  private let folder: String
  private let counter = Atomic<Int>(0)
  private let met = Atomic<Int>(0)
  private let id: Int

  private static let ids = Atomic<Int>(0)
  private static let current = Platform.Mutex<[Int: SQLiteTrouble]>([:])

  /// - Parameters:
  ///   - number: which call of the fault's kind it happens at, from 1; 0 for never.
  ///   - isLasting: whether all later calls of the kind fail too.
  ///   - folder: the folder, symbolic links resolved.
  init(_ fault: Fault, atCall number: Int, isLasting: Bool = false, below folder: String) {
    self.fault = fault
    self.number = number
    self.isLasting = isLasting
    self.folder = folder + "/"
    id = Self.ids.add(1, ordering: .relaxed).newValue
    TroubledFiles.register()
  }

  /// The calls of the kind so far.
  var calls: Int { counter.load(ordering: .relaxed) }

  /// How many of them have failed.
  var failures: Int { met.load(ordering: .relaxed) }

  /// Lets it happen while something is done.
  func run<Value>(_ body: () throws -> Value) rethrows -> Value {
    Self.current.withLock { $0[id] = self }
    defer { Self.current.withLock { $0[id] = nil } }
    return try body()
  }

  /// The trouble that concerns a file; nil for none.
  static func id(for path: String) -> Int? {
    current.withLock { all in all.first { path.hasPrefix($0.value.folder) }?.key }
  }

  /// The code that a call is to give; nil where it is to be carried out.
  static func code(for id: Int, at call: Call) -> Int32? {
    guard let trouble = current.withLock({ $0[id] }), trouble.fault.call == call else { return nil }
    let now = trouble.counter.add(1, ordering: .relaxed).newValue
    guard trouble.number > 0, now == trouble.number || trouble.isLasting && now > trouble.number else { return nil }
    trouble.met.add(1, ordering: .relaxed)
    return trouble.fault.code
  }
}

// MARK: - SQLite's file system

/// The file system that stands before SQLite's own; the only place of these tests that hands memory to C.
///
/// An open file is SQLite's own, with other methods: behind its bytes lie its own methods and the trouble that it is in.
private enum TroubledFiles {
  /// What lies behind the bytes of an open file.
  @unsafe struct Tail {
    var methods: UnsafePointer<sqlite3_io_methods>
    var id: Int
  }

  /// SQLite's own file system.
  nonisolated(unsafe) static let own: UnsafeMutablePointer<sqlite3_vfs>? = unsafe sqlite3_vfs_find(nil)

  /// Where the tail of a file begins.
  static let tailOffset = unsafe (Int(own?.pointee.szOsFile ?? 0) + 15) / 16 * 16

  private static let isRegistered: Bool = {
    guard let own = unsafe own else { return false }
    let copy = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe copy.initialize(to: own.pointee)
    unsafe copy.pointee.szOsFile = Int32(tailOffset + MemoryLayout<Tail>.size)
    unsafe copy.pointee.pNext = nil
    unsafe copy.pointee.zName = UnsafePointer(strdup("lazaret-trouble"))
    unsafe copy.pointee.xOpen = openFile
    unsafe copy.pointee.xDelete = deleteFile
    unsafe copy.pointee.xAccess = accessFile
    return unsafe sqlite3_vfs_register(copy, 1) == SQLITE_OK
  }()

  static func register() { precondition(isRegistered, "SQLite has no file system to stand before") }

  nonisolated(unsafe) static let methods = unsafe table(withIndex: true)
  nonisolated(unsafe) static let methodsWithoutIndex = unsafe table(withIndex: false)

  private static func table(withIndex hasIndex: Bool) -> UnsafePointer<sqlite3_io_methods> {
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe table.initialize(
      to: unsafe sqlite3_io_methods(
        iVersion: 3,
        xClose: { file in unsafe pass(file) { unsafe $0.xClose?($1) } },
        xRead: { file, bytes, count, offset in
          unsafe troubled(file, .read) { unsafe $0.xRead?($1, bytes, count, offset) }
        },
        xWrite: { file, bytes, count, offset in
          unsafe troubled(file, .write) { unsafe $0.xWrite?($1, bytes, count, offset) }
        },
        xTruncate: { file, size in unsafe troubled(file, .truncate) { unsafe $0.xTruncate?($1, size) } },
        xSync: { file, flags in unsafe troubled(file, .synchronize) { unsafe $0.xSync?($1, flags) } },
        xFileSize: { file, size in unsafe troubled(file, .size) { unsafe $0.xFileSize?($1, size) } },
        xLock: { file, level in unsafe troubled(file, .lock) { unsafe $0.xLock?($1, level) } },
        xUnlock: { file, level in unsafe pass(file) { unsafe $0.xUnlock?($1, level) } },
        xCheckReservedLock: { file, answer in
          unsafe troubled(file, .lock) { unsafe $0.xCheckReservedLock?($1, answer) }
        },
        xFileControl: { file, operation, argument in
          unsafe pass(file) { unsafe $0.xFileControl?($1, operation, argument) }
        },
        xSectorSize: { file in unsafe pass(file) { unsafe $0.xSectorSize?($1) } },
        xDeviceCharacteristics: { file in unsafe pass(file) { unsafe $0.xDeviceCharacteristics?($1) } },
        xShmMap: hasIndex
          ? { file, page, size, extends, memory in
            unsafe troubled(file, .mapIndex) { unsafe $0.xShmMap?($1, page, size, extends, memory) }
          } : nil,
        xShmLock: hasIndex
          ? { file, offset, count, flags in
            let isLocking = flags & SQLITE_SHM_LOCK != 0
            return unsafe isLocking
              ? troubled(file, .lockIndex) { unsafe $0.xShmLock?($1, offset, count, flags) }
              : pass(file) { unsafe $0.xShmLock?($1, offset, count, flags) }
          } : nil,
        xShmBarrier: hasIndex
          ? { file in
            _ = unsafe pass(file) {
              unsafe $0.xShmBarrier?($1)
              return SQLITE_OK
            }
          } : nil,
        xShmUnmap: hasIndex ? { file, deletes in unsafe pass(file) { unsafe $0.xShmUnmap?($1, deletes) } } : nil,
        xFetch: { file, offset, count, memory in
          unsafe pass(file) { unsafe $0.xFetch?($1, offset, count, memory) }
        },
        xUnfetch: { file, offset, memory in unsafe pass(file) { unsafe $0.xUnfetch?($1, offset, memory) } }))
    return unsafe UnsafePointer(table)
  }
}

private typealias OpenFile = UnsafeMutablePointer<sqlite3_file>

/// What lies behind the bytes of an open file.
private func tail(of file: OpenFile) -> UnsafeMutablePointer<TroubledFiles.Tail> {
  unsafe UnsafeMutableRawPointer(file).advanced(by: TroubledFiles.tailOffset)
    .assumingMemoryBound(to: TroubledFiles.Tail.self)
}

/// Carries a call out.
private func pass(_ file: OpenFile?, _ call: (sqlite3_io_methods, OpenFile) -> Int32?) -> Int32 {
  guard let file = unsafe file else { return SQLITE_MISUSE }
  return unsafe call(tail(of: file).pointee.methods.pointee, file) ?? SQLITE_OK
}

/// Carries a call out, unless it is the one that fails.
private func troubled(
  _ file: OpenFile?, _ kind: SQLiteTrouble.Call, _ call: (sqlite3_io_methods, OpenFile) -> Int32?
) -> Int32 {
  guard let file = unsafe file else { return SQLITE_MISUSE }
  if let code = SQLiteTrouble.code(for: unsafe tail(of: file).pointee.id, at: kind) { return code }
  return unsafe pass(file, call)
}

/// The code of a call about a name; nil where it is to be carried out.
private func code(for name: UnsafePointer<CChar>?, at call: SQLiteTrouble.Call) -> Int32? {
  guard let name = unsafe name, let id = SQLiteTrouble.id(for: unsafe String(cString: name)) else { return nil }
  return SQLiteTrouble.code(for: id, at: call)
}

private func openFile(
  _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ file: OpenFile?, _ flags: Int32,
  _ found: UnsafeMutablePointer<Int32>?
) -> Int32 {
  guard let own = unsafe TroubledFiles.own, let file = unsafe file, let open = unsafe own.pointee.xOpen else {
    return SQLITE_MISUSE
  }
  guard let name = unsafe name, let id = SQLiteTrouble.id(for: unsafe String(cString: name)) else {
    return unsafe open(own, name, file, flags, found)
  }
  if let code = SQLiteTrouble.code(for: id, at: .open) {
    unsafe file.pointee.pMethods = nil
    return code
  }
  let result = unsafe open(own, name, file, flags, found)
  guard result == SQLITE_OK, let methods = unsafe file.pointee.pMethods, unsafe methods.pointee.iVersion >= 3 else {
    return result
  }
  unsafe tail(of: file).initialize(to: .init(methods: methods, id: id))
  let hasIndex = unsafe methods.pointee.xShmMap != nil
  unsafe file.pointee.pMethods = unsafe hasIndex ? TroubledFiles.methods : TroubledFiles.methodsWithoutIndex
  return result
}

private func deleteFile(
  _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ synchronizes: Int32
) -> Int32 {
  if let code = unsafe code(for: name, at: .delete) { return code }
  guard let own = unsafe TroubledFiles.own, let delete = unsafe own.pointee.xDelete else { return SQLITE_MISUSE }
  return unsafe delete(own, name, synchronizes)
}

private func accessFile(
  _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ flags: Int32,
  _ answer: UnsafeMutablePointer<Int32>?
) -> Int32 {
  if let code = unsafe code(for: name, at: .access) { return code }
  guard let own = unsafe TroubledFiles.own, let access = unsafe own.pointee.xAccess else { return SQLITE_MISUSE }
  return unsafe access(own, name, flags, answer)
}
