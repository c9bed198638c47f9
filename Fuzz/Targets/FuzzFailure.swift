/// A contradiction that a fuzzed reader was caught in; the machine itself reports crashes and hangs.
package struct FuzzFailure: Error, CustomStringConvertible {
  /// What should have held and did not.
  package let description: String

  init(_ description: String) { self.description = description }
}

/// Throws where something does not hold that holds for every input.
func expect(_ condition: Bool, _ what: @autoclosure () -> String) throws(FuzzFailure) {
  guard condition else { throw FuzzFailure(what()) }
}
