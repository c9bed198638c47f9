#if SwiftSources
  internal import SwiftParser
  internal import SwiftSyntax

  extension SourceExpression {
    /// Excessive nesting yields `other`.
    init(_ syntax: ExprSyntax, depth: Int = 0) {
      guard depth < 64 else {
        self = .other
        return
      }
      self = Self.literal(syntax, depth) ?? Self.reference(syntax, depth) ?? Self.compound(syntax, depth) ?? .other
    }

    private static func literal(_ syntax: ExprSyntax, _ depth: Int) -> SourceExpression? {
      if let text = syntax.as(StringLiteralExprSyntax.self) { return .string(text.representedLiteralValue) }
      if let number = syntax.as(IntegerLiteralExprSyntax.self) { return .integer(integer(number.literal.text)) }
      if let number = syntax.as(FloatLiteralExprSyntax.self) { return .real(number.literal.text.filter { $0 != "_" }) }
      if let value = syntax.as(BooleanLiteralExprSyntax.self) {
        return .boolean(value.literal.tokenKind == .keyword(.true))
      }
      if syntax.is(NilLiteralExprSyntax.self) { return .null }
      if let array = syntax.as(ArrayExprSyntax.self) {
        return .array(array.elements.map { SourceExpression($0.expression, depth: depth + 1) })
      }
      if let dictionary = syntax.as(DictionaryExprSyntax.self) {
        guard case .elements(let elements) = dictionary.content else { return .dictionary([], []) }
        return .dictionary(
          elements.map { SourceExpression($0.key, depth: depth + 1) },
          elements.map { SourceExpression($0.value, depth: depth + 1) })
      }
      return nil
    }

    private static func integer(_ text: String) -> Int64? {
      let digits = text.filter { $0 != "_" }
      let bases: [(prefix: String, radix: Int)] = [("0x", 16), ("0b", 2), ("0o", 8)]
      if let base = bases.first(where: { digits.hasPrefix($0.prefix) }) {
        return Int64(digits.dropFirst(2), radix: base.radix)
      }
      return Int64(digits)
    }

    private static func reference(_ syntax: ExprSyntax, _ depth: Int) -> SourceExpression? {
      if let name = syntax.as(DeclReferenceExprSyntax.self) { return .path([name.baseName.plainName]) }
      if let member = syntax.as(MemberAccessExprSyntax.self) { return Self.member(member, depth) }
      if let keyPath = syntax.as(KeyPathExprSyntax.self) {
        var names: [String] = []
        for component in keyPath.components {
          switch component.component {
          case .property(let property): names.append(property.declName.baseName.plainName)
          case .optional: break
          default: return .other
          }
        }
        return .keyPath(keyPath.root.map { TypeReference($0) }, names)
      }
      if let type = syntax.as(TypeExprSyntax.self) { return .type(TypeReference(type.type)) }
      if let generic = syntax.as(GenericSpecializationExprSyntax.self) { return specialized(generic, depth) }
      return nil
    }

    private static func member(_ member: MemberAccessExprSyntax, _ depth: Int) -> SourceExpression {
      // Without recursion, since chains are unlimited.
      var names: [String] = []
      var next = member
      var base: ExprSyntax?
      while true {
        names.append(next.declName.baseName.plainName)
        guard let inner = next.base else { break }
        guard let more = inner.as(MemberAccessExprSyntax.self) else {
          base = inner
          break
        }
        next = more
      }
      guard names.count <= 32 else { return .other }
      names.reverse()
      let isMetatype = member.declName.baseName.tokenKind == .keyword(.self)
      if isMetatype { names.removeLast() }
      guard let base else { return names.count == 1 && !isMetatype ? .implicitMember(names[0]) : .other }
      var result = SourceExpression(base, depth: depth + 1)
      if case .path(let first) = result {
        result = .path(first + names)
      } else {
        for name in names.prefix(16) { result = .member(result, name) }
        if names.count > 16 { return .other }
      }
      guard isMetatype else { return result }
      return result.typeReference.map { .metatype($0) } ?? .other
    }

    private static func specialized(_ generic: GenericSpecializationExprSyntax, _ depth: Int) -> SourceExpression {
      guard case .path(let names) = SourceExpression(generic.expression, depth: depth + 1), let last = names.last
      else { return .other }
      let arguments = generic.genericArgumentClause.arguments.map { argument -> TypeReference in
        guard case .type(let type) = argument.argument else { return .other("a value") }
        return TypeReference(type)
      }
      return .type(
        .normalized(
          names.dropLast().map { TypeReference.Component(name: $0) } + [
            TypeReference.Component(name: last, arguments: arguments)
          ]))
    }

    private static func compound(_ syntax: ExprSyntax, _ depth: Int) -> SourceExpression? {
      func inner(_ syntax: ExprSyntax) -> SourceExpression { SourceExpression(syntax, depth: depth + 1) }
      if let call = syntax.as(FunctionCallExprSyntax.self) { return Self.call(call, depth) }
      if let tuple = syntax.as(TupleExprSyntax.self), tuple.elements.count == 1, let only = tuple.elements.first {
        return inner(only.expression)
      }
      if let forced = syntax.as(ForceUnwrapExprSyntax.self) { return .member(inner(forced.expression), "!") }
      if let tried = syntax.as(TryExprSyntax.self) {
        return tried.questionOrExclamationMark?.tokenKind == .postfixQuestionMark ? .other : inner(tried.expression)
      }
      if let sequence = syntax.as(SequenceExprSyntax.self) { return Self.sequence(sequence, depth) }
      if let prefix = syntax.as(PrefixOperatorExprSyntax.self) {
        let value = inner(prefix.expression)
        switch (prefix.operator.text, value) {
        case ("-", .integer(let number)): return .integer(number.map { -$0 })
        case ("-", .real(let digits)): return .real("-\(digits)")
        case ("+", _), ("-", _): return value
        case ("!", _): return .cast(.path(["Bool"]))
        default: return .other
        }
      }
      return nil
    }

    private static func call(_ call: FunctionCallExprSyntax, _ depth: Int) -> SourceExpression {
      // A called closure has only a written type.
      if let closure = call.calledExpression.as(ClosureExprSyntax.self) {
        return closure.signature?.returnClause.map { .cast(TypeReference($0.type)) } ?? .other
      }
      return .call(
        SourceExpression(call.calledExpression, depth: depth + 1), Argument.list(call.arguments, depth: depth + 1))
    }

    private static func sequence(_ sequence: SequenceExprSyntax, _ depth: Int) -> SourceExpression {
      var operands: [SourceExpression] = []
      var operators: [String] = []
      var isCast = false
      for element in sequence.elements {
        if let binary = element.as(BinaryOperatorExprSyntax.self) {
          operators.append(binary.operator.text)
        } else if let ternary = element.as(UnresolvedTernaryExprSyntax.self) {
          // In `a ? b : c`, b and c decide the type.
          operands = [SourceExpression(ternary.thenExpression, depth: depth + 1)]
          operators = ["?:"]
        } else if let cast = element.as(UnresolvedAsExprSyntax.self) {
          isCast = true
          operators.append(cast.questionOrExclamationMark?.tokenKind == .postfixQuestionMark ? "as?" : "as")
        } else if isCast, operators.count == 1, let type = element.as(TypeExprSyntax.self) {
          let type = TypeReference(type.type)
          return .cast(operators[0] == "as?" ? .optional(type) : type)
        } else {
          operands.append(SourceExpression(element, depth: depth + 1))
        }
        guard operands.count < 256 else { return .other }
      }
      return .operators(operands, operators)
    }
  }

  extension SourceExpression.Argument {
    static func list(_ syntax: LabeledExprListSyntax, depth: Int = 0) -> [SourceExpression.Argument] {
      syntax.map { argument in
        SourceExpression.Argument(
          label: argument.label?.plainName, value: SourceExpression(argument.expression, depth: depth))
      }
    }
  }

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
