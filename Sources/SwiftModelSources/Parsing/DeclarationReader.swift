#if SwiftSources
  internal import SwiftSyntax

  /// Reads types, members, aliases and extensions, but no function bodies.
  struct DeclarationReader {
    struct Context {
      var path: [String] = []

      /// Nearest first.
      var scopes: [[String]] = []

      var undecided: String?

      var dependsOnPlatform = false

      var isFilePrivate = false
    }

    let conditions: BuildConditions
    let lines: LineTable

    private(set) var result = ParsedSource()

    mutating func read(_ statements: CodeBlockItemListSyntax, _ context: Context = Context()) {
      for statement in statements {
        guard case .decl(let declaration) = statement.item else { continue }
        if let condition = declaration.as(IfConfigDeclSyntax.self) {
          for (clause, context) in compiled(condition, context) {
            if case .statements(let statements)? = clause.elements { read(statements, context) }
          }
        } else {
          readType(declaration, context)
        }
      }
    }

    private func compiled(_ condition: IfConfigDeclSyntax, _ context: Context) -> [(IfConfigClauseSyntax, Context)] {
      var context = context
      for clause in condition.clauses {
        guard let test = clause.condition else { return [(clause, context)] }
        var evaluator = ConditionEvaluator(conditions)
        let holds = evaluator.holds(test)
        if evaluator.asksForPlatform { context.dependsOnPlatform = true }
        if holds == nil { context.undecided = String(test.trimmedDescription.prefix(80)) }
        if holds == true { return [(clause, context)] }
      }
      return []
    }

    /// Returns whether it was a type, alias or extension.
    @discardableResult private mutating func readType(_ syntax: DeclSyntax, _ context: Context) -> Bool {
      if let alias = syntax.as(TypeAliasDeclSyntax.self) {
        let kind = SourceDeclaration.Kind.alias(TypeReference(alias.initializer.value))
        var declaration = declaration(kind, alias.name, alias.modifiers, context)
        declaration.genericParameters = alias.genericParameterClause?.parameters.map(\.name.plainName) ?? []
        result.declarations.append(declaration)
        return true
      }
      if let type = syntax.as(ExtensionDeclSyntax.self) {
        readExtension(type, context)
        return true
      }
      let header: (SourceDeclaration.Kind, TokenSyntax, GenericParameterClauseSyntax?)? =
        if let type = syntax.as(ClassDeclSyntax.self) {
          (.class, type.name, type.genericParameterClause)
        } else if let type = syntax.as(StructDeclSyntax.self) {
          (.structure, type.name, type.genericParameterClause)
        } else if let type = syntax.as(EnumDeclSyntax.self) {
          (.enumeration, type.name, type.genericParameterClause)
        } else if let type = syntax.as(ActorDeclSyntax.self) {
          (.actor, type.name, type.genericParameterClause)
        } else if let type = syntax.as(ProtocolDeclSyntax.self) {
          (.protocol, type.name, nil)
        } else {
          nil
        }
      guard let header, let group = syntax.asProtocol((any DeclGroupSyntax).self) else { return false }
      var declaration = declaration(header.0, header.1, group.modifiers, context)
      declaration.attributes = attributes(group.attributes)
      declaration.inherited = Self.inherited(group)
      declaration.genericParameters = header.2?.parameters.map(\.name.plainName) ?? []
      readMembers(group.memberBlock.members, of: &declaration, context)
      return true
    }

    private static func inherited(_ group: some DeclGroupSyntax) -> [TypeReference] {
      group.inheritanceClause?.inheritedTypes.map { TypeReference($0.type) } ?? []
    }

    private func declaration(
      _ kind: SourceDeclaration.Kind, _ name: TokenSyntax, _ modifiers: DeclModifierListSyntax, _ context: Context
    ) -> SourceDeclaration {
      let path = context.path + [name.plainName]
      var declaration = SourceDeclaration(
        kind: kind, path: path, scopes: [path] + context.scopes,
        place: lines.place(of: name.positionAfterSkippingLeadingTrivia.utf8Offset))
      if case .alias = kind { declaration.scopes = context.scopes }
      declaration.undecidedCondition = context.undecided
      declaration.dependsOnPlatform = context.dependsOnPlatform
      declaration.isFilePrivate = context.isFilePrivate || Self.isFilePrivate(modifiers)
      return declaration
    }

    private static func isFilePrivate(_ modifiers: DeclModifierListSyntax) -> Bool {
      modifiers.contains { modifier in
        modifier.detail == nil
          && (modifier.name.tokenKind == .keyword(.private) || modifier.name.tokenKind == .keyword(.fileprivate))
      }
    }

    private mutating func readExtension(_ type: ExtensionDeclSyntax, _ context: Context) {
      // Extensions of generic types belong to the type.
      guard case .named(let components) = TypeReference(type.extendedType) else { return }
      let path = components.map(\.name)
      var declaration = SourceDeclaration(
        kind: .extension, path: path, scopes: [path],
        place: lines.place(of: type.extendedType.positionAfterSkippingLeadingTrivia.utf8Offset))
      declaration.inherited = Self.inherited(type)
      declaration.undecidedCondition = context.undecided
      declaration.dependsOnPlatform = context.dependsOnPlatform
      readMembers(type.memberBlock.members, of: &declaration, context)
    }

    private mutating func readMembers(
      _ members: MemberBlockItemListSyntax, of declaration: inout SourceDeclaration, _ context: Context
    ) {
      var inner = context
      inner.path = declaration.path
      inner.scopes = declaration.scopes
      inner.isFilePrivate = declaration.isFilePrivate
      var nested: [(DeclSyntax, Context)] = []
      gather(members, into: &declaration, &nested, inner)
      result.declarations.append(declaration)
      for (syntax, context) in nested { readType(syntax, context) }
    }

    private mutating func gather(
      _ members: MemberBlockItemListSyntax, into declaration: inout SourceDeclaration,
      _ nested: inout [(DeclSyntax, Context)], _ context: Context
    ) {
      for member in members {
        if let condition = member.decl.as(IfConfigDeclSyntax.self) {
          for (clause, context) in compiled(condition, context) {
            if case .decls(let members)? = clause.elements { gather(members, into: &declaration, &nested, context) }
          }
        } else if let variable = member.decl.as(VariableDeclSyntax.self) {
          declaration.properties += properties(variable, context)
        } else if let cases = member.decl.as(EnumCaseDeclSyntax.self) {
          for element in cases.elements {
            declaration.cases.append(
              SourceCase(
                name: element.name.plainName, hasAssociatedValues: element.parameterClause != nil,
                undecidedCondition: context.undecided,
                place: lines.place(of: element.name.positionAfterSkippingLeadingTrivia.utf8Offset)))
          }
        } else if let macro = member.decl.as(MacroExpansionDeclSyntax.self) {
          declaration.macros.append(
            SourceMacro(
              name: macro.macroName.plainName, arguments: SourceExpression.Argument.list(macro.arguments),
              place: lines.place(of: macro.positionAfterSkippingLeadingTrivia.utf8Offset)))
        } else {
          nested.append((member.decl, context))
        }
      }
    }

    /// Reads attributes, including those in compiled `#if` branches.
    private func attributes(_ list: AttributeListSyntax, depth: Int = 0) -> [SourceAttribute] {
      list.flatMap { element -> [SourceAttribute] in
        if case .ifConfigDecl(let condition) = element {
          guard depth < 16 else { return [] }
          return compiled(condition, Context()).flatMap { clause, _ -> [SourceAttribute] in
            if case .attributes(let inner)? = clause.elements { attributes(inner, depth: depth + 1) } else { [] }
          }
        }
        guard case .attribute(let attribute) = element,
          case .named(let components) = TypeReference(attribute.attributeName), let last = components.last
        else { return [] }
        guard case .argumentList(let arguments)? = attribute.arguments else {
          return [SourceAttribute(name: last.name)]
        }
        return [SourceAttribute(name: last.name, arguments: SourceExpression.Argument.list(arguments))]
      }
    }

    // MARK: Properties

    private func properties(_ variable: VariableDeclSyntax, _ context: Context) -> [SourceProperty] {
      let attributes = attributes(variable.attributes)
      let modifiers = variable.modifiers.filter { $0.detail == nil }.map(\.name.text)
      var properties: [SourceProperty] = []
      // In `var a, b: Int` the type applies to both.
      var laterType: TypeReference?
      for binding in variable.bindings.reversed() {
        if let annotation = binding.typeAnnotation {
          laterType = TypeReference(annotation.type)
        } else if binding.initializer != nil {
          laterType = nil
        }
        let initial = binding.initializer.map { SourceExpression($0.value) }
        let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainName
        properties.append(
          SourceProperty(
            name: name ?? "", isConstant: variable.bindingSpecifier.tokenKind == .keyword(.let),
            type: laterType, initialValue: initial, isComputed: Self.isComputed(binding.accessorBlock),
            isStatic: modifiers.contains("static") || modifiers.contains("class"), isLazy: modifiers.contains("lazy"),
            attributes: attributes, returned: Self.returned(binding.accessorBlock),
            undecidedCondition: context.undecided, dependsOnPlatform: context.dependsOnPlatform,
            place: lines.place(of: binding.pattern.positionAfterSkippingLeadingTrivia.utf8Offset)))
      }
      return properties.reversed()
    }

    private static func isComputed(_ block: AccessorBlockSyntax?) -> Bool {
      guard let accessors = block?.accessors else { return false }
      guard case .accessors(let list) = accessors else { return true }
      return !list.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
    }

    private static func returned(_ block: AccessorBlockSyntax?) -> SourceExpression? {
      var statements: CodeBlockItemListSyntax?
      if case .getter(let own)? = block?.accessors { statements = own }
      if case .accessors(let list)? = block?.accessors {
        statements = list.first { $0.accessorSpecifier.text == "get" }?.body?.statements
      }
      guard let statements, statements.count == 1, let only = statements.first else { return nil }
      if case .expr(let expression) = only.item { return SourceExpression(expression) }
      guard case .stmt(let statement) = only.item else { return nil }
      return statement.as(ReturnStmtSyntax.self)?.expression.map { SourceExpression($0) }
    }
  }

  /// Evaluates `#if`; nil if undecidable.
  struct ConditionEvaluator {
    let conditions: BuildConditions

    private(set) var asksForPlatform = false

    init(_ conditions: BuildConditions) { self.conditions = conditions }

    mutating func holds(_ syntax: ExprSyntax, depth: Int = 0) -> Bool? {
      guard depth < 64 else { return nil }
      if let value = syntax.as(BooleanLiteralExprSyntax.self) { return value.literal.tokenKind == .keyword(.true) }
      if let name = syntax.as(DeclReferenceExprSyntax.self) {
        return conditions.flags.contains(name.baseName.plainName) ? true : nil
      }
      if let tuple = syntax.as(TupleExprSyntax.self), tuple.elements.count == 1, let only = tuple.elements.first {
        return holds(only.expression, depth: depth + 1)
      }
      if let prefix = syntax.as(PrefixOperatorExprSyntax.self), prefix.operator.text == "!" {
        return holds(prefix.expression, depth: depth + 1).map { !$0 }
      }
      if let call = syntax.as(FunctionCallExprSyntax.self) { return test(call) }
      if let sequence = syntax.as(SequenceExprSyntax.self) { return self.sequence(sequence, depth) }
      return nil
    }

    /// `a || b && c`: `&&` binds tighter.
    private mutating func sequence(_ sequence: SequenceExprSyntax, _ depth: Int) -> Bool? {
      var anyOf: [[Bool?]] = [[]]
      for element in sequence.elements {
        if let binary = element.as(BinaryOperatorExprSyntax.self) {
          switch binary.operator.text {
          case "||": anyOf.append([])
          case "&&": break
          default: return nil
          }
        } else {
          anyOf[anyOf.count - 1].append(holds(element, depth: depth + 1))
        }
      }
      let values: [Bool?] = anyOf.map { allOf in allOf.contains(false) ? false : allOf.contains(nil) ? nil : true }
      return values.contains(true) ? true : values.contains(nil) ? nil : false
    }

    private mutating func test(_ call: FunctionCallExprSyntax) -> Bool? {
      guard let name = call.calledExpression.as(DeclReferenceExprSyntax.self)?.baseName.plainName else { return nil }
      let argument = call.arguments.first?.expression.trimmedDescription ?? ""
      switch name {
      case "os":
        asksForPlatform = true
        return argument == conditions.platform.rawValue
      case "canImport": return canImport(argument)
      case "targetEnvironment": return false
      // Compilers with SwiftData are newer than any practical check.
      case "swift", "compiler": return argument.hasPrefix(">=") ? true : argument.hasPrefix("<") ? false : nil
      default: return nil
      }
    }

    private mutating func canImport(_ module: String) -> Bool? {
      let everywhere: Set<String> = [
        "Foundation", "SwiftData", "SwiftUI", "CoreData", "Observation", "Combine", "CloudKit", "CoreLocation", "Swift",
        "Darwin", "CoreGraphics", "os", "OSLog", "CryptoKit",
      ]
      if everywhere.contains(module) { return true }
      if module == "Glibc" || module == "Musl" || module == "Android" { return false }
      let platforms: [String: Set<SourcePlatform>] = [
        "UIKit": [.iOS, .tvOS, .visionOS, .watchOS], "AppKit": [.macOS], "Cocoa": [.macOS], "WatchKit": [.watchOS],
      ]
      guard let known = platforms[module] else { return nil }
      asksForPlatform = true
      return known.contains(conditions.platform)
    }
  }
#endif
