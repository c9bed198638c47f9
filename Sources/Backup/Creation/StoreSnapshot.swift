import Platform
import SQLiteFormat
import SystemPackage

/// A store as of one commit, held still for reading beside active writers.
///
/// No SQLite connection is involved, and the store's folder is not written to:
///
/// - A WAL in use: a shared lock on a read mark keeps checkpoints from moving later pages into the main file, and the
///   WAL from being restarted. Writers never wait. If space allows, main file and WAL are copied at full speed, and the
///   mark released, so that the WAL does not grow.
/// - A rollback journal: SQLite's shared lock is held. If others have the store open, or a writer waits, the file is
///   copied at full speed, and the lock released.
/// - A store not open elsewhere: its files are read, and must be identical and unchanged at the end.
final class StoreSnapshot: Sendable {
  enum Manner: Sendable { case liveLog, restingLog, rollback }

  let files: StoreFileSet
  let members: [StoreFileSet.Member]
  let manner: Manner

  /// Whether another connection has the store open, and should get a processor.
  let isInUse: Bool

  let main: SwitchingSource

  let log: SwitchingSource?

  /// The number of committed frames by the WAL index; nil if not in use.
  let committedFrames: Int?

  /// The journal, if possibly hot.
  let journal: ReadableFile?

  private let lock: StoreReadLock
  private let logLock: LogReadLock?
  private let initial: FileStatus
  private let copy = Mutex<CopyState>(.none)
  private let temporary: FilePath
  private let surroundings: Surroundings

  private enum CopyState {
    case none, begun
    case made(PrivateFolder)
  }

  /// Whether the store is in use, but reading never blocks its users.
  var isUnhurried: Bool { isInUse && (isCopied || manner == .liveLog) }

  /// Whether a private copy is read, and the store released.
  var isCopied: Bool {
    if case .made = copy.withLock({ $0 }) { return true }
    return false
  }

  /// Holds a store still.
  ///
  /// - Parameter temporary: the folder for a copy, if needed.
  /// - Throws: `locked` if a writer never admits readers, `changed-meanwhile` if the store was just replaced, or file
  ///   errors.
  init(of files: StoreFileSet, temporary: FilePath, surroundings: Surroundings) throws(FileError) {
    let fileSystem = surroundings.fileSystem
    self.files = files
    self.temporary = temporary
    self.surroundings = surroundings
    lock = try StoreReadLock(on: files, in: fileSystem)
    members = try files.members(in: fileSystem)
    initial = try lock.file.currentStatus()
    guard members.first?.part == .main, try fileSystem.status(of: files.main)?.identity == initial.identity else {
      throw FileError(.changed, operation: "read the store", path: files.main)
    }
    main = SwitchingSource(SourcePrefix(source: lock.file, count: initial.size))
    let header = DatabaseHeader(try main.bytes(at: 0, length: DatabaseHeader.length))
    let logMember = members.first { $0.part == .wal }
    guard header?.usesWriteAheadLog == true || logMember != nil else {
      manner = .rollback
      log = nil
      committedFrames = nil
      logLock = nil
      // An active writer's journal is not hot, and the file is as before its transaction.
      let isWriterActive = try lock.isWriterActive()
      let path = files.path(of: .journal)
      let status = try fileSystem.status(of: path)
      journal = isWriterActive || status == nil ? nil : try fileSystem.open(path)
      let isWriterWaiting = try lock.isWriterWaiting()
      isInUse = isWriterActive || isWriterWaiting || lock.isOpenElsewhere()
      guard isInUse, journal == nil else { return }
      if isWriterActive || isWriterWaiting { try makeCopy() } else if try hasAmpleRoom() { try makeCopy() }
      return
    }
    if let joined = try LogReadLock(of: files, in: fileSystem) {
      manner = .liveLog
      journal = nil
      isInUse = true
      logLock = joined
      let committed = try Self.committedLog(of: files, joined, in: fileSystem)
      log = committed.map { SwitchingSource($0.log) }
      committedFrames = committed?.frames
      if try hasAmpleRoom() { try makeCopy() }
    } else {
      manner = .restingLog
      isInUse = false
      logLock = nil
      log = try logMember == nil ? nil : SwitchingSource(fileSystem.open(files.path(of: .wal)))
      // SQLite rolls a hot journal back before it reads the log.
      journal = try members.contains { $0.part == .journal } ? fileSystem.open(files.path(of: .journal)) : nil
      committedFrames = nil
    }
  }

  // MARK: A log in use

  /// Returns the WAL up to its last commit, fixed while the lock is held; nil if empty.
  private static func committedLog(
    of files: StoreFileSet, _ lock: LogReadLock, in fileSystem: FileSystem
  ) throws(FileError) -> (log: any ByteSource, frames: Int)? {
    for _ in 0..<10_000 {
      if let index = try hold(lock) {
        guard index.lastFrame > 0 else { return nil }
        let file = try fileSystem.open(files.path(of: .wal))
        guard let log = try index.committedPart(of: file) else {
          throw FileError(.changed, operation: "read the store's log", path: file.path)
        }
        return (log, Int(index.lastFrame))
      }
      LogReadLock.rest()
    }
    throw FileError(
      .locked, operation: "read the store's log", path: files.path(of: .sharedMemory),
      hint: "Quit the app that uses it, or wait until it is done, then run the same command again.")
  }

