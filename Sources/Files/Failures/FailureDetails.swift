/// What a module's failures say beyond what all failures say, such as the entity that a migration failed at.
public protocol FailureDetails: Sendable {
  init()

  /// A code that says more than the kind's; nil where there is none.
  var code: String? { get }

  /// Whether the environment is at fault, where the kind alone does not tell; nil where it does.
  var isEnvironmental: Bool? { get }
}

extension FailureDetails {
  /// Nil: the kind's code says all.
  public var code: String? { nil }

  /// Nil: the kind tells.
  public var isEnvironmental: Bool? { nil }
}

/// No details: kind, operation, path, detail and hint say all.
public struct NoDetails: FailureDetails {
  /// Nothing more to say.
  public init() {}
}
