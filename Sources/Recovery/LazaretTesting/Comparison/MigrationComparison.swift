internal import ManagedObjectModel
public import Migration
public import PersistentStore

/// The comparison of a migrated store with what its mapping implies for every record of the source.
///
/// What is expected is worked out here from the records of the source and the mapping, one value at a time, and not by the
/// SQL that migrates. Memory grows with the pairs of relationships, not with the records.
public struct MigrationComparison: Sendable {
  /// Something that the mapping says may change, and that did.
  public struct Alteration: Sendable, Hashable, Codable {
    /// What may change.
    public var kind: MigrationCondition.Kind

    /// The entity of the destination.
    public var entity: String

    /// The property of the destination.
    public var property: String

    /// The values or pairs concerned.
    public var count: Int
  }

  /// What is not as the mapping says.
  public let differences: [StoreDifference]

  /// How many differences there are, kept or not.
  public let differenceCount: Int

  /// How many records of the source were found again and compared.
  public let comparedRecords: Int

  /// What changed as the mapping says it may: numbers that do not fit, pairs that are cut.
  public let alterations: [Alteration]

  /// The entities and properties of the destination that custom steps make, so that nothing can be said of them.
  public let unchecked: [String]

  /// Compares a store with the one it was migrated from in one step.
  ///
  /// - Parameters:
  ///   - mapping: the step's mapping.
  ///   - source: the store before the step, opened with the mapping's source model.
  ///   - result: the store after it, opened with the mapping's destination model.
  ///   - options: how stores are compared.
  public init(
    _ mapping: MappingModel, source: PersistentStore, result: PersistentStore,
    options: StoreComparison.Options = StoreComparison.Options()
  ) throws(StoreTestingError) {
    do {
      var work = try MigrationComparisonWork(mapping, source, result, options)
      try work.run()
      differences = work.list.differences
      differenceCount = work.list.count
      comparedRecords = work.records
      alterations = work.alterations
      unchecked = work.unchecked.sorted(by: precedesByCodeUnit)
    } catch {
      throw StoreTestingError(error, operation: "compare a store with what it was migrated from", path: result.path)
    }
  }
}
