internal import ManagedObjectModel

struct DefaultValues {
  let options: SwiftSources.Options

  /// Values that only the app can compute have their own kind.
  func value(_ initial: SourceExpression?, for attribute: Attribute) -> AttributeValue? {
    guard let initial, initial != .null else { return nil }
    switch (attribute.type, initial) {
    case (.string, .string(let text?)): return .string(text)
    case (.boolean, .boolean(let value)): return .boolean(value)
    case (.integer16, .integer(let number?)), (.integer32, .integer(let number?)), (.integer64, .integer(let number?)):
      return .integer(number)
    case (.double, .integer(let number?)), (.float, .integer(let number?)): return .real(Double(number))
    case (.double, .real(let digits)), (.float, .real(let digits)): return Double(digits).map { .real($0) }
    case (.decimal, .integer(let number?)): return .decimal(String(number))
    case (.decimal, .real(let digits)): return .decimal(digits)
    case (.date, .call(.path(["Date"]), let arguments)) where arguments.isEmpty: return .date(options.now)
    case (.date, .path(["Date", "now"])), (.date, .implicitMember("now")): return .date(options.now)
    case (.date, .call(.implicitMember("init"), let arguments)) where arguments.isEmpty: return .date(options.now)
    case (.uuid, .call(.path(["UUID"]), let arguments)) where arguments.isEmpty: return .uuid(options.identifier)
    case (.uuid, .call(.implicitMember("init"), let arguments)) where arguments.isEmpty:
      return .uuid(options.identifier)
    case (.binary, .call(.path(["Data"]), let arguments)) where arguments.isEmpty: return .data([])
    default: return .opaque(className: attribute.valueClassName ?? attribute.type.sourceName)
    }
  }
}
