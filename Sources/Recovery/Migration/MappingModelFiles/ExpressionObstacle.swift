/// Why an expression of a mapping model cannot be written in SQL.
struct ExpressionObstacle: Error {
  /// The function, method or class that stands in the way; nil where it is a matter of types or names.
  let function: String?

  /// What exactly, in a plain phrase without a full stop.
  let reason: String

  init(_ reason: String, in function: String? = nil) { (self.function, self.reason) = (function, reason) }
}
