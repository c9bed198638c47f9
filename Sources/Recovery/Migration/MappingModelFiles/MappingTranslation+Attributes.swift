internal import ManagedObjectModel
internal import StoreFiles

extension MappingTranslation {
  /// Where one property of the destination gets its value from.
  mutating func propertyMapping(
    _ property: StoredProperty, _ record: EntityRecord, _ pair: InferenceBuilder.Pair?
  ) -> PropertyMapping {
    let list = property.attribute == nil ? record.relationships : record.attributes
    // A composite attribute may be mapped as a whole.
    let found =
      list.first { $0.name == property.path.description } ?? list.first { $0.name == property.path.name }
    var mapping: PropertyMapping
    if let attribute = property.attribute {
      mapping = attributeMapping(property, attribute, found, record, pair)
    } else {
      mapping = relationshipMapping(property, found, record, pair)
    }
    mapping.userInfo = found?.userInfo ?? [:]
    return mapping
  }

  private mutating func attributeMapping(
    _ property: StoredProperty, _ attribute: Attribute, _ found: MappingModelFile.PropertyRecord?,
    _ record: EntityRecord, _ pair: InferenceBuilder.Pair?
  ) -> PropertyMapping {
    if attribute.isDerived { return PropertyMapping(property.path, .recompute) }
    guard let pair else { return builder.newMapping(property) }
    switch found?.value ?? .nothing {
    case .nothing, .through: return new(property, record, pair)
    case .generated:
      guard let origin = source(property.path, of: pair) else { return new(property, record, pair) }
      return copy(origin, property, attribute, "$source.\(property.path)", record, pair)
    case .unreadable(let what): return refused(property, ExpressionObstacle("it is \(what)"), what, record)
    case .expression(.constant(.null)): return PropertyMapping(property.path, .null)
    case .expression(let expression):
      if case .keyPathOf(.variable("source"), let path) = expression,
        let origin = source(Self.path(path, appending: property.path.leaf), of: pair)
          ?? source(Self.path(path), of: pair)
      {
        return copy(origin, property, attribute, expression.format, record, pair)
      }
      return computed(property, attribute, expression, record, pair)
    }
  }

  /// A value that no expression gives: the default, which may be lacking where a value is needed.
  private mutating func new(
    _ property: StoredProperty, _ record: EntityRecord, _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    // A policy may give the value yet.
    if !record.hasPolicy, pair.hasRecords { builder.addConditions(ofNew: property, pair) }
    return builder.newMapping(property)
  }

  /// A plain copy of an attribute of the source, by the rules of inference.
  private mutating func copy(
    _ origin: StoredProperty, _ property: StoredProperty, _ attribute: Attribute, _ text: String,
    _ record: EntityRecord, _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    guard let old = origin.attribute else { return new(property, record, pair) }
    let mapping = builder.mapAttribute(origin, old, property, attribute, pair)
    let refused = builder.takeRefusals()
    guard !refused.isEmpty else { return mapping }
    if !record.hasPolicy {
      refusals += refused.map { refusal in
        var copy = refusal
        copy.detail = "mapping \"\(printable(record.name))\": \(refusal.detail)"
        return copy
      }
    } else {
      used[pair.source.name, default: []].insert(origin.path)
    }
    return PropertyMapping(property.path, .expression(.coreData(text)))
  }

  /// A value that is computed, as SQL in the form that the destination's type has.
  private mutating func computed(
    _ property: StoredProperty, _ attribute: Attribute, _ expression: ModelExpression, _ record: EntityRecord,
    _ pair: InferenceBuilder.Pair
  ) -> PropertyMapping {
    var reader = CoreDataExpressionReader(builder.source, entity: pair.source.name)
    do throws(ExpressionObstacle) {
      let value = try reader.value(expression)
      let fitting = try Self.value(value, for: attribute, isMarked: property.isMarked)
      used[pair.source.name, default: []].formUnion(reader.used)
      return PropertyMapping(
        property.path, .expression(.sql(fitting.sql)),
        replacesNilWithDefault: !property.isOptional && attribute.hasReadableDefault)
    } catch {
      used[pair.source.name, default: []].formUnion(reader.used)
      return refused(property, error, expression.format, record)
    }
  }

  /// The value as the destination's attribute holds it; a fraction is cut off where a whole number is wanted.
  private static func value(
    _ value: TypedExpression, for attribute: Attribute, isMarked: Bool
  ) throws(ExpressionObstacle) -> TypedExpression {
    guard let wanted = ValueType(attribute.type), !isMarked else {
      throw ExpressionObstacle("values of type \(attribute.type.sourceName) can only be copied as they are")
    }
    switch (wanted, value.type) {
    case (_, .null), (.integer, .boolean): return value
    case (.integer, .real): return value.cast(to: "INTEGER", .integer)
    case (.boolean, .integer), (.boolean, .real): return .call("", .series(value, "<>", "0"), type: .boolean)
    case (.real, .integer), (.real, .boolean):
      return attribute.type == .decimal ? value : value.cast(to: "REAL", .real)
    default:
      guard wanted == value.type else {
        throw ExpressionObstacle(
          "it gives \(value.type.word), and the attribute is of type \(attribute.type.sourceName)")
      }
      return value
    }
  }

  /// What a policy has to make; an error where there is none.
  mutating func refused(
    _ property: StoredProperty, _ obstacle: ExpressionObstacle, _ text: String, _ record: EntityRecord
  ) -> PropertyMapping {
    if !record.hasPolicy {
      refuse(obstacle, Self.expression(of: property.path), record, property.path)
    }
    return PropertyMapping(property.path, .expression(.coreData(text)))
  }

  // MARK: Looking

  /// The stored attribute of the source under a path.
  private func source(_ path: PropertyPath, of pair: InferenceBuilder.Pair) -> StoredProperty? {
    builder.source.properties[pair.source.name]?.first { $0.path == path && $0.attribute != nil }
  }

  /// A key path as that of an attribute or of a leaf of a composite one.
  private static func path(_ text: String, appending leaf: [String] = []) -> PropertyPath {
    let names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return PropertyPath(names.first ?? "", leaf: Array(names.dropFirst()) + leaf)
  }
}