  /// Locks a mark and returns the committed state; nil if the WAL was changing.
  ///
  /// Mark 0, for readers without a WAL, prevents checkpoints. A new WAL index has no other before the first commit.
  private static func hold(_ lock: LogReadLock) throws(FileError) -> WriteAheadLogIndex? {
    guard let index = WriteAheadLogIndex(try lock.index.bytesNow(length: WriteAheadLogIndex.length)) else { return nil }
    // The highest mark hinders checkpoints least.
    let usable = (1...4).filter { index.readMarks[$0] <= index.lastFrame }
    let highest = usable.max { index.readMarks[$0] < index.readMarks[$1] }
    guard let mark = highest ?? (index.lastFrame == 0 ? 0 : nil), try lock.lockMark(mark) else { return nil }
    // A process that moves a mark locks it exclusively, so the mark is unchanged, or was moved before. Frames committed
    // by now follow the mark: no checkpoint moves them, and the WAL is not restarted.
    // Without a mark the WAL must still be empty, as it is only after a complete checkpoint.
    guard let now = WriteAheadLogIndex(try lock.index.bytesNow(length: WriteAheadLogIndex.length)),
      mark == 0
        ? now.lastFrame == 0 : now.readMarks[mark] == index.readMarks[mark] && now.readMarks[mark] <= now.lastFrame
    else {
      lock.unlockMark(mark)
      return nil
    }
    return now
  }

  // MARK: Writers that wait

  func giveWay() throws(FileError) {
    guard manner == .rollback, journal == nil, case .none = copy.withLock({ $0 }) else { return }
    let isActive = try lock.isWriterActive()
    let isWaiting = try lock.isWriterWaiting()
    if isActive || isWaiting { try makeCopy() }
  }

  private var copyLength: Int64 { initial.occupiedSize + (log?.count ?? 0) }

  /// Returns whether a copy leaves at least its own size free.
  private func hasAmpleRoom() throws(FileError) -> Bool {
    try surroundings.fileSystem.freeSpace(at: temporary) / 2 >= copyLength
  }

  /// Copies the held files into a private folder, and releases the store.
  private func makeCopy() throws(FileError) {
    let isFirst = copy.withLock { state in
      guard case .none = state else { return false }
      state = .begun
      return true
    }
    guard isFirst else { return }
    let folder = try PrivateFolder(
      in: temporary, needing: copyLength, to: "copy the store while its writers wait", surroundings)
    try exchange(main, of: lock.file, for: folder.path.appending("Store.sqlite"))
    if let log {
      // Frames are never overwritten while the mark is held, and closing a WAL releases no lock.
      let file = try LastingFile(files.path(of: .wal), in: surroundings.fileSystem)
      try exchange(log, of: file, for: folder.path.appending("Store.sqlite-wal"))
    }
    copy.withLock { $0 = .made(folder) }
    release()
  }

  private func exchange(_ source: SwitchingSource, of file: LastingFile, for path: FilePath) throws(FileError) {
    try surroundings.fileSystem.copyStill(file, count: source.count, to: path)
    source.exchange(for: SourcePrefix(source: try surroundings.fileSystem.open(path), count: source.count))
  }

  // MARK: The end

  /// Verifies that one state of the store was read.
  ///
  /// - Throws: `changed-meanwhile` if not.
  func requireUnchanged() throws(FileError) {
    if isCopied || manner == .liveLog { return }
    let now = try lock.file.currentStatus()
    var isSame = now.size == initial.size && now.modified == initial.modified
    if manner == .restingLog {
      for part in [StoreFileSet.Part.wal, .journal] {
        let before = members.first { $0.part == part }?.status
        let after = try surroundings.fileSystem.entry(at: files.path(of: part))
        isSame =
          isSame && before?.identity == after?.identity && before?.size == after?.size
          && before?.modified == after?.modified
      }
    }
    guard isSame else { throw FileError(.changed, operation: "back up the store", path: files.main) }
  }

  /// Releases the store: writers stop waiting, and later reads may see another state.
  ///
  /// Deinitialization does so too, perhaps later than expected, as a finishing thread may still hold this value.
  func release() {
    logLock?.release()
    lock.release()
  }
}

extension LastingFile {
  /// Reads the first bytes at their present state; the file may have grown since it was opened.
  fileprivate func bytesNow(length: Int) throws(FileError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: length)
    let got = try read(at: 0, length: length, into: &buffer)
    buffer.removeLast(length - got)
    return buffer
  }
}

/// A source replaceable by a copy of itself during reads.
final class SwitchingSource: ByteSource {
  let count: Int64
  private let state: Mutex<State>

  private struct State {
    var source: any ByteSource
    var generation = 0
    /// The active reads of this generation and the one before.
    var readers = [0, 0]
  }

  init(_ source: any ByteSource) {
    count = source.count
    state = Mutex(State(source: source))
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    let (source, place) = state.withLock { state in
      let place = state.generation & 1
      state.readers[place] += 1
      return (state.source, place)
    }
    defer { state.withLock { $0.readers[place] -= 1 } }
    return try source.read(at: offset, length: length, into: &buffer)
  }

  /// Replaces the source, once, and returns when the old one is unused.
  func exchange(for copy: any ByteSource) {
    let old = state.withLock { state in
      defer {
        state.source = copy
        state.generation += 1
      }
      return state.generation & 1
    }
    while state.withLock({ $0.readers[old] > 0 }) { LogReadLock.rest() }
  }
}
