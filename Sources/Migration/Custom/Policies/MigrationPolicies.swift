internal import Platform

/// The app's policies, by the names mapping models use.
public struct MigrationPolicies: Sendable {
  private var byClass: [String: @Sendable () -> any EntityMigrationPolicy] = [:]
  private var byMapping: [String: @Sendable () -> any EntityMigrationPolicy] = [:]

  /// Makes an empty set.
  public init() {}

  /// Registers a policy for all entity mappings that name its class.
  ///
  /// - Parameters:
  ///   - className: The class as in mapping models, with or without its module.
  ///   - make: Makes one policy for each entity mapping of each step.
  public mutating func register(className: String, _ make: @escaping @Sendable () -> any EntityMigrationPolicy) {
    byClass[className] = make
  }

  /// Registers a policy for one entity mapping, whichever class it names.
  public mutating func register(entityMapping: String, _ make: @escaping @Sendable () -> any EntityMigrationPolicy) {
    byMapping[entityMapping] = make
  }

  /// The registered class names, sorted.
  public var classNames: [String] { byClass.keys.sorted() }

  var names: [String] { classNames + byMapping.keys.sorted() }

  /// Returns the maker of an entity mapping's policy; nil if it needs no policy.
  ///
  /// - Throws: `policy-missing`.
  func policy(
    for mapping: EntityMapping
  ) throws -> (@Sendable () -> any EntityMigrationPolicy)? {
    if let make = byMapping[mapping.name] { return make }
    guard mapping.needsPolicy, let name = mapping.policyClassName else { return nil }
    if let make = byClass[name] ?? byClass[Self.withoutModule(name)] { return make }
    // The app may have given the full name, and the mapping the short one.
    let full = byClass.keys.filter { Self.withoutModule($0) == Self.withoutModule(name) }.sorted()
    if full.count == 1, let only = full.first, only == name || !name.contains(".") { return byClass[only] }
    throw MigrationError(
      .policyMissing, operation: "prepare the mapping",
      detail: "\(CustomStepCheck.place(mapping, nil)) is carried out by the policy class \"\(printable(name))\", "
        + "which is not registered",
      hint: "Register it before the migration starts. "
        + NameSuggestion.hint(for: name, among: classNames, "registered classes"),
      entityName: mapping.destinationEntityName ?? mapping.sourceEntityName)
  }

  private static func withoutModule(_ name: String) -> String {
    name.split(separator: ".").last.map(String.init) ?? name
  }
}

extension MappingModel {
  /// Checks the mapping without a store: compiles its expressions and resolves its policies.
  ///
  /// - Throws: `policy-missing`, `expression-unsupported`, `mapping-invalid`.
  public func check(policies: MigrationPolicies = MigrationPolicies()) throws {
    guard isCustom || entityMappings.contains(where: { policies.isNamed($0) }) else { return }
    _ = try CustomStep(try StepLayout(self), policies: policies)
  }
}

extension MigrationPolicies {
  func isNamed(_ mapping: EntityMapping) -> Bool { byMapping[mapping.name] != nil }
}

/// App code that runs an entity mapping, in the stages of Core Data's `NSEntityMigrationPolicy` (format section 5.5).
///
/// Three passes run over all mappings with a policy: `begin`, `createDestinationInstances` per source record and
/// `endInstanceCreation`; then `createRelationships` per new record and `endRelationshipCreation`; then
/// `performCustomValidation` and `end`. Mappings without a policy run at the start of the first two passes. Stages a
/// policy lacks follow the mapping.
///
/// Each entity mapping of each step gets its own policy, which may keep state but no records: batches bound the memory.
/// An interrupted step is repeated on a fresh copy; see `MigrationContext.isRepeated`.
///
/// A thrown error ends the migration and leaves the store unchanged.
public protocol EntityMigrationPolicy: AnyObject {
  func begin(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Makes any number of records from a source record.
  ///
  /// The default makes one record with the mapped values.
  func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext) throws

  /// Runs after the last source record.
  func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Connects a record of this mapping once all records exist.
  ///
  /// The default makes the mapped relationships.
  func createRelationships(
    for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext) throws

  /// Runs after the last record, when the mapped relationships exist.
  func endRelationshipCreation(_ mapping: EntityMapping, in context: MigrationContext) throws

  /// Checks the results, which are now final.
  func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws

  func end(_ mapping: EntityMapping, in context: MigrationContext) throws
}

extension EntityMigrationPolicy {
  /// Does nothing.
  public func begin(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Makes one record with the mapped values.
  public func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRecord(for: source, mapping: mapping)
  }

  /// Does nothing.
  public func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {}

  /// Makes the mapped relationships.
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
