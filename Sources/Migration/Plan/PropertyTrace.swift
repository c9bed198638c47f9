/// Follows what a later step of a chain reads back to the store as it is now.
struct PropertyTrace {
  /// The mappings of the steps before, in order; none for the first step.
  let earlier: [MappingModel]

  /// Where an entity's records come from.
  enum Records: Hashable {
    /// From the records of an entity of the store.
    case entity(String)

    /// There are none: the entity came up on the way.
    case none

    /// Only running the steps tells.
    case unknown
  }

  /// Where the values of a property come from.
  enum Values: Hashable {
    /// From a property of the store; `isFilled` where nil is replaced on the way, `isConverted` where numbers become others.
    case property(PropertyPath, isFilled: Bool, isConverted: Bool = false)

    /// There are none: the property came up on the way, without a default.
    case none

    /// Every record gets one on the way.
    case made

    /// Only running the steps tells.
    case unknown
  }

  /// Where the records of an entity of the step's source come from.
  func records(of entityName: String) -> Records { trace(entityName, nil).records }

  /// Where the records of an entity, and the values of one of its properties, come from.
  func trace(_ entityName: String, _ path: PropertyPath?) -> (records: Records, values: Values) {
    var name = entityName
    var values = path.map { Values.property($0, isFilled: false) } ?? .none
    for mapping in earlier.reversed() {
      let sources = mapping.entityMappings(to: name).filter { $0.kind != .add }
      guard let only = sources.first else { return (.none, .none) }
      guard sources.count == 1, only.kind == .copy || only.kind == .transform, only.sourceFilter == nil,
        only.policyClassName == nil, let source = only.sourceEntityName,
        mapping.entityMappings(from: source).count == 1
      else { return (.unknown, .unknown) }
      name = source
      if case .property(let path, let isFilled, let isConverted) = values {
        values = Self.origin(of: path, isFilled, isConverted, in: only)
      }
    }
    return (.entity(name), values)
  }

  private static func origin(
    of path: PropertyPath, _ isFilled: Bool, _ isConverted: Bool, in mapping: EntityMapping
  ) -> Values {
    guard let property = mapping.propertyMapping(of: path) else { return .unknown }
    let isFilled = isFilled || property.replacesNilWithDefault
    switch property.value {
    case .copy(let source), .externalize(let source):
      return .property(source, isFilled: isFilled, isConverted: isConverted)
    case .convert(let source, _, _): return .property(source, isFilled: isFilled, isConverted: true)
    case .relationship(let name):
      return .property(PropertyPath(name), isFilled: isFilled, isConverted: isConverted)
    case .defaultValue: return .made
    case .null: return isFilled ? .made : .none
    case .recompute, .inverse, .destinations, .expression: return .unknown
    }
  }
}
