/// The code of an app that carries out an entity mapping: Core Data's `NSEntityMigrationPolicy` with its stages
/// (format section 5.5).
///
/// There are three passes over all entity mappings that have a policy: `begin`, `createDestinationInstances` for each
/// record of the source and `endInstanceCreation`; then `createRelationships` for each record that was made and
/// `endRelationshipCreation`; at last `performCustomValidation` and `end`. Entity mappings without a policy are carried
/// out at the beginning of the first and of the second pass. Whatever a policy leaves out does what the mapping says.
///
/// A policy is made anew for each entity mapping of each step, so it can keep what it needs. It must not keep records
/// beyond a call: they are handed out in batches, so that memory does not grow with their number. A migration that was
/// killed runs a step again from its beginning, on a fresh copy; `MigrationContext.isRepeated` tells.
///
/// An error that is thrown ends the migration with the store as it was.
public protocol EntityMigrationPolicy: AnyObject {
  func begin(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Makes what becomes of a record of the source: no record, one or several.
  ///
  /// Without it, one record is made with the values that the mapping gives.
  func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext) throws

  /// Called after the last record of the source.
  func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Connects a record that this entity mapping has made; all records of all entity mappings are there.
  ///
  /// Without it, the relationships are those that the mapping gives.
  func createRelationships(
    for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext) throws

  /// Called after the last record; the relationships that the mapping gives are there.
  func endRelationshipCreation(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Checks what has been made; nothing can be changed any more.
  func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws

  func end(_ mapping: EntityMapping, in context: MigrationContext) throws
}

extension EntityMigrationPolicy {
  /// Does nothing.
  public func begin(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Makes one record with the values that the mapping gives.
  public func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRecord(for: source, mapping: mapping)
  }

  /// Does nothing.
  public func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Gives the record the relationships that the mapping gives.
  public func createRelationships(
    for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRelationships(for: destination)
  }

  /// Does nothing.
  public func endRelationshipCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Does nothing.
  public func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Does nothing.
  public func end(_ mapping: EntityMapping, in context: MigrationContext) throws {}
}
