public import ArgumentParser
import Lazaret
public import SwiftModelSources

/// What Swift sources, given as the model, do not say themselves.
struct SourceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where the model is Swift sources: the classes that make it up, or a VersionedSchema, separated by commas. If not given, what the app gives to its containers is taken, and its VersionedSchemas are the versions.",
      valueName: "names"))
  var types: String?

  @Option(
    help: ArgumentHelp("Where the model is Swift sources: the platform of #if os(…).", valueName: "platform"))
  var platform: SourcePlatform?

  @Option(
    help: ArgumentHelp(
      "Where the model is Swift sources: a flag that #if finds set; may be given several times.", valueName: "flag"))
  var define: [String] = []

  /// Reads sources.
  func load(_ path: FilePath) throws -> SourceModels {
    let names = types?.split(separator: ",").map { String($0.trimmingSpaces) } ?? []
    return try Self.load(path, types: names, platform: platform, flags: Set(define))
  }

  /// Reads sources, for verbs without options about them.
  static func load(
    _ path: FilePath, types: [String] = [], platform: SourcePlatform? = nil, flags: Set<String> = []
  ) throws -> SourceModels {
    let machine = Surroundings.machine
    // As SwiftData does: evaluated once, when the model is made.
    return try SwiftSources.load(
      path,
      options: SwiftSources.Options(
        types: types, platform: platform, flags: flags, now: machine.now().secondsSinceReferenceDate,
        identifier: machine.makeUUID().bytes))
  }
}

extension SourcePlatform: ExpressibleByArgument {}

/// A model as it was loaded, with what its sources leave open where it is Swift.
struct LoadedModel {
  var bundle: ModelBundle

  /// What the sources declare; nil for a model of another kind.
  var sources: SourceModels?

  /// A model of any kind, for verbs without options about it.
  static func load(_ path: FilePath, json: Bool) throws -> ModelBundle {
    guard try SwiftSources.isSource(path) else { return try ModelBundle.load(path: path) }
    let sources = try SourceOptions.load(path)
    sources.tell(json: json)
    return try sources.bundle()
  }

  /// The entities of a version whose hash cannot be told.
  func incompleteEntities(of version: String) -> Set<String> {
    sources?.versions.first { $0.name == version }?.incompleteEntities ?? []
  }

  /// The versions that are known whole, as far as there are any.
  func completeBundle() throws -> ModelBundle {
    guard let sources else { return bundle }
    var part = sources
    part.versions.removeAll { !$0.isComplete }
    guard let last = part.versions.last else { return try sources.bundle() }
    if !part.versions.contains(where: { $0.name == part.currentName }) { part.currentName = last.name }
    return try part.bundle()
  }

  /// Whether every version is known whole.
  var isComplete: Bool { sources?.versions.allSatisfy(\.isComplete) ?? true }
}

extension SourceModels {
  /// Tells on standard error what is not certain, or cannot be resolved.
  func tell(json: Bool) {
    for finding in findings {
      Terminal.standardError.write(json ? JSONText.line(SourceFindingJSON.Line(source: .init(finding))) : finding.line)
    }
  }
}

extension SourceFinding {
  /// The finding as compilers print theirs: place, severity, what, and what to do.
  var line: String {
    let start = place.map { "\(printable($0.file)):\($0.line):\($0.column): " } ?? ""
    return "\(start)\(severity.rawValue): \(printable(detail)) [\(kind.rawValue)]. \(hint)\n"
  }
}

/// A finding about Swift sources as JSON.
struct SourceFindingJSON: Encodable {
  /// A line of its own on standard error.
  struct Line: Encodable {
    var source: SourceFindingJSON
  }

  var kind: String
  var severity: String
  var version: String?
  var entity: String?
  var property: String?
  var file: PathText?
  var line: Int?
  var column: Int?
  var detail: String
  var hint: String

  init(_ finding: SourceFinding) {
    kind = finding.kind.rawValue
    severity = finding.severity.rawValue
    version = finding.versionName
    entity = finding.entityName
    property = finding.propertyName
    file = finding.place.map { PathText(FilePath($0.file)) }
    line = finding.place?.line
    column = finding.place?.column
    detail = finding.detail
    hint = finding.hint
  }
}

/// A result about a model, with what Swift sources leave open under `sources`.
struct ModelResultJSON<Result: Encodable>: Encodable {
  let result: Result
  let sources: SourceModels?

  private enum Key: String, CodingKey {
    case sources
  }

  /// What is said of the sources.
  private struct Sources: Encodable {
    /// A stage of the migration plan.
    struct Stage: Encodable {
      var from: String
      var to: String
      var custom: Bool
      var file: PathText
      var line: Int
    }

    var findings: [SourceFindingJSON]
    var stages: [Stage]
  }

  func encode(to encoder: any Encoder) throws {
    try result.encode(to: encoder)
    guard let sources else { return }
    var values = encoder.container(keyedBy: Key.self)
    let stages = sources.stages.map { stage in
      Sources.Stage(
        from: stage.source, to: stage.destination, custom: stage.isCustom, file: PathText(FilePath(stage.place.file)),
        line: stage.place.line)
    }
    try values.encode(
      Sources(findings: sources.findings.map { SourceFindingJSON($0) }, stages: stages), forKey: .sources)
  }
}
