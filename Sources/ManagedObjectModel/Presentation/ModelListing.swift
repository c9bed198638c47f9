internal import Platform

/// A model as readable text, 100 columns wide by default.
public struct ModelListing: Sendable {
  /// The lines.
  public private(set) var lines: [String] = []

  private let width: Int

  /// Lists a bundle's versions and the entities of the current or given ones.
  public init(_ bundle: ModelBundle, versions: [ModelVersion]? = nil, width: Int = 100) {
    self.width = max(40, width)
    add("Model \(printable(bundle.name)): \(count(bundle.versions.count, "version"))")
    for version in bundle.versions {
      let mark = version.isCurrent ? "current" : ""
      let findings = version.mismatchedEntityNames
      row([
        ("  " + printable(version.name), min(30, max(10, width - 66))),
        (count(version.model.entities.count, "entity", "entities"), 13),
        (version.isComplete ? version.checksum : "cannot be told", 46), (mark, 7),
      ])
      if !findings.isEmpty {
        add("    ! the bundle stores other hashes for \(findings.map(printable).joined(separator: ", "))")
      }
    }
    for unreadable in bundle.unreadableVersions {
      add("  \(printable(unreadable.name))  ! unreadable: \(unreadable.error.detail) [\(unreadable.error.code)]")
    }
    for version in versions ?? [bundle.current] {
      add("")
      add(version)
    }
  }

  /// Lists one version.
  public init(_ version: ModelVersion, width: Int = 100) {
    self.width = max(40, width)
    add(version)
  }

  /// The text with a final newline.
  public var text: String { lines.map { $0 + "\n" }.joined() }

  private mutating func add(_ version: ModelVersion) {
    let model = version.model
    let identifiers = model.versionIdentifiers.filter { !$0.isEmpty }.map(printable)
    let suffix = identifiers.isEmpty ? "" : ", identifier \(identifiers.joined(separator: ", "))"
    add("Version \(printable(version.name))\(version.isCurrent ? " (current)" : "")\(suffix)")
    let roots = model.entities.values.filter { $0.parentName == nil }.map(\.name).inCodeUnitOrder()
    // Depth first, to keep hierarchies together.
    var waiting = roots.reversed().map { (name: $0, depth: 0) }
    while let (name, depth) = waiting.popLast() {
      guard let entity = model.entities[name] else { continue }
      add("")
      add(entity, depth: depth, hash: version.versionHashes[name], in: model)
      waiting += model.childNames(of: name).inCodeUnitOrder().reversed().map { ($0, depth + 1) }
    }
    if !model.configurations.isEmpty { add("") }
    for (name, members) in model.configurations.inCodeUnitOrder() {
      wrap("Configuration \(printable(name)): ", members.map(printable), indent: 2)
    }
    if !model.fetchRequests.isEmpty { add("") }
    for (name, request) in model.fetchRequests.inCodeUnitOrder() {
      add("Fetch request \(printable(name)): \(Self.text(request))")
    }
    let findings = model.validate()
    if !findings.isEmpty { add("") }
    for finding in findings { add("! \(finding.detail)") }
  }

