import SystemPackage

/// Which other processes have a file open, as far as the system lets us see.
///
/// On Linux, through `/proc`; there only processes of the same user are visible unless run as root. Elsewhere nobody is
/// found, and the locks alone decide.
enum OpenFiles {
  /// A process of this machine.
  struct Process {
    var id: Int32
    var name: String?

    var description: String { name.map { "\"\(printable($0))\" (process \(id))" } ?? "process \(id)" }
  }

  /// A process other than this one that has the file open.
  static func processWithOpenFile(_ identity: FileIdentity, in fileSystem: FileSystem) -> Process? {
    #if os(Linux)
      let own = SystemCalls.processID
      // What cannot be looked at (another user's process, one that has just ended) cannot be asked about.
      guard let processes = try? SystemCalls.entries(of: "/proc") else { return nil }
      for component in processes {
        guard let id = Int32(component.string), id != own else { continue }
        let folder = FilePath("/proc").appending(component).appending("fd")
        guard let descriptors = try? SystemCalls.entries(of: folder) else { continue }
        for descriptor in descriptors {
          let status = try? SystemCalls.status(of: folder.appending(descriptor), followingLinks: true)
          if status?.identity == identity { return Process(id: id, name: name(of: id)) }
        }
      }
    #endif
    return nil
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
