/// An expression over a source entity's properties, as one over the columns of its table.
struct BoundExpression {
  /// The expression over the row `o`.
  var sql: String

  /// The attribute, where the expression is nothing but its name.
  var attribute: PropertyPath?

  /// The properties of the source entity that it reads, by their names and by the paths that begin with them.
  var properties: Set<String>

  /// The pieces that it was written in.
  var tokens: [ExpressionToken]
}

extension MappingPathResolver {
  /// Binds an expression in SQL.
  ///
  /// - Parameter place: what the value is for, such as `PersonToAddress.identifier`: no two places get the same
  ///   identifiers.
  func bind(_ text: String, of entityName: String, place: String) throws(ExpressionProblem) -> BoundExpression {
    var parser = try SQLExpressionParser(text) { hasProperty($0, of: entityName) }
    let expression: TypedExpression
    do throws(ExpressionProblem) {
      expression = try parser.expression()
    } catch {
      // A name that is not there is told before what is wrong behind it.
      for reading in parser.readings { _ = try sql(reading, of: entityName, for: place) }
      throw error
    }
    let properties = Set(parser.readings.flatMap { $0.path.prefix(1) + [$0.path.joined(separator: ".")] })
    if case .reading(let reading) = expression.form, reading.function == nil,
      let (path, sql) = attribute(reading.path, of: entityName)
    {
      return BoundExpression(sql: sql, attribute: path, properties: properties, tokens: parser.tokens)
    }
    let sql = try expression.sql { reading throws(ExpressionProblem) in
      try self.sql(reading, of: entityName, for: place)
    }
    return BoundExpression(sql: "(\(sql))", attribute: nil, properties: properties, tokens: parser.tokens)
  }
}
