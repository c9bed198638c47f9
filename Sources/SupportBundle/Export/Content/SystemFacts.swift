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
enum SystemFacts {
  static func facts(store folder: FilePath, appVersion: String?, in fileSystem: FileSystem) -> JSON.Object {
    let process = ProcessInfo.processInfo
    #if arch(x86_64)
      let architecture = "x86_64"
    #elseif arch(arm64)
      let architecture = "arm64"
    #else
      let architecture = "other"
    #endif
    return [
      "formatVersion": 1, "operatingSystem": LibraryVersion.operatingSystem, "kernel": kernelRelease,
      "architecture": architecture, "processors": process.processorCount, "memoryBytes": process.physicalMemory,
      "freeBytes": try? fileSystem.freeSpace(at: folder), "sqlite": SQLiteLibrary.version,
      "library": LibraryVersion.current, "appVersion": appVersion,
    ]
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
