package import ManagedObjectModel
internal import Platform
public import SystemPackage

/// Reads SwiftData models from Swift sources, without a compiler.
///
/// Needs the package trait `SwiftSources`; builds without it omit swift-syntax.
public enum SwiftSources {
  /// The scope of reading, and values that sources lack.
  public struct Options: Sendable, Hashable {
    /// The model's classes, or a `VersionedSchema`; empty for the app's own list.
    public var types: [String]

    /// The platform for `#if os(…)`; nil for iOS, with findings on where it matters.
    public var platform: SourcePlatform?

    /// The flags set for `#if`.
    public var flags: Set<String>

    /// Whether to read subfolders.
    public var readsSubfolders: Bool

    /// The default for `Date()`, in seconds since 2001-01-01T00:00:00Z.
    public var now: Double

    /// The default for `UUID()`: 16 bytes.
    public var identifier: [UInt8]

    /// Creates options.
    public init(
      types: [String] = [], platform: SourcePlatform? = nil, flags: Set<String> = [], readsSubfolders: Bool = true,
      now: Double = 0, identifier: [UInt8] = Array(repeating: 0, count: 16)
    ) {
      self.types = types
      self.platform = platform
      self.flags = flags
      self.readsSubfolders = readsSubfolders
      self.now = now
      self.identifier = identifier
    }
  }

  /// Whether this build can read Swift sources.
  public static var isAvailable: Bool {
    #if SwiftSources
      true
    #else
      false
    #endif
  }

  /// Whether a path is a Swift file, or a folder with one and no other kind of model.
  public static func isSource(_ path: FilePath) throws -> Bool { try SourceFiles().isSource(path) }

  /// Reads the models of a file or folder.
  ///
  /// - Parameters:
  ///   - path: links in a folder are not followed.
  ///   - options: the options.
  /// - Throws: `ModelError` or `FileError` if sources are unreadable; findings list unresolved parts.
  public static func load(_ path: FilePath, options: Options = Options()) throws -> SourceModels {
    guard isAvailable else {
      throw ModelError(.sourcesNotBuiltIn, path: path, detail: "this build of Lazaret does not read Swift sources")
    }
    let files = try SourceFiles().read(path, isDeep: options.readsSubfolders)
    let sources = files.map { (file: $0.path.string, text: $0.bytes) }
    return try read(sources, name: path.stem ?? path.lastComponent?.string ?? "Sources", path: path, options: options)
  }

  package static func read(
    _ sources: [(file: String, text: [UInt8])], name: String = "Sources", path: FilePath? = nil,
    options: Options = Options()
  ) throws(ModelError) -> SourceModels {
    var program = SourceProgram()
    for source in sources { program.add(parse(source.text, file: source.file, options: options), file: source.file) }
    var reader = VersionReader(program: program, options: options)
    return try reader.read(name: name, path: path)
  }

  private static func parse(_ bytes: [UInt8], file: String, options: Options) -> ParsedSource {
    #if SwiftSources
      SourceParser.parse(
        bytes, file: file, conditions: BuildConditions(platform: options.platform ?? .iOS, flags: options.flags),
        isAside: SourceFiles.isAside(file))
    #else
      ParsedSource()
    #endif
  }
}

/// A file's declarations and container types.
struct ParsedSource: Sendable {
  /// Outer ones first.
  var declarations: [SourceDeclaration] = []

  var roots: [SourceRoots] = []

  var lists: [String: SourceExpression] = [:]

  var findings: [SourceFinding] = []
}

struct BuildConditions: Hashable, Sendable {
  var platform: SourcePlatform

  var flags: Set<String>
}

/// An app's platform.
public enum SourcePlatform: String, Sendable, Hashable, CaseIterable { case iOS, macOS, watchOS, tvOS, visionOS }

// MARK: Files of a folder

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

  private let fileSystem = FileSystem()

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
