import Platform

#if SwiftSources
  internal import SwiftParser
  internal import SwiftSyntax

  enum SourceParser {
    /// Real code has a dozen levels.
    private static let maximumNestingLevel = 128

    static func parse(_ bytes: [UInt8], file: String, conditions: BuildConditions, isAside: Bool) -> ParsedSource {
      guard SourceScan.isBounded(bytes) else {
        var result = ParsedSource()
        result.findings.add(
          .unreadableSource, .warning, at: SourcePlace(file: file, line: 1, column: 1),
          "the file is nested more deeply than code is, and is left out",
          "Leave it out, or write it with less nesting.")
        return result
      }
      var parser = Parser(String(decoding: bytes, as: UTF8.self), maximumNestingLevel: maximumNestingLevel)
      let tree = SourceFileSyntax.parse(from: &parser)
      let lines = LineTable(file: file, bytes: bytes)
      var reader = DeclarationReader(conditions: conditions, lines: lines)
      reader.read(tree.statements)
      var result = reader.result
      if RootReader.isWorthReading(bytes) {
        var roots = RootReader(lines: lines, isAside: isAside)
        roots.read(tree)
        result.roots = roots.roots
        result.lists = roots.lists
      }
      if tree.hasError, let place = Self.firstError(in: tree, lines) {
        result.findings.add(
          .unreadableSource, .warning, at: place, "the file cannot be read as Swift from here on",
          "Correct the file, or leave it out; what it declares may be read wrongly.")
      }
      return result
    }

    private static func firstError(in tree: SourceFileSyntax, _ lines: LineTable) -> SourcePlace? {
      var waiting: [Syntax] = [Syntax(tree)]
      while let node = waiting.popLast() {
        if node.is(UnexpectedNodesSyntax.self) || node.as(TokenSyntax.self)?.presence == .missing {
          return lines.place(of: node.positionAfterSkippingLeadingTrivia.utf8Offset)
        }
        waiting += node.children(viewMode: .all).reversed().filter { $0.hasError || $0.is(UnexpectedNodesSyntax.self) }
      }
      return lines.place(of: 0)
    }
  }

  /// Finds lists of types of containers and schemas.
  struct RootReader {
    let lines: LineTable

    let isAside: Bool

    private(set) var roots: [SourceRoots] = []

    /// From variables' initial values.
    private(set) var lists: [String: SourceExpression] = [:]

    /// Whether schemas or containers occur.
    static func isWorthReading(_ bytes: [UInt8]) -> Bool {
      let text = String(decoding: bytes, as: UTF8.self)
      // Lists matter only to containers of the same file.
      return text.contains("Schema") || text.contains("odelContainer")
    }

    /// Uses an explicit stack, safe for any nesting.
    mutating func read(_ file: SourceFileSyntax) {
      var waiting: [Syntax] = [Syntax(file)]
      while let node = waiting.popLast() {
        if let call = node.as(FunctionCallExprSyntax.self) {
          read(call)
        } else if let binding = node.as(PatternBindingSyntax.self) {
          read(binding)
        }
        let inner = node.children(viewMode: .sourceAccurate)
        waiting += inner.reversed().filter { !$0.is(TokenSyntax.self) }
      }
    }

    private mutating func read(_ binding: PatternBindingSyntax) {
      guard let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainName,
        let value = binding.initializer?.value, value.is(ArrayExprSyntax.self)
      else { return }
      let list = SourceExpression(value)
      guard case .array(let elements) = list, !elements.isEmpty,
        elements.allSatisfy({ if case .metatype = $0 { true } else { false } })
      else { return }
      lists[name] = list
    }

    private mutating func read(_ call: FunctionCallExprSyntax) {
      guard let name = Self.name(of: call.calledExpression) else { return }
      let arguments = SourceExpression.Argument.list(call.arguments)
      let models: SourceExpression
      var versionedSchema: TypeReference?
      switch name {
      case "Schema":
        guard let first = arguments.first else { return }
        if first.label == "versionedSchema", case .metatype(let type) = first.value {
          versionedSchema = type
          models = .array([])
        } else if first.label == nil {
          models = first.value
        } else {
          return
        }
      case "ModelContainer", "modelContainer":
        guard arguments.first?.label == "for", let first = arguments.first else { return }
        let others = arguments.dropFirst().prefix { $0.label == nil }
        if case .metatype = first.value {
          models = .array([first.value] + others.map(\.value))
        } else {
          models = first.value
        }
      default: return
      }
      var migrationPlan: TypeReference?
      if case .metatype(let type)? = arguments.first(where: { $0.label == "migrationPlan" })?.value {
        migrationPlan = type
      }
      let around = Self.surroundings(of: Syntax(call))
      roots.append(
        SourceRoots(
          models: models, versionedSchema: versionedSchema, migrationPlan: migrationPlan, scopes: around.scopes,
          isAside: isAside || around.isAside || Self.isInMemory(arguments),
          place: lines.place(of: call.positionAfterSkippingLeadingTrivia.utf8Offset)))
    }

    /// `Schema` for `SwiftData.Schema(…)`, `modelContainer` for `view.modelContainer(…)`.
    private static func name(of called: ExprSyntax) -> String? {
      if let name = called.as(DeclReferenceExprSyntax.self) { return name.baseName.plainName }
      guard let member = called.as(MemberAccessExprSyntax.self) else { return nil }
      let name = member.declName.baseName.plainName
      guard name == "init" else { return name }
      return member.base?.as(DeclReferenceExprSyntax.self)?.baseName.plainName
    }

    private static func isInMemory(_ arguments: [SourceExpression.Argument]) -> Bool {
      arguments.contains { argument in
        switch (argument.label, argument.value) {
        case ("inMemory", .boolean(true)), ("isStoredInMemoryOnly", .boolean(true)): true
        case (_, .call(_, let inner)):
          inner.contains { $0.label == "isStoredInMemoryOnly" && $0.value == .boolean(true) }
        default: false
        }
      }
    }

    /// Returns enclosing types, and whether they are for previews or tests.
    private static func surroundings(of node: Syntax) -> (scopes: [[String]], isAside: Bool) {
      var names: [[String]] = []
      var isAside = false
      var next = node.parent
      while let current = next {
        next = current.parent
        if let group = current.asProtocol((any DeclGroupSyntax).self) {
          let name = Self.names(of: group)
          names.append(name)
          isAside =
            isAside || name.contains { Self.isAside($0) }
            || group.inheritanceClause?.inheritedTypes.contains { TypeReference($0.type).text == "PreviewProvider" }
              == true
        } else if let function = current.as(FunctionDeclSyntax.self) {
          isAside = isAside || Self.isAside(function.name.plainName)
        } else if let binding = current.as(PatternBindingSyntax.self),
          let name = binding.pattern.as(IdentifierPatternSyntax.self)
        {
          isAside = isAside || Self.isAside(name.identifier.plainName)
        } else if let macro = current.as(MacroExpansionDeclSyntax.self) {
          isAside = isAside || macro.macroName.plainName == "Preview"
        } else if let macro = current.as(MacroExpansionExprSyntax.self) {
          isAside = isAside || macro.macroName.plainName == "Preview"
        }
      }
      var scopes: [[String]] = []
      var path: [String] = []
      for name in names.reversed() {
        path += name
        scopes.insert(path, at: 0)
      }
      return (scopes, isAside)
    }

    private static func names(of group: any DeclGroupSyntax) -> [String] {
      if let type = group.as(ExtensionDeclSyntax.self) {
        guard case .named(let components) = TypeReference(type.extendedType) else { return [] }
        return components.map(\.name)
      }
      return group.asProtocol((any NamedDeclSyntax).self).map { [$0.name.plainName] } ?? []
    }

    static func isAside(_ name: String) -> Bool {
      let name = name.lowercased()
      return ["preview", "test", "mock", "sample"].contains { name.contains($0) }
    }
  }
#endif

struct LineTable: Sendable {
  private let file: String

  private var starts = [0]

  init(file: String, bytes: [UInt8]) {
    self.file = file
    for (offset, byte) in bytes.enumerated() where byte == 0x0A { starts.append(offset + 1) }
  }

  func place(of offset: Int) -> SourcePlace {
    let line = max(1, starts.partitioningIndex { $0 > offset })
    return SourcePlace(file: file, line: line, column: offset - starts[line - 1] + 1)
  }
}
