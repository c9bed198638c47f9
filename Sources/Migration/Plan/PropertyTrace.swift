/// Traces a later step's inputs to the present store.
struct PropertyTrace {
  let earlier: [MappingModel]

  enum Records: Hashable {
    case entity(String)

    /// The entity was added on the way.
    case none

    /// Only running the steps shows it.
    case unknown
  }

  enum Values: Hashable {
    /// A property of the store; `isFilled` if nil is replaced on the way, `isConverted` if numbers are converted.
    case property(PropertyPath, isFilled: Bool, isConverted: Bool = false)

    /// Added on the way without a default.
    case none

    /// Every record gets one on the way.
    case made

    case unknown
  }

  func records(of entityName: String) -> Records { trace(entityName, nil).records }

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
