internal import Platform
package import SystemPackage

#if os(Linux)
  internal import CLinux
#endif
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What keeps a worker from everything but its job, as far as the kernel has it.
package struct WorkIsolation: Sendable, Hashable, Codable {
  /// One thing that a worker cannot do any more.
  package enum Measure: String, Sendable, Hashable, Codable, CaseIterable {
    /// Get more rights than it was started with.
    case privileges

    /// Reach a network: it has one of its own that leads nowhere.
    case network

    /// Read or write files but those of its job and those of the system.
    case files

    /// Make sockets, start programs or processes, trace others, mount.
    case calls
  }

  /// What the kernel gave.
  package var reached: Set<Measure>

  /// What it did not give, in the order of the cases.
  package var missing: [Measure] { Measure.allCases.filter { !reached.contains($0) } }

  /// What belongs to the system and every worker may read: its libraries, the time zone, what a process knows of itself.
  private static let system: [FilePath] = [
    "/usr", "/lib", "/lib64", "/etc/localtime", "/proc/self", "/dev/null", "/dev/zero", "/dev/urandom",
  ]

  /// Puts on this process, for good, what the kernel has.
  ///
  /// Called before any other thread begins: some of it is for the calling thread and for those that it starts.
  ///
  /// - Parameters:
  ///   - readable: the files and folders that may be read; those that are missing are left out.
  ///   - writable: the folders in which everything may be done.
  package static func apply(readable: [FilePath], writable: [FilePath]) -> WorkIsolation {
    var isolation = WorkIsolation(reached: [])
    #if os(Linux)
      if lazaret_leave_network() == 0 { isolation.reached.insert(.network) }
      guard lazaret_keep_no_new_privileges() == 0 else { return isolation }
      isolation.reached.insert(.privileges)
      if confine(readable: system + readable, writable: writable) { isolation.reached.insert(.files) }
      if lazaret_refuse_calls() == 0 { isolation.reached.insert(.calls) }
    #endif
    return isolation
  }

  #if os(Linux)
    /// Leaves nothing of the file system but some paths; false where the kernel cannot, and then everything stays as it was.
    private static func confine(readable: [FilePath], writable: [FilePath]) -> Bool {
      let version = lazaret_landlock_version()
      // The first version cannot move a file from one folder to another.
      guard version >= 2 else { return false }
      let rules = lazaret_landlock_begin(version)
      guard rules >= 0 else { return false }
      for (paths, writes) in [(readable, CInt(0)), (writable, 1)] {
        for path in paths {
          let failure = unsafe path.withPlatformString { unsafe lazaret_landlock_allow(rules, version, $0, writes) }
          // What is not there is nothing to allow; what the job needs of it fails with its own error.
          guard failure == 0 || failure == ENOENT || failure == ENOTDIR || failure == EACCES else {
            _ = close(rules)
            return false
          }
        }
      }
      return lazaret_landlock_end(rules) == 0
    }
  #endif

  /// What a worker still can do that it should not be able to, found by trying.
  ///
  /// - Parameter folder: a folder that the process has not been given.
  package static func trials(outside folder: FilePath) -> [String: Bool] {
    var done: [String: Bool] = [:]
    #if os(Linux)
      let stream = CInt(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    for (name, family) in [("socket", AF_INET), ("socket6", AF_INET6), ("local", AF_UNIX)] {
      let descriptor = socket(family, stream, 0)
      done[name] = descriptor >= 0
      if descriptor >= 0 { _ = close(descriptor) }
    }
    let fileSystem = FileSystem()
    func succeeds(_ body: () throws -> Void) -> Bool {
      do {
        try body()
        return true
      } catch {
        return false
      }
    }
    done["read"] = succeeds { _ = try fileSystem.contents(of: "/etc/passwd", limit: 1 << 20) }
    done["list"] = succeeds { _ = try fileSystem.entries(of: folder) }
    let file = folder.appending("written-by-a-worker")
    done["write"] = succeeds {
      try fileSystem.create(file).commit()
      try fileSystem.unlink(file)
    }
    done["program"] = canStartProgram()
    return done
  }

  private static func canStartProgram() -> Bool {
    var process = pid_t()
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe [strdup("true"), nil]
    defer { unsafe free(arguments[0]) }
    guard unsafe posix_spawn(&process, "/bin/true", nil, nil, &arguments, nil) == 0 else { return false }
    var status: CInt = 0
    _ = unsafe waitpid(process, &status, 0)
    // What could not be executed has ended with 127.
    return status == 0
  }
}
