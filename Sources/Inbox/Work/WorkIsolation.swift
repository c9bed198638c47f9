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

/// A worker's isolation, as far as the kernel supports it.
package struct WorkIsolation: Sendable, Hashable, Codable {
  package enum Measure: String, Sendable, Hashable, Codable, CaseIterable {
    /// No further privileges.
    case privileges

    /// No network but an empty one of its own.
    case network

    /// No files but its job's and the system's.
    case files

    /// No sockets, programs, processes, tracing or mounts.
    case calls
  }

  package var reached: Set<Measure>

  package var missing: [Measure] { Measure.allCases.filter { !reached.contains($0) } }

  /// Readable by every worker: libraries, time zone, its own process information.
  private static let system: [FilePath] = [
    "/usr", "/lib", "/lib64", "/etc/localtime", "/proc/self", "/dev/null", "/dev/zero", "/dev/urandom",
  ]

  /// Isolates this process permanently, as far as supported.
  ///
  /// Call before other threads start: some restrictions apply only to the calling thread and its descendants.
  ///
  /// - Parameters:
  ///   - readable: readable paths; missing ones are skipped.
  ///   - writable: fully accessible folders.
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
    /// Restricts the file system to some paths; false, without effect, if unsupported.
    private static func confine(readable: [FilePath], writable: [FilePath]) -> Bool {
      let version = lazaret_landlock_version()
      // Version 1 of the interface cannot move files between folders.
      guard version >= 2 else { return false }
      let rules = lazaret_landlock_begin(version)
      guard rules >= 0 else { return false }
      for (paths, writes) in [(readable, CInt(0)), (writable, 1)] {
        for path in paths {
          let failure = unsafe path.withPlatformString { unsafe lazaret_landlock_allow(rules, version, $0, writes) }
          // A missing path needs no permission; the job fails with its own error.
          guard failure == 0 || failure == ENOENT || failure == ENOTDIR || failure == EACCES else {
            _ = close(rules)
            return false
          }
        }
      }
      return lazaret_landlock_end(rules) == 0
    }
  #endif

  /// Tests which forbidden actions succeed.
  ///
  /// - Parameter folder: a forbidden one.
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
    // Status 127: not executed.
    return status == 0
  }
}
