internal import ManagedObjectModel
internal import StoreFiles

extension ModelListing {
  /// What an attribute is: `String? = "none", 3 to 50`.
  static func text(_ attribute: Attribute) -> String {
    var text = attribute.type.sourceName + (attribute.traits.isOptional ? "?" : "")
    if let name = attribute.compositeTypeName { text += " \(printable(name))" }
    if let value = attribute.defaultValue { text += " = \(literal(value))" }
    var notes: [String] = []
    if let expression = attribute.derivationExpression { notes.append("derived from \(printable(expression))") }
    if let filter = attribute.filteringPredicate { notes.append("where \(printable(filter))") }
    switch (attribute.minimumValue, attribute.maximumValue) {
    case (let low?, let high?): notes.append("\(printable(low)) to \(printable(high))")
    case (let low?, nil): notes.append("at least \(printable(low))")
    case (nil, let high?): notes.append("at most \(printable(high))")
    case (nil, nil): break
    }
    if let pattern = attribute.regularExpression { notes.append("matches \(printable(pattern))") }
    notes += attribute.validationPredicates.map { "must be \(printable($0))" }
    if let name = attribute.valueClassName, name != attribute.type.valueClassName {
      notes.append("class \(printable(name))")
    }
    if let name = attribute.valueTransformerName { notes.append("transformer \(printable(name))") }
    if attribute.allowsExternalBinaryDataStorage { notes.append("may lie beside the store") }
    if attribute.preservesValueInHistoryOnDeletion { notes.append("kept in history") }
    return ([text] + notes + common(attribute.traits)).joined(separator: ", ")
  }

  /// What a relationship is: `→ Author? (books), cascade`, with `→→` for a to-many one.
  static func text(_ relationship: Relationship) -> String {
    var text = (relationship.isToMany ? "→→ " : "→ ") + printable(relationship.destinationEntityName)
    if relationship.traits.isOptional { text += "?" }
    text += relationship.inverseName.map { " (\(printable($0)))" } ?? " (no inverse)"
    var notes: [String] = []
    if relationship.isOrdered { notes.append("ordered") }
    let (low, high) = (relationship.minimumCount, relationship.maximumCount)
    if relationship.isToMany, low > 0 || high > 0 {
      notes.append(high > 0 ? "\(low) to \(high)" : "at least \(low)")
    }
    notes.append(relationship.deleteRule == .noAction ? "no action" : relationship.deleteRule.word)
    return ([text] + notes + common(relationship.traits)).joined(separator: ", ")
  }

  static func text(_ request: FetchRequestTemplate) -> String {
    printable(request.entityName) + (request.predicateFormat.map { " where \(printable($0))" } ?? "")
  }

  static func text(_ index: FetchIndex) -> String {
    let columns = index.elements.map { element in
      let name = element.propertyName ?? element.expression ?? "?"
      return printable(name) + (element.kind == .rTree ? " r-tree" : "") + (element.isAscending ? "" : " descending")
    }
    let filter = index.partialIndexPredicate.map { " where \(printable($0))" } ?? ""
    return "(\(columns.joined(separator: ", ")))\(filter)"
  }

  private static func common(_ traits: PropertyTraits) -> [String] {
    var notes: [String] = []
    if traits.isTransient { notes.append("transient") }
    if traits.isIndexed { notes.append("indexed") }
    if traits.isIndexedBySpotlight { notes.append("in Spotlight") }
    if traits.isStoredInExternalRecord { notes.append("in an external record") }
    if traits.allowsCloudEncryption { notes.append("encrypted in the cloud") }
    if let identifier = traits.explicitRenamingIdentifier { notes.append("was \(printable(identifier))") }
    if let modifier = traits.versionHashModifier { notes.append("hash modifier \(printable(modifier))") }
    for key in traits.userInfo.keys.inCodeUnitOrder() {
      notes.append("info \(printable(key)) = \(printable(traits.userInfo[key] ?? ""))")
    }
    return notes
  }

  private static func literal(_ value: AttributeValue) -> String {
    switch value {
    case .string(let text): "\"\(printable(text))\""
    case .date(let seconds): "\(numberFormat(seconds)) s since 2001"
    case .data(let bytes): "\(bytes.count) bytes"
    case .integer, .real, .decimal, .boolean, .uuid, .uri, .opaque: printable(value.plainText)
    }
  }
}
