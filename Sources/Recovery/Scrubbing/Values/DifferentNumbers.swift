/// Different numbers, which are put in order and rid of what comes twice whenever there are half as many again.
package struct DifferentNumbers<Number: Comparable & Sendable>: Sendable {
  /// The numbers: in order once ``settle()`` was called.
  package private(set) var numbers: [Number] = []

  /// How many there were when they were last in order.
  private var settled = 0

  /// None.
  package init() {}

  private static var least: Int { 1 << 12 }

  /// Puts a number in; false where there is no room for it.
  ///
  /// - Parameter limit: from how many on there is none, or up to a half more.
  package mutating func insert(_ number: Number, limit: Int) -> Bool {
    guard settled < limit else { return false }
    if numbers.count >= max(Self.least, settled + settled / 2) {
      settle()
      guard settled < limit else { return false }
      // Room for what comes until the next time, and no more.
      numbers.reserveCapacity(max(Self.least, settled + settled / 2))
    }
    numbers.append(number)
    return true
  }

  /// Puts the numbers in order, each once.
  package mutating func settle() {
    numbers.sort()
    var kept = 0
    for index in numbers.indices where kept == 0 || numbers[index] != numbers[kept - 1] {
      numbers[kept] = numbers[index]
      kept += 1
    }
    numbers.removeSubrange(kept...)
    settled = kept
  }
}
