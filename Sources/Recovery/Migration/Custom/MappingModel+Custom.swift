package import GRDB
internal import ManagedObjectModel

extension MappingModel {
  /// Whether there is more to it than any inferred mapping has: expressions, filters, policies, one entity that becomes
  /// several, or hierarchies that become one.
  public var isCustom: Bool {
    var sources: Set<String> = []
    var origins: [String: String] = [:]
    for entity in entityMappings {
      if entity.isCustom { return true }
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      if !sources.insert(source).inserted { return true }
      let (from, to) = (self.source.rootName(of: source), self.destination.rootName(of: destination))
      if let other = origins[to], other != from { return true }
      origins[to] = from
    }
    return false
  }
}

extension EntityMapping {
  /// The name of Core Data's own policy class, which does what the mapping says and nothing else.
  static let standardPolicyClassName = "NSEntityMigrationPolicy"

  /// Whether there is more to it than any inferred mapping has.
  public var isCustom: Bool {
    if kind == .custom || kind == .undefined || needsPolicy || sourceFilter != nil { return true }
    return propertyMappings.contains { property in
      switch property.value {
      case .expression, .destinations: true
      case .copy, .convert, .externalize, .defaultValue, .null, .recompute, .relationship, .inverse: false
      }
    }
  }

  /// Whether it names a policy that is not Core Data's own.
  var needsPolicy: Bool { policyClassName.map { !$0.isEmpty && $0 != Self.standardPolicyClassName } ?? false }
}

extension MappingModel {
  /// Says which records of a store of the source's model it would leave out, by its filters; the numbers are nil without
  /// a store.
  ///
  /// - Parameter referenceDate: what `NSCoreDataNow()` says, in seconds since 2001-01-01T00:00:00Z.
  /// - Throws: `mapping-invalid`, `expression-unsupported`, or `migration-data-violation` for a filter that fails for a
  ///   record.
  package func recordsLeftOut(
    in database: Database?, referenceDate: Double = 0
  ) throws -> [MigrationPlan.Finding] {
    try CustomFilters.leftOut(database, try StepLayout(self), referenceDate: referenceDate)
  }
}