  private mutating func add(_ entity: Entity, depth: Int, hash: VersionHash?, in model: ManagedObjectModel) {
    let indent = String(repeating: "  ", count: min(depth, 12))
    var title = indent + printable(entity.name)
    var notes: [String] = []
    if entity.isAbstract { notes.append("abstract") }
    if let parent = entity.parentName { notes.append("is a \(printable(parent))") }
    if let name = entity.className, name != entity.name { notes.append("class \(printable(name))") }
    if let identifier = entity.explicitRenamingIdentifier { notes.append("was \(printable(identifier))") }
    if let modifier = entity.versionHashModifier { notes.append("hash modifier \(printable(modifier))") }
    if !notes.isEmpty { title += " (\(notes.joined(separator: ", ")))" }
    let short = String((hash?.hex ?? "").prefix(12))
    let gap = width - title.count - short.count
    add(gap >= 2 ? title + String(repeating: " ", count: gap) + short : title + "  " + short)
    let properties = entity.properties.inCodeUnitOrder().map(\.value)
    let column = min(32, (properties.map { printable($0.name).count }.max() ?? 0) + 2)
    for attribute in properties.compactMap(\.attribute) { add(attribute, indent + "  ", column) }
    for relationship in properties.compactMap(\.relationship) {
      item(indent + "  ", relationship.name, column, Self.text(relationship))
    }
    for property in properties {
      guard case .fetchedProperty(let fetched) = property else { continue }
      item(indent + "  ", property.name, column, "fetched: \(fetched.fetchRequest.map(Self.text) ?? "nothing")")
    }
    for names in entity.uniquenessConstraints {
      add("\(indent)  unique (\(names.map(printable).joined(separator: ", ")))")
    }
    for index in entity.fetchIndexes { add("\(indent)  index \(printable(index.name)) \(Self.text(index))") }
    for names in entity.compoundIndexes {
      add("\(indent)  compound index (\(names.map(printable).joined(separator: ", ")))")
    }
    for (key, value) in entity.userInfo.inCodeUnitOrder() {
      add("\(indent)  info \(printable(key)) = \(printable(value))")
    }
  }

  private mutating func add(_ attribute: Attribute, _ indent: String, _ column: Int, mark: String = "") {
    item(indent, mark + attribute.name, column, Self.text(attribute))
    // Readers limit the nesting of composite types.
    for element in attribute.compositeElements.prefix(1000) where indent.count < 40 {
      add(element, indent + "  ", max(8, column - 2), mark: ".")
    }
  }

  private mutating func item(_ indent: String, _ name: String, _ column: Int, _ text: String) {
    let name = printable(name)
    let first = indent + name + String(repeating: " ", count: max(2, column - name.count))
    let hanging = String(repeating: " ", count: min(first.count, width / 2))
    var line = first
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let isFresh = line.count <= first.count || line == hanging
      if !isFresh, line.count + 1 + word.count > width {
        add(line)
        line = hanging + word
      } else {
        line += (line == first || line == hanging ? "" : " ") + word
      }
    }
    add(line)
  }

  private mutating func wrap(_ title: String, _ words: [String], indent: Int) {
    var line = title
    for (index, word) in words.enumerated() {
      let piece = word + (index + 1 < words.count ? "," : "")
      if line.count + 1 + piece.count > width, line != title {
        add(line)
        line = String(repeating: " ", count: indent)
      }
      line += (line.hasSuffix(" ") || line.isEmpty ? "" : " ") + piece
    }
    add(line)
  }

  private mutating func row(_ cells: [(String, Int)]) {
    var line = ""
    for (text, width) in cells {
      line += text + String(repeating: " ", count: max(text.isEmpty ? 0 : 2, width - text.count))
    }
    add(line)
  }

  private mutating func add(_ line: String) {
    var line = line
    while line.last == " " { line.removeLast() }
    lines.append(line)
  }

  private func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    number == 1 ? "1 \(one)" : "\(number) \(many ?? one + "s")"
  }
}

extension ModelListing {
  /// Returns `String? = "none", 3 to 50`.
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

  /// Returns `→ Author? (books), cascade`, with `→→` for to-many.
  static func text(_ relationship: Relationship) -> String {
    var text = (relationship.isToMany ? "→→ " : "→ ") + printable(relationship.destinationEntityName)
    if relationship.traits.isOptional { text += "?" }
    text += relationship.inverseName.map { " (\(printable($0)))" } ?? " (no inverse)"
    var notes: [String] = []
    if relationship.isOrdered { notes.append("ordered") }
    let (low, high) = (relationship.minimumCount, relationship.maximumCount)
    if relationship.isToMany, low > 0 || high > 0 { notes.append(high > 0 ? "\(low) to \(high)" : "at least \(low)") }
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
    return notes + traits.userInfo.inCodeUnitOrder().map { "info \(printable($0)) = \(printable($1))" }
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
