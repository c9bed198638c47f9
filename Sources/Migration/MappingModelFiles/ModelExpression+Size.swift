internal import ManagedObjectModel

extension ModelExpression {
  /// More than any honest expression has: its parts and the bytes of the text in it.
  static let maximumSize = 65_536

  /// The expression, or where it is too large to be written out, a word for that.
  ///
  /// Parts of an archive can be used over and over, so that a small file may stand for an endless text.
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
