public import StoreFiles

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
