#if SwiftSources
  internal import SwiftSyntax

  extension TypeReference {
    /// Excessive nesting yields `other`.
    init(_ syntax: TypeSyntax, depth: Int = 0) {
      guard depth < 64 else {
        self = .other("a type that is nested too deeply")
        return
      }
      if let type = syntax.as(IdentifierTypeSyntax.self) {
        self = Self.normalized([Component(type.name, type.genericArgumentClause, depth)])
      } else if let type = syntax.as(MemberTypeSyntax.self) {
        self = Self.member(type, depth)
      } else if let type = syntax.as(OptionalTypeSyntax.self) {
        self = .optional(TypeReference(type.wrappedType, depth: depth + 1))
      } else if let type = syntax.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
        self = .optional(TypeReference(type.wrappedType, depth: depth + 1))
      } else if let type = syntax.as(ArrayTypeSyntax.self) {
        self = .array(TypeReference(type.element, depth: depth + 1))
      } else if let type = syntax.as(DictionaryTypeSyntax.self) {
        self = .dictionary(TypeReference(type.key, depth: depth + 1), TypeReference(type.value, depth: depth + 1))
      } else if let type = syntax.as(TupleTypeSyntax.self), type.elements.count == 1, let only = type.elements.first,
        only.firstName == nil, only.ellipsis == nil
      {
        self = TypeReference(only.type, depth: depth + 1)
      } else if let type = syntax.as(SomeOrAnyTypeSyntax.self) {
        self = TypeReference(type.constraint, depth: depth + 1)
      } else if let type = syntax.as(AttributedTypeSyntax.self) {
        self = TypeReference(type.baseType, depth: depth + 1)
      } else if let type = syntax.as(MetatypeTypeSyntax.self) {
        self = .other("\(TypeReference(type.baseType, depth: depth + 1).text).Type")
      } else {
        self = .other(Self.words(syntax))
      }
    }

    /// Describes a type that models cannot have.
    private static func words(_ syntax: TypeSyntax) -> String {
      switch syntax.kind {
      case .tupleType: "a tuple"
      case .functionType: "a function"
      case .compositionType: "a composition of protocols"
      default: "a type that is not read"
      }
    }

    /// Without recursion, since `A.B<C>.D` may be of any length.
    private static func member(_ type: MemberTypeSyntax, _ depth: Int) -> TypeReference {
      var components: [Component] = []
      var next = TypeSyntax(type)
      while let member = next.as(MemberTypeSyntax.self) {
        components.append(Component(member.name, member.genericArgumentClause, depth))
        next = member.baseType
      }
      guard let first = next.as(IdentifierTypeSyntax.self) else { return .other("a type that is not read") }
      components.append(Component(first.name, first.genericArgumentClause, depth))
      guard components.count <= 32 else { return .other("a type that is nested too deeply") }
      return normalized(components.reversed())
    }
  }

  extension TypeReference.Component {
    fileprivate init(_ name: TokenSyntax, _ clause: GenericArgumentClauseSyntax?, _ depth: Int) {
      self.init(
        name: name.plainName,
        arguments: clause?.arguments.map { argument in
          guard case .type(let type) = argument.argument else { return .other("a value") }
          return TypeReference(type, depth: depth + 1)
        } ?? [])
    }
  }

  extension TokenSyntax {
    var plainName: String {
      let text = text
      return text.count > 2 && text.hasPrefix("`") && text.hasSuffix("`") ? String(text.dropFirst().dropLast()) : text
    }
  }
#endif
