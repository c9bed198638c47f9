internal import Foundation
internal import PersistentStore
internal import Platform
internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// What the software ran on, `data/system.json`.
///
/// No name of a user, a machine or a folder is in it.
struct SystemFacts: Encodable {
  var formatVersion = 1
  var operatingSystem: String
  var kernel: String
  var architecture: String
  var processors: Int
  var memoryBytes: UInt64

  /// The bytes that were free where the store was; nil where that could not be told.
  var freeBytes: Int64?

  var sqlite: String
  var library: String
  var appVersion: String?

  /// The facts of this machine.
  init(store folder: FilePath, appVersion: String?, in fileSystem: FileSystem) {
    let process = ProcessInfo.processInfo
    operatingSystem = LibraryVersion.operatingSystem
    kernel = Self.kernelRelease
    #if arch(x86_64)
      architecture = "x86_64"
    #elseif arch(arm64)
      architecture = "arm64"
    #else
      architecture = "other"
    #endif
    processors = process.processorCount
    memoryBytes = process.physicalMemory
    // It is a fact among others, and what cannot be told is left out.
    freeBytes = try? fileSystem.freeSpace(at: folder)
    sqlite = SQLiteLibrary.version
    library = LibraryVersion.current
    self.appVersion = appVersion
  }

  /// The release of the kernel, as `uname -r` prints it.
  private static var kernelRelease: String {
    var name = utsname()
    guard unsafe uname(&name) == 0 else { return "unknown" }
    return unsafe withUnsafeBytes(of: &name.release) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}
