public import ManagedObjectModel
public import Platform
public import SystemPackage

/// Reads SwiftData's models from the Swift sources that declare them, without a compiler.
///
/// It is built in where the package is built with the trait `SwiftSources`; an app's build without it has nothing of
/// swift-syntax.
public enum SwiftSources {
  /// What is read, and what the sources do not say themselves.
  public struct Options: Sendable, Hashable {
    /// The classes that make up the model, or a `VersionedSchema`; empty for those that the app lists.
    public var types: [String]

    /// The platform that `#if os(…)` is told; nil for iOS, with a word wherever it matters.
    public var platform: SourcePlatform?

    /// The flags that `#if` finds set.
    public var flags: Set<String>

    /// Whether the files in the folders of a folder are read too.
    public var readsSubfolders: Bool

    /// What `Date()` becomes as a default, in seconds since 2001-01-01T00:00:00Z.
    public var now: Double

    /// What `UUID()` becomes as a default: 16 bytes.
    public var identifier: [UInt8]

    /// Options; the ordinary ones unless said otherwise.
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

  /// Whether a path is a Swift file, or a folder that holds one and no model of another kind.
  public static func isSource(_ path: FilePath, fileSystem: FileSystem = FileSystem()) throws(ModelError) -> Bool {
    try SourceFiles(fileSystem: fileSystem).isSource(path)
  }

  /// Reads the models of a file or a folder.
  ///
  /// - Parameters:
  ///   - path: a Swift file, or a folder whose Swift files are all read; links are not followed out of it.
  ///   - options: what is read, and what the sources do not say.
  ///   - fileSystem: the file system they are read from.
  /// - Throws: `ModelError` where nothing can be read; what cannot be resolved is among the findings.
  public static func load(
    _ path: FilePath, options: Options = Options(), fileSystem: FileSystem = FileSystem()
  ) throws(ModelError) -> SourceModels {
    guard isAvailable else {
      throw ModelError(
        .sourcesNotBuiltIn, path: path, detail: "this build of Lazaret does not read Swift sources")
    }
    let files = try SourceFiles(fileSystem: fileSystem).read(path, isDeep: options.readsSubfolders)
    let sources = files.map { (file: $0.path.string, text: $0.bytes) }
    return try read(sources, name: path.stem ?? path.lastComponent?.string ?? "Sources", path: path, options: options)
  }

  /// Reads the models of sources that are in memory.
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

/// What a source file declares, and which types it gives to containers.
struct ParsedSource: Sendable {
  /// The types, aliases and extensions, outer ones first.
  var declarations: [SourceDeclaration] = []

  /// The types that are given to a schema or a container.
  var roots: [SourceRoots] = []

  /// Lists of types that variables have as their initial value, by the variable's name.
  var lists: [String: SourceExpression] = [:]

  /// What could not be read of it.
  var findings: [SourceFinding] = []
}

/// What decides which branches of `#if` are compiled.
struct BuildConditions: Hashable, Sendable {
  /// The platform that is built for.
  var platform: SourcePlatform

  /// The flags that are set.
  var flags: Set<String>
}

/// A platform that an app is built for.
public enum SourcePlatform: String, Sendable, Hashable, CaseIterable {
  case iOS
  case macOS
  case watchOS
  case tvOS
  case visionOS
}
