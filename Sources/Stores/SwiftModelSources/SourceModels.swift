public import ManagedObjectModel
public import StoreFiles
public import SystemPackage

/// The versions of an app's model that its Swift sources declare.
public struct SourceModels: Sendable {
  /// The name: that of the file or folder, without extension.
  public var name: String

  /// The file or folder.
  public var path: FilePath?

  /// The versions, oldest first; the current one last where the app lists types of its own.
  public var versions: [SourceVersion]

  /// The name of the current version.
  public var currentName: String

  /// Whether a migration plan, or version identifiers that differ, tell the order of the versions.
  public var isOrdered: Bool

  /// The stages of the migration plan, in order.
  public var stages: [SourceStage]

  /// What could not be resolved, and what is not certain, in the order of the places.
  public var findings: [SourceFinding]

  /// Where the migration plan lists its schemas; nil without a plan.
  public var planPlace: SourcePlace?

  var program = SourceProgram()

  /// The versions as a bundle, as every other kind of model gives one.
  ///
  /// - Parameters:
  ///   - policy: what becomes of a version that is not complete; the current one must be complete in any case.
  ///   - includingIncomplete: whether incomplete versions are in the bundle as far as they are known, for showing them.
  /// - Throws: `model-unresolved-source`, with the file and line of what could not be resolved.
  public func bundle(includingIncomplete: Bool = false) throws(ModelError) -> ModelBundle {
    var unreadable: [ModelBundle.UnreadableVersion] = []
    var readable: [SourceVersion] = []
    for version in versions {
      if version.isComplete || includingIncomplete {
        var known = version
        if !version.isComplete { known.version = version.version.incomplete(version.incompleteEntities) }
        readable.append(known)
        continue
      }
      let error = error(of: version)
      guard version.name != currentName else { throw error }
      unreadable.append(ModelBundle.UnreadableVersion(name: version.name, error: error))
    }
    // What a plan leaves out is recognized, and nothing leads through it.
    let isPlanned = readable.contains(where: \.isPlanned)
    let ordered = isPlanned ? readable.filter { $0.isPlanned || $0.name == currentName } : readable
    let others = isPlanned ? readable.filter { !$0.isPlanned && $0.name != currentName } : []
    guard
      let bundle = ModelBundle(
        name: name, path: path, versions: ordered.map(\.version), isOrdered: isOrdered,
        unordered: others.map(\.version), unreadableVersions: unreadable)
    else { throw ModelError(.noVersions, path: path, detail: "no version of the sources can be read") }
    return bundle
  }

  private func error(of version: SourceVersion) -> ModelError {
    let own = findings.filter { $0.severity == .error && ($0.versionName ?? version.name) == version.name }
    guard let first = own.first else {
      return ModelError(.unresolvedSource, path: path, detail: "version \"\(printable(version.name))\" is not complete")
    }
    var error = ModelError(
      .unresolvedSource, path: first.place.map { FilePath($0.file) } ?? path,
      detail: """
        version "\(printable(version.name))": \(first.place.map { "line \($0.line): " } ?? "")\(printable(first.detail))\
        \(own.count > 1 ? " (and \(own.count - 1) more)" : "")
        """, hint: first.hint)
    error.versionName = version.name
    error.entityName = first.entityName
    error.propertyName = first.propertyName
    return error
  }
}

extension SourceModels: Encodable {
  /// Writes what the sources leave open, and the stages of their migration plan.
  public func encode(to encoder: any Encoder) throws {
    let stages = stages.map { stage -> JSON.Object in
      [
        "from": stage.source, "to": stage.destination, "custom": stage.isCustom,
        "file": PathText(FilePath(stage.place.file)), "line": stage.place.line,
      ]
    }
    try encoder.encode(["findings": findings, "stages": stages])
  }
}
