#if SwiftSources
  internal import SwiftSyntax

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
      let values: [Bool?] = anyOf.map { allOf in
        allOf.contains(false) ? false : allOf.contains(nil) ? nil : true
      }
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
