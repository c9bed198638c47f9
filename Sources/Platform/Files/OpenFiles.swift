import SystemPackage

/// Which other processes have a file open, as far as the system lets us see.
///
/// On Linux, through `/proc`; there only processes of the same user are visible unless run as root. Elsewhere no process is
/// found, and the locks alone decide.
enum OpenFiles {
  /// A process of this machine.
  struct Process {
    var id: Int32
    var name: String?

    var description: String { name.map { "\"\(printable($0))\" (process \(id))" } ?? "process \(id)" }
  }

  /// A process other than this one that has the file open.
  static func processWithOpenFile(_ identity: FileIdentity) -> Process? {
    #if os(Linux)
      return SystemCalls.processWithOpenFile(identity).map { Process(id: $0, name: name(of: $0)) }
    #else
      return nil
    #endif
  }

  /// A process other than this one that keeps the file open.
  ///
  /// One that lets go at once is waited for, a tenth of a second at most: a child of this process has its open files until
  /// it becomes another program.
  static func processKeepingOpen(_ identity: FileIdentity) -> Process? {
    var found = processWithOpenFile(identity)
    for _ in 0..<5 where found != nil {
      SystemCalls.sleep(milliseconds: 20)
      found = processWithOpenFile(identity)
    }
    return found
  }

  /// A process, this one included, that goes on writing to a store's log although its name was deleted.
  static func processWithDeletedLog(of set: StoreFileSet, main identity: FileIdentity) -> Process? {
    #if os(Linux)
      return SystemCalls.process(holding: identity, andDeleted: set.path(of: .wal))
        .map { Process(id: $0, name: name(of: $0)) }
    #else
      return nil
    #endif
  }

  /// A process in words, by name where the system tells it.
  static func describe(processID: Int32) -> String {
    Process(id: processID, name: name(of: processID)).description
  }

  private static func name(of id: Int32) -> String? {
    #if os(Linux)
      // A process that has just ended has no name; its number will do.
      guard let file = try? FileDescriptor.open(FilePath("/proc/\(id)/comm"), .readOnly) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = (try? unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(into: $0) }) ?? 0
      try? file.close()
      let text = String(decoding: bytes.prefix(count), as: UTF8.self)
      let name = text.split(separator: "\n").first.map(String.init)
      return name
    #else
      return nil
    #endif
  }
}
