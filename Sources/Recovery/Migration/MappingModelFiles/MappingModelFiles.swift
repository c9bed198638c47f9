internal import ManagedObjectModel
internal import StoreFiles
internal import SystemPackage

/// Finds the files of Core Data's mapping models below a path.
struct MappingModelFiles {
  /// The file inside of a `.xcmappingmodel`.
  static let sourceFileName = "xcmapping.xml"

  /// More mapping models than any app has.
  static let maximumFiles = 1000

  /// How many entries of folders are looked at.
  static let maximumEntries = 100_000

  /// How deep folders are looked into.
  static let maximumDepth = 16

  let fileSystem: FileSystem

  /// What a path leads to: one mapping model, or a folder that may hold many.
  func find(_ path: FilePath) throws(MigrationError) -> (files: [FilePath], isOne: Bool) {
    do throws(FileError) {
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: MappingModelFile.operation, path: path)
      }
      if status.kind != .directory || Self.isSource(path) { return ([path], true) }
      if try fileSystem.status(of: path.appending(Self.sourceFileName)) != nil { return ([path], true) }
      return (try search(path), false)
    } catch {
      throw MigrationError(error)
    }
  }

  private static func isSource(_ path: FilePath) -> Bool { path.extension?.lowercased() == "xcmappingmodel" }

  /// Links inside of the folder are not followed, so that none leads round in a circle.
  private func search(_ folder: FilePath) throws(FileError) -> [FilePath] {
    var result: [FilePath] = []
    var waiting = [(path: folder, depth: 0)]
    var entries = 0
    while let (path, depth) = waiting.popLast() {
      for name in try fileSystem.entries(of: path) {
        entries += 1
        guard entries <= Self.maximumEntries, result.count <= Self.maximumFiles else {
          throw FileError(
            .tooLarge, operation: MappingModelFile.operation, path: folder,
            detail: "the folder holds too much to be one of mapping models")
        }
        let entry = path.appending(name)
        guard let status = try fileSystem.status(of: entry, followingLinks: false) else { continue }
        if status.kind == .directory {
          if Self.isSource(entry) {
            result.append(entry)
          } else if depth < Self.maximumDepth {
            waiting.append((entry, depth + 1))
          }
        } else if status.kind == .regular, entry.extension?.lowercased() == "cdm" {
          result.append(entry)
        }
      }
    }
    return result.ordered { precedesNaturally($0.string, $1.string) }
  }
}
