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
