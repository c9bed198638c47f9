/// An attribute of a declaration: `@Attribute(.unique)`.
struct SourceAttribute: Hashable, Sendable {
  /// The last name of its path: `Model` for `@SwiftData.Model`.
  var name: String

  /// The arguments; empty for none.
  var arguments: [SourceExpression.Argument] = []
}

/// A property that a type declares.
struct SourceProperty: Sendable {
  /// The name, without back quotes.
  var name: String

  /// Whether it is declared with `let`.
  var isConstant: Bool

  /// The type, where one is written.
  var type: TypeReference?

  /// The initial value, where there is one.
  var initialValue: SourceExpression?

  /// Whether it has no storage.
  var isComputed: Bool

  /// Whether it belongs to the type and not to its values.
  var isStatic: Bool

  /// Whether it is declared lazy.
  var isLazy: Bool

  var attributes: [SourceAttribute]

  /// What its getter returns, where that is one expression; for `static var models: … { [A.self] }`.
  var returned: SourceExpression?

  /// The condition of compilation that could not be told, which it stands under.
  var undecidedCondition: String?

  /// Whether a condition on the platform decides whether it is there.
  var dependsOnPlatform: Bool

  var place: SourcePlace

  /// The attribute of that name.
  func attribute(_ name: String) -> SourceAttribute? { attributes.first { $0.name == name } }
}

/// A case of an enumeration.
struct SourceCase: Sendable {
  /// The name, without back quotes.
  var name: String

  /// Whether it has associated values.
  var hasAssociatedValues: Bool

  /// The condition of compilation that could not be told, which it stands under.
  var undecidedCondition: String?

  var place: SourcePlace
}

/// `#Unique` or `#Index` in a class.
struct SourceMacro: Sendable {
  /// The name, without the number sign.
  var name: String

  var arguments: [SourceExpression.Argument]

  var place: SourcePlace
}

/// A type, an alias of one, or an extension.
struct SourceDeclaration: Sendable {
  enum Kind: Hashable, Sendable {
    case `class`
    case structure
    case enumeration
    case actor
    case `protocol`
    case alias(TypeReference)
    case `extension`
  }

  var kind: Kind

  /// The names from the outermost type to this one; the extended type's for an extension.
  var path: [String]

  /// The contexts in which its names are looked up, the nearest first; its own members are one.
  var scopes: [[String]]

  var attributes: [SourceAttribute] = []

  /// What it inherits from and conforms to, as written.
  var inherited: [TypeReference] = []

  /// The names of its generic parameters.
  var genericParameters: [String] = []

  var properties: [SourceProperty] = []

  /// The cases of an enumeration, in order.
  var cases: [SourceCase] = []

  /// `#Unique` and `#Index`.
  var macros: [SourceMacro] = []

  /// Whether it is visible in its own file alone.
  var isFilePrivate = false

  /// The condition of compilation that could not be told, which it stands under.
  var undecidedCondition: String?

  /// Whether a condition on the platform decides whether it is there.
  var dependsOnPlatform = false

  var place: SourcePlace

  /// The last of its names.
  var name: String { path.last ?? "" }

  /// The attribute of that name.
  func attribute(_ name: String) -> SourceAttribute? { attributes.first { $0.name == name } }

  /// What of it decides what is stored; equal for copies of one declaration.
  var shape: [String] {
    var shape = ["\(kind)", genericParameters.joined(separator: ","), attributes.map(\.name).joined(separator: ",")]
    shape.append(inherited.map(\.text).joined(separator: ","))
    for property in properties where !property.isComputed && !property.isStatic {
      let initial = property.type == nil ? "\(property.initialValue.map { "\($0)" } ?? "")" : ""
      shape.append("\(property.name): \(property.type?.text ?? "") \(initial) \(property.attributes)")
    }
    return shape + cases.map { "\($0.name) \($0.hasAssociatedValues)" } + macros.map { "\($0.name) \($0.arguments)" }
  }

  /// Whether it is a class that SwiftData makes an entity of.
  var isModel: Bool { kind == .class && attribute("Model") != nil }
}

/// Types that an app gives to a container or a schema.
struct SourceRoots: Sendable {
  /// The list of types, or what stands for one.
  var models: SourceExpression

  /// The `VersionedSchema` that the schema was made from, where it was made from one.
  var versionedSchema: TypeReference?

  /// The migration plan, where one is given.
  var migrationPlan: TypeReference?

  /// The contexts in which the names are looked up.
  var scopes: [[String]]

  /// Whether it is in a preview, in a test, or for a store in memory.
  var isAside: Bool

  var place: SourcePlace
}

/// A place in a source file.
public struct SourcePlace: Sendable, Hashable {
  /// The file, as it was named or found.
  public var file: String

  /// The line, from 1.
  public var line: Int

  /// The byte within the line, from 1.
  public var column: Int
}

extension SourcePlace: Comparable {
  /// By file, then by line and column.
  public static func < (first: SourcePlace, second: SourcePlace) -> Bool {
    (first.file, first.line, first.column) < (second.file, second.line, second.column)
  }
}

/// An expression as far as its type, its value or what it names can be told without a compiler.
indirect enum SourceExpression: Hashable, Sendable {
  /// An argument of a call, an attribute or a macro.
  struct Argument: Hashable, Sendable {
    /// The label, where it has one.
    var label: String?

    var value: SourceExpression
  }

  /// Text; nil where it has interpolations.
  case string(String?)

  /// A whole number; nil where it is larger than 64 bits.
  case integer(Int64?)

  /// A number with a fraction or an exponent, as digits.
  case real(String)
  case boolean(Bool)
  case null
  case array([SourceExpression])
  case dictionary([SourceExpression], [SourceExpression])

  /// A name, or names with dots between, that begins with a name: `Kind.small`.
  case path([String])

  /// A member of a type that is not named: `.small`.
  case implicitMember(String)

  /// `T.self`.
  case metatype(TypeReference)

  /// `\T.a.b`, with the type where it is named.
  case keyPath(TypeReference?, [String])

  case call(SourceExpression, [Argument])

  /// A member of something that is no path: `Date().description`.
  case member(SourceExpression, String)

  /// A type that is written as an expression: `[Int]` in `[Int]()`, `Set<String>`.
  case type(TypeReference)

  /// `value as T`, whatever the value is.
  case cast(TypeReference)

  /// Operands of operators, in order, with the operators between.
  case operators([SourceExpression], [String])

  case other
}
