/// How a record of one store differs from the one of the same key in another.
package enum RecordDifference: String, Sendable, Hashable, CaseIterable {
  /// The first store has it, the second has not.
  case missing

  /// The second store has it, the first has not.
  case added

  /// Both have it, with other values.
  case changed
}
