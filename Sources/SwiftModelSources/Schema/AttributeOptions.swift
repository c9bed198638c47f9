struct AttributeOptions {
  private(set) var isUnique = false
  private(set) var isExternal = false
  private(set) var isPreserved = false
  private(set) var isEphemeral = false
  private(set) var isIndexedBySpotlight = false
  private(set) var allowsCloudEncryption = false

  private(set) var transformer: String?

  private(set) var unknown: [String] = []

  init(_ arguments: [SourceExpression.Argument]) {
    for argument in arguments where argument.label == nil || argument.label == "options" { read(argument.value) }
  }

  private mutating func read(_ value: SourceExpression) {
    switch value {
    case .implicitMember(let name): set(name)
    case .path(let names): set(names.last ?? "")
    case .call(.implicitMember("transformable"), let arguments): transform(arguments)
    case .call(.path(let names), let arguments) where names.last == "transformable": transform(arguments)
    case .array(let values): for value in values { read(value) }
    default: unknown.append("that is no plain name")
    }
  }

  private mutating func set(_ name: String) {
    switch name {
    case "unique": isUnique = true
    case "externalStorage": isExternal = true
    case "preserveValueOnDeletion": isPreserved = true
    case "ephemeral": isEphemeral = true
    case "spotlight": isIndexedBySpotlight = true
    case "allowsCloudEncryption": allowsCloudEncryption = true
    default: unknown.append(".\(name)")
    }
  }

  private mutating func transform(_ arguments: [SourceExpression.Argument]) {
    switch arguments.first?.value {
    case .metatype(let type)?: transformer = type.text
    case .string(let name?)?: transformer = name
    default: transformer = "NSSecureUnarchiveFromData"
    }
  }
}
