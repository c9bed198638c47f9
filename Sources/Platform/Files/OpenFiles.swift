import SystemPackage

/// The other processes that have a file open.
///
/// Found through `/proc` on Linux, where only the superuser sees other users' processes. Elsewhere none is found, and
/// the locks alone decide.
enum OpenFiles {
  struct Process {
    var id: Int32
    var name: String?

    var description: String { name.map { "\"\(printable($0))\" (process \(id))" } ?? "process \(id)" }
  }

  static func processWithOpenFile(_ identity: FileIdentity) -> Process? {
    #if os(Linux)
      return SystemCalls.processWithOpenFile(identity).map { Process(id: $0, name: name(of: $0)) }
    #else
      return nil
    #endif
  }

  /// Returns another process that keeps the file open.
  ///
  /// Waits up to a tenth of a second: a child of this process has its open files until it executes another program.
  static func processKeepingOpen(_ identity: FileIdentity) -> Process? {
    var found = processWithOpenFile(identity)
    for _ in 0..<5 where found != nil {
      SystemCalls.sleep(milliseconds: 20)
      found = processWithOpenFile(identity)
    }
    return found
  }

  /// Returns a process, possibly this one, that writes to a store's deleted log.
  static func processWithDeletedLog(of set: StoreFileSet, main identity: FileIdentity) -> Process? {
    #if os(Linux)
      return SystemCalls.process(holding: identity, andDeleted: set.path(of: .wal))
        .map { Process(id: $0, name: name(of: $0)) }
    #else
      return nil
    #endif
  }

  static func describe(processID: Int32) -> String {
    Process(id: processID, name: name(of: processID)).description
  }

  private static func name(of id: Int32) -> String? {
    #if os(Linux)
      // A process that just ended has no name.
      guard let file = try? FileDescriptor.open(FilePath("/proc/\(id)/comm"), .readOnly) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = (try? unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(into: $0) }) ?? 0
      try? file.close()
      let text = String(decoding: bytes.prefix(count), as: UTF8.self)
      return text.split(separator: "\n").first.map(String.init)
    #else
      return nil
    #endif
  }
}
