package import ManagedObjectModel
public import Platform
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
  public static func isSource(_ path: FilePath, fileSystem: FileSystem = FileSystem()) throws -> Bool {
    try SourceFiles(fileSystem: fileSystem).isSource(path)
  }

  /// Reads the models of a file or folder.
  ///
  /// - Parameters:
  ///   - path: links in a folder are not followed.
  ///   - options: the options.
  ///   - fileSystem: the file system.
  /// - Throws: `ModelError` or `FileError` if sources are unreadable; findings list unresolved parts.
  public static func load(
    _ path: FilePath, options: Options = Options(), fileSystem: FileSystem = FileSystem()
  ) throws -> SourceModels {
    guard isAvailable else {
      throw ModelError(
        .sourcesNotBuiltIn, path: path, detail: "this build of Lazaret does not read Swift sources")
    }
    let files = try SourceFiles(fileSystem: fileSystem).read(path, isDeep: options.readsSubfolders)
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
        bytes, file: file,
        conditions: BuildConditions(platform: options.platform ?? .iOS, flags: options.flags),
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
public enum SourcePlatform: String, Sendable, Hashable, CaseIterable {
  case iOS
  case macOS
  case watchOS
  case tvOS
  case visionOS
}
