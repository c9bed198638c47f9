/// A type as written, before lookup.
indirect enum TypeReference: Hashable, Sendable {
  struct Component: Hashable, Sendable {
    var name: String

    var arguments: [TypeReference] = []
  }

  case named([Component])

  /// `T?`, `T!`, `Optional<T>`.
  case optional(TypeReference)

  /// `[T]`, `Array<T>`.
  case array(TypeReference)

  case set(TypeReference)

  /// `[K: V]`, `Dictionary<K, V>`.
  case dictionary(TypeReference, TypeReference)

  /// A type that models cannot have, such as a tuple, function or protocol.
  case other(String)

  static func path(_ names: [String]) -> TypeReference { .named(names.map { Component(name: $0) }) }

  var text: String {
    switch self {
    case .named(let components):
      components.map { component in
        component.arguments.isEmpty
          ? component.name : "\(component.name)<\(component.arguments.map(\.text).joined(separator: ", "))>"
      }.joined(separator: ".")
    case .optional(let wrapped): "\(wrapped.text)?"
    case .array(let element): "[\(element.text)]"
    case .set(let element): "Set<\(element.text)>"
    case .dictionary(let key, let value): "[\(key.text): \(value.text)]"
    case .other(let text): text
    }
  }

  /// The non-optional type, and whether it was optional.
  var unwrapped: (type: TypeReference, isOptional: Bool) {
    var type = self
    var isOptional = false
    while case .optional(let wrapped) = type {
      type = wrapped
      isOptional = true
    }
    return (type, isOptional)
  }

  /// Nil with generic arguments.
  var names: [String]? {
    guard case .named(let components) = self, components.allSatisfy(\.arguments.isEmpty) else { return nil }
    return components.map(\.name)
  }

  /// Converts `Swift.Optional<T>` to `T?`, `Array<T>` to `[T]`.
  static func normalized(_ components: [Component]) -> TypeReference {
    var rest = components[...]
    // A class may share a built-in type's name, which then needs its module.
    let isPlain = rest.count == 2 && rest.last.map { PrimitiveTypes.all[$0.name] != nil } == true
    if rest.count > 1, let first = rest.first, first.arguments.isEmpty, moduleNames.contains(first.name),
      !isPlain || !["Swift", "Foundation"].contains(first.name)
    {
      rest = rest.dropFirst()
    }
    if rest.count == 1, let only = rest.first {
      switch (only.name, only.arguments.count) {
      case ("Optional", 1): return .optional(only.arguments[0])
      case ("Array", 1): return .array(only.arguments[0])
      case ("Set", 1): return .set(only.arguments[0])
      case ("Dictionary", 2): return .dictionary(only.arguments[0], only.arguments[1])
      default: break
      }
    }
    return .named(Array(rest))
  }

  private static let moduleNames: Set<String> = [
    "Swift", "Foundation", "FoundationEssentials", "SwiftUI", "SwiftData", "CoreGraphics", "CoreLocation", "UIKit",
    "AppKit", "CoreFoundation",
  ]
}
