internal import ManagedObjectModel

extension ModelExpression {
  /// In parts and bytes of text.
  static let maximumSize = 65_536

  /// The expression, or a placeholder if too large.
  ///
  /// Archives can reuse parts and expand without limit.
  var bounded: ModelExpression {
    var budget = Self.maximumSize
    spend(&budget)
    return budget >= 0 ? self : .opaque(className: "expression that is too large")
  }

  fileprivate func spend(_ budget: inout Int) {
    budget -= 1
    guard budget >= 0 else { return }
    switch self {
    case .selfObject: break
    case .constant(.string(let text)), .constant(.decimal(let text)), .constant(.opaque(className: let text)),
      .variable(let text), .keyPath(let text), .opaque(className: let text):
      budget -= text.utf8.count
    case .constant: break
    case .keyPathOf(let base, let path):
      budget -= path.utf8.count
      base.spend(&budget)
    case .function(let selector, let arguments):
      budget -= selector.utf8.count
      for argument in arguments where budget >= 0 { argument.spend(&budget) }
    case .method(let target, let selector, let arguments):
      budget -= selector.utf8.count
      target.spend(&budget)
      for argument in arguments where budget >= 0 { argument.spend(&budget) }
    case .aggregate(let elements):
      for element in elements where budget >= 0 { element.spend(&budget) }
    case .conditional(let predicate, let first, let second):
      predicate.spend(&budget)
      first.spend(&budget)
      second.spend(&budget)
    case .fetch(let request, let context, _):
      request.spend(&budget)
      context.spend(&budget)
    }
  }
}

extension ModelPredicate {
  fileprivate func spend(_ budget: inout Int) {
    budget -= 1
    guard budget >= 0 else { return }
    switch self {
    case .always: break
    case .opaque(let className): budget -= className.utf8.count
    case .not(let part): part.spend(&budget)
    case .and(let parts), .or(let parts):
      for part in parts where budget >= 0 { part.spend(&budget) }
    case .comparison(let left, _, let right, _, _):
      left.spend(&budget)
      right.spend(&budget)
    }
  }
}
