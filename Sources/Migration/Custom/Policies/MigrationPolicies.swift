public import Platform

/// The policies that an app provides, by the names under which mapping models ask for them.
public struct MigrationPolicies: Sendable {
  private var byClass: [String: @Sendable () -> any EntityMigrationPolicy] = [:]
  private var byMapping: [String: @Sendable () -> any EntityMigrationPolicy] = [:]

  /// No policies.
  public init() {}

  /// Provides a policy for all entity mappings that name its class.
  ///
  /// - Parameters:
  ///   - className: the class as mapping models write it, with or without the name of a module before a point.
  ///   - make: makes the policy, once for each entity mapping of each step.
  public mutating func register(className: String, _ make: @escaping @Sendable () -> any EntityMigrationPolicy) {
    byClass[className] = make
  }

  /// Provides a policy for the entity mapping of that name, whatever class it names.
  public mutating func register(entityMapping: String, _ make: @escaping @Sendable () -> any EntityMigrationPolicy) {
    byMapping[entityMapping] = make
  }

  /// The names of the classes that are provided, in order.
  public var classNames: [String] { byClass.keys.sorted() }

  /// The names of everything that is registered, classes and mappings, in order.
  var names: [String] { classNames + byMapping.keys.sorted() }

  /// What makes the policy of an entity mapping; nil where it needs none.
  ///
  /// - Throws: `policy-missing`.
  func policy(
    for mapping: EntityMapping
  ) throws(MigrationError) -> (@Sendable () -> any EntityMigrationPolicy)? {
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
  /// Checks, without a store, whether it can be carried out with these policies: every expression is compiled, and every
  /// policy class looked for.
  ///
  /// - Throws: `policy-missing`, `expression-unsupported`, `mapping-invalid`.
  public func check(policies: MigrationPolicies = MigrationPolicies()) throws(MigrationError) {
    guard isCustom || entityMappings.contains(where: { policies.isNamed($0) }) else { return }
    _ = try CustomStep(try StepLayout(self), policies: policies)
  }
}

extension MigrationPolicies {
  /// Whether a policy is registered for the entity mapping by its name.
  func isNamed(_ mapping: EntityMapping) -> Bool { byMapping[mapping.name] != nil }
}

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
