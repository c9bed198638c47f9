/// What a step of a migration did, in numbers.
public struct StepAccount: Sendable, Hashable, Codable {
  /// The records of one entity of the destination.
  public struct EntityRows: Sendable, Hashable, Codable {
    /// The entity of the destination.
    public var entity: String

    /// The entity of the source that they were records of; nil for a new entity.
    public var source: String?

    /// How many there are.
    public var rows: Int
  }

  /// The step, such as `V1 → V2`.
  public var step: String

  /// How it was carried out.
  public var way: MigrationWay

  /// The records of each entity of the destination, by number.
  public var entities: [EntityRows] = []

  /// The records that were deleted with their entity, by entity of the source.
  public var removedRows: [String: Int] = [:]

  /// What was lost, with the number of records concerned.
  public var losses: [MigrationPlan.Finding] = []

  /// The records that a custom mapping left out, by filter or policy, by entity of the source.
  public var filteredRows: [String: Int] = [:]

  /// Changes of removed entities that were left out of the persistent history.
  public var removedChanges = 0

  /// What else was left behind: indexes and triggers of the app that no longer fit, by name.
  public var leftBehind: [String] = []

  /// What was made good, where the step is a repair of the store to its own model.
  public var repair: RepairAccount?
}

/// How a step is carried out.
public enum MigrationWay: String, Sendable, Hashable, Codable {
  /// Columns are added and renamed in a copy of the store.
  case inPlace = "in-place"

  /// A new store is filled from the old one.
  case rebuild

  /// What the store lacks of its own model is added in a copy of it.
  case repair
}
