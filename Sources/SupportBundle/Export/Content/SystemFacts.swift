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

/// The system, `data/system.json`, without names of users, machines or folders.
struct SystemFacts: Encodable {
  var formatVersion = 1
  var operatingSystem: String
  var kernel: String
  var architecture: String
  var processors: Int
  var memoryBytes: UInt64

  var freeBytes: Int64?

  var sqlite: String
  var library: String
  var appVersion: String?

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
    freeBytes = try? fileSystem.freeSpace(at: folder)
    sqlite = SQLiteLibrary.version
    library = LibraryVersion.current
    self.appVersion = appVersion
  }

  private static var kernelRelease: String {
    var name = utsname()
    guard unsafe uname(&name) == 0 else { return "unknown" }
    return unsafe withUnsafeBytes(of: &name.release) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}

extension SoftwareVersions {
  init(_ examination: Examination, app: String?) {
    self.init(
      app: app.map { printable($0) }, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
      storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem)
  }
}
