internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// Finds and reads source files, within limits.
struct SourceFiles {
  struct File {
    var path: FilePath
    var bytes: [UInt8]
  }

  static let maximumFileSize = 4 << 20

  static let maximumTotalSize = 256 << 20

  /// More than any app has.
  static let maximumFiles = 20_000

  static let maximumEntries = 500_000

  static let maximumDepth = 64

  let fileSystem: FileSystem

  private static let leftOut: Set<String> = ["DerivedData", "Pods", "Carthage", "node_modules", "build"]

  /// Whether a path is a Swift file, or a folder with one and no other model.
  func isSource(_ path: FilePath) throws -> Bool {
    guard let status = try fileSystem.status(of: path, followingLinks: true) else { return false }
    if status.kind != .directory { return path.extension?.lowercased() == "swift" }
    if Self.isModel(path.extension) { return false }
    let entries = try fileSystem.entries(of: path)
    let models: Set<String> = ["contents", "elements"]
    if entries.contains(where: { Self.isModel($0.extension) || models.contains($0.string) }) { return false }
    var walk = Walk()
    return try find(path, depth: 0, &walk, isEnough: { !$0.isEmpty }) || !walk.files.isEmpty
  }

  private static func isModel(_ ending: String?) -> Bool {
    ["xcdatamodeld", "xcdatamodel", "momd", "mom", "omo", "sql"].contains(ending?.lowercased() ?? "")
  }

  /// Reads Swift files by name.
  ///
  /// - Parameter isDeep: whether to include subfolders.
  func read(_ path: FilePath, isDeep: Bool = true) throws -> [File] {
    var walk = Walk()
    if try fileSystem.status(of: path, followingLinks: true)?.kind == .directory {
      _ = try find(path, depth: 0, &walk, isDeep: isDeep, isEnough: { _ in false })
    } else {
      walk.files = [path]
    }
    guard !walk.files.isEmpty else {
      throw ModelError(.noVersions, path: path, detail: "the folder holds no Swift file", hint: "Check the path.")
    }
    var total = 0
    var files: [File] = []
    for file in walk.files {
      let bytes = try fileSystem.contents(of: file, limit: Self.maximumFileSize)
      total += bytes.count
      guard total <= Self.maximumTotalSize else {
        throw tooLarge(path, "its Swift files have more than \(Self.maximumTotalSize >> 20) MB")
      }
      files.append(File(path: file, bytes: bytes))
    }
    return files
  }

  private struct Walk {
    var files: [FilePath] = []
    var entries = 0
  }

  /// Returns true once there are enough.
  private func find(
    _ folder: FilePath, depth: Int, _ walk: inout Walk, isDeep: Bool = true, isEnough: ([FilePath]) -> Bool
  ) throws -> Bool {
    guard depth < Self.maximumDepth else {
      throw tooLarge(folder, "it has more than \(Self.maximumDepth) folders within each other")
    }
    for name in try fileSystem.entries(of: folder).sorted(by: { precedesByCodeUnit($0.string, $1.string) }) {
      walk.entries += 1
      guard walk.entries <= Self.maximumEntries, walk.files.count <= Self.maximumFiles else {
        throw tooLarge(folder, "there are more files than an app's sources have")
      }
      if name.string.hasPrefix(".") { continue }
      let path = folder.appending(name)
      let isSwift = name.extension?.lowercased() == "swift"
      // Links may leave the folder or form a cycle.
      switch try fileSystem.status(of: path, followingLinks: false)?.kind {
      case .regular where isSwift: walk.files.append(path)
      case .directory where isDeep && !isSwift && !Self.isLeftOut(name.string):
        if try find(path, depth: depth + 1, &walk, isEnough: isEnough) { return true }
      case nil, .regular?, .directory?, .symbolicLink?, .other?: break
      }
      if isEnough(walk.files) { return true }
    }
    return false
  }

  private static func isLeftOut(_ name: String) -> Bool {
    leftOut.contains(name) || name.hasSuffix("Tests") || name.hasSuffix(".xcassets") || name.hasSuffix(".bundle")
  }

  /// Tests and previews do not show the app's containers.
  static func isAside(_ file: String) -> Bool {
    let name = file.split(separator: "/").last.map { $0.lowercased() } ?? ""
    return ["preview", "tests.swift", "mock", "sample"].contains { name.contains($0) }
  }

  // MARK: Reading

  private func tooLarge(_ path: FilePath, _ detail: String) -> ModelError {
    ModelError(.tooLarge, path: path, detail: detail, hint: "Name the folder of the model's sources.")
  }
}
