/// An attribute such as `@Attribute(.unique)`.
struct SourceAttribute: Hashable, Sendable {
  /// `Model` for `@SwiftData.Model`.
  var name: String

  var arguments: [SourceExpression.Argument] = []
}

struct SourceProperty: Sendable {
  var name: String

  var isConstant: Bool

  var type: TypeReference?

  var initialValue: SourceExpression?

  var isComputed: Bool

  var isStatic: Bool

  var isLazy: Bool

  var attributes: [SourceAttribute]

  /// A getter's single expression, as in `static var models: … { [A.self] }`.
  var returned: SourceExpression?

  /// The enclosing undecidable `#if` condition.
  var undecidedCondition: String?

  var dependsOnPlatform: Bool

  var place: SourcePlace

  /// Whether instances store it.
  var isOfInstance: Bool { !isComputed && !isStatic }

  /// The expression that it has: that of its getter, else the initial one.
  var value: SourceExpression? { returned ?? initialValue }

  func attribute(_ name: String) -> SourceAttribute? { attributes.first { $0.name == name } }
}

struct SourceCase: Sendable {
  var name: String

  var hasAssociatedValues: Bool

  var undecidedCondition: String?

  var place: SourcePlace
}

/// `#Unique` or `#Index`.
struct SourceMacro: Sendable {
  var name: String

  var arguments: [SourceExpression.Argument]

  var place: SourcePlace
}

/// A type, an alias or an extension.
struct SourceDeclaration: Sendable {
  enum Kind: Hashable, Sendable {
    case `class`, structure, enumeration, actor, `protocol`
    case alias(TypeReference)
    case `extension`
  }

  var kind: Kind

  /// From the outermost type; an extension has its type's.
  var path: [String]

  /// The lookup contexts, nearest first.
  var scopes: [[String]]

  var attributes: [SourceAttribute] = []

  /// The written superclass and protocols.
  var inherited: [TypeReference] = []

  var genericParameters: [String] = []

  var properties: [SourceProperty] = []

  var cases: [SourceCase] = []

  var macros: [SourceMacro] = []

  var isFilePrivate = false

  var undecidedCondition: String?

  var dependsOnPlatform = false

  var place: SourcePlace

  var name: String { path.last ?? "" }

  func attribute(_ name: String) -> SourceAttribute? { attributes.first { $0.name == name } }

  /// Equal for copies of a declaration.
  var shape: [String] {
    var shape = ["\(kind)", genericParameters.joined(separator: ","), attributes.map(\.name).joined(separator: ",")]
    shape.append(inherited.map(\.text).joined(separator: ","))
    for property in properties where property.isOfInstance {
      let initial = property.type == nil ? "\(property.initialValue.map { "\($0)" } ?? "")" : ""
      shape.append("\(property.name): \(property.type?.text ?? "") \(initial) \(property.attributes)")
    }
    return shape + cases.map { "\($0.name) \($0.hasAssociatedValues)" } + macros.map { "\($0.name) \($0.arguments)" }
  }

  /// Whether it is a SwiftData model class.
  var isModel: Bool { kind == .class && attribute("Model") != nil }
}

struct SourceRoots: Sendable {
  /// The list of types, or an expression for it.
  var models: SourceExpression

  var versionedSchema: TypeReference?

  var migrationPlan: TypeReference?

  var scopes: [[String]]

  /// Whether it belongs to a preview, a test or an in-memory store.
  var isAside: Bool

  var place: SourcePlace
}

/// An expression, as far as readable without a compiler.
indirect enum SourceExpression: Hashable, Sendable {
  struct Argument: Hashable, Sendable {
    var label: String?

    var value: SourceExpression
  }

  /// Nil with interpolations.
  case string(String?)

  /// Nil beyond 64 bits.
  case integer(Int64?)

  /// With fraction or exponent.
  case real(String)
  case boolean(Bool)
  case null
  case array([SourceExpression])
  case dictionary([SourceExpression], [SourceExpression])

  /// `Kind.small`.
  case path([String])

  /// `.small`.
  case implicitMember(String)

  case metatype(TypeReference)

  /// `\T.a.b`, with an optional type.
  case keyPath(TypeReference?, [String])

  case call(SourceExpression, [Argument])

  /// `Date().description`.
  case member(SourceExpression, String)

  /// `[Int]` in `[Int]()`, `Set<String>`.
  case type(TypeReference)

  /// `value as T`.
  case cast(TypeReference)

  /// Operands and the operators between them.
  case operators([SourceExpression], [String])

  case other

  /// The type in `T.self` and `[T]()`.
  var typeReference: TypeReference? {
    switch self {
    case .path(let names): .normalized(names.map { TypeReference.Component(name: $0) })
    case .type(let type): type
    case .array(let elements) where elements.count == 1: elements[0].typeReference.map { .array($0) }
    case .dictionary(let keys, let values) where keys.count == 1:
      keys[0].typeReference.flatMap { key in values[0].typeReference.map { .dictionary(key, $0) } }
    default: nil
    }
  }
}

// MARK: Types

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
