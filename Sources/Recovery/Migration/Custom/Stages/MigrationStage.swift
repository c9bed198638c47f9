/// Code of an app that runs before or after a step, on the records of the copy: what app logic has to do between two
/// versions that a mapping alone cannot (Core Data's custom stages, format section 5.4).
///
/// The step is named by one of its versions or by both; where several stages name a step, they run in the order given.
/// A step that is not taken, because the versions between are skipped, runs no stages.
public struct MigrationStage: Sendable {
  /// What a handler looks like.
  public typealias Handler = @Sendable (StageContext) throws -> Void

  /// The version that the step starts from, by name or by checksum; nil for any.
  public var source: String?

  /// The version that the step leads to, by name or by checksum; nil for any.
  public var destination: String?

  /// Called with the records as they were before the step; what it changes, the step migrates.
  public var willMigrate: Handler?

  /// Called with the records as they are after the step, which have passed every check and will be checked again.
  public var didMigrate: Handler?

  /// A stage at the steps from a version, to a version, or from the one to the other.
  public init(
    from source: String? = nil, to destination: String? = nil, willMigrate: Handler? = nil, didMigrate: Handler? = nil
  ) {
    self.source = source
    self.destination = destination
    self.willMigrate = willMigrate
    self.didMigrate = didMigrate
  }

  /// Whether it belongs to a step, whose versions are named by name and checksum.
  func isAt(source names: [String?], destination otherNames: [String?]) -> Bool {
    (source.map(names.contains) ?? true) && (destination.map(otherNames.contains) ?? true)
  }
}
