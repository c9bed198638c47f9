import Platform
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The real stores, models and damaged files that some tests read; they are not part of the project.
///
/// Looked for in `../shared/real` from the project's root, or where `LAZARET_REAL` says.
package enum RealMaterial {
  /// The folder, or nil where there is none.
  package static let folder: FilePath? = {
    let place =
      environment("LAZARET_REAL").map { FilePath($0) } ?? projectRoot.removingLastComponent().appending("shared/real")
    return (try? FileSystem().status(of: place))??.kind == .directory ? place : nil
  }()

  /// Whether it is there; tests that need it are skipped, and say so, where it is not.
  package static var isAvailable: Bool { folder != nil }

  /// What a skipped test says.
  package static let skipped = "the real stores are not on this machine (../shared/real, or LAZARET_REAL)"

  /// The root of the project's checkout.
  package static let projectRoot = FilePath(#filePath).removingLastComponent().removingLastComponent()
    .removingLastComponent()

  /// Every regular file below a folder of the material whose name ends so, sorted; empty where it is not there.
  package static func files(below relative: String, ending: String = "") -> [FilePath] {
    guard let folder else { return [] }
    var result: [FilePath] = []
    var waiting = [folder.appending(relative)]
    while let next = waiting.popLast() {
      for name in (try? FileSystem().entries(of: next)) ?? [] {
        let path = next.appending(name)
        guard let status = try? FileSystem().status(of: path, followingLinks: false) else { continue }
        if status.kind == .directory {
          waiting.append(path)
        } else if status.kind == .regular, name.string.hasSuffix(ending) {
          result.append(path)
        }
      }
    }
    return result.sorted { $0.string < $1.string }
  }

  /// Every folder below a folder of the material whose name ends so, sorted; empty where it is not there.
  package static func folders(below relative: String, ending: String) -> [FilePath] {
    guard let folder else { return [] }
    var result: [FilePath] = []
    var waiting = [folder.appending(relative)]
    while let next = waiting.popLast() {
      for name in (try? FileSystem().entries(of: next)) ?? [] {
        let path = next.appending(name)
        guard let status = try? FileSystem().status(of: path, followingLinks: false), status.kind == .directory else {
          continue
        }
        if name.string.hasSuffix(ending) { result.append(path) }
        waiting.append(path)
      }
    }
    return result.sorted { $0.string < $1.string }
  }

  /// The real stores' main files.
  package static var stores: [FilePath] { files(below: "stores", ending: ".sqlite") }

  /// A private copy of a store's whole set in a folder of the test's, writable.
  package static func copy(_ store: FilePath, into folder: TemporaryFolder, as name: String = "Store.sqlite") throws
    -> FilePath
  {
    let source = StoreFileSet(main: store)
    let target = StoreFileSet(main: folder.appending(name))
    for member in try source.members(in: FileSystem()) where member.status.kind == .regular {
      let file = try FileSystem().create(target.path(of: member.part), truncating: true)
      try file.write(try FileSystem().contents(of: member.path, limit: 1 << 30))
    }
    return target.main
  }
}

/// The value of an environment variable; nil where it is not set.
package func environment(_ name: String) -> String? {
  guard let value = unsafe getenv(name) else { return nil }
  return unsafe String(cString: value)
}
